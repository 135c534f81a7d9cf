import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Api } from '../lib/api.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import { childrenOf, readUsage } from '../lib/processes.js'
import type { Check, Metric, ScenarioResult } from '../lib/report.js'
import { startService, type Service } from '../lib/service.js'
import { SocketReader } from '../lib/socket-reader.js'
import { startSending } from './steady-sender.js'

const RATE = 5_000
const CLIENTS = 50
const QUERIES = [
  '',
  'severity:error',
  '-severity:info',
  'source:shop-1',
  'host:web-1',
  'took',
  '"order 1"',
  'user.id:42',
  'ms>900',
  'source:shop-* region:eu',
] as const

/** Measures the CPU that live tails add to an ingest of 5,000 events/s, and the speed of exports. */
export async function runTail(options: BenchOptions): Promise<ScenarioResult> {
  const service = await startService({ settings: settingsOf(options), profileDir: options.cpuProf })
  const metrics: Metric[] = []
  const checks: Check[] = []
  const add = (name: string, unit: string, value: number, better: Metric['better']): void => {
    metrics.push({ name, unit, samples: [value], better })
  }
  const spanMs = options.durationS * 5_000
  try {
    const api = await Api.login(service)
    const sender = startSending(service, RATE, toLine)
    await sleep(3_000)
    const alone = await coresOver(service, spanMs)
    const audience = await listen(service, api.token)
    await sleep(2_000)
    const beside = await coresOver(service, spanMs)
    await sender.stop()
    await sleep(2_000)
    add('cores for 5,000 events/s', 'cores', alone, 'lower')
    add('and for 50 clients of 10 queries', 'cores', beside - alone, 'lower')
    add(
      'messages a client and second',
      '1/s',
      audience.messages() / CLIENTS / (spanMs / 1000),
      'info',
    )
    checks.push({ name: 'the arithmetic of the tail', ...audience.check() })
    for (const format of ['ndjson', 'csv', 'txt']) {
      const before = cpuOf(service)
      const { rows, seconds } = await exportAll(service, api.token, format)
      add(`export as ${format}`, 'rows/s', rows / seconds, 'higher')
      add(
        `export as ${format}, CPU`,
        's a million',
        ((cpuOf(service) - before) / rows) * 1e6,
        'lower',
      )
      const ok = rows === sender.sent
      checks.push({ name: `export as ${format}`, ok, detail: `${rows} of ${sender.sent} rows` })
    }
    audience.close()
    api.close()
  } finally {
    await service.stop()
    service.discard()
  }
  const facts = { rate: RATE, clients: CLIENTS, queries: QUERIES.length, seconds: spanMs / 1000 }
  return { scenario: 'tail', options: facts, metrics, checks, curves: [], skipped: [] }
}

const cpuOf = ({ pid }: Service): number =>
  [pid, ...childrenOf(pid)].reduce((sum, one) => sum + (readUsage(one)?.cpuS ?? 0), 0)

/** Cores that the service and its ClickHouse use. */
export async function coresOver(service: Service, spanMs: number): Promise<number> {
  const [cpuS, startMs] = [cpuOf(service), performance.now()]
  await sleep(spanMs)
  return (cpuOf(service) - cpuS) / ((performance.now() - startMs) / 1000)
}

const toLine = (i: number): string =>
  JSON.stringify({
    source: `shop-${i % 8}`,
    host: `web-${i % 20}`,
    severity: i % 10 === 0 ? 'error' : 'info',
    message: `order ${i} took ${i % 1000} ms for user ${i % 977}`,
    tags: { user: { id: i % 977 }, ms: i % 1000, region: i % 3 === 0 ? 'eu' : 'us' },
  })

interface Counted {
  messages: number
  matched: number
  shown: number
  leftOut: number
}

async function listen(service: Service, token: string) {
  const counted: Counted = { messages: 0, matched: 0, shown: 0, leftOut: 0 }
  const url = new URL('/ws/tail', service.api)
  const onText = (text: string): void => {
    const head = /"matched":(\d+),"left_out":(\d+)/.exec(text)
    if (head === null) return
    counted.messages++
    counted.matched += Number(head[1])
    counted.leftOut += Number(head[2])
    counted.shown += text.split('"occurrence_count":').length - 1
  }
  const readers: SocketReader[] = []
  for (let i = 0; i < CLIENTS; i++) {
    await new Promise<void>((resolve, reject) => {
      const done = (error: Error | null): void => (error === null ? resolve() : reject(error))
      readers.push(new SocketReader({ url, token, onText }, done))
    })
    const q = QUERIES[i % QUERIES.length] ?? ''
    readers.at(-1)?.send(JSON.stringify({ subscribe: { q, max: 100 } }))
  }
  return {
    messages: () => counted.messages,
    check: () => ({
      ok: counted.matched > 0 && counted.matched === counted.shown + counted.leftOut,
      detail: `${counted.matched} matched, ${counted.shown} received, ${counted.leftOut} left out`,
    }),
    close: () => readers.forEach((reader) => reader.close()),
  }
}

function exportAll(
  service: Service,
  token: string,
  format: string,
): Promise<{ readonly rows: number; readonly seconds: number }> {
  const startMs = performance.now()
  const url = new URL(`/api/logs/export?format=${format}`, service.api)
  return new Promise((resolve, reject) => {
    get(url, { headers: { authorization: `Bearer ${token}` } }, (reply) => {
      let last = ''
      reply.on('data', (chunk: Buffer) => {
        last = (last + chunk.subarray(-200).toString()).slice(-200)
      })
      reply.on('error', reject)
      reply.on('end', () => {
        const rows = Number(/"complete":true,"rows":(\d+)/.exec(last)?.[1] ?? Number.NaN)
        resolve({ rows, seconds: (performance.now() - startMs) / 1000 })
      })
    }).on('error', reject)
  })
}
