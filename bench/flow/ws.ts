import { setTimeout as sleep } from 'node:timers/promises'
import { Api } from '../lib/api.js'
import { Connection } from '../lib/connection.js'
import { Latencies } from '../lib/latency.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import { readUsage } from '../lib/processes.js'
import type { Metric, ScenarioResult } from '../lib/report.js'
import { startService, type Target } from '../lib/service.js'
import { SocketReader } from '../lib/socket-reader.js'

const ROUNDS = 10
const PAUSE_MS = 1500
const ROUND_MAX_MS = 15_000
/** upgrades at a time */
const OPENING = 100

interface Arrivals {
  /** occurrences that the awaited snapshot shows at least */
  wanted: number
  count: number
  firstMs: number
  lastMs: number
}

/** Opens WebSockets and times how a snapshot reaches all of them after an event was acknowledged. */
export async function runWs(options: BenchOptions): Promise<ScenarioResult> {
  const service =
    options.target === null
      ? await startService({ settings: settingsOf(options), profileDir: options.cpuProf })
      : null
  const readers: SocketReader[] = []
  const metrics: Metric[] = []
  const add = (name: string, unit: string, value: number, better: Metric['better']): void => {
    metrics.push({ name, unit, samples: [value], better })
  }
  try {
    const target = options.target ?? service
    if (target === null) throw new Error('bug: neither a target nor a service')
    const arrivals: Arrivals = { wanted: Number.POSITIVE_INFINITY, count: 0, firstMs: 0, lastMs: 0 }
    const openedMs = await openAll(target, options.sockets, arrivals, readers)
    add('sockets opened', '1/s', options.sockets / (openedMs / 1000), 'higher')
    if (service !== null) {
      const rss = readUsage(service.pid)?.peakRssBytes ?? 0
      add('peak RSS service', 'MiB', rss / 1024 ** 2, 'lower')
    }
    const { toFirst, spread, received } = await measureRounds(target, options.sockets, arrivals)
    add('ack to first snapshot, p50', 'ms', toFirst.at(50), 'lower')
    add('first to last socket, p50', 'ms', spread.at(50), 'lower')
    add('first to last socket, max', 'ms', spread.at(100), 'lower')
    const wanted = options.sockets * ROUNDS
    const check = {
      name: 'snapshots',
      ok: received === wanted,
      detail: `${received} of ${wanted} came`,
    }
    const facts = { sockets: options.sockets, rounds: ROUNDS }
    return { scenario: 'ws', options: facts, metrics, checks: [check], skipped: [], curves: [] }
  } finally {
    for (const reader of readers) reader.close()
    await service?.stop()
    service?.discard()
  }
}

async function openAll(
  target: Target,
  sockets: number,
  arrivals: Arrivals,
  readers: SocketReader[],
): Promise<number> {
  const api = await Api.login(target)
  const url = new URL('/ws/kpis', target.api)
  const onText = (text: string): void => {
    const occurrences = Number(/"total_occurrences":(\d+)/.exec(text)?.[1] ?? -1)
    if (occurrences < arrivals.wanted) return
    arrivals.lastMs = performance.now()
    if (arrivals.count === 0) arrivals.firstMs = arrivals.lastMs
    arrivals.count++
  }
  const open = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const done = (error: Error | null): void => (error === null ? resolve() : reject(error))
      readers.push(new SocketReader({ url, token: api.token, onText }, done))
    })
  const startMs = performance.now()
  for (let opened = 0; opened < sockets; opened += OPENING)
    await Promise.all(Array.from({ length: Math.min(OPENING, sockets - opened) }, open))
  const openedMs = performance.now() - startMs
  api.close()
  await sleep(PAUSE_MS)
  return openedMs
}

async function measureRounds(
  target: Target,
  sockets: number,
  arrivals: Arrivals,
): Promise<{ readonly toFirst: Latencies; readonly spread: Latencies; readonly received: number }> {
  const connection = new Connection(target.collector)
  const api = await Api.login(target)
  const [toFirst, spread] = [new Latencies(), new Latencies()]
  let received = 0
  for (let round = 1; round <= ROUNDS; round++) {
    const kpis = Object(await api.json('/api/kpis'))
    arrivals.count = 0
    arrivals.wanted = round === 1 ? Number(kpis['total_occurrences']) + 1 : arrivals.wanted + 1
    const body = JSON.stringify({ source: 'bench-ws', severity: 'INFO', message: `round ${round}` })
    const head = `POST /ingest HTTP/1.1\r\nAuthorization: Bearer ${target.ingestKey}\r\n`
    const { status } = await connection.request(head, Buffer.from(body))
    if (status !== 202) throw new Error(`ingest answered ${status}`)
    const ackMs = performance.now()
    while (arrivals.count < sockets && performance.now() - ackMs < ROUND_MAX_MS) await sleep(5)
    received += arrivals.count
    toFirst.record(arrivals.firstMs - ackMs)
    spread.record(arrivals.lastMs - arrivals.firstMs)
    await sleep(PAUSE_MS)
  }
  connection.close()
  api.close()
  return { toFirst, spread, received }
}
