import { setTimeout as sleep } from 'node:timers/promises'
import { Api, field, listField, numberField } from '../lib/api.js'
import { Connection } from '../lib/connection.js'
import { Latencies } from '../lib/latency.js'
import { type BenchOptions, settingsOf } from '../lib/options.js'
import type { Check, Metric, ScenarioResult } from '../lib/report.js'
import { startService, type Service } from '../lib/service.js'
import { ATTACKS, startAttack, type Victim } from './attacks.js'

/** What the well-behaved sender and reader do. */
const SENDS_PER_S = 50
const EVENTS_PER_SEND = 20
const QUESTIONS_PER_S = 10
const QUESTIONS = [
  '/api/logs?limit=50',
  '/api/analytics/severity-breakdown?window=24h',
  '/api/kpis',
]
const WARM_MS = 2_000
/** Time for an attack to take hold. */
const RAMP_MS = 1_000
const VISIBLE_MS = 60_000
/** How many times its quiet p99 a client may wait under attack. */
const WORST_RATIO = 3

interface Seen {
  readonly acks: Latencies
  readonly answers: Latencies
  /** Requests that were not answered with a success. */
  failed: number
  sent: number
}

/**
 * For each attack of `attacks.ts`: what a well-behaved sender and a reader wait beside it, against what they wait before it. Each
 * attack meets a service of its own.
 */
export async function runHostile(options: BenchOptions): Promise<ScenarioResult> {
  const metrics: Metric[] = []
  const checks: Check[] = []
  for (const name of Object.keys(ATTACKS)) {
    if (options.questions?.test(name) === false) continue
    const service = await startService({
      settings: settingsOf(options),
      profileDir: options.cpuProf,
    })
    try {
      const { quiet, beside, visible, shotsPerS } = await measure(
        service,
        name,
        options.durationS * 1000,
      )
      metrics.push({
        name: `requests of the attacker: ${name}`,
        unit: '/s',
        samples: [shotsPerS],
        better: 'higher',
      })
      for (const [what, before, after] of [
        ['acknowledgement', quiet.acks, beside.acks],
        ['answer', quiet.answers, beside.answers],
      ] as const) {
        const alone = `${what} p99, before: ${name}`
        const label = 'quiet'
        metrics.push(
          { name: alone, unit: 'ms', samples: [before.at(99)], better: 'lower' },
          {
            name: `${what} p99, beside: ${name}`,
            unit: 'ms',
            samples: [after.at(99)],
            better: 'lower',
            limit: { metric: alone, label },
          },
        )
        const ratio = after.at(99) / before.at(99)
        checks.push({
          name: `p99 of a well-behaved client stays within ${WORST_RATIO} times that before`,
          ok: ratio <= WORST_RATIO,
          detail: `${name}, ${what}: ${ratio.toFixed(1)} times`,
        })
      }
      checks.push(
        {
          name: 'every request of a well-behaved client succeeds',
          ok: beside.failed === 0,
          detail: `${name}: ${beside.failed} failed`,
        },
        {
          name: 'every event of a well-behaved client is stored',
          ok: visible === quiet.sent + beside.sent,
          detail: `${name}: ${visible} of ${quiet.sent + beside.sent}`,
        },
      )
    } finally {
      await service.stop()
      service.discard()
    }
  }
  const { durationS } = options
  return { scenario: 'hostile', options: { durationS }, metrics, checks, skipped: [], curves: [] }
}

async function measure(service: Service, name: string, durationMs: number) {
  const api = await Api.login(service)
  const victim = await prepareVictim(service, api)
  const client = (ms: number): Promise<Seen> => behaveWell(service, api, ms)
  const warm = await client(WARM_MS)
  const quiet = await client(durationMs)
  let shots = 0
  const end = startAttack(name, victim)
  await sleep(RAMP_MS)
  const beside = await client(durationMs).finally(() => {
    shots = end()
  })
  const sent = warm.sent + quiet.sent + beside.sent
  const visible = (await visibleOf(api, sent)) - warm.sent
  api.close()
  const shotsPerS = (shots * 1000) / (RAMP_MS + durationMs)
  return { quiet, beside, visible, shotsPerS }
}

/** An ingest key and a viewer for the attacker. */
async function prepareVictim(service: Service, api: Api): Promise<Victim> {
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
  const seen: Seen = { acks: new Latencies(), answers: new Latencies(), failed: 0, sent: 0 }
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
  ])
  sender.close()
  reader.close()
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
