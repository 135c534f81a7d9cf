import { call } from '../lib/api.js'
import { count, counted } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useLoad } from '../lib/load.js'
import { clauses, joined } from '../lib/query-edit.js'
import { zone } from '../lib/settings.js'
import { fullTime, hourTo } from '../lib/time.js'
import { setRange } from '../lib/range.js'
import { SendLogs } from '../sources/send-logs.js'
import { askHistogram, type Run } from './answers.js'
import type { Page } from './rows.js'
import { Problem } from '../shell/problem.js'

interface Finding {
  /** The number of events in the time range, whatever the query. */
  readonly all: number
  /** Queries with one clause less that have matches, and how many. */
  readonly looser: readonly {
    readonly clause: string
    readonly line: string
    readonly total: number
  }[]
  /** Whether no event was ever stored. */
  readonly isNew: boolean
  /** The time of the newest event, when there is none in the time range. */
  readonly newestMs: number | null
}

const MOST_CLAUSES = 8

async function find(run: Run, signal: AbortSignal): Promise<Finding> {
  const total = async (line: string): Promise<number> =>
    (await askHistogram({ ...run, line }, { buckets: 1 }, signal)).total
  const all = await total('')
  if (all === 0) {
    const { items } = await call<Page>('/api/logs?limit=1', { signal })
    const [newest] = items
    if (newest !== undefined)
      return { all, looser: [], isNew: false, newestMs: Date.parse(newest.timestamp) }
    const sources = await call<readonly unknown[]>('/api/sources', { signal })
    return { all, looser: [], isNew: sources.length === 0, newestMs: null }
  }
  const parts = (clauses(run.line) ?? []).slice(0, MOST_CLAUSES)
  const looser = await Promise.all(
    parts.map(async (clause) => {
      const line = joined(parts.filter((part) => part !== clause))
      return { clause, line, total: parts.length === 1 ? all : await total(line) }
    }),
  )
  return { all, looser: looser.filter((one) => one.total > 0), isNew: false, newestMs: null }
}

interface NothingFoundProps {
  readonly run: Run
  readonly onLine: (line: string) => void
}

/** Explains an empty result by the time range or by one of the clauses. */
export function NothingFound({ run, onLine }: NothingFoundProps) {
  const key = `empty ${run.line} ${run.span.fromMs} ${run.span.toMs}`
  const loaded = useLoad(key, (signal) => find(run, signal))
  const { value } = loaded
  if (loaded.error !== null)
    return (
      <div class="found empty">
        <Problem of={loaded} />
      </div>
    )
  if (value === null) return <div class="found waiting" aria-busy="true" />
  const { all, looser, newestMs, isNew } = value
  if (isNew)
    return (
      <div class="found empty">
        <SendLogs />
      </div>
    )
  return (
    <div class="found empty">
      <Icon name="search" size={22} />
      <h2>Nothing found</h2>
      {all === 0 ? (
        <NoEvents newestMs={newestMs} />
      ) : looser.length === 0 ? (
        <p>
          {counted(all, 'occurrence')} in this time range; no clause alone keeps them out. Try with
          fewer of them.
        </p>
      ) : (
        <>
          <p>
            {looser.length === 1
              ? 'One clause excludes everything.'
              : 'Each of these clauses excludes something.'}
          </p>
          <ul class="looser">
            {looser.map(({ clause, line, total }) => (
              <li key={clause}>
                <button onClick={() => onLine(line)}>
                  <span>
                    without <code>{clause}</code>
                  </span>
                  <b>{count(total)}</b>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  )
}

function NoEvents({ newestMs }: { readonly newestMs: number | null }) {
  if (newestMs === null) return <p>There are no events of the last 30 days.</p>
  return (
    <>
      <p>No event is in this time range. The newest one is of {fullTime(newestMs, zone.value)}.</p>
      <button class="primary" onClick={() => setRange(hourTo(newestMs))}>
        Show the hour before it
      </button>
    </>
  )
}
