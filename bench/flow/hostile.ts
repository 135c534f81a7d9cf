import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/support/ports.js'
import { Api, field, listField, numberField } from '../lib/api.js'
import { Connection } from '../lib/connection.js'
import { startBurner } from '../lib/burner.js'
import { Latencies } from '../lib/latency.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import { readThreads, readUsage } from '../lib/processes.js'
import { type Check, median, type Metric, type ScenarioResult } from '../lib/report.js'
import { startService, type Service } from '../lib/service.js'
import { ATTACKER_PRIORITY, ATTACKS, startAttack, type Victim } from './attacks.js'

/** The load of the well-behaved sender and reader. */
const SENDS_PER_S = 50
const EVENTS_PER_SEND = 20
const QUESTIONS_PER_S = 10
const ECHOES_PER_S = 50
const QUESTIONS = [
  '/api/logs?limit=50',
  '/api/analytics/severity-breakdown?window=24h',
  '/api/kpis',
]
/** The rounds per attack. The median excludes a burst of other load on the machine. */
const ROUNDS = 3
const WARM_MS = 2_000
/** The time until an attack is in full effect. */
const RAMP_MS = 1_000
/** The time for the service to recover from an attack. */
const CALM_MS = 3_000
const VISIBLE_MS = 60_000
/** How many times its quiet p99 a client may wait under attack. */
const WORST_RATIO = 3

interface Seen {
  readonly acks: Latencies
  readonly answers: Latencies
  /** Requests that the main thread answers at once, so they measure the delay of its event loop. */
  readonly echoes: Latencies
  /** Requests that were not answered with a success. */
  failed: number
  sent: number
}

/** CPU use in cores. */
interface Cpu {
  readonly main: number
  /** The other threads of the service. */
  readonly workers: number
  readonly engine: number
  readonly attacker: number
}

/** What the clients measured in some seconds, and the CPU use at that time. */
interface Phase {
  readonly seen: Seen
  readonly cpu: Cpu
}

/** The phases follow each other closely, so that a ratio compares the same state of the machine. */
interface Round {
  readonly quiet: Phase
  readonly beside: Phase
  /** Measured beside processes that burn the CPU that the attack cost. */
  readonly burnt: Phase
  readonly shotsPerS: number
}

interface Measured {
  readonly rounds: readonly Round[]
  readonly sent: number
  readonly visible: number
}

/**
 * For each attack of `attacks.ts`, measures the latencies of a well-behaved sender and reader
 * during the attack and before it. Each attack runs several times against a service of its own, and
 * the median of the ratios counts. On few cores the clients also wait for the CPU that an attack
 * takes, whatever the service does, so they are measured once more beside processes that only burn
 * as much CPU, at the same priorities.
 */
export async function runHostile(options: BenchOptions): Promise<ScenarioResult> {
  const metrics: Metric[] = []
  const checks: Check[] = []
  for (const name of Object.keys(ATTACKS)) {
    if (options.questions?.test(name) === false) continue
    const gelfPort = await freePort()
    const service = await startService({
      settings: { ...settingsOf(options), GELF_PORT: String(gelfPort) },
      profileDir: options.cpuProf,
    })
    try {
      const measured = await measure(service, {
        name,
        gelfPort,
        durationMs: options.durationS * 1000,
      })
      metrics.push(...metricsOf(name, measured))
      checks.push(...checksOf(name, measured))
    } finally {
      await service.stop()
      service.discard()
    }
  }
  const { durationS } = options
  return { scenario: 'hostile', options: { durationS }, metrics, checks, skipped: [], curves: [] }
}

const PROMISED = [
  ['acknowledgement', ({ acks }: Seen) => acks],
  ['answer', ({ answers }: Seen) => answers],
] as const
const LATENCIES = [...PROMISED, ['event loop', ({ echoes }: Seen) => echoes]] as const

function metricsOf(attack: string, { rounds }: Measured): Metric[] {
  const ms = (what: string, of: (round: Round) => number, quietly: string | null): Metric => ({
    name: `${what}: ${attack}`,
    unit: 'ms',
    samples: rounds.map(of),
    better: 'lower',
    ...(quietly === null ? {} : { limit: { metric: `${quietly}: ${attack}`, label: 'quiet' } }),
  })
  const waits = LATENCIES.flatMap(([what, of]) => {
    const before = `${what} p99, before`
    return [
      ms(before, ({ quiet }) => of(quiet.seen).at(99), null),
      ms(`${what} p99, beside`, ({ beside }) => of(beside.seen).at(99), before),
      ms(`${what} p99, beside as much CPU`, ({ burnt }) => of(burnt.seen).at(99), before),
    ]
  })
  const info = (what: string, unit: string, of: (round: Round) => number): Metric => ({
    name: `${what}: ${attack}`,
    unit,
    samples: rounds.map(of),
    better: 'info',
  })
  const cpu = [
    ['main thread', 'main'],
    ['workers', 'workers'],
    ['ClickHouse', 'engine'],
    ['the attacker', 'attacker'],
  ] as const
  return [
    { ...info('requests of the attacker', '/s', ({ shotsPerS }) => shotsPerS), better: 'higher' },
    ...waits,
    ...cpu.map(([what, part]) =>
      info(
        `CPU of ${what}, beside less before`,
        'cores',
        ({ quiet, beside }) => beside.cpu[part] - quiet.cpu[part],
      ),
    ),
  ]
}

function checksOf(attack: string, { rounds, sent, visible }: Measured): Check[] {
  const waits = PROMISED.map(([what, of]) => {
    const ratioOf = (phase: 'beside' | 'burnt'): number =>
      median(rounds.map((round) => of(round[phase].seen).at(99) / of(round.quiet.seen).at(99)))
    const ratio = ratioOf('beside')
    const bare = ratioOf('burnt').toFixed(1)
    return {
      name: `p99 of a well-behaved client stays within ${WORST_RATIO} times that before`,
      ok: ratio <= WORST_RATIO,
      detail: `${attack}, ${what}: ${ratio.toFixed(1)} times (${bare} beside as much CPU)`,
    }
  })
  const failed = rounds.reduce((sum, { beside }) => sum + beside.seen.failed, 0)
  return [
    ...waits,
    {
      name: 'every request of a well-behaved client succeeds',
      ok: failed === 0,
      detail: `${attack}: ${failed} failed`,
    },
    {
      name: 'every event of a well-behaved client is stored',
      ok: visible === sent,
      detail: `${attack}: ${visible} of ${sent}`,
    },
  ]
}

async function measure(
  service: Service,
  { name, gelfPort, durationMs }: Pick<Victim, 'gelfPort'> & { name: string; durationMs: number },
): Promise<Measured> {
  const api = await Api.login(service)
  const victim = { ...(await prepareVictim(service, api)), gelfPort }
  let sent = 0
  const seenFor = async (ms: number): Promise<Seen> => {
    const seen = await behaveWell(service, api, ms)
    sent += seen.sent
    return seen
  }
  const phase = async (attackerPid: number | null): Promise<Phase> => {
    const before = readCpu(service, attackerPid)
    const seen = await seenFor(durationMs)
    const after = readCpu(service, attackerPid)
    const share = (of: (cpu: Cpu) => number): number =>
      (of(after) - of(before)) / (durationMs / 1000)
    const cpu = {
      main: share(({ main }) => main),
      workers: share(({ workers }) => workers),
      engine: share(({ engine }) => engine),
      attacker: share(({ attacker }) => attacker),
    }
    return { seen, cpu }
  }
  await seenFor(WARM_MS)
  const rounds: Round[] = []
  for (let n = 0; n < ROUNDS; n++) {
    const quiet = await phase(null)
    const attack = startAttack(name, victim)
    await sleep(RAMP_MS)
    const beside = await phase(attack.pid).finally(() => attack.end())
    const shotsPerS = (attack.shots() * 1000) / (RAMP_MS + durationMs)
    await visibleOf(api, sent)
    await sleep(CALM_MS)
    const burners = startBurners(quiet.cpu, beside.cpu)
    const burnt = await phase(null).finally(() => {
      for (const end of burners) end()
    })
    rounds.push({ quiet, beside, burnt, shotsPerS })
  }
  const visible = await visibleOf(api, sent)
  api.close()
  return { rounds, sent, visible }
}

/** Burns the CPU that the attack cost: that of its process at its priority, that of the service and ClickHouse at theirs. */
function startBurners(quiet: Cpu, beside: Cpu): readonly (() => void)[] {
  const served = ({ main, workers, engine }: Cpu): number => main + workers + engine
  const share = Math.max(0, served(beside) - served(quiet))
  const threads = Math.max(1, Math.ceil(share))
  return [
    startBurner(beside.attacker, ATTACKER_PRIORITY),
    ...Array.from({ length: threads }, () => startBurner(share / threads, 0)),
  ]
}

/** The CPU seconds so far. */
function readCpu(service: Service, attackerPid: number | null): Cpu {
  const threads = readThreads(service.pid)
  const main = threads.get(service.pid) ?? 0
  const all = [...threads.values()].reduce((sum, cpuS) => sum + cpuS, 0)
  const cpuOf = (pid: number | null): number => (pid === null ? 0 : (readUsage(pid)?.cpuS ?? 0))
  return {
    main,
    workers: all - main,
    engine: cpuOf(service.enginePid()),
    attacker: cpuOf(attackerPid),
  }
}

/** An ingest key and a viewer for the attacker. */
async function prepareVictim(service: Service, api: Api): Promise<Omit<Victim, 'gelfPort'>> {
  const { api: url, collector } = service
  const key = await api.change('POST', '/api/ingest-keys', { name: 'noise', auto_register: true })
  const viewer = { email: 'noise@example.com', password: 'a long password of 4 noisy words' }
  await api.change('POST', '/api/users', { ...viewer, role: 'viewer' })
  const login = await Api.login({ ...service, ...viewer })
  const { token } = login
  login.close()
  return { api: url, collector, ingestKey: String(field(key, 'key')), token }
}

/** Sends and asks at a steady rate; a latency counts from when its request was due. */
async function behaveWell(service: Service, api: Api, durationMs: number): Promise<Seen> {
  const seen: Seen = {
    acks: new Latencies(),
    answers: new Latencies(),
    echoes: new Latencies(),
    failed: 0,
    sent: 0,
  }
  const startMs = performance.now()
  const steadily = async (
    perS: number,
    latencies: Latencies,
    shot: (n: number) => Promise<number>,
  ): Promise<void> => {
    for (let n = 0; ; n++) {
      const dueMs = startMs + (n * 1000) / perS
      if (dueMs - startMs >= durationMs) return
      await sleep(Math.max(0, dueMs - performance.now()))
      const status = await shot(n).catch(() => 0)
      latencies.record(performance.now() - dueMs)
      if (status < 200 || status >= 300) seen.failed++
      else if (latencies === seen.acks) seen.sent += EVENTS_PER_SEND
    }
  }
  const sender = new Connection(service.collector)
  const reader = api.another(service)
  const echoer = new Connection(service.collector)
  const head = `POST /ingest HTTP/1.1\r\nX-Api-Key: ${service.ingestKey}\r\n`
  await Promise.all([
    steadily(SENDS_PER_S, seen.acks, async (n) => {
      const { status } = await sender.request(head, bodyOf(startMs + n))
      return status
    }),
    steadily(QUESTIONS_PER_S, seen.answers, async (n) => {
      const { status } = await reader.get(QUESTIONS[n % QUESTIONS.length] ?? '')
      return status
    }),
    steadily(ECHOES_PER_S, seen.echoes, async () => {
      const { status } = await echoer.request('GET /health HTTP/1.1\r\n')
      return status
    }),
  ])
  sender.close()
  reader.close()
  echoer.close()
  return seen
}

const bodyOf = (n: number): Buffer =>
  Buffer.from(
    Array.from({ length: EVENTS_PER_SEND }, (_, i) =>
      JSON.stringify({ source: 'shop', severity: 'INFO', message: `order ${n}-${i} was paid` }),
    ).join('\n'),
  )

/** The stored events of the sender, once all of them are or a minute has passed. */
async function visibleOf(api: Api, wanted: number): Promise<number> {
  for (const untilMs = performance.now() + VISIBLE_MS; ; await sleep(200)) {
    const items = listField(await api.json('/api/analytics/top-sources?limit=50'), 'items')
    const count = numberField(
      items.find((item) => field(item, 'source') === 'shop'),
      'count',
    )
    if (count >= wanted || performance.now() > untilMs) return count
  }
}
