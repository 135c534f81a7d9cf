import { useEffect, useState } from 'preact/hooks'

import { call, pathWith } from '../lib/api.js'
import { useEvery } from '../lib/every.js'
import { followKpis, kpis } from '../lib/kpis.js'
import { count } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import { place } from '../lib/router.js'
import { may } from '../lib/session.js'
import { NotFound } from '../shell/not-found.js'
import { TabLinks } from '../shell/tab-links.js'
import { SOURCE_TABS } from '../shell/tabs.js'
import { TopBar } from '../shell/top-bar.js'
import { DeadLetters } from './dead-letters.js'
import { Keys } from './keys.js'
import { SendLogs } from './send-logs.js'
import { SourceTable, type Counts, type SourceRow } from './source-table.js'
import { Problem } from '../shell/problem.js'

/** The screen Sources: the sources, how to send logs, and dead letters. */
export function SourcesScreen() {
  const { path } = place.value
  useEffect(followKpis, [])
  useEffect(() => {
    document.title = 'Sources'
  }, [])
  const letters = kpis.value?.dlq_count ?? 0
  return (
    <main class="screen sources">
      <TopBar title="Sources" />
      <TabLinks
        label="Of sources"
        tabs={SOURCE_TABS}
        path={path}
        badge={(tab) =>
          tab.endsWith('letters') && letters > 0 && <span class="count-badge">{letters}</span>
        }
      />
      <div class="scroll">
        <Content path={path} />
      </div>
    </main>
  )
}

function Content({ path }: { readonly path: string }) {
  if (path === '/sources/send') return <SendLogs />
  if (path === '/sources/dead-letters' && may('admin')) return <DeadLetters />
  if (path === '/sources/keys' && may('admin')) return <Keys />
  if (path === '/sources') return <AllSources />
  return <NotFound path="/sources" name="sources" />
}

const EVERY_MS = 5000
/** The most sources that are shown. */
const MOST = 1000
const DAY_MS = 86_400_000
const RECENT_S = 300

interface StatsReply {
  readonly groups: readonly {
    readonly by: { readonly source: string | null }
    readonly values: { readonly count: number | null }
  }[]
}

/** The occurrences of the most recent time by source. */
const useCounts = (spanMs: number, q: string, asked: string) =>
  useLoad(`counts ${spanMs} ${q} ${asked}`, async (signal): Promise<Counts> => {
    // Rollups count whole seconds.
    const endMs = Math.ceil(Date.now() / 1000) * 1000
    const [start_time, end_time] = [endMs - spanMs, endMs].map((ms) => new Date(ms).toISOString())
    const query = { q, start_time, end_time, by: 'source', metrics: 'count', top: MOST }
    const { groups } = await call<StatsReply>(pathWith('/api/logs/stats', query), { signal })
    return new Map(groups.map(({ by, values }) => [by.source ?? '', values.count ?? 0]))
  })

function AllSources() {
  const [revision, setRevision] = useState(0)
  const refresh = (): void => setRevision((n) => n + 1)
  // The first event appears at once, later ones periodically.
  const hasEvents = (kpis.value?.total_occurrences ?? 0) > 0
  useEvery(EVERY_MS, refresh)
  const sources = useLoad(`sources ${revision} ${hasEvents}`, (signal) =>
    call<readonly SourceRow[]>(pathWith('/api/sources', { limit: MOST }), { signal }),
  )
  const asked = `${revision} ${hasEvents}`
  const counts = useCounts(DAY_MS, '', asked)
  const errors = useCounts(DAY_MS, 'severity>=error', asked)
  const recent = useCounts(RECENT_S * 1000, '', asked)
  if (sources.error !== null) return <Problem of={sources} />
  if (sources.value === null) return null
  if (sources.value.length === 0) return <SendLogs />
  // The table is sorted by these counts. If it were shown before they arrive, its rows would move.
  const all = [counts, errors, recent]
  if (all.some(({ value, error }) => value === null && error === null)) return null
  const error = all.find((one) => one.error !== null)?.error ?? null
  return (
    <>
      <Problem of={{ error, reload: refresh }} />
      <SourceTable
        sources={sources.value}
        counts={counts.value}
        errors={errors.value}
        recent={recent.value}
        recentS={RECENT_S}
        onChanged={refresh}
      />
      {sources.value.length === MOST && (
        <p class="note">The first {count(MOST)} sources by name are shown.</p>
      )}
    </>
  )
}
