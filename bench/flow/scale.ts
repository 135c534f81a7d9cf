import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Corpus } from '../data/corpus.js'
import { LandingRows } from '../data/landing-rows.js'
import { Random } from '../data/random.js'
import { openEngine, type Engine } from '../lib/engine.js'
import type { BenchOptions } from '../lib/options.js'
import type { Check, Metric, ScenarioResult } from '../lib/report.js'
import {
  estimate,
  fallsBehind,
  planFor,
  simulate,
  type Machine,
  type Plan,
  type UnitCosts,
} from '../lib/scale-model.js'
import { startService } from '../lib/service.js'
import { HOUR_MS } from '../../src/model/time.js'

const SMALL = { blocks: 60, events: 100 }
const LARGE = { blocks: 4, events: 100_000 }
const SPAN_MS = HOUR_MS
/** Unit costs of the service, measured by `npm run bench -- ingest` (bench/NOTES.md). */
const FROM_INGEST = { serviceCpuPerMillion: 3.9, sentBytes: 243, loggedBytes: 184 }
/** The machine of a plan: a common server. */
const SERVER: Machine = {
  cores: 16,
  diskBytes: 8e12,
  diskBytesPerS: 1e9,
  networkBytesPerS: 1.25e9,
}
const RATES = [10_000, 100_000, 1_000_000]
const ROWS = 1e12
const REPLICAS = 2
const SIMULATED_S = 600
/** Keeper entries of an insert into a replicated table, by ClickHouse's documentation of ReplicatedMergeTree. */
const KEEPER_ENTRIES = 10
const OUTAGE_S = 3600

/**
 * Estimates the machines for rates and row counts beyond one machine. The unit costs of ClickHouse are measured on the
 * embedded engine. Each estimate is checked by a simulation at the planned rate and above it.
 */
export async function runScale(_: BenchOptions, seed: number): Promise<ScenarioResult> {
  const { costs, tables } = await measureCosts(seed)
  const metrics: Metric[] = []
  const checks: Check[] = []
  const add = (name: string, unit: string, value: number): void => {
    metrics.push({ name, unit, samples: [value], better: 'info' })
  }
  add('ClickHouse, rows', 'CPU s/M', costs.insertCpuPerMillion)
  add('ClickHouse, an insert whatever its rows', 'CPU ms', costs.insertCpu * 1000)
  add('ClickHouse, a merge', 'CPU s/M', costs.mergeCpuPerMillion)
  for (const eventsPerS of RATES) {
    const rows = Math.min(ROWS, eventsPerS * 86_400 * 30)
    const wanted = { eventsPerS, replicas: REPLICAS, machine: SERVER, rows }
    const plan = planFor(wanted, costs)
    report(`${eventsPerS / 1000} k/s`, { plan, rows, costs, tables }, add)
    check(`${eventsPerS / 1000} k/s`, { plan, costs, seed }, checks)
  }
  const full = { eventsPerS: 1_000_000, replicas: REPLICAS, machine: SERVER, rows: ROWS }
  report('1 trillion rows', { plan: planFor(full, costs), rows: ROWS, costs, tables }, add)
  const options = { cores: SERVER.cores, replicas: REPLICAS, simulatedS: SIMULATED_S }
  return { scenario: 'scale', options, metrics, checks, skipped: [], curves: [] }
}

interface Planned {
  readonly plan: Plan
  readonly rows: number
  readonly costs: UnitCosts
  /** The number of tables that an insert writes parts of. */
  readonly tables: number
}

function report(
  name: string,
  { plan, rows, costs, tables }: Planned,
  add: (name: string, unit: string, value: number) => void,
): void {
  const { shares, bottleneck, insertsPerShard, rowsPerPart, mergePasses } = estimate(plan, costs)
  add(`${name}: collectors`, '', plan.collectors)
  add(`${name}: shards of ${plan.replicas} replicas`, '', plan.shards)
  add(`${name}: first full is ${bottleneck}, in use`, '%', shares[bottleneck] * 100)
  add(`${name}: inserts a second at each shard`, '/s', insertsPerShard)
  add(`${name}: parts a second at each shard`, '/s', insertsPerShard * tables)
  add(`${name}: rows of an insert at a shard`, '', rowsPerPart)
  add(`${name}: times a row is merged`, '', mergePasses)
  add(
    `${name}: Keeper entries`,
    '/s',
    insertsPerShard * tables * plan.shards * plan.replicas * KEEPER_ENTRIES,
  )
  add(`${name}: Redis operations for events`, '/s', 0)
  const logged = (plan.eventsPerS / plan.collectors) * costs.loggedBytes * OUTAGE_S
  add(`${name}: wal of a collector for an hour's outage`, 'GB', logged / 1e9)
  add(`${name}: stored, all replicas`, 'TB', (rows * costs.storedBytes * plan.replicas) / 1e12)
}

/** Checks that a plan sustains its rate with the estimated use of resources, and fails above its limit. */
function check(
  name: string,
  { plan, costs, seed }: { readonly plan: Plan; readonly costs: UnitCosts; readonly seed: number },
  checks: Check[],
): void {
  const random = new Random(seed)
  const play = { seconds: SIMULATED_S, random: () => random.share() }
  const within = simulate(plan, costs, play)
  const foreseen = estimate(plan, costs, SIMULATED_S).shares['shard CPU']
  const detail = JSON.stringify(within)
  checks.push(
    {
      name: `${name}: the plan keeps up`,
      ok: within.backlog < plan.eventsPerS * 10 && within.parts < 300,
      detail,
    },
    {
      name: `${name}: shard CPU as estimated`,
      ok: Math.abs(within.shardCpu - foreseen) < 0.35 * foreseen + 0.02,
      detail: `simulated ${within.shardCpu.toFixed(3)}, estimated ${foreseen.toFixed(3)}`,
    },
  )
  const over = overloaded(plan, costs)
  const above = simulate(over, costs, play)
  const { bottleneck } = estimate(over, costs, SIMULATED_S)
  checks.push({
    name: `${name}: at ${Math.round(over.eventsPerS / 1000)} k/s it does not, for ${bottleneck}`,
    ok: fallsBehind(above),
    detail: JSON.stringify(above),
  })
}

/** Simulates the plan's machines at 1.5 times the rate that they can sustain. */
function overloaded(plan: Plan, costs: UnitCosts): Plan {
  let over = plan
  for (;;) {
    const { shares } = estimate(over, costs, SIMULATED_S)
    if (Math.max(shares['shard CPU'], shares['collector batches']) > 1.5) return over
    over = { ...over, eventsPerS: over.eventsPerS * 1.1 }
  }
}

async function measureCosts(
  seed: number,
): Promise<{ readonly costs: UnitCosts; readonly tables: number }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'bench-scale-'))
  try {
    const service = await startService({ settings: {}, profileDir: null, dataDir })
    await service.stop()
    const engine = await openEngine(dataDir)
    try {
      return await measureEngine(engine, seed)
    } finally {
      await engine.stop()
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function measureEngine(
  engine: Engine,
  seed: number,
): Promise<{ readonly costs: UnitCosts; readonly tables: number }> {
  const rows = new LandingRows(seed, 100)
  let id = 1
  const insertAll = async ({ blocks, events }: typeof SMALL): Promise<number> => {
    let cpuS = 0
    for (let no = 0; no < blocks; no++) {
      const startMs = Date.now() - SPAN_MS
      const spanMs = SPAN_MS
      const corpus = new Corpus({ seed: seed + id, events, startMs, spanMs, sources: 100 })
      const block = rows.block(corpus, id, (i) => startMs + Math.floor((i / events) * spanMs))
      const before = engine.cpuS()
      await engine.insert('landing', rows.columns, block, `scale:${id}`)
      cpuS += engine.cpuS() - before
      id += events
    }
    return cpuS / blocks
  }
  await engine.rows('SYSTEM STOP MERGES')
  await insertAll(SMALL)
  const small = await insertAll(SMALL)
  const large = await insertAll(LARGE)
  const insertCpuPerMillion = ((large - small) / (LARGE.events - SMALL.events)) * 1e6
  const insertCpu = Math.max(0, small - (SMALL.events * insertCpuPerMillion) / 1e6)
  await engine.rows('SYSTEM START MERGES')
  const names = await engine.rows(
    `SELECT DISTINCT table FROM system.parts WHERE database = 'logs' AND active AND rows > 0 AND table NOT IN ('id_blocks', 'templates') FORMAT JSONCompactEachRow`,
  )
  const before = engine.cpuS()
  for (const [table] of names) await engine.rows(`OPTIMIZE TABLE ${String(table)} FINAL`)
  const merged = id - 1
  const mergeCpuPerMillion = ((engine.cpuS() - before) / merged) * 1e6
  const [[bytes] = [0]] = await engine.rows(
    `SELECT sum(bytes_on_disk) FROM system.parts WHERE database = 'logs' AND active FORMAT JSONCompactEachRow`,
  )
  return {
    costs: {
      ...FROM_INGEST,
      insertCpuPerMillion,
      insertCpu,
      mergeCpuPerMillion,
      storedBytes: Number(bytes) / merged,
    },
    tables: names.length,
  }
}
