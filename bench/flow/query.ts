import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SEVERITIES } from '../../src/model/event.js'
import { Api, field, listField, numberField, textField } from '../lib/api.js'
import { sourceNames } from '../data/corpus.js'
import { Connection } from '../lib/connection.js'
import { openEngine } from '../lib/engine.js'
import { watchProcesses } from '../lib/footprint.js'
import { Latencies } from '../lib/latency.js'
import { Meter } from '../lib/meter.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import { readUsage } from '../lib/processes.js'
import type { Check, Curve, Metric, ScenarioResult } from '../lib/report.js'
import { type Service, startService, type Target } from '../lib/service.js'
import { type Asked, checkAnswers } from './answers.js'
import { buildDatabase } from './database.js'
import { visibleOccurrences } from './exactness.js'
import { type Query, RARE_SOURCE, rareLines, standardQueries } from './queries.js'
import { ingestSpeed, measureUnderLoad, type QueryOptions, waitVisible } from './query-load.js'

const MIN_WARM_REQUESTS = 3
/** The most variants of a question that are asked once before the measurement; there are too many ids for that. */
const MAX_WARM_REQUESTS = 20
const MIN_REQUESTS = 10
const MAX_REQUESTS = 500
const DEEP_FROM = 20
const DEEP_TO = 60
const RECOMPUTES = 10
const ENGINE_REQUESTS = 103
/** Reading more events without indexes takes minutes. */
const CHECKED_EVENTS = 5_000_000
const BY_ID = 'event by id'
const DEEP_PAGES = `pages ${DEEP_FROM} to ${DEEP_TO}`
const RECOMPUTED = 'kpis recomputed'
const RARE_FILE = 'bench-rare'
const LIMIT = { api: 'limit: own profile', engine: 'limit: SELECT 1 at ClickHouse' }
const LABELS: Readonly<Record<string, string>> = {
  [LIMIT.api]: 'own profile',
  [LIMIT.engine]: 'SELECT 1',
}

interface Run {
  readonly options: QueryOptions
  readonly target: Target
  readonly api: Api
  readonly owned: boolean
  /** The processes that answer. */
  readonly pids: readonly number[]
  readonly metrics: Metric[]
  readonly checks: Check[]
  readonly skipped: string[]
  readonly curves: Curve[]
  /** The first answer of each question. */
  readonly asked: Asked[]
}

/** Fills a database and measures latencies at the API: warm, one client, one question after the other. */
export async function runQuery(asked: BenchOptions, seed: number): Promise<ScenarioResult> {
  const options = { ...asked, sources: asked.sources ?? 100, spanS: asked.spanS ?? 60 * 86_400 }
  const loaded = options.target === null ? await load(options, seed) : null
  const target = options.target ?? loaded?.service
  if (target === undefined) throw new Error('bug: neither a target nor a service')
  const used = watchProcesses(loaded?.service ?? null)
  const api = await Api.login(target)
  const existingEvents = (await visibleOccurrences(api)) ?? 0
  const run: Run = {
    options,
    target,
    api,
    owned: loaded !== null,
    pids: loaded === null ? [] : [loaded.service.pid, loaded.service.enginePid() ?? 0],
    metrics: [],
    checks: [],
    skipped: [],
    curves: [],
    asked: [],
  }
  try {
    const standard = standardQueries(await sourcesOf(run), Date.now())
    const queries = await existing(
      run,
      standard.filter(({ name }) => isAsked(run, name)),
    )
    await measureAll(run, queries)
    if (options.clients > 0 && loaded === null)
      run.skipped.push('many clients: they need ingest at half load, which a deployment is spared')
    if (options.clients > 0 && loaded !== null)
      await measureClients(run, queries, loaded.eventsPerS / 2)
    run.metrics.push(...used())
    api.close()
    await loaded?.service.stop()
    if (loaded !== null) await measureEngine(run, loaded.service)
  } finally {
    api.close()
    await loaded?.service.stop()
    if (options.data === null) loaded?.service.discard()
  }
  const { sources, spanS, clients } = options
  const { metrics, checks, skipped, curves } = run
  const made = loaded === null ? {} : { sources, spanS, seed: options.seed }
  const facts = { events: loaded?.events ?? existingEvents, ...made, clients }
  return { scenario: 'query', options: facts, metrics, checks, skipped, curves }
}

interface Loaded {
  readonly service: Service
  /** The rate at which it ingests events; 0 when it was not measured. */
  readonly eventsPerS: number
  readonly events: number
}

/** Starts a service on a database with a number of events, some of them rare. */
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

/** The rare events are sent to a permanent directory only once. */
const rareIsMissing = (dataDir: string): boolean => !existsSync(join(dataDir, RARE_FILE))
const noteRare = (dataDir: string): void =>
  writeFileSync(join(dataDir, RARE_FILE), new Date().toISOString())

async function sendRare(target: Target): Promise<number> {
  const lines = rareLines(Date.now())
  const connection = new Connection(target.collector)
  const head = `POST /ingest HTTP/1.1\r\nAuthorization: Bearer ${target.ingestKey}\r\n`
  const reply = await connection.request(head, Buffer.from(lines.join('\n')))
  connection.close()
  if (reply.status !== 202) throw new Error(`ingest answered ${reply.status} ${reply.body}`)
  return lines.length
}

/** The generated sources, or the busiest ones of a deployment. */
async function sourcesOf({ owned, api, options }: Run): Promise<readonly string[]> {
  if (owned) return sourceNames(options.sources)
  const top = await api.json('/api/analytics/top-sources?window=30d&limit=20')
  return listField(top, 'items').map((item) => textField(item, 'source'))
}

/** Leaves out questions without a route in the service. */
async function existing(run: Run, queries: readonly Query[]): Promise<Query[]> {
  const found: Query[] = []
  for (const query of queries) {
    const [path] = query.paths
    if (path === undefined) continue
    const atMs = Date.now()
    const reply = await run.api.json(path)
    // A repeat has no arrival time, so counts are compared only when nothing is ingested afterwards.
    if (run.options.clients === 0 || query.group !== 'rollup')
      run.asked.push({ name: query.name, path, reply, atMs })
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

const isAsked = ({ options }: Run, name: string): boolean => options.questions?.test(name) ?? true

async function measureAll(run: Run, queries: readonly Query[]): Promise<void> {
  const me = { name: LIMIT.api, group: 'point', paths: ['/api/auth/me'] } as const
  await measure(run, me)
  for (const query of queries) await measure(run, query)
  if (isAsked(run, BY_ID)) await measureById(run)
  if (isAsked(run, DEEP_PAGES)) await measureDeepPages(run)
  if (!isAsked(run, RECOMPUTED)) return
  if (!run.owned)
    run.skipped.push(`${RECOMPUTED}: needs a correction, which a deployment is spared`)
  else await measureRecompute(run)
}

async function measure(run: Run, { name, paths }: Query): Promise<void> {
  const latencies = new Latencies()
  const untilMs = performance.now() + run.options.durationS * 1000
  const next = (i: number): string => paths[i % paths.length] ?? ''
  const warm = Math.min(Math.max(MIN_WARM_REQUESTS, paths.length), MAX_WARM_REQUESTS)
  for (let i = 0; i < warm; i++) await run.api.json(next(i))
  const cpuS = cpuOf(run)
  for (let i = 0; i < MAX_REQUESTS; i++) {
    if (i >= MIN_REQUESTS && performance.now() > untilMs) break
    const startMs = performance.now()
    await run.api.json(next(warm + i))
    latencies.record(performance.now() - startMs)
  }
  report(run, name, latencies)
  const samples = [((cpuOf(run) - cpuS) * 1000) / latencies.count]
  if (run.owned)
    run.metrics.push({ name: `${name}, CPU`, unit: 'CPU ms', samples, better: 'lower' })
}

/** CPU seconds of the service and ClickHouse since their start. */
const cpuOf = ({ pids }: Run): number =>
  pids.reduce((sum, pid) => sum + (readUsage(pid)?.cpuS ?? 0), 0)

function report(run: Run, name: string, latencies: Latencies): void {
  const limit = limitOf(run, name)
  const add = (what: string, at: number): void => {
    const metric = { name: `${name}, ${what}`, unit: 'ms', samples: [latencies.at(at)] }
    const against = limit && {
      limit: { metric: `${limit}, ${what}`, label: LABELS[limit] ?? limit },
    }
    run.metrics.push({ ...metric, ...against, better: 'lower' })
  }
  add('p50', 50)
  add('p95', 95)
  run.curves.push({ name, points: latencies.curve() })
}

/** The shortest time of an answer from ClickHouse, as a limit; a deployment allows only measurements at the API. */
function limitOf({ owned }: Run, name: string): string | null {
  if (name.startsWith('limit: ')) return null
  return owned ? LIMIT.engine : LIMIT.api
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
  const paths = ids.map((_, i) => toEventPath(ids[(i * 37) % ids.length] ?? 0))
  await measure(run, { name: BY_ID, group: 'point', paths })
  const around = paths.map((path) => `${path}/context?same=source`)
  await measure(run, { name: 'context of an event', group: 'point', paths: around })
}

const toEventPath = (id: number): string => `/api/logs/${id}`

/** Reads pages of 50 from the newest on and measures those at great depth. */
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
  if (deep.count > 0) report(run, DEEP_PAGES, deep)
}

/** The time of ClickHouse for a trivial and for a small query; each answer takes at least one query. */
async function measureEngine(run: Run, { dataDir }: Service): Promise<void> {
  const engine = await openEngine(dataDir)
  try {
    const ask = async (name: string, sql: string): Promise<void> => {
      const latencies = new Latencies()
      for (let i = 0; i < ENGINE_REQUESTS; i++) {
        const startMs = performance.now()
        await engine.rows(`${sql} FORMAT JSONCompactEachRow`)
        if (i >= MIN_WARM_REQUESTS) latencies.record(performance.now() - startMs)
      }
      report(run, name, latencies)
    }
    await ask(LIMIT.engine, 'SELECT 1')
    const month = 'SELECT t, sum(info) FROM series_1d GROUP BY t ORDER BY t DESC LIMIT 31'
    await ask('limit: a sum per day at ClickHouse', month)
    const [[events] = [0]] = await engine.rows(
      'SELECT count() FROM events FORMAT JSONCompactEachRow',
    )
    if (Number(events) <= CHECKED_EVENTS)
      run.checks.push(...(await checkAnswers(engine, run.asked)))
    else run.skipped.push(`comparing answers with the rows: more than ${CHECKED_EVENTS} events`)
  } finally {
    await engine.stop()
  }
}

/** A correction invalidates the snapshot. */
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
  report(run, RECOMPUTED, latencies)
}

async function measureClients(
  run: Run,
  queries: readonly Query[],
  eventsPerS: number,
): Promise<void> {
  const { target, api, options, metrics } = run
  const alone = (name: string): number | undefined =>
    metrics.find((metric) => metric.name === `${name}, p95`)?.samples[0]
  const load = { target, api, options, queries, eventsPerS }
  metrics.push(...(await measureUnderLoad(load, alone)))
}
