import { useEffect } from 'preact/hooks'

import { learnPeople, personName } from '../lib/people.js'
import { usePaged } from '../lib/paged.js'
import { place, setParams } from '../lib/router.js'
import { MoreButton } from '../shell/more-button.js'
import { When } from '../shell/when.js'
import { Problem } from '../shell/problem.js'

interface Entry {
  readonly id: string
  readonly at: string
  readonly actor_id: string | null
  readonly action: string
  readonly target: string
  readonly outcome: string
  readonly ip: string
  readonly detail: Readonly<Record<string, unknown>>
}

/** Who has changed what. */
export function Audit() {
  const action = place.value.params.get('action')
  const actor = place.value.params.get('actor')
  const list = usePaged<Entry>('/api/monitoring/audit', { limit: 100, action, actor_id: actor })
  useEffect(learnPeople, [])
  if (list.error !== null) return <Problem of={list} />
  return (
    <>
      {(action !== null || actor !== null) && (
        <p class="line above-table">
          <span>
            Only {action} {actor !== null && `of ${personName(actor)}`}
          </span>
          <button class="quiet" onClick={() => setParams({ action: null, actor: null })}>
            Show all
          </button>
        </p>
      )}
      <div class="table-room">
        <table>
          <thead>
            <tr>
              <th>Time</th>
              <th>Who</th>
              <th>What</th>
              <th>Of</th>
              <th>Outcome</th>
              <th>Address</th>
            </tr>
          </thead>
          <tbody>
            {(list.items ?? []).map((entry) => (
              <Line key={entry.id} entry={entry} />
            ))}
          </tbody>
        </table>
      </div>
      <MoreButton list={list} />
    </>
  )
}

const Line = ({ entry }: { readonly entry: Entry }) => (
  <tr>
    <td>
      <When at={entry.at} />
    </td>
    <td>
      {entry.actor_id === null ? (
        <span class="note">nobody</span>
      ) : (
        <button class="link" onClick={() => setParams({ actor: entry.actor_id })}>
          {personName(entry.actor_id)}
        </button>
      )}
    </td>
    <td>
      <button class="link" onClick={() => setParams({ action: entry.action })}>
        {entry.action}
      </button>
    </td>
    <td class="long" title={JSON.stringify(entry.detail)}>
      {entry.target}
    </td>
    <td class={entry.outcome === 'ok' ? '' : 'bad'}>{entry.outcome}</td>
    <td>{entry.ip}</td>
  </tr>
)
