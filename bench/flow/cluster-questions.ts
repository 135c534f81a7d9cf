import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../src/clickhouse/client.js'
import { sourceNames } from '../data/corpus.js'
import type { Api } from '../lib/api.js'
import { costOfReading, countsBetween, readCounts, type ServerCounts } from '../lib/counters.js'
import { Latencies } from '../lib/latency.js'
import type { QueryCost } from './cluster-report.js'
import { type Query, standardQueries } from './queries.js'

/** One question of each kind. */
const ASKED = new Set([
  'time series 15m',
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
const REQUESTS = 5
/** CPU time is known in steps of 10 ms. */
const CPU_REQUESTS = 20
const ATTEMPTS = 10 * REQUESTS
/** Longer than the interval of the service's own statements. */
const UNASKED_MS = 12_000

export interface Asking {
  readonly api: Api
  readonly servers: readonly Store[]
  /** The statements of the service since the last call. */
  readonly take: () => readonly string[]
  /** Resolves when no statement is running. */
  readonly quiet: () => Promise<void>
  /** Stores an event, so that no cached answer is served. */
  readonly renew: () => Promise<void>
  /** CPU seconds that the service and all servers have taken. */
  readonly cpuS: () => number
}

/** The cost of questions without caches, as during ingestion. */
export async function measureQuestions(
  asking: Asking,
  sources: number,
): Promise<readonly QueryCost[]> {
  const reading = await costOfReading(asking.servers)
  const unasked = await statementsUnasked(asking)
  const costs: QueryCost[] = []
  for (const query of standardQueries(sourceNames(sources), Date.now()))
    if (ASKED.has(query.name)) costs.push(await measure(asking, query, { reading, unasked }))
  return costs
}

/** The statements that the service sends without requests. */
async function statementsUnasked({ take, renew }: Asking): Promise<ReadonlySet<string>> {
  take()
  for (const deadline = Date.now() + UNASKED_MS; Date.now() < deadline; await sleep(1_000))
    await renew()
  return new Set(take())
}

interface Known {
  readonly reading: readonly ServerCounts[]
  readonly unasked: ReadonlySet<string>
}

async function measure(
  { api, servers, take, quiet, renew, cpuS }: Asking,
  { name, paths }: Query,
  { reading, unasked }: Known,
): Promise<QueryCost> {
  const latencies = new Latencies()
  const texts: string[] = []
  const counts: (readonly ServerCounts[])[] = []
  for (let i = 0; counts.length < REQUESTS; i++) {
    if (i === ATTEMPTS) throw new Error(`${name}: something else was asked each time`)
    await renew()
    await quiet()
    take()
    const before = await readCounts(servers)
    const startMs = performance.now()
    await api.json(paths[counts.length % paths.length] ?? '')
    const endMs = performance.now()
    const done = countsBetween(before, await readCounts(servers), reading)
    const asked = take()
    // The service's own statements ran at the same time.
    if (asked.some((sql) => unasked.has(sql))) continue
    latencies.record(endMs - startMs)
    texts.push(...asked)
    counts.push(done)
  }
  const cpuBeforeS = cpuS()
  for (let i = 0; i < CPU_REQUESTS; i++) await api.json(paths[i % paths.length] ?? '')
  const cpuMs = ((cpuS() - cpuBeforeS) * 1000) / CPU_REQUESTS
  const others = Math.max(1, servers.length - 1)
  const mean = (of: (done: readonly ServerCounts[]) => number): number =>
    counts.reduce((sum, done) => sum + of(done), 0) / REQUESTS
  process.stderr.write(`cluster: ${name}: ${kindsOf(texts)}\n`)
  return {
    name,
    asked: texts.length / REQUESTS,
    reads: texts.reduce((sum, text) => sum + tablesOf(text).length, 0) / REQUESTS,
    perShard: mean((done) => Math.max(0, ...done.slice(1).map(({ statements }) => statements))),
    bytes: mean((done) => done.slice(1).reduce((sum, { bytes }) => sum + bytes, 0) / others),
    ms: latencies.at(50),
    cpuMs,
  }
}

/** The tables named in a statement, including those in its subqueries. */
const tablesOf = (text: string): readonly string[] =>
  Array.from(text.matchAll(/\b(?:FROM|JOIN) \{?(\w+)/g), ([, table = '']) => table)

/** How often each table was read. */
function kindsOf(texts: readonly string[]): string {
  const times = new Map<string, number>()
  for (const text of texts) {
    const key = tablesOf(text).join('+')
    times.set(key, (times.get(key) ?? 0) + 1)
  }
  return Array.from(times, ([tables, n]) => `${(n / REQUESTS).toFixed(1)} ${tables}`).join(', ')
}
