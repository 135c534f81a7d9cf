import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMemory } from '../../src/assembly/insight-counts.js'
import { runInsights } from '../../src/assembly/insight-run.js'
import { SliceClock } from '../../src/assembly/slice-clock.js'
import { createStore, type Store } from '../../src/store/client.js'
import { startEmbedded } from '../../src/store/embedded.js'
import { createInsightSeries } from '../../src/store/insight-series.js'
import { migrate } from '../../src/store/migrate.js'
import { childrenOf, readUsage } from '../lib/processes.js'

const TEMPLATES = 10_000
const DAYS = 33
const quiet = { debug() {}, info() {}, warn() {} }

/** CPU of a snapshot over 1,000 sources and 10,000 templates of 40 days, the engine's included. */
export async function measureCost(seed: number): Promise<string> {
  const dataDir = mkdtempSync(join(tmpdir(), 'bench-insights-'))
  const engine = await startEmbedded({ dataDir, log: quiet })
  const { url, username, password } = engine
  const store = createStore({ url, username, password, database: 'bench' })
  try {
    await migrate(store, { numbers: { retention_days: 400, rollup_days: 431 }, log: quiet })
    const endHour = Math.floor(Date.now() / 3_600_000)
    await fill(store, endHour, seed)
    const cost = await measure(store, endHour)
    return cost
  } finally {
    await store.close()
    await engine.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function measure(store: Store, endHour: number): Promise<string> {
  const memory = createMemory()
  const lines: string[] = []
  for (const [name, hour] of [
    ['first', endHour - 1],
    ['again', endHour - 1],
    ['the hour turned', endHour],
  ] as const) {
    const child = childrenOf(process.pid)[0] ?? 0
    const [before, beforeEngine] = [process.cpuUsage(), readUsage(child)?.cpuS ?? 0]
    const startedAt = performance.now()
    const parts = {
      series: createInsightSeries(store, { redirects: () => [] }),
      isWatched: () => true,
      canonical: (id: string) => id,
      isCorrected: () => false,
      agreement: () => ({ corrections: 0, agreeing: 0 }),
      memory,
      clock: new SliceClock([]),
    }
    const moment = { endHour: hour, withRunning: true, nowHour: hour }
    const { snapshot } = await runInsights(parts, moment)
    const wall = (performance.now() - startedAt) / 1000
    const { user, system } = process.cpuUsage(before)
    const [own, inEngine] = [(user + system) / 1e6, (readUsage(child)?.cpuS ?? 0) - beforeEngine]
    lines.push(
      `${name}: ${snapshot.series} series, ${snapshot.ongoing + snapshot.over} anomalies: ` +
        `${(own + inEngine).toFixed(2)} CPU s (${own.toFixed(2)} here, ${inEngine.toFixed(2)} in ` +
        `ClickHouse), ${wall.toFixed(2)} s`,
    )
  }
  return lines.join('\n')
}

/** Rates of templates fall with their rank, as they do in logs; each source has ten. */
async function fill(store: Store, endHour: number, seed: number): Promise<void> {
  const from = (endHour - DAYS * 24) * 3600
  await store.command(FILL_TEMPLATES, { seed, from, hours: DAYS * 24 })
  await store.command(FILL_SOURCES)
}

/** Straight into the rollup: the totals follow by its view. */
const FILL_TEMPLATES = `
INSERT INTO template_stats
SELECT toDate('2026-01-01') AS arrival, t, source, template_id, n AS events, n AS routine, intDiv(n, 20) AS unsure,
    n * 0.8 AS confidence_sum, 'm' AS model_version, 0 AS debug, if(severity = 'info', n, 0) AS info,
    if(severity = 'warning', n, 0) AS warning, if(severity = 'error', n, 0) AS error, 0 AS critical,
    0 AS p1, 0 AS p2, 0 AS p3, n AS p4, toDateTime64(t, 3, 'UTC') AS first_ts, toDateTime64(t, 3, 'UTC') AS last_ts
FROM (
    SELECT
        toDateTime({from:UInt32} + h * 3600, 'UTC') AS t,
        concat('source-', leftPad(toString(intDiv(i, 10)), 4, '0')) AS source,
        bitXor(i + 1, 0x9e3779b97f4a7c15) AS template_id,
        multiIf(i % 10 < 7, 'info', i % 10 < 9, 'warning', 'error') AS severity,
        200 / (1 + i % 10) / (1 + i % 10) / (1 + cityHash64(i, {seed:UInt32}) % 4000 / 100) AS rate,
        rate * (1.2 + cos(2 * pi() * (h % 24) / 24)) AS mean,
        toInt64(floor(mean * (0.8 + cityHash64(i, h) % 1000 / 2500) + cityHash64(h, i) % 1000 / 1000)) AS n
    FROM (SELECT number AS i FROM numbers(${TEMPLATES})) AS templates
    CROSS JOIN (SELECT number AS h FROM numbers({hours:UInt32})) AS hours
)
WHERE n > 0`

const FILL_SOURCES = `
INSERT INTO series_1h
SELECT toDate('2026-01-01') AS arrival, t, source, 0 AS debug, sum(template_stats.info) AS info,
    sum(template_stats.warning) AS warning, sum(template_stats.error) AS error, 0 AS critical,
    0 AS p1, 0 AS p2, 0 AS p3, sum(template_stats.p4) AS p4
FROM template_stats GROUP BY t, source`
