import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runInsights } from '../../src/insights/run.js'
import { SliceClock } from '../../src/insights/slice-clock.js'
import { createStore, type Store } from '../../src/clickhouse/client.js'
import { startEmbedded } from '../../src/clickhouse/embedded/embedded.js'
import { createRollups } from '../../src/insights/rollups.js'
import { migrate } from '../../src/clickhouse/migrate.js'
import { childrenOf, readUsage } from '../lib/processes.js'
import { HOUR_MS } from '../../src/model/time.js'

const TEMPLATES = 10_000
const DAYS = 33
const quiet = { debug() {}, info() {}, warn() {} }

export interface RunCost {
  readonly name: string
  readonly series: number
  readonly anomalies: number
  /** CPU seconds of this process and of ClickHouse. */
  readonly nodeS: number
  readonly engineS: number
}

export interface Costs {
  readonly runs: readonly RunCost[]
  /** CPU seconds of ClickHouse for one sum over the hours of all templates. */
  readonly bareS: number
  /** CPU seconds of ClickHouse. */
  readonly peakRssBytes: number
}

/**
 * CPU of runs over 1,000 sources and 10,000 templates of 33 days, on an otherwise idle ClickHouse: the first
 * one, whose code V8 has not optimised, the next one, and one in the next hour.
 */
export async function measureCost(seed: number): Promise<Costs> {
  const dataDir = mkdtempSync(join(tmpdir(), 'bench-insights-'))
  const engine = await startEmbedded({ dataDir, log: quiet })
  const { url, username, password } = engine
  const store = createStore({ url, username, password, database: 'bench' })
  try {
    await migrate(store, { numbers: { rollup_days: 431 }, log: quiet })
    const endHour = Math.floor(Date.now() / HOUR_MS)
    await fill(store, endHour - DAYS * 24, DAYS * 24 - 1, seed)
    const runs = [
      await measure(store, { name: 'the first run', hour: endHour - 1 }),
      await measure(store, { name: 'the next run', hour: endHour - 1 }),
    ]
    await fill(store, endHour - 1, 1, seed)
    runs.push(await measure(store, { name: 'the hour turned', hour: endHour }))
    const bareS = await bareSum(store)
    const peakRssBytes = readUsage(childrenOf(process.pid)[0] ?? 0)?.peakRssBytes ?? 0
    return { runs, bareS, peakRssBytes }
  } finally {
    await store.close()
    await engine.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function bareSum(store: Store): Promise<number> {
  const child = childrenOf(process.pid)[0] ?? 0
  const before = readUsage(child)?.cpuS ?? 0
  await store.query({ name: 'bench', sql: BARE_SUM }, {})
  return (readUsage(child)?.cpuS ?? 0) - before
}

const BARE_SUM = `SELECT sum(toUnixTimestamp(t)) AS t, sum(template_id) AS ids, sum(length(source)) AS names,
    sum(debug + info + warning + error + critical) AS n FROM template_stats`

async function measure(
  store: Store,
  { name, hour }: { readonly name: string; readonly hour: number },
): Promise<RunCost> {
  const deps = {
    rollups: createRollups(store, { redirects: () => [] }),
    isWatched: () => true,
    directory: { describe: () => null, redirects: () => [] },
    agreement: () => ({ corrections: 0, agreeing: 0 }),
    clock: new SliceClock([]),
  }
  // The merges of the inserted rows must not count as a cost of the run.
  await store.command('OPTIMIZE TABLE template_stats FINAL')
  await store.command('OPTIMIZE TABLE series_1h FINAL')
  const child = childrenOf(process.pid)[0] ?? 0
  const [before, beforeEngine] = [process.cpuUsage(), readUsage(child)?.cpuS ?? 0]
  const { snapshot } = await runInsights(deps, { endHour: hour, withRunning: true, nowHour: hour })
  const { user, system } = process.cpuUsage(before)
  return {
    name,
    series: snapshot.series,
    anomalies: snapshot.ongoing + snapshot.over,
    nodeS: (user + system) / 1e6,
    engineS: (readUsage(child)?.cpuS ?? 0) - beforeEngine,
  }
}

/** Rates of templates fall with their rank, as in logs; each source has ten. Two of fifty sources have anomalies. */
async function fill(store: Store, fromHour: number, hours: number, seed: number): Promise<void> {
  const span = { from: fromHour * 3600, hours }
  await store.command(FILL_TEMPLATES, { seed, ...span, end: Math.floor(Date.now() / HOUR_MS) })
  await store.command(FILL_SOURCES, { from: span.from })
}

/** Inserts into the rollup, whose view fills the totals. */
const FILL_TEMPLATES = `
INSERT INTO template_stats (arrival, t, source, template_id, events, routine, unsure, confidence_sum, model_version,
    debug, info, warning, error, critical, p1, p2, p3, p4, first_ts, last_ts)
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
        {from:UInt32} / 3600 + h AS hour,
        intDiv(i, 10) % 50 = 7 AND hour >= {end:UInt32} - 20 AND hour < {end:UInt32} - 10 AS is_out,
        intDiv(i, 10) % 50 = 9 AND i % 10 > 7 AND hour >= {end:UInt32} - 6 AS soars,
        rate * (1.2 + cos(2 * pi() * (hour % 24) / 24)) * if(is_out, 0, 1) + if(soars, 900, 0) AS mean,
        toInt64(floor(mean * (0.8 + cityHash64(i, hour) % 1000 / 2500) + if(is_out, 0, cityHash64(hour, i) % 1000 / 1000))) AS n
    FROM (SELECT number AS i FROM numbers(${TEMPLATES})) AS templates
    CROSS JOIN (SELECT number AS h FROM numbers({hours:UInt32})) AS hours
)
WHERE n > 0`

const FILL_SOURCES = `
INSERT INTO series_1h (arrival, t, source, debug, info, warning, error, critical, p1, p2, p3, p4)
SELECT toDate('2026-01-01') AS arrival, t, source, 0 AS debug, sum(template_stats.info) AS info,
    sum(template_stats.warning) AS warning, sum(template_stats.error) AS error, 0 AS critical,
    0 AS p1, 0 AS p2, 0 AS p3, sum(template_stats.p4) AS p4
FROM template_stats WHERE t >= toDateTime({from:UInt32}, 'UTC') GROUP BY t, source`
