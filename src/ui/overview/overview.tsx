import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'

import type { KpiSnapshot } from '../../model/kpi.js'
import { askHistogram } from '../explore/answers.js'
import { HistogramChart } from '../explore/histogram.js'
import { call, pathWith } from '../lib/api.js'
import { count, counted, short } from '../lib/format.js'
import { areKpisLost, followKpis, kpis, retryKpis } from '../lib/kpis.js'
import { useLoad } from '../lib/load.js'
import { Icon } from '../lib/icon.js'
import { currentRange, setRange } from '../lib/range.js'
import { go, place } from '../lib/router.js'
import { SparkBars } from '../lib/sparkline.js'
import { toRange, type Span } from '../lib/time.js'
import { TabLinks } from '../shell/tab-links.js'
import { TimeRange } from '../shell/time-range.js'
import { TopBar } from '../shell/top-bar.js'
import { Calendar } from './calendar.js'
import { boardOf, Dashboard, usePanels } from './dashboards.js'
import { Panel } from './panel.js'
import { Applications, Expected, Ledger, RecentAlerts, Sources, TopErrors } from './panels.js'
import { Problem } from '../shell/problem.js'

const DAY_MS = 86_400_000

/** The screen Overview: the state of the installation, and the dashboards. */
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

/** The live figures of the whole installation; each is a link to the events that it counts. */
function Now() {
  useEffect(followKpis, [])
  const now = kpis.value
  const minute = Math.floor(Date.now() / 60_000)
  return (
    <>
      {areKpisLost.value && <Problem of={{ error: 'lost', reload: retryKpis }} />}
      {now === null ? <div class="tiles" /> : <Tiles now={now} minute={minute} />}
      <div class="panels">
        <LastDay minute={minute} />
        <TopErrors now={now} isLost={areKpisLost.value} />
        <Sources />
        <div class="stack">
          <Ledger minute={minute} />
          {now !== null && <RecentAlerts now={now} />}
          {now !== null && <Applications now={now} />}
        </div>
        <Expected />
        <Calendar />
      </div>
    </>
  )
}

/** The 24 hours that end with a minute. */
function lastDay(minute: number): Span {
  const toMs = minute * 60_000 + 60_000
  return { fromMs: toMs - DAY_MS, toMs }
}

function LastDay({ minute }: { readonly minute: number }) {
  const run = { line: '', span: lastDay(minute) }
  const loaded = useLoad(`day ${minute}`, (signal) =>
    askHistogram(run, { by: 'severity', buckets: 96 }, signal),
  )
  return (
    <Panel title="Last 24 hours by severity" class="wide" of={loaded} isWaiting={false}>
      <div class="chart-room">
        {loaded.value !== null && (
          <HistogramChart
            histogram={loaded.value}
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
  readonly title?: string
  readonly tone?: 'bad' | 'warn' | ''
  readonly children?: ComponentChildren
}

const Tile = ({ name, value, unit = '', note, href, tone = '', title, children }: TileProps) => (
  <a class={`tile ${tone}`} href={href} title={title}>
    <span class="name">{name}</span>
    <span class="figure">
      <b>{value}</b> {unit}
    </span>
    <span class="note">{note}</span>
    {children}
  </a>
)

/** @param change in per cent; 100 also when there was nothing before */
function against(change: number, before: string): string {
  if (change === 100) return `more than ${before}`
  if (change >= 1000) return `${short(Math.round(1 + change / 100))} times ${before}`
  return `${change > 0 ? '+' : ''}${Math.round(change)} % on ${before}`
}

const inLast = (span: string, line: string): string =>
  pathWith('/explore', { q: line, from: `now-${span}`, to: 'now' })

/** @param firing the number of firing alerts, all of which are read; null when it is not known */
function waiting(firing: number | null): string {
  if (firing === null) return 'none is unread'
  if (firing === 0) return 'nothing waits'
  return firing === 1 ? 'one fires, and is read' : `${count(firing)} fire, and are read`
}

const HEALTH =
  '100 − 15 · log10(1 + P1 occurrences of 24 h) − 40 · share of dead letters − 20 · (1 − health of the model) + 5 · share of repeats'

function Tiles({ now, minute }: { readonly now: KpiSnapshot; readonly minute: number }) {
  const day = useLoad(`p1 ${minute}`, (signal) =>
    askHistogram({ line: 'priority:P1', span: lastDay(minute) }, { buckets: 1 }, signal),
  )
  const p1 = day.value?.total ?? null
  const firing = useLoad(`firing ${minute}`, (signal) =>
    call<{ readonly items: readonly unknown[] }>('/api/alerts?state=firing&limit=200', { signal }),
  )
  const score = now.global_health_score
  return (
    <>
      <Problem of={day.error === null ? firing : day} />
      <div class="tiles">
        <Tile
          name="Rate"
          value={
            now.events_per_second >= 10
              ? short(Math.round(now.events_per_second))
              : now.events_per_second.toFixed(1)
          }
          unit="/s"
          note={against(now.trends.events['1h'], 'the hour before')}
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
          note={`errors: ${against(now.trends.errors['24h'], 'the day before')}`}
          href={inLast('24h', 'severity:critical')}
          tone={now.criticals_24h > 0 ? 'bad' : ''}
        />
        <Tile
          name="P1, 24 h"
          value={p1 === null ? '–' : short(p1)}
          note="occurrences of the highest priority"
          href={inLast('24h', 'priority:P1')}
          tone={p1 !== null && p1 > 0 ? 'bad' : ''}
        />
        <Tile
          name="Health"
          value={score}
          unit="of 100"
          note="from P1, dead letters, model"
          href="/docs/api#kpis-and-the-live-channel"
          title={HEALTH}
          tone={score < 50 ? 'bad' : score < 75 ? 'warn' : ''}
        />
        <Tile
          name="Stored"
          value={short(now.total_occurrences)}
          note={`${counted(now.unique_events, 'event')}, ${now.dedup_rate_pct.toFixed(1)} % repeats, ${counted(now.templates_known, 'template')}`}
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
          name="Open alerts"
          value={count(now.open_alerts)}
          note={
            now.open_alerts > 0 ? 'wait to be read' : waiting(firing.value?.items.length ?? null)
          }
          href={now.open_alerts > 0 ? '/alerts?show=unread' : '/alerts?show=firing'}
          tone={now.open_alerts > 0 ? 'warn' : ''}
        />
      </div>
    </>
  )
}
