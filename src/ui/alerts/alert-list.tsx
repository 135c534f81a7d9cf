import { useEffect } from 'preact/hooks'

import { matchersOfGroup, printMatchers } from '../../query/matcher-line.js'
import { Named, named } from '../explore/named.js'
import { act } from '../lib/act.js'
import { call, pathWith } from '../lib/api.js'
import { useEvery } from '../lib/every.js'
import { count } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useLoad } from '../lib/load.js'
import { learnPeople, personName } from '../lib/people.js'
import { usePaged } from '../lib/paged.js'
import { clauseLine, joined } from '../lib/query-edit.js'
import { place, setParams } from '../lib/router.js'
import { may } from '../lib/session.js'
import { MoreButton } from '../shell/more-button.js'
import { draft } from '../shell/open-dialogs.js'
import { refreshStatus, unreadAlerts } from '../shell/status.js'
import { When } from '../shell/when.js'
import { groupText, type Alert, type Rule } from './alert-answers.js'
import { Problem } from '../shell/problem.js'

const PAGE = 100
/** The longest title of an incident. */
const MOST_OF_TITLE = 300
const REFRESH_MS = 3000

const SHOWN = {
  firing: { name: 'Firing', params: { state: 'firing' }, nothing: 'Nothing fires' },
  unread: { name: 'Unread', params: { read: false }, nothing: 'Nothing to read' },
  all: { name: 'All', params: {}, nothing: 'No alert' },
} as const
type Shown = keyof typeof SHOWN
const isShown = (name: string | null): name is Shown => name !== null && Object.hasOwn(SHOWN, name)

/** The firing and resolved alerts. */
export function AlertList() {
  const given = place.value.params.get('show')
  const shown = isShown(given) ? given : 'all'
  const rule = place.value.params.get('rule')
  const ofRule = rule === null ? {} : { rule_id: rule }
  const list = usePaged<Alert>('/api/alerts', { limit: PAGE, ...SHOWN[shown].params, ...ofRule })
  useEffect(learnPeople, [])
  const open = unreadAlerts()
  const rules = useLoad('rules', (signal) =>
    call<{ readonly items: readonly Rule[] }>('/api/alert-rules?limit=200', { signal }),
  )
  useEvery(REFRESH_MS, () => {
    // The list is not reloaded after further pages were read, which would drop them.
    if ((list.items ?? []).length <= PAGE) list.reload()
  })
  const change = (work: Promise<unknown>, said: string): void =>
    void act(work, said).then(() => {
      list.reload()
      void refreshStatus()
    })
  return (
    <>
      <div class="line above-table">
        <div class="segments" role="group" aria-label="Shown">
          {Object.keys(SHOWN)
            .filter(isShown)
            .map((name) => (
              <button
                key={name}
                aria-pressed={name === shown}
                onClick={() => setParams({ show: name === 'all' ? null : name }, { replace: true })}
              >
                {SHOWN[name].name}
              </button>
            ))}
        </div>
        {rule !== null && (
          <button class="quiet" onClick={() => setParams({ rule: null })}>
            Of one rule · show all
          </button>
        )}
        {may('manager') && open > 0 && (
          <button
            class="quiet"
            onClick={() =>
              change(call('/api/alerts/read-all', { method: 'POST' }), 'All are marked as read.')
            }
          >
            <Icon name="check" size={14} /> Mark {count(open)} as read
          </button>
        )}
      </div>
      <Problem of={list} />
      {list.items?.length === 0 && (
        <div class="nothing">
          <Icon name="bell" size={22} />
          <h2>{SHOWN[shown].nothing}</h2>
          <p>
            <a href="/alerts/rules">Rules</a> say when something becomes one.
          </p>
        </div>
      )}
      <ul class="alert-list">
        {(list.items ?? []).map((alert) => (
          <Line
            key={alert.id}
            alert={alert}
            rule={rules.value?.items.find(({ id }) => id === alert.rule_id)}
            onChange={change}
          />
        ))}
      </ul>
      <MoreButton list={list} />
    </>
  )
}

interface LineProps {
  readonly alert: Alert
  readonly rule: Rule | undefined
  readonly onChange: (work: Promise<unknown>, said: string) => void
}

function Line({ alert, rule, onChange }: LineProps) {
  const { id, title, severity, state, group, acknowledged_by: by } = alert
  return (
    <li class={`${severity.toLowerCase()} ${alert.read ? '' : 'unread'}`}>
      <span class={`badge ${severity.toLowerCase()}`}>{severity}</span>
      <div class="what">
        <strong>
          <Named text={title} />
        </strong>
        <p class="note">
          {state !== null && <span class={`state ${state}`}>{state}</span>}{' '}
          {!title.includes(groupText(group)) && (
            <span>
              <Named text={groupText(group)} />{' '}
            </span>
          )}
          {alert.value !== null && state === 'firing' && rule?.kind.type !== 'absence' && (
            <span>with {count(alert.value)} </span>
          )}
          since <When at={alert.started_at ?? alert.created_at} />
          {alert.resolved_at !== null && (
            <>
              , resolved <When at={alert.resolved_at} />
            </>
          )}
          {by !== null && `, ${careOf(personName(by))}`}
        </p>
      </div>
      <span class="tools">
        {alert.rule_id !== null && (
          <a class="button" href={`/alerts/rules/${alert.rule_id}`}>
            Rule
          </a>
        )}
        <AlertEvents alert={alert} rule={rule} />
        {may('manager') && by === null && (
          <button
            onClick={() =>
              onChange(call(`/api/alerts/${id}/acknowledge`, { method: 'POST' }), 'It is yours.')
            }
          >
            Acknowledge
          </button>
        )}
        {may('manager') && state === 'firing' && (
          <a
            class="button"
            href={pathWith('/alerts/quiet', { silence: silenceOf(alert) })}
            title="Mute for a while"
          >
            Silence
          </a>
        )}
        {may('manager') && (
          <button
            class="quiet square"
            aria-label={`Open an incident for ${title}`}
            title="Open an incident"
            onClick={() => {
              const { event_ids: events, related_source: source } = alert
              draft.value = {
                title: named(title).slice(0, MOST_OF_TITLE),
                severity,
                source,
                event_ids: events,
                alert_ids: [id],
                evidence: [],
              }
            }}
          >
            <Icon name="flame" size={14} />
          </button>
        )}
      </span>
    </li>
  )
}

const careOf = (name: string): string => (name === 'you' ? 'you take care' : `${name} takes care`)

/** The matchers of a silence for the alerts of this group of the rule. */
const silenceOf = ({ rule_id: rule, group }: Alert): string =>
  printMatchers(matchersOfGroup(rule, group ?? {}))

/** The events of an alert, as far as they are known. */
function AlertEvents({ alert, rule }: Pick<LineProps, 'alert' | 'rule'>) {
  const [first] = alert.event_ids
  if (first !== undefined)
    return (
      <a class="button" href={`/events/${first}`}>
        Event
      </a>
    )
  const q = lineOf(alert, rule)
  if (q === null) return null
  const around = Date.parse(alert.started_at ?? alert.created_at)
  const from = new Date(around - 1_800_000).toISOString()
  const to = new Date(around + 1_800_000).toISOString()
  return (
    <a class="button" href={pathWith('/explore', { q, from, to })}>
      Events
    </a>
  )
}

/** The events of an alert as a line of the query language; null when it is not about events. */
function lineOf({ group, related_source: related }: Alert, rule: Rule | undefined): string | null {
  // The groups of anomalies and of dead letters are not fields of events.
  if (rule === undefined || rule.kind.type === 'anomaly' || rule.kind.type === 'dead_letters') {
    const source = group?.['source'] ?? related ?? ''
    return source === '' ? null : clauseLine('source', source)
  }
  const part = rule.kind.type === 'ratio' ? [rule.kind.part] : []
  const ofGroup = Object.entries(group ?? {}).map(([name, value]) => clauseLine(name, value))
  return joined([rule.q ?? '', ...part, ...ofGroup])
}
