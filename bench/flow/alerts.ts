import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { text } from 'node:stream/consumers'
import { Api } from '../lib/api.js'
import { Connection } from '../lib/connection.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import type { Metric, ScenarioResult } from '../lib/report.js'
import { startService, type Service } from '../lib/service.js'
import { send, startSending } from './steady-sender.js'
import { coresOver } from './tail.js'

const RATE = 10_000
const RULES = 1_000
/** One of ten rules searches for a text; the others have only conditions on columns. */
const TEXT_EVERY = 10
/** Rules on an attribute or with a regular expression, each with a query of its own. */
const OWN_RULES = 100
const PROBES = 100
const PROBE_MS = 250

/** Measures the CPU that 1,000 rules add to an ingest of 10,000 events/s, and the delay of a notice. */
export async function runAlerts(options: BenchOptions): Promise<ScenarioResult> {
  const env = { ...settingsOf(options), ALERT_PRIVATE_ADDRESSES: 'true' }
  const service = await startService({ settings: env, profileDir: options.cpuProf })
  const metrics: Metric[] = []
  const add = (name: string, unit: string, value: number, better: Metric['better']): void => {
    metrics.push({ name, unit, samples: [value], better })
  }
  const spanMs = options.durationS * 5_000
  const receiver = await startReceiver()
  let told = 0
  let hasTags = false
  try {
    const api = await Api.login(service)
    const sender = startSending(service, RATE, (i) => toLine(i, hasTags))
    await sleep(5_000)
    const alone = await coresOver(service, spanMs)
    for (let i = 0; i < RULES; i++) await post(service, api.token, 'alert-rules', toRule(i))
    await sleep(20_000)
    const beside = await coresOver(service, spanMs)
    add('cores for 10,000 events/s', 'cores', alone, 'lower')
    add('and for 1,000 rules', 'cores', beside - alone, 'lower')
    const delays = await probe(service, api.token, receiver)
    told = delays.length
    const quantile = (share: number): number =>
      delays[Math.ceil(delays.length * share) - 1] ?? Number.NaN
    add('from arrival to webhook, p50', 's', quantile(0.5) / 1000, 'lower')
    add('from arrival to webhook, p99', 's', quantile(0.99) / 1000, 'lower')
    hasTags = true
    await sleep(5_000)
    const withTags = await coresOver(service, spanMs)
    for (let i = 0; i < OWN_RULES; i++) await post(service, api.token, 'alert-rules', toOwnRule(i))
    await sleep(20_000)
    const withOwn = await coresOver(service, spanMs)
    add('and for 100 rules of attributes and patterns', 'cores', withOwn - withTags, 'lower')
    await sender.stop()
    api.close()
  } finally {
    receiver.close()
    await service.stop()
    service.discard()
  }
  const facts = { rate: RATE, rules: RULES, probes: PROBES, seconds: spanMs / 1000 }
  const check = { name: 'every probe is told', ok: told === PROBES, detail: `${told} of ${PROBES}` }
  return { scenario: 'alerts', options: facts, metrics, checks: [check], curves: [], skipped: [] }
}

const toLine = (i: number, hasTags: boolean): string =>
  JSON.stringify({
    ...(hasTags ? { tags: { took_ms: i % 1000, order: i % 100 } } : {}),
    source: `shop-${i % 8}`,
    host: `web-${i % 20}`,
    severity: i % 10 === 0 ? 'error' : 'info',
    message: `order ${i} took ${i % 1000} ms for user ${i % 977}`,
  })

const toRule = (i: number): object => ({
  name: `rule ${i}`,
  severity: 'P3',
  q:
    i % TEXT_EVERY === 0
      ? `source:shop-${i % 8} "took ${i} ms"`
      : `source:shop-${i % 8} host:web-${i % 20} severity>=error`,
  kind: { type: 'threshold', window: '5m', op: '>', fire: 1_000_000 },
  group_by: i % 2 === 0 ? ['host'] : [],
})

const toOwnRule = (i: number): object => ({
  name: `own rule ${i}`,
  severity: 'P3',
  q: `source:shop-${i % 8} ${i % 2 === 0 ? `took_ms>${900 + i}` : `message:/took 9${i % 10}\\d ms/`}`,
  kind: { type: 'threshold', window: '5m', op: '>', fire: 1_000_000 },
})

async function post(service: Service, token: string, path: string, body: object): Promise<string> {
  const reply = await fetch(new URL(`/api/${path}`, service.api), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`)
  const { id } = (await reply.json()) as { readonly id: string }
  return id
}

interface Receiver {
  readonly url: string
  /** When the first notice of a host arrived. */
  readonly atMs: ReadonlyMap<string, number>
  close(): void
}

async function startReceiver(): Promise<Receiver> {
  const atMs = new Map<string, number>()
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { group } = JSON.parse(await text(request)) as { group: Record<string, string> }
    const host = group['host'] ?? ''
    if (!atMs.has(host)) atMs.set(host, performance.now())
    response.end()
  }
  const server = createServer((request, response) => void receive(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('bug: no port')
  return { url: `http://127.0.0.1:${address.port}/`, atMs, close: () => server.close() }
}

/** @returns ms from sending the message that crosses a threshold to the webhook call, ascending */
async function probe(
  service: Service,
  token: string,
  { url, atMs }: Receiver,
): Promise<readonly number[]> {
  const target = { type: 'webhook', url }
  const channel = await post(service, token, 'notification-channels', { name: 'bench', target })
  await post(service, token, 'alert-rules', {
    name: 'probe',
    severity: 'P1',
    q: 'source:probe',
    kind: { type: 'threshold', window: '5m', op: '>=', fire: 1 },
    group_by: ['host'],
    notify: { channels: [channel], group_wait: '0s', group_interval: '0s' },
  })
  await sleep(5_000)
  const connection = new Connection(service.collector)
  const sentMs = new Map<string, number>()
  for (let i = 0; i < PROBES; i++) {
    const host = `probe-${i}`
    sentMs.set(host, performance.now())
    await send(connection, service, [JSON.stringify({ source: 'probe', host, message: 'crossed' })])
    await sleep(PROBE_MS)
  }
  for (let i = 0; i < 30 && atMs.size < PROBES; i++) await sleep(1_000)
  connection.close()
  return [...sentMs]
    .flatMap(([host, ms]) => {
      const at = atMs.get(host)
      return at === undefined ? [] : [at - ms]
    })
    .toSorted((a, b) => a - b)
}
