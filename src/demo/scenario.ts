import { MINUTE_MS, SECOND_MS } from '../model/time.js'
import { background } from './background.js'
import { createRandom, type Random } from './random.js'
import type { DemoRecord, Scene } from './scene.js'

/*
 * An hour of a small shop. A request passes gateway, checkout and payments; inventory, auth, mailer and a database write beside
 * them. 27 minutes before the end payments 2.8.1 is rolled out in eu-west. It does not give connections back when a card is
 * declined, so the pool of its two hosts there runs dry three minutes later: payments waits for connections, checkout times out,
 * the gateway answers 502, and only for eu-west. Nine minutes before the end the rollout is taken back.
 */

export const LENGTH_MS = 60 * MINUTE_MS
export const ROLLOUT_MS = 33 * MINUTE_MS
export const DRY_MS = 36 * MINUTE_MS
export const ROLLBACK_MS = 51 * MINUTE_MS
const RECOVERED_MS = 52.5 * MINUTE_MS

const OLD = '2.8.0'
const NEW = '2.8.1'
const REGIONS = ['eu-west', 'eu-west', 'eu-west', 'us-east', 'us-east'] as const
type Region = (typeof REGIONS)[number]

/**
 * The records of the hour before `endMs`, in the order of their times; the same for the same seed.
 *
 * @param endMs ms since 1970
 */
export function demoRecords(endMs: number, seed = 7): readonly DemoRecord[] {
  const random = createRandom(seed)
  const startMs = endMs - LENGTH_MS
  const written: { readonly ms: number; readonly record: DemoRecord }[] = []
  for (let atMs = 0; atMs < LENGTH_MS; atMs += SECOND_MS) {
    const write: Scene['write'] = ({ afterMs = 0, ...record }) => {
      const ms = startMs + atMs + random.between(0, 999) * 0.4 + afterMs
      if (ms <= endMs)
        written.push({ ms, record: { timestamp: new Date(ms).toISOString(), ...record } })
    }
    const scene = { random, atMs, write }
    background(scene)
    releases(scene)
    for (let i = requestsAt(atMs, random); i > 0; i--) request(scene)
  }
  return written.sort((a, b) => a.ms - b.ms).map(({ record }) => record)
}

/** Traffic swells and ebbs over the hour. */
const requestsAt = (atMs: number, random: Random): number =>
  Math.round(3 + 1.5 * Math.sin(atMs / (9 * MINUTE_MS)) + random.share() * 2)

const ROUTES = [
  ['GET', '/api/products'],
  ['GET', '/api/products'],
  ['GET', '/api/products/{id}'],
  ['GET', '/api/products/{id}'],
  ['GET', '/api/cart'],
  ['POST', '/api/cart/items'],
  ['POST', '/api/login'],
  ['POST', '/api/checkout'],
  ['POST', '/api/checkout'],
] as const

interface Request {
  readonly method: string
  readonly path: string
  readonly region: Region
  readonly trace: string
  readonly user: number
}

function request(scene: Scene): void {
  const { random } = scene
  const [method, route] = random.pick(ROUTES)
  const asked: Request = {
    method,
    path: route.replace('{id}', String(random.between(100, 640))),
    region: random.pick(REGIONS),
    trace: random.hex(32),
    user: random.between(1000, 1900),
  }
  if (route === '/api/checkout') checkout(scene, asked)
  else answer(scene, asked, { status: random.isOne(60) ? 404 : 200, ms: random.skewed(24) })
}

interface Answer {
  readonly status: number
  readonly ms: number
}

function answer({ random, write }: Scene, asked: Request, { status, ms }: Answer): void {
  const severity = status >= 500 ? 'ERROR' : status >= 400 ? 'WARNING' : 'INFO'
  write({
    source: 'gateway',
    severity,
    host: `gw-${asked.region}-${random.between(1, 2)}`,
    message: `${asked.method} ${asked.path} ${status} ${ms}ms`,
    trace_id: asked.trace,
    afterMs: ms,
    tags: {
      http: { method: asked.method, status },
      duration_ms: ms,
      region: asked.region,
      user: { id: asked.user },
    },
  })
}

const isDry = (atMs: number, region: Region): boolean =>
  region === 'eu-west' && atMs >= DRY_MS && atMs < RECOVERED_MS

function checkout(scene: Scene, asked: Request): void {
  const { random, write, atMs } = scene
  const order = 48_000 + Math.floor(atMs / 700) + random.between(0, 3)
  const host = `checkout-${random.between(1, 3)}`
  const tags = { order: { id: order }, region: asked.region, user: { id: asked.user } }
  const common = { source: 'checkout', host, trace_id: asked.trace, tags }
  const items = random.between(1, 6)
  write({ ...common, severity: 'INFO', message: `order ${order} placed with ${items} items` })
  // The pool gives a connection now and then.
  if (isDry(atMs, asked.region) && !random.isOne(4)) {
    payWithoutConnection(scene, asked, order)
    const message = `payment for order ${order} failed: payments did not answer within 3000 ms`
    write({ ...common, severity: 'ERROR', message, afterMs: 3000 })
    answer(scene, asked, { status: 502, ms: 3000 + random.between(4, 60) })
    return
  }
  const isDeclined = random.isOne(18)
  pay(scene, asked, { order, isDeclined })
  const message = isDeclined
    ? `order ${order} waits for another card`
    : `order ${order} confirmed, ${random.between(12, 240)}.${random.between(10, 99)} EUR`
  write({ ...common, severity: isDeclined ? 'WARNING' : 'INFO', message, afterMs: 240 })
  answer(scene, asked, { status: isDeclined ? 402 : 201, ms: random.skewed(260) })
}

/** The hosts of payments with the version that they run at that time. */
function paymentsAt(atMs: number, region: Region, random: Random) {
  const n = region === 'eu-west' ? random.between(3, 4) : random.between(1, 2)
  const isNew = region === 'eu-west' && atMs >= ROLLOUT_MS && atMs < ROLLBACK_MS
  return { source: 'payments', host: `pay-${n}`, version: isNew ? NEW : OLD }
}

interface Payment {
  readonly order: number
  readonly isDeclined: boolean
}

function pay({ random, write, atMs }: Scene, asked: Request, { order, isDeclined }: Payment): void {
  const { source, host, version } = paymentsAt(atMs, asked.region, random)
  const provider = random.pick(['adyen', 'stripe', 'stripe'])
  const ms = random.skewed(180)
  write({
    source,
    host,
    severity: isDeclined ? 'WARNING' : 'INFO',
    message: isDeclined
      ? `card declined by ${provider} for order ${order}: insufficient funds`
      : `charged order ${order} with ${provider} in ${ms} ms`,
    trace_id: asked.trace,
    afterMs: 40 + ms / 2,
    tags: { order: { id: order }, provider, duration_ms: ms, region: asked.region, version },
  })
}

function payWithoutConnection({ random, write, atMs }: Scene, asked: Request, order: number): void {
  const { source, host, version } = paymentsAt(atMs, asked.region, random)
  const waiting = random.between(18, 64)
  const tags = { region: asked.region, version, pool: { active: 20, idle: 0, waiting } }
  const common = { source, host, trace_id: asked.trace }
  write({
    ...common,
    severity: 'WARNING',
    message: `no free connection to payments-db after 1000 ms, ${waiting} requests wait`,
    afterMs: 1000,
    tags,
  })
  write({
    ...common,
    severity: random.isOne(14) ? 'CRITICAL' : 'ERROR',
    message: `connection pool exhausted: 20 of 20 connections to payments-db in use`,
    afterMs: 2500,
    tags: {
      ...tags,
      order: { id: order },
      exception: {
        type: 'PoolTimeoutError',
        message: 'timed out waiting for a connection',
        stacktrace:
          'PoolTimeoutError: timed out waiting for a connection\n' +
          '    at Pool.acquire (/app/node_modules/pg-pool/index.js:212:19)\n' +
          '    at Charge.declined (/app/src/charge.ts:88:31)\n' +
          '    at Charge.run (/app/src/charge.ts:41:12)',
      },
    },
  })
}

/** The messages of the rollout, and those of the database that it affects. */
function releases({ write, atMs, random }: Scene): void {
  const deploy = (message: string, version: string, severity = 'INFO'): void =>
    write({
      source: 'deployer',
      host: 'ci-1',
      severity,
      message,
      tags: { service: 'payments', region: 'eu-west', version },
    })
  if (atMs === ROLLOUT_MS) deploy(`payments ${NEW} rolled out to eu-west (pay-3, pay-4)`, NEW)
  if (atMs === ROLLBACK_MS) deploy(`payments in eu-west rolled back to ${OLD}`, OLD, 'WARNING')
  if (atMs === ROLLOUT_MS || atMs === ROLLBACK_MS)
    for (const host of ['pay-3', 'pay-4']) {
      const version = atMs === ROLLOUT_MS ? NEW : OLD
      write({
        source: 'payments',
        host,
        severity: 'INFO',
        message: `payments ${version} listening on port 7300`,
        afterMs: 4000,
        tags: { version, region: 'eu-west' },
      })
    }
  const isLeaking = atMs >= ROLLOUT_MS && atMs < ROLLBACK_MS
  if (isLeaking && atMs % (20 * SECOND_MS) === 0) {
    const idle = Math.min(
      40,
      Math.round((atMs - ROLLOUT_MS) / (9 * SECOND_MS)) * 2 + random.between(0, 2),
    )
    write({
      source: 'payments-db',
      host: 'pg-eu-1',
      severity: idle >= 30 ? 'WARNING' : 'INFO',
      message: `${idle} sessions idle in transaction, the oldest for ${Math.round((atMs - ROLLOUT_MS) / 1000)} s`,
      tags: {
        db: { name: 'payments', sessions: { idle_in_transaction: idle } },
        region: 'eu-west',
      },
    })
  }
}
