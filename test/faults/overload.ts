/**
 * Sends more than the machine can store: `npm run test:overload -- --seconds 1800`. The service must reply with 429 and
 * Retry-After, keep its memory bounded, go on replying, and lose nothing.
 */
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { Latencies } from '../../bench/lib/latency.js'
import { INGEST_KEY, childOf, tempDataDir } from '../support/service.js'
import { Installation, type Owner } from './installation.js'
import type { Flood, Flooded } from './overload-sender.js'
import { askHealth, CHECKS, untilWell, type Health } from './watch.js'

const MIB = 1024 * 1024
const SERIES = '/api/logs/meta/timeseries?window=1h&granularity=minute'
/** The number of printed samples. */
const STEPS = 20
/** The last third may use this much more memory than the second; unbounded growth uses more. */
const GROWTH = 1.2
const SETTLE_MS = 600_000
const BODY_LINES = 2_000

interface Sample {
  readonly second: number
  readonly serviceMib: number
  readonly engineMib: number
  readonly walMib: number
  readonly health: string
}

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    connections: { type: 'string', default: '32' },
    'wal-mib': { type: 'string', default: '64' },
    seed: { type: 'string', default: '1' },
  },
})
const ends: (() => Promise<unknown> | void)[] = []
const owner: Owner = { teardown: (end) => void ends.push(end) }
try {
  process.exitCode = (await run()) ? 0 : 1
} finally {
  for (const end of ends.toReversed()) await end()
}

async function run(): Promise<boolean> {
  const [seconds, connections, walMib] = [
    Number(values.seconds),
    Number(values.connections),
    Number(values['wal-mib']),
  ]
  const installation = new Installation(owner, {
    dataDir: tempDataDir(owner),
    env: {
      WORKERS: String(Math.max(1, availableParallelism() - 1)),
      WAL_MAX_BYTES: String(walMib * MIB),
      LOG_LEVEL: 'warn',
    },
  })
  await installation.start()
  const { service } = installation
  ends.push(() => void process.stderr.write(service.log()))
  const { get } = await installation.logIn()
  const flood: Flood = {
    collector: installation.collector,
    key: INGEST_KEY,
    connections,
    seconds,
    seed: Number(values.seed),
    lines: BODY_LINES,
  }
  let isOver = false
  const [flooded, latencies, samples] = await Promise.all([
    startFlood(flood).finally(() => (isOver = true)),
    askOn(installation, () => isOver),
    sampleOn(installation, () => isOver),
  ])
  const settleStartMs = performance.now()
  await untilWell(installation)
  await installation.settle(SETTLE_MS)
  const settledS = (performance.now() - settleStartMs) / 1000
  const days = await get<readonly { value: number }[]>('/api/logs/meta/calendar?days=3')
  const counted = days.reduce((total, { value }) => total + value, 0)
  const again = await startFlood({ ...flood, connections: 1, seconds: 1, seed: flood.seed + 1 })
  tell({ flood, flooded, latencies, samples, settledS })
  return judge([
    [flooded.busy > 0, `more was offered than taken: ${flooded.busy} answers of 429`],
    [flooded.withoutRetryAfter === 0, `every 429 says when to come again`],
    [
      Object.keys(flooded.others).length === 0,
      `no other answer: ${JSON.stringify(flooded.others)}`,
    ],
    [isFlat(samples), 'memory is flat'],
    [latencies.count > 0, `${latencies.count} queries were answered`],
    [counted === flooded.accepted, `${counted} counted, ${flooded.accepted} acknowledged`],
    [again.accepted > 0 && again.busy === 0, `afterwards everything is taken again`],
  ])
}

/** Sends from a worker thread, so that the measurement of replies is not delayed. */
function startFlood(flood: Flood): Promise<Flooded> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('overload-sender.js', import.meta.url), { workerData: flood })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

/** Requests the time series repeatedly. @throws Error for any other reply */
async function askOn(installation: Installation, isOver: () => boolean): Promise<Latencies> {
  const latencies = new Latencies()
  const { get } = await installation.logIn()
  for (; !isOver(); await sleep(200)) {
    const startedMs = performance.now()
    await get(SERIES)
    latencies.record(performance.now() - startedMs)
  }
  return latencies
}

async function sampleOn(installation: Installation, isOver: () => boolean): Promise<Sample[]> {
  const samples: Sample[] = []
  const startedMs = performance.now()
  const { pid } = installation.service
  for (; !isOver(); await sleep(1_000)) {
    const health = await askHealth(installation.api)
    samples.push({
      second: Math.round((performance.now() - startedMs) / 1000),
      serviceMib: residentMib(pid),
      engineMib: residentMib(childOf(pid) ?? 0),
      walMib: Math.round((await installation.metric('wal_bytes')) / MIB),
      health: health === null ? 'gone' : describeHealth(health),
    })
  }
  return samples
}

/** The health status with the checks that are not ok. */
function describeHealth({ status, checks }: Health): string {
  const ill = CHECKS.filter((name) => checks[name].status !== 'ok')
  return [status, ...ill].join(' ')
}

function residentMib(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Math.round(Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024)
  } catch {
    return 0
  }
}

/** Whether the last third uses no more memory than the second, in which all caches are full. */
function isFlat(samples: readonly Sample[]): boolean {
  const third = Math.floor(samples.length / 3)
  const most = (part: readonly Sample[], of: (sample: Sample) => number): number =>
    Math.max(0, ...part.map(of))
  const [second, last] = [samples.slice(third, 2 * third), samples.slice(2 * third)]
  const areas = [(sample: Sample) => sample.serviceMib, (sample: Sample) => sample.engineMib]
  return areas.every((of) => most(last, of) <= most(second, of) * GROWTH)
}

interface Outcome {
  readonly flood: Flood
  readonly flooded: Flooded
  readonly latencies: Latencies
  readonly samples: readonly Sample[]
  readonly settledS: number
}

function tell({ flood, flooded, latencies, samples, settledS }: Outcome): void {
  const step = Math.max(1, Math.floor(samples.length / STEPS))
  const rows = samples.filter((_, i) => i % step === 0)
  const { accepted, busy, bytes } = flooded
  const lines = [
    `${cpus().length} cores, Node ${process.version}: ${flood.connections} connections for ${flood.seconds} s`,
    `acknowledged ${accepted} events (${Math.round(accepted / flood.seconds)}/s, ${Math.round(bytes / MIB)} MiB); ${busy} × 429`,
    `time series: ${latencies.count} asked, p50 ${latencies.at(50)} ms, p95 ${latencies.at(95)} ms, most ${latencies.at(100)} ms`,
    `everything stored ${settledS.toFixed(1)} s after the last body`,
    '',
    '  second   service   ClickHouse   wal (MiB)   health',
    ...rows.map(({ second, serviceMib, engineMib, walMib, health }) =>
      [
        String(second).padStart(8),
        String(serviceMib).padStart(9),
        String(engineMib).padStart(12),
        String(walMib).padStart(13),
        `   ${health}`,
      ].join(' '),
    ),
    '',
  ]
  process.stderr.write(`${lines.join('\n')}\n`)
}

function judge(checks: readonly (readonly [boolean, string])[]): boolean {
  const lines = checks.map(([isGood, text]) => `${isGood ? 'ok' : 'not ok'} - ${text}`)
  process.stdout.write(`TAP version 14\n${lines.join('\n')}\n1..${lines.length}\n`)
  return checks.every(([isGood]) => isGood)
}
