import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../src/store/client.js'
import { startCluster, type TestCluster } from '../../test/support/cluster.js'
import { addCounts } from '../data/tally.js'
import { Api } from '../lib/api.js'
import { countsBetween, readCounts, type ServerCounts } from '../lib/counters.js'
import { Latencies } from '../lib/latency.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import { readUsage } from '../lib/processes.js'
import type { Check, Metric, ScenarioResult } from '../lib/report.js'
import { type Service, startService } from '../lib/service.js'
import { addFindings, type Findings } from './cluster-report.js'
import { checkApi } from './exactness.js'
import { type Query, standardQueries } from './queries.js'
import { type Sent, startSender } from './sender-client.js'

/** one of each kind */
const ASKED = new Set([
  'time series 15m',
  'time series 24h',
  'time series 24h of a source',
  'time series 30d, 50 buckets',
  'calendar 365 days',
  'severity breakdown 30d',
  'top sources 30d',
  'top templates',
  'newest 50',
  'newest 50 errors of a source',
  'rare severity, 30 days',
  'common word',
  'a word that never occurs',
])
const REQUESTS = 10
const SETTLE_MS = 3_000
const STORED_MAX_MS = 300_000

/**
 * The same events through one, two and three shards: what one batch and one question cost in statements and
 * in bytes between servers, and how throughput and latencies stand to each other. All servers share the
 * machine, so that more shards can't be faster here: that nothing grows that need not is the point.
 */
export async function runCluster(asked: BenchOptions, seed: number): Promise<ScenarioResult> {
  const options = { ...asked, sources: asked.sources ?? 100, spanS: asked.spanS ?? 30 * 86_400 }
  const startMs = Math.floor((Date.now() - options.spanS * 1000) / 60_000) * 60_000
  const findings: Findings[] = []
  const checks: Check[] = []
  for (const shards of options.shards) {
    process.stderr.write(`cluster: ${shards} of ${options.shards.join(', ')} shards\n`)
    const cluster = await startCluster(shards)
    try {
      const found = await measure(cluster, options, { seed, startMs })
      findings.push(found)
      checks.push(...found.checks)
    } finally {
      await cluster.stop()
    }
  }
  const metrics: Metric[] = []
  addFindings(metrics, findings)
  const facts = { events: options.events, sources: options.sources, spanS: options.spanS, seed }
  return { scenario: 'cluster', options: facts, metrics, checks, skipped: [], curves: [] }
}

type ClusterOptions = BenchOptions & { readonly sources: number; readonly spanS: number }

async function measure(
  cluster: TestCluster,
  options: ClusterOptions,
  stream: { readonly seed: number; readonly startMs: number },
): Promise<Findings> {
  const service = await startService({
    settings: { ...settingsOf(options), ...cluster.env, INSIGHTS_INTERVAL_SECONDS: '0' },
    profileDir: null,
  })
  const servers = cluster.shards.map((shard) => shard.connect('system'))
  try {
    const ingest = await measureIngest({ cluster, service, servers }, options, stream)
    const api = await Api.login(service)
    await sleep(SETTLE_MS)
    const queries = []
    for (const query of standardQueries(options.sources, Date.now()))
      if (ASKED.has(query.name)) queries.push(await measureQuery(api, servers, query))
    api.close()
    return { shards: cluster.shards.length, ...ingest, queries }
  } finally {
    await Promise.all(servers.map((server) => server.close()))
    await service.stop()
    service.discard()
  }
}

interface Setup {
  readonly cluster: TestCluster
  readonly service: Service
  readonly servers: readonly Store[]
}

async function measureIngest(
  { cluster, service, servers }: Setup,
  options: ClusterOptions,
  stream: { readonly seed: number; readonly startMs: number },
): Promise<Omit<Findings, 'shards' | 'queries'>> {
  const engineS = (): number =>
    cluster.shards.reduce((sum, shard) => sum + (readUsage(shard.pid() ?? 0)?.cpuS ?? 0), 0)
  // sources and templates are new only once
  const known = await send(service, options, { ...stream, seed: stream.seed + 1_000_003 })
  await untilStored(service)
  await sleep(SETTLE_MS)
  const reading = await costOfReading(servers)
  const [batchesBefore, cpuBefore, before] = [
    await readBatches(service),
    engineS(),
    await readCounts(servers),
  ]
  const sent = await send(service, options, stream)
  const storedAtMs = await untilStored(service)
  const done = countsBetween(before, await readCounts(servers), reading)
  const cpuS = engineS() - cpuBefore
  const batches = (await readBatches(service)) - batchesBefore
  const api = await Api.login(service)
  const { checks } = await checkApi(api, addCounts(known.counts, sent.counts))
  api.close()
  const rows = await Promise.all(servers.map((server) => eventsOn(server)))
  return {
    batches,
    insertsPerBatch: sum(done, ({ inserts }) => inserts) / batches,
    bytesBetween: sum(done.slice(1), ({ bytes }) => bytes) / options.events,
    eventsPerS: options.events / ((storedAtMs - sent.startedAtMs) / 1000),
    cpuS: cpuS / (options.events / 1e6),
    largestShare: Math.max(...rows) / rows.reduce((a, b) => a + b, 0),
    checks,
  }
}

async function send(
  service: Service,
  options: ClusterOptions,
  { seed, startMs }: { readonly seed: number; readonly startMs: number },
): Promise<Sent> {
  const { events, sources, spanS, bodyBytes, connections } = options
  const sender = startSender()
  try {
    return await sender.send({
      collector: service.collector,
      ingestKey: service.ingestKey,
      corpus: { seed, startMs, events, spanMs: spanS * 1000, sources },
      stepS: 60,
      bodyBytes,
      connections,
      eventsPerS: 0,
      gzip: false,
    })
  } finally {
    sender.close()
  }
}

async function measureQuery(
  api: Api,
  servers: readonly Store[],
  { name, paths }: Query,
): Promise<Findings['queries'][number]> {
  const next = (i: number): string => paths[i % paths.length] ?? ''
  for (let i = 0; i < 3; i++) await api.json(next(i))
  const latencies = new Latencies()
  const reading = await costOfReading(servers)
  const before = await readCounts(servers)
  for (let i = 0; i < REQUESTS; i++) {
    const startMs = performance.now()
    await api.json(next(i))
    latencies.record(performance.now() - startMs)
  }
  const done = countsBetween(before, await readCounts(servers), reading)
  return {
    name,
    asked: sum(done, ({ asked }) => asked) / REQUESTS,
    statements: sum(done, ({ statements }) => statements) / REQUESTS,
    perShard: Math.max(0, ...done.slice(1).map(({ statements }) => statements)) / REQUESTS,
    bytesBetween: sum(done.slice(1), ({ bytes }) => bytes) / REQUESTS,
    ms: latencies.at(50),
  }
}

/** What one reading adds to the counters. */
async function costOfReading(servers: readonly Store[]): Promise<readonly ServerCounts[]> {
  await readCounts(servers)
  const [first, second] = [await readCounts(servers), await readCounts(servers)]
  return countsBetween(first, second, [])
}

const sum = (counts: readonly ServerCounts[], of: (count: ServerCounts) => number): number =>
  counts.reduce((total, count) => total + of(count), 0)

const readMetrics = async (service: Service): Promise<string> =>
  await (await fetch(`${service.api}/metrics`)).text()

async function readBatches(service: Service): Promise<number> {
  const count = /insert_duration_seconds_count\{[^}]*table="landing"[^}]*\} (\d+)/
  return Number(count.exec(await readMetrics(service))?.[1] ?? 0)
}

/** Waits for an empty spool; asks the service only, so that no query is counted. */
async function untilStored(service: Service): Promise<number> {
  for (const deadline = Date.now() + STORED_MAX_MS; Date.now() < deadline; await sleep(50))
    if (/spool_entries 0$/m.test(await readMetrics(service))) return Date.now()
  throw new Error(`the events were not stored within ${STORED_MAX_MS} ms`)
}

async function eventsOn(server: Store): Promise<number> {
  const statement = { name: 'bench', sql: 'SELECT count() AS n FROM logs_local.events' }
  const [row] = await server.query<Record<string, never>, { readonly n: number }>(statement, {})
  return row?.n ?? 0
}
