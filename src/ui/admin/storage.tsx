import { call } from '../lib/api.js'
import { count, percent } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import { When } from '../shell/when.js'
import { Problem } from '../shell/problem.js'

interface StorageReply {
  readonly retention_days: number
  readonly by_severity: Readonly<Record<string, number>>
  readonly max_disk_share: number | null
  readonly max_disk_bytes: number | null
  readonly used_share: number | null
  readonly dropped: { readonly day: string; readonly at: string } | null
  readonly stored: readonly {
    readonly table: string
    readonly kept_days: number
    readonly rows: number
    readonly bytes: number
    readonly oldest_day: string
    readonly newest_day: string
  }[]
}

const TABLES: Readonly<Record<string, string>> = {
  events: 'Events',
  event_occurrences: 'Their repeats',
  dead_letters: 'Dead letters',
}

const sizes = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 })

function size(bytes: number): string {
  if (bytes >= 1e9) return `${sizes.format(bytes / 1e9)} GB`
  return bytes >= 1e6 ? `${sizes.format(bytes / 1e6)} MB` : `${sizes.format(bytes / 1e3)} kB`
}

/** The retention of events and their size on disk. */
export function Storage() {
  const loaded = useLoad('storage', (signal) =>
    call<StorageReply>('/api/monitoring/storage', { signal }),
  )
  if (loaded.value === null) return <Problem of={loaded} />
  return (
    <>
      <Limits reply={loaded.value} />
      <section class="card flush">
        <h2>Stored, by retention</h2>
        <Stored reply={loaded.value} />
      </section>
    </>
  )
}

function Limits({ reply }: { readonly reply: StorageReply }) {
  const { by_severity: bySeverity, dropped, max_disk_share: share, used_share: used } = reply
  const bytes = reply.stored.reduce((sum, one) => sum + one.bytes, 0)
  const limit =
    share !== null
      ? `at most ${percent(share)} of the disk`
      : reply.max_disk_bytes !== null
        ? `at most ${size(reply.max_disk_bytes)}`
        : 'no limit (MAX_DISK)'
  const isNear = used !== null && share !== null && used > share - 0.05
  const own = Object.entries(bySeverity)
  return (
    <div class="tiles">
      <div class="tile">
        <span class="name">Kept for at most</span>
        <span class="figure">
          <b>{reply.retention_days}</b> days
        </span>
        <span class="note">
          {own.length === 0
            ? 'every severity (RETENTION_DAYS)'
            : own.map(([name, days]) => `${name} ${days} d`).join(', ')}
        </span>
      </div>
      <div class="tile">
        <span class="name">Stored</span>
        <span class="figure">
          <b>{size(bytes)}</b>
        </span>
        <span class="note">compressed; {limit}</span>
      </div>
      <div class={`tile ${isNear ? 'warn' : ''}`}>
        <span class="name">Disk</span>
        <span class="figure">
          <b>{used === null ? '–' : percent(used)}</b> {used !== null && 'used'}
        </span>
        <span class="note">
          {used === null ? 'of a ClickHouse server it is not known here' : 'by everything on it'}
        </span>
      </div>
      <div class={`tile ${dropped === null ? '' : 'bad'}`}>
        <span class="name">Dropped for the disk</span>
        <span class="figure">
          <b>{dropped === null ? 'nothing' : dropped.day}</b>
        </span>
        <span class="note">
          {dropped === null ? (
            'by MAX_DISK'
          ) : (
            <>
              what arrived on this day, <When at={dropped.at} as="ago" />
            </>
          )}
        </span>
      </div>
    </div>
  )
}

const Stored = ({ reply: { stored } }: { readonly reply: StorageReply }) => (
  <>
    <div class="table-room bare">
      <table>
        <thead>
          <tr>
            <th>What</th>
            <th class="number">Kept for</th>
            <th class="number">Rows</th>
            <th class="number">On the disk</th>
            <th>Arrived</th>
          </tr>
        </thead>
        <tbody>
          {stored.map((one) => (
            <tr key={`${one.table} ${one.kept_days}`}>
              <td>{TABLES[one.table] ?? one.table}</td>
              <td class="number">{one.kept_days} days</td>
              <td class="number">{count(one.rows)}</td>
              <td class="number">{size(one.bytes)}</td>
              <td>
                {one.oldest_day}
                {one.newest_day !== one.oldest_day && ` to ${one.newest_day}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
    <p class="note">
      A source may be kept for a shorter time: see the column <a href="/sources">Kept</a> of the
      sources.
    </p>
  </>
)
