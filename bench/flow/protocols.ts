import { setTimeout as sleep } from 'node:timers/promises'

import { freePort } from '../../test/support/ports.js'
import type { BenchProtocol } from '../data/protocol-bodies.js'
import { Api } from '../lib/api.js'
import { Meter } from '../lib/meter.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import type { Check, Metric, ScenarioResult } from '../lib/report.js'
import { type Service, startService } from '../lib/service.js'
import { visibleOccurrences } from './exactness.js'
import { type Sender, startSender } from './sender-client.js'
import { MINUTE_MS } from '../../src/model/time.js'

const WARM_EVENTS = 30_000
const VISIBLE_MAX_MS = 120_000

type Options = BenchOptions & { readonly sources: number; readonly spanS: number }

/**
 * Sends the same events as NDJSON and in other protocols, each to a service of its own, one after
 * the other, so that the costs of protocols can be compared. Every count is compared with the sent
 * events.
 */
export async function runProtocols(asked: BenchOptions, seed: number): Promise<ScenarioResult> {
  if (asked.target !== null) throw new Error('--protocol starts services of its own')
  const options = { ...asked, sources: asked.sources ?? 16, spanS: asked.spanS ?? 3600 }
  const { events, connections, bodyBytes, sources, gzip, attributes } = options
  const metrics: Metric[] = []
  const checks: Check[] = []
  for (const protocol of ['ndjson', ...options.protocols] as const) {
    const measured = await measure(protocol, options, seed)
    metrics.push(...measured.metrics)
    checks.push(measured.check)
  }
  return {
    scenario: 'ingest by protocol',
    options: { events, connections, bodyBytes, seed, sources, gzip, attributes },
    metrics,
    checks,
    skipped: [],
    curves: [],
  }
}

interface Measured {
  readonly metrics: readonly Metric[]
  readonly check: Check
}

async function measure(protocol: BenchProtocol, options: Options, seed: number): Promise<Measured> {
  const syslogPort = await freePort()
  const settings = { ...settingsOf(options), SYSLOG_PORT: String(syslogPort) }
  const service = await startService({ settings, profileDir: options.cpuProf })
  const sender = startSender()
  try {
    const collector = protocol === 'syslog' ? `tcp://127.0.0.1:${syslogPort}` : service.collector
    return await measureService({ protocol, options, service, sender, collector, seed })
  } finally {
    sender.close()
    await service.stop()
    service.discard()
  }
}

interface Run {
  readonly protocol: BenchProtocol
  readonly options: Options
  readonly service: Service
  readonly sender: Sender
  readonly collector: string
  readonly seed: number
}

async function measureService(run: Run): Promise<Measured> {
  const { protocol, options, service, seed } = run
  const meter = await Meter.open(service)
  const api = await Api.login(service)
  await send(run, WARM_EVENTS, seed + 1_000_003)
  await untilVisible(api, WARM_EVENTS)
  await meter.settle()
  const before = meter.read()
  const sent = await send(run, options.events, seed)
  const durableS =
    ((await untilDurable(api, WARM_EVENTS + options.events)) - sent.startedAtMs) / 1000
  const visible = await untilVisible(api, WARM_EVENTS + options.events)
  const wholeS = (Date.now() - sent.startedAtMs) / 1000
  await meter.settle()
  const after = meter.read()
  api.close()
  const millions = options.events / 1e6
  const engine = (after.engine.cpuS - before.engine.cpuS) / millions
  const ownS = (after.service.cpuS - before.service.cpuS) / millions
  const beside = (name: string, unit: string, value: number, better: Metric['better']): Metric => ({
    name: `${protocol}: ${name}`,
    unit,
    samples: [value],
    better,
    ...(protocol === 'ndjson' ? {} : { limit: { metric: `ndjson: ${name}`, label: 'NDJSON' } }),
  })
  return {
    metrics: [
      beside('CPU service', 'CPU s/M', ownS, 'lower'),
      beside('CPU service + ClickHouse', 'CPU s/M', ownS + engine, 'lower'),
      beside('until durable', 'events/s', options.events / durableS, 'higher'),
      beside('until visible', 'events/s', options.events / wholeS, 'higher'),
      beside('bytes per event sent', 'B', sent.bytes / options.events, 'info'),
      beside('peak RSS service', 'MiB', after.service.peakRssBytes / 1024 / 1024, 'info'),
    ],
    check: {
      name: `${protocol}: all is stored`,
      ok: visible === WARM_EVENTS + options.events,
      detail: `${visible} of ${WARM_EVENTS + options.events}`,
    },
  }
}

const send = (
  { options, service, sender, collector, protocol }: Run,
  events: number,
  seed: number,
) => {
  const spanMs = options.spanS * 1000
  const startMs = Math.floor((Date.now() - spanMs) / MINUTE_MS) * MINUTE_MS
  const { sources, attributes, bodyBytes, connections, gzip } = options
  return sender.send({
    collector,
    ingestKey: service.ingestKey,
    protocol,
    corpus: { seed, events, startMs, spanMs, sources, attributes },
    stepS: 1,
    bodyBytes,
    connections,
    eventsPerS: 0,
    gzip,
  })
}

/** A request of `/metrics` takes some 10 ms of the service's main thread. */
const DURABLE_STEP_MS = 250

/**
 * Waits until the service has counted all events as durable, because syslog has no acknowledgement.
 *
 * @returns when all events are durable, or the end of the time; ms since 1970
 */
async function untilDurable(api: Api, wanted: number): Promise<number> {
  for (const deadline = Date.now() + VISIBLE_MAX_MS; ; await sleep(DURABLE_STEP_MS)) {
    const { body } = await api.get('/metrics')
    const counts = body.matchAll(/^log_engine_messages_total\{.*outcome="accepted"\} (\d+)$/gm)
    const durable = [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
    if (durable >= wanted || Date.now() > deadline) return Date.now()
  }
}

/** @returns the number of visible events when all are, or at the end of the time */
async function untilVisible(api: Api, wanted: number): Promise<number> {
  for (const deadline = Date.now() + VISIBLE_MAX_MS; ; await sleep(50)) {
    const visible = (await visibleOccurrences(api)) ?? 0
    if (visible >= wanted || Date.now() > deadline) return visible
  }
}
