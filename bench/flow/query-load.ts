import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../data/random.js'
import { Api } from '../lib/api.js'
import { Latencies } from '../lib/latency.js'
import type { BenchOptions } from '../lib/options.js'
import { median, type Metric } from '../lib/report.js'
import type { Target } from '../lib/service.js'
import { visibleOccurrences } from './exactness.js'
import type { Query } from './queries.js'
import { type Order, type Sent, startSender } from './sender-client.js'

export type QueryOptions = BenchOptions & { readonly sources: number; readonly spanS: number }

/** The length of the load, in durations of one question. */
const LOAD_DURATIONS = 5
const REFUSED_WAIT_MS = 100
const SPEED_EVENTS = 100_000
/** The span of the event times under load, which ends at the present. */
const STREAM_MS = 600_000
/** The wait until events are visible on a service without a calendar. */
const BLIND_WAIT_MS = 5_000

/** Sends some events of the last minutes as fast as they are acknowledged. @returns events/s */
export async function ingestSpeed(target: Target, options: QueryOptions): Promise<number> {
  const stream = { seed: options.seed + 5, startMs: Date.now() - STREAM_MS, spanMs: STREAM_MS }
  const before = (await visibleOccurrences(await Api.login(target))) ?? 0
  const sent = await sendEvents(target, options, stream, { events: SPEED_EVENTS })
  await waitVisible(target, before + SPEED_EVENTS)
  return SPEED_EVENTS / ((sent.endedAtMs - sent.startedAtMs) / 1000)
}

async function sendEvents(
  target: Target,
  options: QueryOptions,
  stream: { readonly seed: number; readonly startMs: number; readonly spanMs: number },
  { events, ...change }: Partial<Order> & { readonly events: number },
): Promise<Sent> {
  const { sources, bodyBytes, connections } = options
  const sender = startSender()
  try {
    return await sender.send({
      collector: target.collector,
      ingestKey: target.ingestKey,
      protocol: 'ndjson',
      corpus: { ...stream, events, sources },
      stepS: 3600,
      bodyBytes,
      connections,
      eventsPerS: 0,
      gzip: false,
      ...change,
    })
  } finally {
    sender.close()
  }
}

export async function waitVisible(target: Target, occurrences: number): Promise<void> {
  const api = await Api.login(target)
  for (const deadline = Date.now() + 120_000; Date.now() < deadline; await sleep(100)) {
    const visible = await visibleOccurrences(api)
    if (visible === null) await sleep(BLIND_WAIT_MS)
    if (visible === null || visible >= occurrences) return api.close()
  }
  throw new Error(`${occurrences} events were not shown within 120 s`)
}

export interface Load {
  readonly target: Target
  /** The API, logged in as the user of all clients. */
  readonly api: Api
  readonly options: QueryOptions
  readonly queries: readonly Query[]
  /** The rate of events during the load. */
  readonly eventsPerS: number
}

/** The outcome of a load. */
interface Met {
  readonly latencies: ReadonlyMap<Query, Latencies>
  /** Replies with status 429 and 503. */
  refused: number
}

/**
 * Many clients ask random questions while events are ingested at a constant rate.
 *
 * @param alone the p95 of a question asked by one client, in ms; undefined when it was not measured
 */
export async function measureUnderLoad(
  load: Load,
  alone: (name: string) => number | undefined,
): Promise<Metric[]> {
  const { target, options, queries, eventsPerS } = load
  const met: Met = { latencies: new Map(queries.map((one) => [one, new Latencies()])), refused: 0 }
  const loadMs = options.durationS * LOAD_DURATIONS * 1000
  const events = Math.ceil((eventsPerS * loadMs) / 1000)
  const stream = { seed: options.seed + 77, startMs: Date.now() - STREAM_MS, spanMs: STREAM_MS }
  const ingesting = sendEvents(target, options, stream, { events, eventsPerS })
  const untilMs = performance.now() + loadMs
  const clients = Array.from({ length: options.clients }, (_, i) => ask(load, met, i, untilMs))
  await Promise.all([ingesting, ...clients])
  return toMetrics(options.clients, loadMs, met, alone)
}

/** One client, which asks one question after the other. */
async function ask(load: Load, met: Met, client: number, untilMs: number): Promise<void> {
  const random = new Random(load.options.seed + client)
  const api = load.api.another(load.target)
  const { pauseMs } = load.options
  // A random pause of 0.5 to 1.5 times the average keeps the clients from asking in step.
  const pause = (): Promise<void> => sleep((pauseMs * (50 + random.below(101))) / 100)
  if (pauseMs > 0) await sleep(random.below(pauseMs))
  while (performance.now() < untilMs) {
    const query = load.queries[random.below(load.queries.length)]
    if (query === undefined) break
    const path = query.paths[random.below(query.paths.length)] ?? ''
    const startMs = performance.now()
    const { status } = await api.get(path)
    if (status === 200) met.latencies.get(query)?.record(performance.now() - startMs)
    else if (status !== 429 && status !== 503) throw new Error(`${path} answered ${status}`)
    else {
      met.refused++
      await sleep(REFUSED_WAIT_MS)
    }
    if (pauseMs > 0) await pause()
  }
  api.close()
}

function toMetrics(
  clients: number,
  loadMs: number,
  { latencies, refused }: Met,
  alone: (name: string) => number | undefined,
): Metric[] {
  const prefix = `${clients} clients and ingest`
  const metrics: Metric[] = []
  const add = (name: string, unit: string, value: number, better: Metric['better']): void => {
    metrics.push({ name: `${prefix}: ${name}`, unit, samples: [value], better })
  }
  const ratios = new Map<string, number[]>()
  let answered = 0
  for (const [{ name, group }, each] of latencies) {
    answered += each.count
    const before = alone(name)
    if (each.count === 0 || before === undefined) continue
    const limit = { metric: `${name}, p95`, label: 'of one client' }
    const metric = { name: `${prefix}: ${name}, p95`, unit: 'ms', samples: [each.at(95)], limit }
    metrics.push({ ...metric, better: 'lower' })
    ratios.set(group, [...(ratios.get(group) ?? []), each.at(95) / before])
  }
  for (const [group, some] of ratios) {
    add(`p95 to that of one client, ${group}, median`, 'x', median(some), 'lower')
    add(`p95 to that of one client, ${group}, most`, 'x', Math.max(...some), 'lower')
  }
  add('answers', '1/s', answered / (loadMs / 1000), 'higher')
  add('refused (429, 503)', '1/s', refused / (loadMs / 1000), 'lower')
  return metrics
}
