import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../src/clickhouse/client.js'
import { startCluster, type TestCluster } from '../../test/support/cluster.js'
import { startRecorder } from '../../test/support/recording-clickhouse.js'
import { addCounts } from '../data/tally.js'
import { Api } from '../lib/api.js'
import { costOfReading, countsBetween, readCounts, type ServerCounts } from '../lib/counters.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import { readUsage, type Usage } from '../lib/processes.js'
import type { Check, Metric, ScenarioResult } from '../lib/report.js'
import { type Service, startService } from '../lib/service.js'
import { measureQuestions } from './cluster-questions.js'
import { addFindings, type Findings, type QueryCost } from './cluster-report.js'
import { checkApi } from './exactness.js'
import { type Sent, startSender } from './sender-client.js'
import { MINUTE_MS } from '../../src/model/time.js'

/** Short enough that a window of 30 days contains every event. */
const SPAN_S = 26 * 86_400
const SETTLE_MS = 3_000
const STORED_MAX_MS = 300_000

/**
 * Sends the same events to one, two and three shards, and measures the statements and the bytes between servers of a
 * batch and of a question, the throughput and the latencies. All servers share the machine, so more shards are not
 * faster here; the bench shows which costs grow with the number of shards.
 */
export async function runCluster(asked: BenchOptions, seed: number): Promise<ScenarioResult> {
  const options = { ...asked, sources: asked.sources ?? 100, spanS: asked.spanS ?? SPAN_S }
  const startMs = Math.floor((Date.now() - options.spanS * 1000) / MINUTE_MS) * MINUTE_MS
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
  let statements: string[] = []
  const take = (): readonly string[] => {
    const taken = statements
    statements = []
    return taken
  }
  const url = cluster.env['CLICKHOUSE_URL'] ?? ''
  const recorder = await startRecorder(url, ({ sql }) => statements.push(sql))
  const quiet = async (): Promise<void> => {
    while (recorder.running() > 0) await sleep(5)
  }
  const servers = cluster.shards.map((shard) => shard.connect('system'))
  const settings = { ...settingsOf(options), ...cluster.env, INSIGHTS_INTERVAL_SECONDS: '0' }
  try {
    const service = await startService({
      settings: { ...settings, CLICKHOUSE_URL: recorder.url },
      profileDir: null,
    })
    try {
      return await measureOn({ cluster, service, servers, take, quiet }, options, stream)
    } finally {
      await service.stop()
      service.discard()
    }
  } finally {
    await Promise.all(servers.map((server) => server.close()))
    recorder.stop()
  }
}

async function measureOn(
  setup: Setup,
  options: ClusterOptions,
  stream: { readonly seed: number; readonly startMs: number },
): Promise<Findings> {
  const { cluster, service } = setup
  const ingest = await measureIngest(setup, options, stream)
  await sleep(SETTLE_MS)
  const api = await Api.login(service)
  const renew = (): Promise<void> => storeOne(service)
  const cpuS = (): number => enginesS(cluster) + usageOf(service.pid).cpuS
  const queries = await measureQuestions({ ...setup, api, renew, cpuS }, options.sources)
  api.close()
  const checks = [...ingest.checks, oneForEach(cluster.shards.length, queries)]
  return { shards: cluster.shards.length, ...ingest, queries, checks }
}

interface Setup {
  readonly cluster: TestCluster
  readonly service: Service
  readonly servers: readonly Store[]
  readonly take: () => readonly string[]
  readonly quiet: () => Promise<void>
}

async function measureIngest(
  { cluster, service, servers, take }: Setup,
  options: ClusterOptions,
  stream: { readonly seed: number; readonly startMs: number },
): Promise<Omit<Findings, 'shards' | 'queries'>> {
  // Sources and templates are new only in the first run.
  const known = await send(service, options, { ...stream, seed: stream.seed + 1_000_003 })
  await untilStored(service)
  await sleep(SETTLE_MS)
  const reading = await costOfReading(servers)
  const rowsBefore = await Promise.all(servers.map(eventsOn))
  const [cpuBefore, serviceBefore] = [enginesS(cluster), usageOf(service.pid)]
  const before = await readCounts(servers)
  take()
  const sent = await send(service, options, stream)
  const storedAtMs = await untilStored(service)
  const batches = take().filter((sql) => sql.startsWith('INSERT INTO landing')).length
  const done = countsBetween(before, await readCounts(servers), reading)
  const [cpuS, serviceAfter] = [enginesS(cluster) - cpuBefore, usageOf(service.pid)]
  const rows = (await Promise.all(servers.map(eventsOn))).map((n, i) => n - (rowsBefore[i] ?? 0))
  const all = rows.reduce((a, b) => a + b, 0)
  const api = await Api.login(service)
  const { checks } = await checkApi(api, addCounts(known.counts, sent.counts))
  api.close()
  return {
    batches,
    insertsPerBatch: sum(done, ({ inserts }) => inserts) / batches,
    bytesMoved: sum(done.slice(1), ({ bytes }) => bytes) / (all - (rows[0] ?? 0)),
    eventsPerS: options.events / ((storedAtMs - sent.startedAtMs) / 1000),
    cpuS: cpuS / (options.events / 1e6),
    serviceCpuS: (serviceAfter.cpuS - serviceBefore.cpuS) / (options.events / 1e6),
    serviceRssBytes: serviceAfter.peakRssBytes,
    engineRssBytes: Math.max(...enginesOf(cluster).map(({ peakRssBytes }) => peakRssBytes)),
    largestShare: Math.max(...rows) / all,
    checks,
  }
}

/** Checks that every other shard gets at most one statement per table read. */
function oneForEach(shards: number, queries: readonly QueryCost[]): Check {
  const more = queries.filter(({ perShard, reads }) => perShard > reads).map(({ name }) => name)
  return {
    name: `${shards} shards: one statement at most at each other shard for a table that is read`,
    ok: more.length === 0,
    detail: more.join(', '),
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
      protocol: 'ndjson',
      corpus: { seed, startMs, events, spanMs: spanS * 1000, sources },
      stepS: 3600,
      bodyBytes,
      connections,
      eventsPerS: 0,
      gzip: false,
    })
  } finally {
    sender.close()
  }
}

const enginesOf = ({ shards }: TestCluster): readonly Usage[] =>
  shards.map((shard) => usageOf(shard.pid() ?? 0))

const enginesS = (cluster: TestCluster): number =>
  enginesOf(cluster).reduce((total, { cpuS }) => total + cpuS, 0)

const usageOf = (pid: number): Usage => readUsage(pid) ?? { cpuS: 0, peakRssBytes: 0, anonBytes: 0 }

const sum = (counts: readonly ServerCounts[], of: (count: ServerCounts) => number): number =>
  counts.reduce((total, count) => total + of(count), 0)

const readMetrics = async (service: Pick<Service, 'api'>): Promise<string> =>
  await (await fetch(`${service.api}/metrics`)).text()

/** Waits for an empty WAL by the metrics of the service, so that no query is counted. */
async function untilStored(service: Pick<Service, 'api'>): Promise<number> {
  for (const deadline = Date.now() + STORED_MAX_MS; Date.now() < deadline; await sleep(50))
    if (/wal_records 0$/m.test(await readMetrics(service))) return Date.now()
  throw new Error(`the events were not stored within ${STORED_MAX_MS} ms`)
}

async function storeOne({ collector, ingestKey, api }: Service): Promise<void> {
  const event = { source: 'bench-renewal', message: 'something else was stored' }
  const reply = await fetch(`${collector}/ingest`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ingestKey}` },
    body: JSON.stringify(event),
  })
  if (reply.status !== 202) throw new Error(`ingest answered ${reply.status}`)
  await untilStored({ api })
  // The service drops cached answers a little later.
  await sleep(25)
}

async function eventsOn(server: Store): Promise<number> {
  const statement = { name: 'bench', sql: 'SELECT count() AS n FROM logs_local.events' }
  const [row] = await server.query<Record<string, never>, { readonly n: number }>(statement, {})
  return row?.n ?? 0
}
