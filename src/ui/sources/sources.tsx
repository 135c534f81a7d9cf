import { useEffect, useState } from 'preact/hooks'

import { call, pathWith, told } from '../lib/api.js'
import { useEvery } from '../lib/every.js'
import { followKpis, kpis } from '../lib/kpis.js'
import { count } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import { place } from '../lib/router.js'
import { may } from '../lib/session.js'
import { TabLinks, type TabLink } from '../shell/tab-links.js'
import { TopBar } from '../shell/top-bar.js'
import { DeadLetters } from './dead-letters.js'
import { Keys } from './keys.js'
import { SendLogs } from './send-logs.js'
import { SourceTable, type SourceRow, type TopSources } from './source-table.js'

const TABS: readonly TabLink[] = [
  { path: '/sources', name: 'Sources', role: 'viewer' },
  { path: '/sources/send', name: 'Send logs', role: 'viewer' },
  { path: '/sources/dead-letters', name: 'Dead letters', role: 'admin' },
  { path: '/sources/keys', name: 'Ingest keys', role: 'admin' },
]

/** Where events come from, how to send them, and what could not be stored. */
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
        tabs={TABS}
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
  return <AllSources />
}

const EVERY_MS = 5000
/** Sources that are shown. */
const MOST = 1000

const useTop = (window: '24h' | '5m', asked: string) =>
  useLoad(`top ${window} ${asked}`, (signal) =>
    call<TopSources>(pathWith('/api/analytics/top-sources', { window, limit: MOST }), { signal }),
  )

function AllSources() {
  const [revision, setRevision] = useState(0)
  const refresh = (): void => setRevision((n) => n + 1)
  // The first event of all shows at once, and what follows by and by.
  const hasEvents = (kpis.value?.total_occurrences ?? 0) > 0
  useEvery(EVERY_MS, refresh)
  const sources = useLoad(`sources ${revision} ${hasEvents}`, (signal) =>
    call<readonly SourceRow[]>(pathWith('/api/sources', { limit: MOST }), { signal }),
  )
  const asked = `${revision} ${hasEvents}`
  const top = useTop('24h', asked)
  const recent = useTop('5m', asked)
  // The window begins at a whole minute.
  const recentS = 300 + (Math.floor(Date.now() / 1000) % 60)
  if (sources.error !== null) return <p class="problem">{told(sources.error)}</p>
  if (sources.value === null) return null
  if (sources.value.length === 0) return <SendLogs />
  return (
    <>
      <SourceTable
        sources={sources.value}
        counts={top.value?.items ?? []}
        rates={new Map(recent.value?.items.map((one) => [one.source, one.count / recentS]))}
        onChanged={refresh}
      />
      {sources.value.length === MOST && (
        <p class="note">The first {count(MOST)} sources by name are shown.</p>
      )}
    </>
  )
}
