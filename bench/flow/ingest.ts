import { setTimeout as sleep } from 'node:timers/promises'
import { Corpus, type CorpusOptions } from '../data/corpus.js'
import { addCounts, type Counts, countDistinct } from '../data/tally.js'
import { Api } from '../lib/api.js'
import { openEngine } from '../lib/engine.js'
import { Latencies } from '../lib/latency.js'
import { Meter, type Reading, threadSeconds } from '../lib/meter.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import type { Check, Curve, Limit, Metric, ScenarioResult } from '../lib/report.js'
import { type Service, startService, type Target } from '../lib/service.js'
import { checkApi, checkTables, readTableBytes, visibleOccurrences } from './exactness.js'
import { feedNative } from './native-feed.js'
import { probe } from './probes.js'
import { type Order, type Sent, type Sender, startSender } from './sender-client.js'
import { MINUTE_MS } from '../../src/model/time.js'

const WARM_EVENTS = 30_000
const DEDUP_WINDOW_MS = MINUTE_MS
const VISIBLE_MAX_MS = 120_000
/** The events of a burst, which the WAL absorbs even if ClickHouse is slow. */
const BURST_EVENTS = 1_000_000
const MIB = 1024 * 1024

type IngestOptions = BenchOptions & { readonly sources: number; readonly spanS: number }

/** The state of one run. */
interface Run {
  readonly options: IngestOptions
  readonly target: Target
  readonly service: Service | null
  readonly meter: Meter | null
  readonly api: Api
  readonly sender: Sender
  readonly metrics: Metric[]
  readonly checks: Check[]
  readonly skipped: string[]
  readonly curves: Curve[]
  /** The counts of all sent events. */
  counts: Counts | null
  readonly orders: CorpusOptions[]
}

/**
 * Sends generated events as fast as they are acknowledged, then, to measure latencies, at a share of the speed at which
 * they became visible, and compares every count of the service with that of the sent events.
 */
export async function runIngest(asked: BenchOptions, seed: number): Promise<ScenarioResult> {
  const options = { ...asked, sources: asked.sources ?? 16, spanS: asked.spanS ?? 3600 }
  const parseS = measureJsonParse(options)
  const service =
    options.target === null
      ? await startService({ settings: settingsOf(options), profileDir: options.cpuProf })
      : null
  const target = options.target ?? service
  if (target === null) throw new Error('bug: neither a target nor a service')
  const sender = startSender()
  const run: Run = {
    options,
    target,
    service,
    meter: service === null ? null : await Meter.open(service),
    api: await Api.login(target),
    sender,
    metrics: [{ name: LIMIT.parse, unit: 'CPU s/M', samples: [parseS], better: 'info' }],
    checks: [],
    skipped: [],
    curves: [],
    counts: null,
    orders: [],
  }
  try {
    await measure(run, seed)
    run.api.close()
    await service?.stop()
    if (service !== null) await inspect(run, service)
  } finally {
    sender.close()
    await service?.stop()
    service?.discard()
  }
  const { metrics, checks, skipped, curves } = run
  const { events, connections, bodyBytes, sources, gzip, small } = options
  return {
    scenario: small ? 'ingest of single events' : 'ingest',
    options: { events, connections, bodyBytes, seed: options.seed, sources, gzip },
    metrics,
    checks,
    skipped,
    curves,
  }
}

async function measure(run: Run, seed: number): Promise<void> {
  const { options } = run
  const existing = run.service === null ? await visibleOccurrences(run.api) : 0
  if (run.service !== null) {
    await sendAndCount(run, { events: WARM_EVENTS, seed: seed + 1_000_003, bodyBytes: 256 * 1024 })
    await run.meter?.settle()
  }
  const before = run.meter?.read()
  const sent = await sendAndCount(run, { events: options.events, seed, eventsPerS: options.rate })
  const acked = run.meter?.read()
  const visibleAtMs = await untilVisible(run, existing)
  const settledMs = await run.meter?.settle()
  reportFullSpeed(run, sent, visibleAtMs)
  if (run.meter !== null && before !== undefined && acked !== undefined)
    reportUsage(run, before, acked, run.meter.read(), settledMs ?? 0)
  if (run.service === null || run.counts === null) {
    run.skipped.push('exact counts by the API: the deployment holds other events too')
  } else {
    const found = await checkApi(run.api, run.counts)
    run.checks.push(...found.checks)
    run.skipped.push(...found.skipped)
  }
  if (options.loadShare > 0 && options.rate === 0)
    await measureLatency(run, sustainedPerS(run, sent, visibleAtMs), seed)
}

/** Runs a sender with some changed orders, and adds the sent events to the counts. */
async function sendAndCount(
  run: Run,
  change: Partial<Order> & { readonly events: number; readonly seed: number },
): Promise<Sent> {
  const { options, target } = run
  const { events, seed, ...rest } = change
  const spanMs = options.spanS * 1000
  // The last event is in the past when it is sent, so a window that ends now contains all events.
  const startMs = Math.floor((Date.now() - spanMs) / MINUTE_MS) * MINUTE_MS
  const { attributes, sources } = options
  const corpus = { seed, events, startMs, spanMs, sources, attributes }
  run.orders.push(corpus)
  const sent = await run.sender.send({
    collector: target.collector,
    ingestKey: target.ingestKey,
    protocol: 'ndjson',
    corpus,
    stepS: options.events > 10_000_000 ? 60 : 1,
    bodyBytes: options.bodyBytes,
    connections: options.connections,
    eventsPerS: 0,
    gzip: options.gzip,
    ...rest,
  })
  run.counts = run.counts === null ? sent.counts : addCounts(run.counts, sent.counts)
  const name = `acknowledged of ${events}`
  const ok = sent.acknowledged === events && sent.rejected === 0
  run.checks.push({ name, ok, detail: `${sent.acknowledged}, rejected ${sent.rejected}` })
  return sent
}

/** @returns the time when the calendar contained all sent events; null without a calendar and after a timeout */
async function untilVisible(run: Run, existing: number | null): Promise<number | null> {
  const wanted = (run.counts?.events ?? 0) + (existing ?? 0)
  for (const deadline = Date.now() + VISIBLE_MAX_MS; Date.now() < deadline; await sleep(50)) {
    const visible = await visibleOccurrences(run.api)
    if (visible === null) {
      run.skipped.push('time until visible: the service has no calendar')
      return null
    }
    if (visible >= wanted) return Date.now()
  }
  run.checks.push({
    name: 'visible in time',
    ok: false,
    detail: `not all after ${VISIBLE_MAX_MS} ms`,
  })
  return null
}

function reportFullSpeed(run: Run, sent: Sent, visibleAtMs: number | null): void {
  const { events } = run.options
  const ackS = (sent.endedAtMs - sent.startedAtMs) / 1000
  const millions = events / 1e6
  add(run, 'acknowledged', 'events/s', events / ackS, 'higher')
  if (run.options.small) add(run, 'requests', '1/s', sent.bodies / ackS, 'higher')
  if (visibleAtMs !== null)
    add(run, 'until visible', 'events/s', sustainedPerS(run, sent, visibleAtMs), 'higher')
  reportLatency(run, 'ack at full speed', new Latencies(sent.latencies))
  add(run, 'replies of 429', '', sent.busy, 'info')
  if (run.service !== null && events <= BURST_EVENTS && !run.options.small) {
    const detail = `${sent.busy} bodies of ${events} events were refused`
    run.checks.push({ name: 'the WAL took the burst', ok: sent.busy === 0, detail })
  }
  add(run, 'CPU sender', 'CPU s/M', sent.cpuS / millions, 'info')
  add(run, 'peak RSS sender', 'MiB', sent.peakRssBytes / MIB, 'info')
  add(run, 'bytes per event sent', 'B', sent.bytes / events, 'info')
}

function reportUsage(
  run: Run,
  before: Reading,
  acked: Reading,
  after: Reading,
  settledMs: number,
): void {
  const millions = run.options.events / 1e6
  const service = (after.service.cpuS - before.service.cpuS) / millions
  const threads = threadSeconds(before, after)
  const engine = (after.engine.cpuS - before.engine.cpuS) / millions
  const late = (after.engine.cpuS - acked.engine.cpuS) / millions
  add(run, 'CPU service + ClickHouse', 'CPU s/M', service + engine, 'lower')
  add(run, 'CPU service', 'CPU s/M', service, 'lower')
  add(run, 'CPU service, main thread', 'CPU s/M', threads.main / millions, 'lower')
  threads.others.slice(0, 3).forEach((seconds, i) => {
    add(run, `CPU service, thread ${i + 2}`, 'CPU s/M', seconds / millions, 'info')
  })
  add(run, 'CPU ClickHouse', 'CPU s/M', engine, 'lower')
  add(run, 'CPU ClickHouse after the last ack', 'CPU s/M', late, 'info')
  add(run, 'merges settled after', 's', settledMs / 1000, 'info')
  add(run, 'CPU idle ClickHouse', 'cores', run.meter?.idleShare ?? 0, 'info')
  add(run, 'peak RSS service', 'MiB', after.service.peakRssBytes / MIB, 'lower')
  add(run, 'peak RSS ClickHouse', 'MiB', after.engine.peakRssBytes / MIB, 'lower')
  add(run, 'anonymous memory ClickHouse', 'MiB', after.engine.anonBytes / MIB, 'info')
}

/** The stored and visible events per second; a higher rate is acknowledged only until the WAL is full. */
const sustainedPerS = (run: Run, sent: Sent, visibleAtMs: number | null): number =>
  run.options.events / (((visibleAtMs ?? sent.endedAtMs) - sent.startedAtMs) / 1000)

/** Measures latencies at a share of the full speed, and the delay until single events are visible. */
async function measureLatency(run: Run, fullPerS: number, seed: number): Promise<void> {
  const { loadShare, loadS } = run.options
  const eventsPerS = Math.max(1, fullPerS * loadShare)
  const order = { events: Math.ceil(eventsPerS * loadS), seed: seed + 2_000_003, eventsPerS }
  let done = false
  const probing = probe(run.target, run.api, () => done)
  const sent = await sendAndCount(run, order).finally(() => (done = true))
  const probed = await probing
  if (run.counts !== null) run.counts = addCounts(run.counts, probed.counts)
  const percent = `${Math.round(loadShare * 100)} % load`
  reportLatency(run, `ack at ${percent}`, new Latencies(sent.latencies))
  if (probed.visible.count > 0) reportLatency(run, `ack to visible at ${percent}`, probed.visible)
  const detail = `${probed.lost} of ${probed.visible.count + probed.lost} were never shown`
  run.checks.push({ name: 'probes', ok: probed.lost === 0, detail })
}

/** Opens the tables of a stopped service. */
async function inspect(run: Run, service: Service): Promise<void> {
  if (run.counts === null) return
  const engine = await openEngine(service.dataDir)
  try {
    run.checks.push(...(await checkTables(engine, run.counts, expectedDistinct(run))))
    const bytes = await readTableBytes(engine)
    const perEvent = (n: number): number => n / (run.counts?.events ?? 1)
    add(run, 'disk', 'B/event', perEvent([...bytes.values()].reduce((a, b) => a + b, 0)), 'lower')
    for (const [table, size] of bytes) add(run, `disk, ${table}`, 'B/event', perEvent(size), 'info')
    const distinct = (
      await engine.rows('SELECT count() FROM events FORMAT JSONCompactEachRow')
    )[0]?.[0]
    add(run, 'events per occurrence', '', perEvent(Number(distinct)), 'info')
    const [corpus] = run.orders.filter(({ events }) => events === run.options.events)
    if (corpus === undefined) throw new Error('bug: nothing was sent')
    const fed = await feedNative(engine, corpus)
    const fedS = fed.cpuS / (corpus.events / 1e6)
    add(run, LIMIT.native, 'CPU s/M', fedS, 'info')
    add(run, LIMIT.both, 'CPU s/M', fedS + (run.metrics[0]?.samples[0] ?? 0), 'info')
    add(run, LIMIT.nativeSpeed, 'events/s', corpus.events / fed.seconds, 'info')
  } finally {
    await engine.stop()
  }
}

/**
 * The number of events by the rule of deduplication. Null with several connections, because events depend on
 * the order of arrival, which is then not that of the corpus.
 */
function expectedDistinct({ options, orders, counts }: Run): number | null {
  const sent = orders.reduce((sum, order) => sum + order.events, 0)
  if (options.connections > 1 || sent !== counts?.events) return null
  const corpora = orders.map((order) => new Corpus(order))
  return countDistinct(corpora, DEDUP_WINDOW_MS)
}

function reportLatency(run: Run, name: string, latencies: Latencies): void {
  add(run, `${name}, p50`, 'ms', latencies.at(50), 'lower')
  add(run, `${name}, p99`, 'ms', latencies.at(99), 'lower')
  run.curves.push({ name, points: latencies.curve() })
}

/** The limits of the same machine, measured in the same run. */
const LIMIT = {
  parse: 'limit: bare JSON.parse',
  native: 'limit: ClickHouse fed Native, no merges',
  nativeSpeed: 'limit: ClickHouse fed Native, speed',
  both: 'limit: bare JSON.parse + ClickHouse fed Native',
}

const AGAINST: Readonly<Record<string, Limit>> = {
  'CPU service + ClickHouse': { metric: LIMIT.both, label: 'both limits' },
  'CPU service': { metric: LIMIT.parse, label: 'bare JSON.parse' },
  'CPU ClickHouse': { metric: LIMIT.native, label: 'ClickHouse fed Native' },
  acknowledged: { metric: LIMIT.nativeSpeed, label: 'ClickHouse fed Native' },
  'until visible': { metric: LIMIT.nativeSpeed, label: 'ClickHouse fed Native' },
}

const add = (
  run: Run,
  name: string,
  unit: string,
  value: number,
  better: Metric['better'],
): void => {
  const limit = AGAINST[name]
  const metric = { name, unit, samples: [value], better }
  run.metrics.push(limit === undefined ? metric : { ...metric, limit })
}

/** CPU seconds per million lines of JSON.parse alone, the limit of the service's decoding. */
function measureJsonParse({ seed, sources }: IngestOptions): number {
  const events = 50_000
  const corpus = new Corpus({ seed, events, startMs: 1_700_000_000_000, spanMs: 180_000, sources })
  const lines: string[] = []
  for (let block = corpus.block(MIB); block !== null; block = corpus.block(MIB))
    lines.push(...block.bytes.toString('utf8').trimEnd().split('\n'))
  let seen = 0
  const once = (): number => {
    const before = process.cpuUsage()
    for (const line of lines) seen += Object(JSON.parse(line)).message.length
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1e6 / (events / 1e6)
  }
  const samples = [once(), once(), once()]
  if (seen === 0) throw new Error('bug: nothing was parsed')
  return Math.min(...samples)
}
