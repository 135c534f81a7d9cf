import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'

import type { KpiSnapshot } from '../../model/kpi.js'
import { askHistogram } from '../explore/answers.js'
import { HistogramChart } from '../explore/histogram.js'
import { pathWith } from '../lib/api.js'
import { count, short } from '../lib/format.js'
import { followKpis, kpis } from '../lib/kpis.js'
import { useLoad } from '../lib/load.js'
import { Icon } from '../lib/icon.js'
import { currentRange, setRange } from '../lib/range.js'
import { go, place } from '../lib/router.js'
import { SparkBars } from '../lib/sparkline.js'
import { toRange } from '../lib/time.js'
import { TabLinks } from '../shell/tab-links.js'
import { TimeRange } from '../shell/time-range.js'
import { TopBar } from '../shell/top-bar.js'
import { Calendar } from './calendar.js'
import { boardOf, Dashboard, usePanels } from './dashboards.js'
import { Panel } from './panel.js'
import { Ledger, Sources, TopErrors, RecentAlerts } from './panels.js'

const DAY_MS = 86_400_000

/** How the installation is, and the dashboards that people made. */
export function Overview() {
  const { path, params } = place.value
  const name = path === '/overview' ? null : decodeURIComponent(path.slice('/overview/'.length))
  const panels = usePanels()
  const refresh = (): void => panels.reload()
  useEffect(() => {
    document.title = name ?? 'Overview'
  }, [name])
  const names = new Set([...panels.panels.map(boardOf), ...(name === null ? [] : [name])])
  if (names.size === 0) names.add('Dashboard')
  const tabs = [
    { path: '/overview', name: 'Now', role: 'viewer' } as const,
    ...[...names].toSorted().map((board) => ({
      path: tabPath(board),
      name: board,
      role: 'viewer' as const,
    })),
  ]
  return (
    <main class="screen overview">
      <TopBar title="Overview">
        {name !== null && params.has('from') && (
          <TimeRange range={currentRange()} onRefresh={refresh} />
        )}
        {name !== null && !params.has('from') && (
          <button onClick={() => setRange({ from: 'now-24h', to: 'now' })}>
            <Icon name="clock" /> One time range for all
          </button>
        )}
      </TopBar>
      <TabLinks label="Of the overview" tabs={tabs} path={tabPath(name)} />
      <div class="scroll">
        {name === null ? <Now /> : <Dashboard key={name} name={name} {...panels} />}
      </div>
    </main>
  )
}

const tabPath = (name: string | null): string =>
  name === null ? '/overview' : `/overview/${encodeURIComponent(name)}`

/** The figures of the whole installation, live; each leads to the events that it counts. */
function Now() {
  useEffect(followKpis, [])
  const now = kpis.value
  return (
    <>
      {now !== null && <Tiles now={now} />}
      <div class="panels">
        <LastDay minute={Math.floor(Date.now() / 60_000)} />
        {now !== null && <TopErrors now={now} />}
        <Sources />
        <div class="stack">
          <Ledger />
          {now !== null && <RecentAlerts now={now} />}
        </div>
        <Calendar />
      </div>
    </>
  )
}

function LastDay({ minute }: { readonly minute: number }) {
  const toMs = minute * 60_000 + 60_000
  const run = { line: '', span: { fromMs: toMs - DAY_MS, toMs } }
  const { value } = useLoad(`day ${minute}`, (signal) =>
    askHistogram(run, { by: 'severity', buckets: 96 }, signal),
  )
  return (
    <Panel title="Last 24 hours by severity" class="wide">
      <div class="chart-room">
        {value !== null && (
          <HistogramChart
            histogram={value}
            onZoom={(span) => go(pathWith('/explore', { ...toRange(span) }))}
          />
        )}
      </div>
    </Panel>
  )
}

interface TileProps {
  readonly name: string
  readonly value: ComponentChildren
  readonly unit?: string
  readonly note: string
  readonly href: string
  readonly tone?: 'bad' | 'warn' | ''
  readonly children?: ComponentChildren
}

const Tile = ({ name, value, unit = '', note, href, tone = '', children }: TileProps) => (
  <a class={`tile ${tone}`} href={href}>
    <span class="name">{name}</span>
    <span class="figure">
      <b>{value}</b> {unit}
    </span>
    <span class="note">{note}</span>
    {children}
  </a>
)

const signed = (change: number): string =>
  `${change > 0 ? '+' : ''}${Math.abs(change) >= 1000 ? short(Math.round(change)) : Math.round(change)} %`

const inLast = (span: string, line: string): string =>
  pathWith('/explore', { q: line, from: `now-${span}`, to: 'now' })

function Tiles({ now }: { readonly now: KpiSnapshot }) {
  const score = now.global_health_score
  return (
    <div class="tiles">
      <Tile
        name="Rate"
        value={
          now.events_per_second >= 10
            ? short(Math.round(now.events_per_second))
            : now.events_per_second.toFixed(1)
        }
        unit="/s"
        note={`${signed(now.trends.events['1h'])} on the hour before`}
        href={inLast('5m', '')}
      >
        <SparkBars values={now.sparkline} width={88} height={24} />
      </Tile>
      <Tile
        name="Errors, last minute"
        value={short(now.errors_last_minute)}
        note={`${short(now.error_events)} stored in all`}
        href={inLast('1m', 'severity>=error')}
        tone={now.errors_last_minute > 0 ? 'bad' : ''}
      />
      <Tile
        name="Critical, 24 h"
        value={short(now.criticals_24h)}
        note={`errors ${signed(now.trends.errors['24h'])} on the day before`}
        href={inLast('24h', 'severity:critical')}
        tone={now.criticals_24h > 0 ? 'bad' : ''}
      />
      <Tile
        name="Health"
        value={score}
        unit="of 100"
        note="from P1, dead letters, model"
        href="/docs/api"
        tone={score < 50 ? 'bad' : score < 75 ? 'warn' : ''}
      />
      <Tile
        name="Stored"
        value={short(now.total_occurrences)}
        note={`${short(now.unique_events)} events, ${now.dedup_rate_pct.toFixed(1)} % repeats`}
        href={inLast('30d', '')}
      />
      <Tile
        name="Dead letters, 24 h"
        value={count(now.dlq_count)}
        note={`${now.success_rate_pct.toFixed(2)} % of all were stored`}
        href="/sources/dead-letters"
        tone={now.dlq_count > 0 ? 'warn' : ''}
      />
      <Tile
        name="Templates"
        value={short(now.templates_known)}
        note="kinds of messages"
        href="/templates"
      />
      <Tile
        name="Open alerts"
        value={count(now.open_alerts)}
        note={now.open_alerts === 0 ? 'nothing waits' : 'wait to be read'}
        href="/alerts?show=unread"
        tone={now.open_alerts > 0 ? 'warn' : ''}
      />
    </div>
  )
}
