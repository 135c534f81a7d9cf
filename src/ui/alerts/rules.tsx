import { Named } from '../explore/named.js'
import { act } from '../lib/act.js'
import { call, messageOf } from '../lib/api.js'
import { counted } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { usePaged } from '../lib/paged.js'
import { may } from '../lib/session.js'
import { ImportButton } from '../shell/import-button.js'
import { notice } from '../shell/notice.js'
import { MoreButton } from '../shell/more-button.js'
import { When } from '../shell/when.js'
import { fieldsOf, kindText, type Rule } from './alert-answers.js'
import { Problem } from '../shell/problem.js'

/** The rules, whether they fire, and whether they are evaluated. */
export function Rules() {
  const list = usePaged<Rule>('/api/alert-rules', { limit: 200 })
  const toggle = (rule: Rule): void => {
    const json = { ...fieldsOf(rule), enabled: rule.enabled === false }
    void act(call(`/api/alert-rules/${rule.id}`, { method: 'PUT', json }), '').then(() =>
      list.reload(),
    )
  }
  if (list.error !== null) return <Problem of={list} />
  return (
    <>
      {may('manager') && <Tools onImported={list.reload} />}
      {list.items?.length === 0 && (
        <div class="nothing">
          <Icon name="bell" size={22} />
          <h2>No rule yet</h2>
          <p>
            A search becomes one by <em>Alert on this</em> in <a href="/explore">Explore</a>.
          </p>
        </div>
      )}
      {list.items !== null && list.items.length > 0 && (
        <div class="table-room">
          <table>
            <thead>
              <tr>
                <th>Rule</th>
                <th>State</th>
                <th>Fires at</th>
                <th>Evaluated to</th>
                <th>On</th>
              </tr>
            </thead>
            <tbody>
              {list.items.map((rule) => (
                <tr key={rule.id}>
                  <td class="long">
                    <span class={`badge ${rule.severity.toLowerCase()}`}>{rule.severity}</span>{' '}
                    <a href={`/alerts/rules/${rule.id}`}>
                      <Named text={rule.name} />
                    </a>
                    {rule.q !== undefined && rule.q !== '' && <code class="note"> {rule.q}</code>}
                  </td>
                  <td title={rule.problem ?? ''}>
                    <RuleState rule={rule} />
                  </td>
                  <td class="long">{kindText(rule.kind)}</td>
                  <td>
                    <When at={rule.evaluated_at} as="ago" />
                  </td>
                  <td>
                    <label class="switch">
                      <input
                        type="checkbox"
                        role="switch"
                        checked={rule.enabled !== false}
                        disabled={!may('manager')}
                        aria-label={`${rule.name} is evaluated`}
                        onChange={() => toggle(rule)}
                      />
                    </label>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <MoreButton list={list} />
    </>
  )
}

export function RuleState({ rule }: { readonly rule: Rule }) {
  if (rule.problem !== null) return <span class="state pending">problem</span>
  if (rule.enabled === false) return <span class="note">off</span>
  if (rule.firing > 0)
    return <span class="state firing">{rule.firing === 1 ? 'fires' : `${rule.firing} fire`}</span>
  return <span class="state resolved">calm</span>
}

function Tools({ onImported }: { readonly onImported: () => void }) {
  const take = (file: File): void => {
    const send = async (): Promise<{ readonly rules: readonly unknown[] }> => {
      let json: unknown
      try {
        json = JSON.parse(await file.text())
      } catch {
        throw new TypeError('not JSON')
      }
      return call('/api/alert-rules/import', { method: 'POST', json })
    }
    void send().then(
      ({ rules }) => {
        notice(`Imported: ${counted(rules.length, 'rule')}.`)
        onImported()
      },
      (error: unknown) =>
        notice(error instanceof TypeError ? 'The file is not JSON.' : messageOf(error), 'problem'),
    )
  }
  return (
    <p class="line above-table">
      <a class="button primary" href="/alerts/rules/new">
        <Icon name="plus" size={14} /> New rule
      </a>
      <a class="button" href="/api/alert-rules/export" download="alert-rules.json">
        <Icon name="download" size={14} /> Export
      </a>
      <ImportButton onFile={take} />
    </p>
  )
}
