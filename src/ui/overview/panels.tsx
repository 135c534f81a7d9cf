import type { KpiSnapshot } from '../../model/kpi.js'
import { Named } from '../explore/named.js'
import { ForecastChart } from '../insights/forecast.js'
import type { Snapshot } from '../insights/insight-answers.js'
import { ApiError, call, pathWith } from '../lib/api.js'
import { count, counted, percent, short } from '../lib/format.js'
import { askLedger } from '../lib/ledger.js'
import { useLoad } from '../lib/load.js'
import { clauseLine } from '../lib/query-edit.js'
import { TemplateText } from '../lib/template-text.js'
import { zone } from '../lib/settings.js'
import { ago, clock, fullTime, shortTime } from '../lib/time.js'
import { Panel } from './panel.js'

interface TopErrorsProps {
  readonly now: KpiSnapshot | null
  /** Whether the connection for the figures is lost. */
  readonly isLost: boolean
}

export function TopErrors({ now, isLost }: TopErrorsProps) {
  const items = now?.top_errors ?? []
  const most = Math.max(...items.map((one) => one.count), 1)
  return (
    <Panel title="Most errors, 24 h" isWaiting={now === null && !isLost}>
      {now === null && isLost && <p class="note">Not known.</p>}
      {now !== null && items.length === 0 && <p class="note">No errors.</p>}
      <ul class="ranked">
        {items.map((one) => (
          <li key={one.template_id}>
            <a
              href={pathWith('/explore', {
                q: `severity>=error template:${one.template_id}`,
                from: 'now-24h',
                to: 'now',
              })}
            >
              <span class="bar error" style={{ width: `${(one.count / most) * 100}%` }} />
              <TemplateText text={one.template_text} />
              <b>{short(one.count)}</b>
            </a>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

interface TopSources {
  readonly items: readonly {
    readonly source: string
    readonly count: number
    readonly error_count: number
    readonly error_rate_pct: number
    readonly last_event_at: string
  }[]
}

export function Sources() {
  const loaded = useLoad('top sources', (signal) =>
    call<TopSources>('/api/analytics/top-sources?window=24h&limit=8', { signal }),
  )
  const { value } = loaded
  const items = value?.items ?? []
  const most = Math.max(...items.map((one) => one.count), 1)
  return (
    <Panel title="Sources, 24 h" of={loaded}>
      {value !== null && items.length === 0 && <p class="note">No events.</p>}
      <ul class="ranked">
        {items.map((one) => (
          <li key={one.source}>
            <a
              href={pathWith('/explore', {
                q: clauseLine('source', one.source),
                from: 'now-24h',
                to: 'now',
              })}
            >
              <span class="bar" style={{ width: `${(one.count / most) * 100}%` }} />
              <span>{one.source}</span>
              {one.error_count > 0 && (
                <small class="bad">{percent(one.error_rate_pct / 100)} errors</small>
              )}
              <b>{short(one.count)}</b>
            </a>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

export const RecentAlerts = ({ now }: { readonly now: KpiSnapshot }) => (
  <Panel title="Newest alerts">
    {now.recent_alerts.length === 0 && <p class="note">There has been no alert.</p>}
    <ul class="alerts">
      {now.recent_alerts.map((alert) => (
        <li key={alert.id}>
          <span class={`badge ${alert.severity.toLowerCase()}`}>{alert.severity}</span>
          <span>
            <Named text={alert.title} />
          </span>
          <time
            dateTime={alert.created_at}
            title={fullTime(Date.parse(alert.created_at), zone.value)}
          >
            {ago(Date.parse(alert.created_at), Date.now())}
          </time>
        </li>
      ))}
    </ul>
  </Panel>
)

/** Whether everything that was acknowledged is stored. */
export function Ledger({ minute }: { readonly minute: number }) {
  const loaded = useLoad(`ledger ${minute}`, askLedger)
  const { value } = loaded
  if (value === null) return <Panel title="Acknowledged and stored" of={loaded} />
  const { acknowledged, stored, dead_letters: dead, waiting, difference } = value
  const [sinceMs, untilMs] = [Date.parse(value.since), Date.parse(value.until)]
  return (
    <Panel title="Acknowledged and stored">
      <dl class="ledger">
        <div>
          <dt>acknowledged</dt>
          <dd>{count(acknowledged)}</dd>
        </div>
        <div>
          <dt>stored</dt>
          <dd>{count(stored)}</dd>
        </div>
        <div>
          <dt>dead letters</dt>
          <dd>{count(dead)}</dd>
        </div>
        <div>
          <dt>{difference < 0 ? 'more than acknowledged' : 'missing'}</dt>
          <dd class={difference === 0 ? '' : 'bad'}>{count(Math.abs(difference))}</dd>
        </div>
      </dl>
      <p class="note">
        {untilMs > sinceMs
          ? `Received ${shortTime(sinceMs, zone.value)} to ${clock(untilMs, zone.value)}.`
          : 'Counted from the next ten seconds on.'}
        {waiting > 0 && ` ${counted(waiting, 'message')} of later wait in the write-ahead log.`}
      </p>
    </Panel>
  )
}

/** The applications with the lowest health; hidden when no source belongs to an application. */
export function Applications({ now }: { readonly now: KpiSnapshot }) {
  if (now.total_applications === 0) return null
  const unstable = now.top_unstable_apps.filter(
    ({ name }) => !now.top_critical_apps.some((one) => one.name === name),
  )
  return (
    <Panel title={`Applications: ${now.active_applications} of ${now.total_applications} active`}>
      <ul class="ranked">
        {now.top_critical_apps.map((app) => (
          <li key={app.name}>
            <a href={inDay(app.name, 'priority:P1')}>
              <span>{app.name}</span>
              <small class="bad">{counted(app.critical_count, 'P1')}</small>
              <b title="health, of 100">{app.health_score}</b>
            </a>
          </li>
        ))}
        {unstable.map((app) => (
          <li key={app.name}>
            <a href={inDay(app.name, 'severity>=error')}>
              <span>{app.name}</span>
              <small class="bad">{percent(app.error_rate_pct / 100)} errors</small>
            </a>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

const inDay = (application: string, clause: string): string =>
  pathWith('/explore', {
    q: `${clauseLine('application', application)} ${clause}`,
    from: 'now-24h',
    to: 'now',
  })

/** The forecast, when there is one. */
export function Expected() {
  const loaded = useLoad('forecast', (signal) =>
    call<Snapshot>('/api/ai-insights/snapshot', { signal }),
  )
  const { value, error } = loaded
  const isNone = error instanceof ApiError ? error.status === 404 : error === null && value === null
  if (isNone || value?.forecast.events.hours.length === 0) return null
  return (
    <Panel title="The next 24 hours" class="wide" of={loaded}>
      {value !== null && <ForecastChart forecast={value.forecast.events} title="Events an hour" />}
    </Panel>
  )
}
