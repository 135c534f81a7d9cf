import { setTimeout as sleep } from 'node:timers/promises'
import { Api } from '../lib/api.js'
import { startBareServer } from '../lib/bare-server.js'
import { Connection } from '../lib/connection.js'
import { watchProcesses } from '../lib/footprint.js'
import { Latencies } from '../lib/latency.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import { readUsage } from '../lib/processes.js'
import type { Check, Curve, Metric, ScenarioResult } from '../lib/report.js'
import { startService, type Target } from '../lib/service.js'
import { SocketReader } from '../lib/socket-reader.js'

const ROUNDS = 10
const PAUSE_MS = 1500
const ROUND_MAX_MS = 15_000
/** Concurrent upgrades. */
const OPENING = 100
/** One of 21 sockets sends pings, ten per second. */
const ACTIVE_EVERY = 21
const TALK_MS = 100
const BARE = 'limit: bare publish'

/** A client, and when it received the awaited text. */
interface Audience {
  readonly readers: SocketReader[]
  /** The awaited content. */
  isAwaited: (text: string) => boolean
  count: number
  firstMs: number
  lastMs: number
  /** Length of the last text, in characters. */
  characters: number
  pongs: number
}

/** The figures of some rounds. */
interface Rounds {
  readonly toFirst: Latencies
  readonly spread: Latencies
  received: number
  /** CPU seconds of all threads of the serving process. */
  cpuMs: number
}

interface Results {
  readonly metrics: Metric[]
  readonly checks: Check[]
  readonly curves: Curve[]
}

/** Opens WebSockets, most of them idle, and measures how long a snapshot takes to reach all of them. */
export async function runWs(options: BenchOptions): Promise<ScenarioResult> {
  const results: Results = { metrics: [], checks: [], curves: [] }
  const characters = await measureService(options, results)
  await measureBare(options, characters, results)
  const talking = Math.ceil(options.sockets / ACTIVE_EVERY)
  const facts = { sockets: options.sockets, talking, rounds: ROUNDS }
  return { scenario: 'ws', options: facts, ...results, skipped: [] }
}

/** @returns the length of a snapshot */
async function measureService(options: BenchOptions, results: Results): Promise<number> {
  const { sockets } = options
  const service =
    options.target === null
      ? await startService({ settings: settingsOf(options), profileDir: options.cpuProf })
      : null
  const target = options.target ?? service
  if (target === null) throw new Error('bug: neither a target nor a service')
  const used = watchProcesses(service)
  const audience = newAudience()
  const pid = service?.pid ?? null
  const add = adder(results)
  try {
    const api = await Api.login(target)
    const before = pid === null ? null : readUsage(pid)
    const openedMs = await openAll(new URL(target.api), api.token, sockets, audience)
    api.close()
    await sleep(PAUSE_MS)
    const closed = audience.readers.filter(({ isClosed }) => isClosed).length
    if (closed > 0)
      throw new Error(
        `${closed} of ${sockets} WebSockets were closed by the service: raise its WS_LIMITER and WS_MAX_OPEN, or use --sockets`,
      )
    const after = pid === null ? null : readUsage(pid)
    add('sockets opened', '1/s', sockets / (openedMs / 1000), 'higher')
    if (before !== null && after !== null)
      add('memory a socket', 'KiB', (after.anonBytes - before.anonBytes) / 1024 / sockets, 'lower')
    const talk = startTalking(audience)
    const rounds = await measureRounds(target, pid, sockets, audience)
    const asked = talk.stop()
    await sleep(PAUSE_MS)
    addRounds(results, 'snapshot', rounds, sockets)
    add('ack to first snapshot, p50', 'ms', rounds.toFirst.at(50), 'lower')
    const detail = `${audience.pongs} of ${asked} pings were answered`
    results.checks.push({ name: 'talking sockets', ok: audience.pongs === asked, detail })
    results.metrics.push(...used())
    return audience.characters
  } finally {
    for (const reader of audience.readers) reader.close()
    await service?.stop()
    service?.discard()
  }
}

/** The same number of sockets and characters with a server that does nothing else. */
async function measureBare(
  { sockets }: BenchOptions,
  characters: number,
  results: Results,
): Promise<void> {
  const bare = await startBareServer()
  const audience = newAudience()
  try {
    const openedMs = await openAll(new URL(bare.url), 'x', sockets, audience)
    adder(results)(`${BARE}, sockets opened`, '1/s', sockets / (openedMs / 1000), 'info')
    await sleep(PAUSE_MS)
    const rounds = newRounds()
    for (let round = 0; round < ROUNDS; round++) {
      audience.isAwaited = () => true
      await measureRound(rounds, audience, sockets, bare.pid, async () => {
        bare.publish('x'.repeat(characters))
      })
    }
    addRounds(results, BARE, rounds, sockets)
  } finally {
    for (const reader of audience.readers) reader.close()
    bare.close()
  }
}

const newAudience = (): Audience => ({
  readers: [],
  isAwaited: () => false,
  count: 0,
  firstMs: 0,
  lastMs: 0,
  characters: 0,
  pongs: 0,
})

const newRounds = (): Rounds => ({
  toFirst: new Latencies(),
  spread: new Latencies(),
  received: 0,
  cpuMs: 0,
})

const adder =
  ({ metrics }: Results) =>
  (name: string, unit: string, value: number, better: Metric['better']): void => {
    const metric = { name, unit, samples: [value], better }
    const what = /^(?:snapshot, )?(first to last.*|CPU a round|sockets opened)$/.exec(name)?.[1]
    const limit = { metric: `${BARE}, ${what}`, label: 'bare publish' }
    metrics.push(what === undefined ? metric : { ...metric, limit })
  }

function addRounds(results: Results, name: string, rounds: Rounds, sockets: number): void {
  const add = adder(results)
  add(`${name}, first to last socket, p50`, 'ms', rounds.spread.at(50), 'lower')
  add(`${name}, first to last socket, max`, 'ms', rounds.spread.at(100), 'lower')
  if (rounds.cpuMs > 0) add(`${name}, CPU a round`, 'ms', rounds.cpuMs / ROUNDS, 'lower')
  results.curves.push({ name: `${name}, first to last socket`, points: rounds.spread.curve() })
  const wanted = sockets * ROUNDS
  const detail = `${rounds.received} of ${wanted} came`
  results.checks.push({ name, ok: rounds.received === wanted, detail })
}

/** @returns the time in ms until all are open */
async function openAll(
  base: URL,
  token: string,
  sockets: number,
  audience: Audience,
): Promise<number> {
  const url = new URL('/ws/kpis', base)
  const onText = (text: string): void => take(audience, text)
  const open = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const done = (error: Error | null): void => (error === null ? resolve() : reject(error))
      audience.readers.push(new SocketReader({ url, token, onText }, done))
    })
  const startMs = performance.now()
  for (let opened = 0; opened < sockets; opened += OPENING)
    await Promise.all(Array.from({ length: Math.min(OPENING, sockets - opened) }, open))
  return performance.now() - startMs
}

function take(audience: Audience, text: string): void {
  if (text === 'pong') audience.pongs++
  if (text.length < 10 || !audience.isAwaited(text)) return
  audience.lastMs = performance.now()
  if (audience.count === 0) audience.firstMs = audience.lastMs
  audience.count++
  audience.characters = text.length
}

/** @returns a function that stops the pings and returns their number */
function startTalking({ readers }: Audience): { stop(): number } {
  const active = readers.filter((_, i) => i % ACTIVE_EVERY === 0)
  let asked = 0
  const timer = setInterval(() => {
    for (const reader of active) reader.send('ping')
    asked += active.length
  }, TALK_MS)
  return {
    stop: () => {
      clearInterval(timer)
      return asked
    },
  }
}

async function measureRounds(
  target: Target,
  pid: number | null,
  sockets: number,
  audience: Audience,
): Promise<Rounds> {
  const connection = new Connection(target.collector)
  const api = await Api.login(target)
  const rounds = newRounds()
  let wanted = Number(Object(await api.json('/api/kpis'))['total_occurrences'])
  for (let round = 1; round <= ROUNDS; round++) {
    wanted++
    audience.isAwaited = (text) =>
      Number(/"total_occurrences":(\d+)/.exec(text)?.[1] ?? -1) >= wanted
    const body = JSON.stringify({ source: 'bench-ws', severity: 'INFO', message: `round ${round}` })
    const head = `POST /ingest HTTP/1.1\r\nAuthorization: Bearer ${target.ingestKey}\r\n`
    await measureRound(rounds, audience, sockets, pid, async () => {
      const { status } = await connection.request(head, Buffer.from(body))
      if (status !== 202) throw new Error(`ingest answered ${status}`)
    })
  }
  connection.close()
  api.close()
  return rounds
}

async function measureRound(
  rounds: Rounds,
  audience: Audience,
  sockets: number,
  pid: number | null,
  cause: () => Promise<void>,
): Promise<void> {
  audience.count = 0
  const cpuBefore = pid === null ? null : readUsage(pid)
  await cause()
  const causedMs = performance.now()
  while (audience.count < sockets && performance.now() - causedMs < ROUND_MAX_MS) await sleep(5)
  const cpuAfter = pid === null ? null : readUsage(pid)
  if (cpuBefore !== null && cpuAfter !== null)
    rounds.cpuMs += (cpuAfter.cpuS - cpuBefore.cpuS) * 1000
  rounds.received += audience.count
  rounds.toFirst.record(audience.firstMs - causedMs)
  rounds.spread.record(audience.lastMs - audience.firstMs)
  await sleep(PAUSE_MS)
}
