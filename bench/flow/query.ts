import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SEVERITIES } from '../../src/model/event.js'
import { Api, field, listField, numberField } from '../lib/api.js'
import { Connection } from '../lib/connection.js'
import { openEngine } from '../lib/engine.js'
import { Latencies } from '../lib/latency.js'
import { Meter } from '../lib/meter.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import { type Check, type Curve, median, type Metric, type ScenarioResult } from '../lib/report.js'
import { type Service, startService, type Target } from '../lib/service.js'
import { buildDatabase } from './database.js'
import { visibleOccurrences } from './exactness.js'
import { type Query, RARE_SOURCE, RARE_WORD, standardQueries } from './queries.js'
import { type Order, type Sent, startSender } from './sender-client.js'

const WARM_REQUESTS = 3
const MIN_REQUESTS = 10
const MAX_REQUESTS = 500
const DEEP_FROM = 20
const DEEP_TO = 60
const RECOMPUTES = 10
const ENGINE_REQUESTS = 103
const LOAD_MS = 10_000
const SPEED_EVENTS = 100_000
const RARE_FILE = 'bench-rare'
/** how long to wait for events to be shown when there is no calendar to ask */
const BLIND_WAIT_MS = 5_000
const PERCENTILES = [0, 10, 25, 50, 75, 90, 95, 99, 100]

type QueryOptions = BenchOptions & { readonly sources: number; readonly spanS: number }

interface Run {
  readonly options: QueryOptions
  readonly target: Target
  readonly api: Api
  readonly owned: boolean
  readonly metrics: Metric[]
  readonly checks: Check[]
  readonly skipped: string[]
  readonly curves: Curve[]
}

/** Makes a database and measures answers at the API: warm, one client, one question after the other. */
export async function runQuery(asked: BenchOptions, seed: number): Promise<ScenarioResult> {
  const options = { ...asked, sources: asked.sources ?? 100, spanS: asked.spanS ?? 60 * 86_400 }
  const loaded = options.target === null ? await load(options, seed) : null
  const target = options.target ?? loaded?.service
  if (target === undefined) throw new Error('bug: neither a target nor a service')
  const api = await Api.login(target)
  const run: Run = {
    options,
    target,
    api,
    owned: loaded !== null,
    metrics: [],
    checks: [],
    skipped: [],
    curves: [],
  }
  try {
    const queries = await existing(run, standardQueries(options.sources, Date.now()))
    await measureAll(run, queries)
    if (options.clients > 0 && loaded !== null)
      await measureUnderLoad(run, queries, loaded.eventsPerS / 2)
    api.close()
    await loaded?.service.stop()
    if (loaded !== null) await measureEngine(run, loaded.service)
  } finally {
    api.close()
    await loaded?.service.stop()
    if (options.data === null) loaded?.service.discard()
  }
  const { events, sources, spanS, clients } = options
  const { metrics, checks, skipped, curves } = run
  const facts = { events: loaded?.events ?? events, sources, spanS, seed: options.seed, clients }
  return { scenario: 'query', options: facts, metrics, checks, skipped, curves }
}

interface Loaded {
  readonly service: Service
  /** at which it takes events; 0 when nobody asks */
  readonly eventsPerS: number
  readonly events: number
}

/** A service on a database of so many events, with rare ones among them. */
async function load(options: QueryOptions, seed: number): Promise<Loaded> {
  const { events, sources, data } = options
  const dataDir = data ?? mkdtempSync(join(tmpdir(), 'bench-data-'))
  mkdirSync(dataDir, { recursive: true })
  const own = data === null ? seed : options.seed
  await buildDatabase(dataDir, { seed: own, events, sources, spanMs: options.spanS * 1000 })
  const settings = settingsOf(options)
  const service = await startService({ settings, profileDir: options.cpuProf, dataDir })
  try {
    const before = (await visibleOccurrences(await Api.login(service))) ?? 0
    const rare = rareIsMissing(dataDir) ? await sendRare(service) : 0
    await waitVisible(service, before + rare)
    noteRare(dataDir)
    const eventsPerS = options.clients === 0 ? 0 : await ingestSpeed(service, options)
    const meter = await Meter.open(service)
    await meter.settle()
    return { service, eventsPerS, events: before + rare }
  } catch (error) {
    await service.stop()
    if (data === null) service.discard()
    throw error
  }
}

/** The rare events are sent once to a directory that is kept. */
const rareIsMissing = (dataDir: string): boolean => !existsSync(join(dataDir, RARE_FILE))
const noteRare = (dataDir: string): void =>
  writeFileSync(join(dataDir, RARE_FILE), new Date().toISOString())

/** Sends some events of the last minutes as fast as they are acknowledged. */
async function ingestSpeed(service: Service, options: QueryOptions): Promise<number> {
  const stream = { seed: options.seed + 5, startMs: Date.now() - 600_000, spanMs: 600_000 }
  const before = (await visibleOccurrences(await Api.login(service))) ?? 0
  const sent = await sendEvents(service, options, stream, { events: SPEED_EVENTS })
  await waitVisible(service, before + SPEED_EVENTS)
  return SPEED_EVENTS / ((sent.endedAtMs - sent.startedAtMs) / 1000)
}

async function sendEvents(
  target: Target,
  options: QueryOptions,
  stream: { readonly seed: number; readonly startMs: number; readonly spanMs: number },
  change: Partial<Order> & { readonly events?: number } = {},
): Promise<Sent> {
  const { events, sources, bodyBytes, connections } = options
  const { events: wanted = events, ...rest } = change
  const sender = startSender()
  try {
    return await sender.send({
      collector: target.collector,
      ingestKey: target.ingestKey,
      corpus: { ...stream, events: wanted, sources },
      stepS: 3600,
      bodyBytes,
      connections,
      eventsPerS: 0,
      gzip: false,
      ...rest,
    })
  } finally {
    sender.close()
  }
}

/** Twenty events over 30 days from a source that sends nothing else, five of them with a word of their own. */
async function sendRare(target: Target): Promise<number> {
  const lines = Array.from({ length: 20 }, (_, i) => {
    const timestamp = new Date(Date.now() - 60_000 - i * 1.4 * 86_400_000).toISOString()
    const message = `maintenance window ${i} ${i % 4 === 0 ? RARE_WORD : 'ended'}`
    return JSON.stringify({
      timestamp,
      source: RARE_SOURCE,
      host: 'bench',
      severity: 'INFO',
      message,
    })
  })
  const connection = new Connection(target.collector)
  const head = `POST /ingest HTTP/1.1\r\nAuthorization: Bearer ${target.ingestKey}\r\n`
  const reply = await connection.request(head, Buffer.from(lines.join('\n')))
  connection.close()
  if (reply.status !== 202) throw new Error(`ingest answered ${reply.status} ${reply.body}`)
  return lines.length
}

async function waitVisible(target: Target, occurrences: number): Promise<void> {
  const api = await Api.login(target)
  for (const deadline = Date.now() + 120_000; Date.now() < deadline; await sleep(100)) {
    const visible = await visibleOccurrences(api)
    if (visible === null) await sleep(BLIND_WAIT_MS)
    if (visible === null || visible >= occurrences) return api.close()
  }
  throw new Error(`${occurrences} events were not shown within 120 s`)
}

/** Leaves out what the service has no route for. */
async function existing(run: Run, queries: readonly Query[]): Promise<Query[]> {
  const found: Query[] = []
  for (const query of queries) {
    const reply = await run.api.json(query.paths[0] ?? '')
    if (reply === null) run.skipped.push(`${query.name}: the service has no such route`)
    else found.push(query)
    if (reply !== null && /^rare (source|word)/.test(query.name)) checkRare(run, query, reply)
  }
  return found
}

function checkRare(run: Run, query: Query, reply: unknown): void {
  if (!run.owned) return
  const got = listField(reply, 'items').length
  const want = query.name.startsWith('rare word') ? 5 : 20
  run.checks.push({ name: query.name, ok: got === want, detail: `${got} of ${want} found` })
}

async function measureAll(run: Run, queries: readonly Query[]): Promise<void> {
  const me = { name: 'limit: own profile', group: 'point', paths: ['/api/auth/me'] } as const
  await measure(run, me)
  for (const query of queries) await measure(run, query)
  await measureById(run)
  await measureDeepPages(run)
  if (!run.owned)
    run.skipped.push('kpis recomputed: needs a correction, which a deployment is spared')
  else if (queries.some(({ name }) => name === 'kpis cached')) await measureRecompute(run)
}

async function measure(run: Run, { name, paths }: Query): Promise<void> {
  const latencies = new Latencies()
  const untilMs = performance.now() + run.options.durationS * 1000
  const next = (i: number): string => paths[i % paths.length] ?? ''
  for (let i = 0; i < WARM_REQUESTS; i++) await run.api.json(next(i))
  for (let i = 0; i < MAX_REQUESTS; i++) {
    if (i >= MIN_REQUESTS && performance.now() > untilMs) break
    const startMs = performance.now()
    await run.api.json(next(i))
    latencies.record(performance.now() - startMs)
  }
  report(run, name, latencies)
}

function report(run: Run, name: string, latencies: Latencies): void {
  const add = (what: string, at: number): void => {
    const samples = [latencies.at(at)]
    run.metrics.push({ name: `${name}, ${what}`, unit: 'ms', samples, better: 'lower' })
  }
  add('p50', 50)
  add('p95', 95)
  run.curves.push({ name, points: PERCENTILES.map((at) => [at, latencies.at(at)] as const) })
}

async function measureById(run: Run): Promise<void> {
  const pages = await Promise.all(
    SEVERITIES.map((severity) =>
      run.api.another(run.target).json(`/api/logs?limit=50&severity=${severity}`),
    ),
  )
  const ids = pages.flatMap((page) =>
    listField(page, 'items').map((item) => numberField(item, 'id')),
  )
  const paths = ids.map((id, i) => ids[(i * 37) % ids.length] ?? id).map((id) => `/api/logs/${id}`)
  await measure(run, { name: 'event by id', group: 'point', paths })
}

/** Walks pages of 50 from the newest and times those far down. */
async function measureDeepPages(run: Run): Promise<void> {
  const deep = new Latencies()
  let cursor = ''
  for (let page = 1; page <= DEEP_TO; page++) {
    const startMs = performance.now()
    const reply = await run.api.json(`/api/logs?limit=50${cursor}`)
    if (page >= DEEP_FROM) deep.record(performance.now() - startMs)
    const next = field(reply, 'next_cursor')
    if (typeof next !== 'string') break
    cursor = `&cursor=${encodeURIComponent(next)}`
  }
  if (deep.count > 0) report(run, `pages ${DEEP_FROM} to ${DEEP_TO}`, deep)
}

/** What ClickHouse takes for the least and for a small question, asked directly: each answer has at least one. */
async function measureEngine(run: Run, { dataDir }: Service): Promise<void> {
  const engine = await openEngine(dataDir)
  try {
    const ask = async (name: string, sql: string): Promise<void> => {
      const latencies = new Latencies()
      for (let i = 0; i < ENGINE_REQUESTS; i++) {
        const startMs = performance.now()
        await engine.rows(`${sql} FORMAT JSONCompactEachRow`)
        if (i >= WARM_REQUESTS) latencies.record(performance.now() - startMs)
      }
      report(run, name, latencies)
    }
    await ask('limit: SELECT 1 at ClickHouse', 'SELECT 1')
    const month = 'SELECT t, sum(info) FROM series_1d GROUP BY t ORDER BY t DESC LIMIT 31'
    await ask('limit: a sum per day at ClickHouse', month)
  } finally {
    await engine.stop()
  }
}

/** A correction makes the next snapshot a new one. */
async function measureRecompute(run: Run): Promise<void> {
  const page = await run.api.json(`/api/logs?limit=1&source=${RARE_SOURCE}`)
  const id = numberField(listField(page, 'items')[0], 'id')
  const latencies = new Latencies()
  for (let i = 0; i < RECOMPUTES; i++) {
    await run.api.change('PATCH', `/api/logs/${id}/priority`, {
      priority: i % 2 === 0 ? 'P2' : 'P3',
    })
    await sleep(300)
    const startMs = performance.now()
    await run.api.json('/api/kpis')
    latencies.record(performance.now() - startMs)
  }
  report(run, 'kpis recomputed', latencies)
}

/** All questions at random from many clients, while events come in. */
async function measureUnderLoad(
  run: Run,
  queries: readonly Query[],
  eventsPerS: number,
): Promise<void> {
  const { options, target } = run
  const byQuery = new Map(queries.map(({ name }) => [name, new Latencies()]))
  const untilMs = performance.now() + LOAD_MS
  const events = Math.ceil((eventsPerS * LOAD_MS) / 1000)
  const stream = { seed: options.seed + 77, startMs: Date.now() - 600_000, spanMs: 600_000 }
  const ingesting = sendEvents(target, options, stream, { events, eventsPerS })
  const client = async (offset: number): Promise<void> => {
    const api = run.api.another(target)
    for (let i = offset; performance.now() < untilMs; i += 7) {
      const query = queries[i % queries.length]
      if (query === undefined) break
      const startMs = performance.now()
      await api.json(query.paths[i % query.paths.length] ?? '')
      byQuery.get(query.name)?.record(performance.now() - startMs)
    }
    api.close()
  }
  await Promise.all(Array.from({ length: options.clients }, (_, i) => client(i)))
  await ingesting
  reportUnderLoad(run, byQuery)
}

function reportUnderLoad(run: Run, byQuery: ReadonlyMap<string, Latencies>): void {
  const ratios: number[] = []
  for (const [name, latencies] of byQuery) {
    if (latencies.count === 0) continue
    const samples = [latencies.at(95)]
    const label = `${run.options.clients} clients and ingest: ${name}, p95`
    run.metrics.push({ name: label, unit: 'ms', samples, better: 'lower' })
    const alone = run.metrics.find((metric) => metric.name === `${name}, p95`)
    if (alone !== undefined) ratios.push(latencies.at(95) / median(alone.samples))
  }
  const samples = [median(ratios)]
  run.metrics.push({
    name: 'p95 under load to p95 alone, median',
    unit: 'x',
    samples,
    better: 'lower',
  })
}
