import { useEffect } from 'preact/hooks'

import { Named } from '../explore/named.js'
import { Icon } from '../lib/icon.js'
import { learnPeople, personName } from '../lib/people.js'
import { usePaged } from '../lib/paged.js'
import { setParams, place } from '../lib/router.js'
import { may } from '../lib/session.js'
import { MoreButton } from '../shell/more-button.js'
import { draft } from '../shell/open-dialogs.js'
import { TopBar } from '../shell/top-bar.js'
import { When } from '../shell/when.js'
import type { IncidentFacts, Status } from './incident-answers.js'
import { Problem } from '../shell/problem.js'

/** The columns of the board; closed incidents are listed on their own. */
const COLUMNS = ['open', 'acknowledged', 'investigating', 'resolved'] as const
const NAMES: Readonly<Record<Status, string>> = {
  open: 'Open',
  acknowledged: 'Acknowledged',
  investigating: 'Investigating',
  resolved: 'Resolved',
  closed: 'Closed',
}

/** The incidents by status, or the list of the closed ones. */
export function Board() {
  const isClosed = place.value.params.get('show') === 'closed'
  const list = usePaged<IncidentFacts>('/api/incidents', {
    limit: 200,
    status: isClosed ? 'closed' : COLUMNS.join(','),
  })
  useEffect(() => {
    document.title = 'Incidents'
    learnPeople()
  }, [])
  return (
    <main class="screen incidents">
      <TopBar title="Incidents">
        <div class="segments" role="group" aria-label="Shown">
          <button
            aria-pressed={!isClosed}
            onClick={() => setParams({ show: null }, { replace: true })}
          >
            At work
          </button>
          <button
            aria-pressed={isClosed}
            onClick={() => setParams({ show: 'closed' }, { replace: true })}
          >
            Closed
          </button>
        </div>
        {may('manager') && (
          <button
            aria-label="New incident"
            onClick={() => {
              draft.value = { title: '', severity: 'P2', source: null, event_ids: [], evidence: [] }
            }}
          >
            <Icon name="plus" size={14} /> <span class="wide-only">New</span>
          </button>
        )}
      </TopBar>
      <div class="scroll">
        <Problem of={list} />
        {list.items?.length === 0 && <NoIncident isClosed={isClosed} />}
        {list.items !== null && list.items.length > 0 && (
          <div class="board">
            {(isClosed ? (['closed'] as const) : COLUMNS).map((status) => (
              <Column
                key={status}
                status={status}
                all={(list.items ?? []).filter((one) => one.status === status)}
              />
            ))}
          </div>
        )}
        <MoreButton list={list} />
      </div>
    </main>
  )
}

const NoIncident = ({ isClosed }: { readonly isClosed: boolean }) => (
  <div class="nothing">
    <Icon name="flame" size={22} />
    <h2>{isClosed ? 'No closed incident' : 'No incident'}</h2>
    {!isClosed && (
      <p>
        An event in <a href="/explore">Explore</a> opens one by its flame, or the key <kbd>i</kbd>,
        with the search that found it.
      </p>
    )}
  </div>
)

interface ColumnProps {
  readonly status: Status
  readonly all: readonly IncidentFacts[]
}

const Column = ({ status, all }: ColumnProps) => (
  <section class="lane" aria-label={NAMES[status]}>
    <h2>
      {NAMES[status]} <span class="note">{all.length}</span>
    </h2>
    <ul>
      {all.map((incident) => (
        <li key={incident.id}>
          <a
            class={`incident-card ${incident.severity.toLowerCase()}`}
            href={`/incidents/${incident.id}`}
          >
            <strong>
              <Named text={incident.title} />
            </strong>
            <span class="facts">
              <span class={`badge ${incident.severity.toLowerCase()}`}>{incident.severity}</span>
              {incident.source !== null && <span>{incident.source}</span>}
              <span>
                {incident.assignee_id === null ? 'nobody' : personName(incident.assignee_id)}
              </span>
              <When at={incident.created_at} as="ago" />
            </span>
          </a>
        </li>
      ))}
    </ul>
  </section>
)
