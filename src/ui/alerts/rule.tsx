import { useState } from 'preact/hooks'

import { Named } from '../explore/named.js'
import { act } from '../lib/act.js'
import { call } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { useLoad } from '../lib/load.js'
import { go, place } from '../lib/router.js'
import { may } from '../lib/session.js'
import { ConfirmButton } from '../shell/confirm-button.js'
import { fieldsOf, type Fields, type Rule } from './alert-answers.js'
import { Backtest } from './backtest.js'
import { History } from './history.js'
import { RuleChart } from './rule-chart.js'
import { RuleForm } from './rule-form.js'
import { RuleState } from './rules.js'
import { Problem } from '../shell/problem.js'

const MOST_OF_NAME = 120

const fresh = (q: string, name: string): Fields => ({
  name: name.slice(0, MOST_OF_NAME),
  severity: 'P2',
  q,
  kind: { type: 'threshold', window: '5m', op: '>', fire: 10 },
})

/**
 * A rule with its chart and history. Without an id it is a new one with the query of `?q=`, and
 * with the name of `?name=` or the query as its name.
 */
export function RuleScreen({ id }: { readonly id: string | null }) {
  const { params } = place.value
  const given = params.get('q') ?? ''
  const [revision, setRevision] = useState(0)
  const [shown, setShown] = useState<Fields | null>(
    id === null ? fresh(given, params.get('name') ?? given) : null,
  )
  const loaded = useLoad(id === null ? null : `rule ${id} ${revision}`, (signal) =>
    call<Rule>(`/api/alert-rules/${id}`, { signal }),
  )
  const { value: rule } = loaded
  if (loaded.error !== null) return <Problem of={loaded} what="rule" />
  const fields = shown ?? (rule === null ? null : fieldsOf(rule))
  if (fields === null) return null
  const save = async (next: Fields): Promise<void> => {
    const path = id === null ? '/api/alert-rules' : `/api/alert-rules/${id}`
    const saved = await call<Rule>(path, { method: id === null ? 'POST' : 'PUT', json: next })
    if (id === null) go(`/alerts/rules/${saved.id}`)
    else setRevision((n) => n + 1)
  }
  return (
    <>
      <p class="line above-table">
        <a class="back" href="/alerts/rules">
          <Icon name="chevron-left" size={14} /> Rules
        </a>
        <strong>
          <Named text={rule?.name ?? 'New rule'} />
        </strong>
        {rule !== null && <RuleState rule={rule} />}
        {rule?.problem != null && <span class="problem">{rule.problem}</span>}
        {rule !== null && may('manager') && (
          <ConfirmButton
            label="Delete …"
            sure="Delete the rule; its alerts resolve"
            onSure={() =>
              void act(
                call(`/api/alert-rules/${rule.id}`, { method: 'DELETE' }),
                `${rule.name} is deleted.`,
              ).then((done) => done !== null && go('/alerts/rules'))
            }
          />
        )}
      </p>
      <div class="panels two">
        <RuleForm key={rule?.version ?? 0} fields={fields} onChange={setShown} onSave={save} />
        <div class="stack">
          <RuleChart fields={fields} />
          <Backtest fields={fields} />
          {rule !== null && <History rule={rule} />}
        </div>
      </div>
    </>
  )
}
