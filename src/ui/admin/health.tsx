import { call } from '../lib/api.js'
import { count, perSecond } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import { may } from '../lib/session.js'
import { duration } from '../lib/time.js'
import { act } from '../lib/act.js'
import { ConfirmButton } from '../shell/confirm-button.js'
import { When } from '../shell/when.js'
import { Problem } from '../shell/problem.js'

interface Check {
  readonly status: string
  readonly latency_ms?: number
  readonly detail?: string
}

interface HealthReply {
  readonly status: string
  readonly version: string
  readonly uptime_s: number
  readonly checks: Readonly<Record<string, Check>>
}

interface Collector {
  readonly protocol: string
  readonly source: string | null
  readonly received: number
  readonly stored: number
  readonly rejected: number
  readonly bytes: number
  readonly rate: number
  readonly last_event_at: string | null
}

const CHECKS: Readonly<Record<string, string>> = {
  clickhouse: 'ClickHouse',
  state: 'Shared state',
  spool: 'Queue on disk',
  workers: 'Worker threads',
  alerts: 'Alert rules',
}

/** The health of the service's parts, and the received messages by protocol. */
export function Health() {
  const health = useLoad('health', (signal) =>
    call<HealthReply>('/api/monitoring/health', { signal }),
  )
  const collectors = useLoad('collectors', (signal) =>
    call<readonly Collector[]>('/api/monitoring/collectors', { signal }),
  )
  // Nothing is shown before the reply, because it would be pushed down.
  if (health.value === null && health.error === null) return null
  return (
    <>
      <Problem of={health} />
      {health.value !== null && <Checks reply={health.value} />}
      <section class="card flush">
        <h2>Received since the start, by protocol and source</h2>
        <Problem of={collectors} />
        {collectors.value !== null && <Collectors all={collectors.value} />}
      </section>
      {may('admin') && <Clear />}
    </>
  )
}

const Checks = ({ reply }: { readonly reply: HealthReply }) => (
  <>
    <p class="note above-table">
      Version {reply.version}, up for {duration(reply.uptime_s * 1000)}
    </p>
    <div class="tiles">
      {Object.entries(reply.checks).map(([name, check]) => (
        <div key={name} class={`tile ${check.status === 'ok' ? '' : 'bad'}`}>
          <span class="name">{CHECKS[name] ?? name}</span>
          <span class="figure">
            <b>{check.status}</b>
          </span>
          <span class="note">
            {check.latency_ms !== undefined && `${check.latency_ms.toFixed(1)} ms`}
            {check.detail !== undefined && `, ${check.detail}`}
          </span>
        </div>
      ))}
    </div>
  </>
)

/** The most lines of the table. */
const MOST = 200

function Collectors({ all }: { readonly all: readonly Collector[] }) {
  if (all.length === 0) return <p class="note">Nothing yet.</p>
  return (
    <div class="table-room bare">
      <table>
        <thead>
          <tr>
            <th>Protocol</th>
            <th>Source</th>
            <th class="number">Received</th>
            <th class="number">Stored</th>
            <th class="number">Refused</th>
            <th class="number">MB</th>
            <th class="number">/s</th>
            <th>Newest</th>
          </tr>
        </thead>
        <tbody>
          {all.slice(0, MOST).map((one) => (
            <tr key={`${one.protocol} ${one.source}`}>
              <td>{one.protocol}</td>
              <td>{one.source ?? <span class="note">several</span>}</td>
              <td class="number">{count(one.received)}</td>
              <td class="number">{count(one.stored)}</td>
              <td class={`number ${one.rejected > 0 ? 'bad' : ''}`}>{count(one.rejected)}</td>
              <td class="number">{(one.bytes / 1e6).toFixed(1)}</td>
              <td class="number">{perSecond(one.rate)}</td>
              <td>
                <When at={one.last_event_at} as="ago" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {all.length > MOST && (
        <p class="note">
          {MOST} of {count(all.length)} are listed.
        </p>
      )}
    </div>
  )
}

const Clear = () => (
  <section class="card clear">
    <h2>Delete everything</h2>
    <p class="note">
      Events, templates, sources, alerts, incidents, tasks, applications and dead letters. Users,
      ingest keys and the audit trail stay.
    </p>
    <ConfirmButton
      label="Delete all data …"
      sure="Delete all data now"
      onSure={() =>
        void act(call('/api/monitoring/clear-all', { method: 'DELETE' }), 'Everything is deleted.')
      }
    />
  </section>
)
