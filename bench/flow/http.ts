import { Api } from '../lib/api.js'
import { startBareServer } from '../lib/bare-server.js'
import { Connection } from '../lib/connection.js'
import { watchProcesses } from '../lib/footprint.js'
import { Latencies } from '../lib/latency.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import { readUsage } from '../lib/processes.js'
import type { Check, Curve, Metric, ScenarioResult } from '../lib/report.js'
import { startService } from '../lib/service.js'

const CONNECTIONS = 32
const WARM_MS = 500
const BARE = 'limit: bare reply'

interface Endpoint {
  readonly name: string
  /** The URL without a path. */
  readonly base: string
  readonly path: string
  readonly token: string
  /** The process that answers; null when it runs on another machine. */
  readonly pid: number | null
}

interface Results {
  readonly metrics: Metric[]
  readonly checks: Check[]
  readonly curves: Curve[]
}

/** Cheap endpoints at full speed, compared with a bare uWebSockets.js server. The client shares the machine. */
export async function runHttp(options: BenchOptions): Promise<ScenarioResult> {
  const results: Results = { metrics: [], checks: [], curves: [] }
  await measureBare(options, results)
  const service =
    options.target === null
      ? await startService({ settings: settingsOf(options), profileDir: options.cpuProf })
      : null
  const used = watchProcesses(service)
  try {
    const target = options.target ?? service
    if (target === null) throw new Error('bug: neither a target nor a service')
    const api = await Api.login(target)
    const { token } = api
    api.close()
    const pid = service?.pid ?? null
    const own = (name: string, path: string): Endpoint => ({
      name,
      base: target.api,
      path,
      token,
      pid,
    })
    const endpoints = [
      { ...own('collector health', '/health'), base: target.collector },
      own('own profile', '/api/auth/me'),
      own('kpis cached', '/api/kpis'),
      own('sources', '/api/sources'),
      own('alerts', '/api/alerts'),
      own('API health', '/api/monitoring/health'),
      own('unknown route', '/api/nothing/here'),
    ]
    for (const endpoint of endpoints) await measure(endpoint, options, results)
    results.metrics.push(...used())
  } finally {
    await service?.stop()
    service?.discard()
  }
  const { durationS } = options
  const facts = { durationS, connections: CONNECTIONS }
  return { scenario: 'http', options: facts, ...results, skipped: [] }
}

async function measureBare(options: BenchOptions, results: Results): Promise<void> {
  const { url, pid, close } = await startBareServer()
  try {
    const bare = { name: BARE, base: url, path: '/', token: 'x', pid }
    await measure(bare, options, results)
  } finally {
    close()
  }
}

async function measure(
  endpoint: Endpoint,
  { durationS }: BenchOptions,
  results: Results,
): Promise<void> {
  await drive(endpoint, WARM_MS)
  const cpuBefore = endpoint.pid === null ? null : readUsage(endpoint.pid)
  const startMs = performance.now()
  const { latencies, statuses } = await drive(endpoint, durationS * 1000)
  const seconds = (performance.now() - startMs) / 1000
  const cpuAfter = endpoint.pid === null ? null : readUsage(endpoint.pid)
  const { name } = endpoint
  const add = (what: string, unit: string, value: number, better: Metric['better']): void => {
    const metric = { name: `${name}, ${what}`, unit, samples: [value], better }
    const limit = { metric: `${BARE}, ${what}`, label: 'bare reply' }
    results.metrics.push(name === BARE ? metric : { ...metric, limit })
  }
  add('requests', '1/s', latencies.count / seconds, 'higher')
  if (cpuBefore !== null && cpuAfter !== null)
    add(
      'requests per CPU second',
      '1/s',
      latencies.count / (cpuAfter.cpuS - cpuBefore.cpuS),
      'higher',
    )
  add('p50', 'ms', latencies.at(50), 'lower')
  add('p99', 'ms', latencies.at(99), 'lower')
  results.curves.push({ name, points: latencies.curve() })
  const detail = [...statuses].map(([status, n]) => `${n} × ${status}`).join(', ')
  results.checks.push({ name: `${name} answers alike`, ok: statuses.size === 1, detail })
}

async function drive(
  { base, path, token }: Endpoint,
  durationMs: number,
): Promise<{ readonly latencies: Latencies; readonly statuses: ReadonlyMap<number, number> }> {
  const latencies = new Latencies()
  const statuses = new Map<number, number>()
  const head = `GET ${path} HTTP/1.1\r\nAuthorization: Bearer ${token}\r\n`
  const untilMs = performance.now() + durationMs
  const lane = async (): Promise<void> => {
    const connection = new Connection(base)
    for (let nowMs = performance.now(); nowMs < untilMs;) {
      const { status } = await connection.request(head)
      const doneMs = performance.now()
      latencies.record(doneMs - nowMs)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      nowMs = doneMs
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, lane))
  return { latencies, statuses }
}
