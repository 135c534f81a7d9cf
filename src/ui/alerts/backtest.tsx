import { useState } from 'preact/hooks'

import { Named } from '../explore/named.js'
import { act } from '../lib/act.js'
import { call } from '../lib/api.js'
import { count, counted } from '../lib/format.js'
import { duration } from '../lib/time.js'
import { When } from '../shell/when.js'
import { groupText, type Fields } from './alert-answers.js'

interface BacktestReply {
  readonly from: string
  readonly until: string
  readonly is_complete: boolean
  readonly every_s: number
  readonly firing: number
  readonly transition_count: number
  readonly transitions: readonly {
    readonly at: string
    readonly to: string
    readonly group: readonly string[]
    readonly value: number
  }[]
}

const SHOWN = 30

type Transitions = BacktestReply['transitions']

/** The effect of a transition. A group that had not recovered yet sends no further notice. */
function nameOf(all: Transitions, at: number): string {
  const { to = '', group = [] } = all[at] ?? {}
  const before = all.slice(0, at).findLast((one) => one.group.join() === group.join())
  return to === 'firing' && before?.to === 'recovering' ? 'firing again' : to
}

const groupOf = ({ group_by: names = [] }: Fields, group: readonly string[]): string =>
  groupText(Object.fromEntries(names.map((name, i) => [name, group[i] ?? ''])))

/** The back-test of a rule on the events of the last days. */
export function Backtest({ fields }: { readonly fields: Fields }) {
  const [judged, setJudged] = useState<{ rule: string; found: BacktestReply } | null>(null)
  const [isBusy, setBusy] = useState(false)
  const rule = { ...fields, name: 'back-test' }
  const text = JSON.stringify(rule)
  // The result belongs to another version of the rule than the one shown.
  const isChanged = judged !== null && judged.rule !== text
  const found = isChanged ? null : (judged?.found ?? null)
  const run = (): void => {
    setBusy(true)
    const json = { rule, days: 7 }
    void act(call<BacktestReply>('/api/alert-rules/backtest', { method: 'POST', json }), '').then(
      (done) => {
        setBusy(false)
        if (done !== null) setJudged({ rule: text, found: done.value })
      },
    )
  }
  return (
    <section class="card">
      <h2>Back-test</h2>
      <p class="line">
        <button onClick={run} disabled={isBusy}>
          {isBusy ? 'Back-testing …' : 'Back-test the last 7 days'}
        </button>
        {isChanged && <span class="note">The rule was changed after this back-test.</span>}
        {found !== null && (
          <span role="status">
            It would have fired {found.firing === 1 ? 'once' : `${count(found.firing)} times`}
            {!found.is_complete && (
              <>
                {' '}
                up to <When at={found.until} />, which took all the time there is
              </>
            )}
            .
          </span>
        )}
      </p>
      {found !== null && (
        <>
          <ol class="history">
            {found.transitions.slice(0, SHOWN).map((one, i) => (
              <li key={i}>
                <span class={`state ${one.to}`}>{nameOf(found.transitions, i)}</span>{' '}
                <When at={one.at} /> <Named text={groupOf(fields, one.group)} /> {count(one.value)}
              </li>
            ))}
          </ol>
          <p class="note">
            Evaluated every {duration(found.every_s * 1000)}, on events counted when they arrived;{' '}
            {counted(found.transition_count, 'change')} in all
          </p>
        </>
      )}
    </section>
  )
}
