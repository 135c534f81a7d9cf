import tap, { plan, test } from 'tap'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { createRedisState } from '../../../src/coordination/redis-state.js'
import type { State } from '../../../src/coordination/state.js'
import { startRedis } from '../../support/redis.js'
import { stateContract, until } from '../../support/state-contract.js'
import { MINUTE_MS } from '../../../src/model/time.js'

const unexpected = (error: unknown): never => {
  throw error
}

const server = await startRedis()
if (server === null) {
  plan(0, 'redis-server is not installed')
  process.exit(0)
}
const { url } = server
const open: State[] = []
tap.teardown(async () => {
  await Promise.all(open.map((state) => state.close()))
  await server.kill()
})

interface Options {
  readonly keyPrefix?: string
  readonly lockWaitMs?: number
  readonly commandTimeoutMs?: number
}

const connect = async (options: Options = {}) => {
  const state = await createRedisState({
    url,
    onError: () => undefined,
    keyPrefix: 'test:',
    commandTimeoutMs: 5_000,
    ...options,
  })
  open.push(state)
  return state
}

void test('the contract of a state, two instances on one Redis', async (t) => {
  const views = [await connect(), await connect()]
  let next = 0
  stateContract(t, async () => views[next++ % 2] ?? (await connect()))
})

void test('prefixes separate two services on one Redis', async (t) => {
  const [a, b] = [await connect({ keyPrefix: 'a:' }), await connect({ keyPrefix: 'b:' })]
  await a.set('k', 'of a', MINUTE_MS)
  t.equal(await b.get('k'), null)
  const heard: string[] = []
  await b.subscribe('news', (m) => heard.push(m))
  await a.publish('news', 'of a')
  await b.publish('news', 'of b')
  await until(() => heard.length > 0)
  t.strictSame(heard, ['of b'])
})

void test('Redis and the process answer the same to the same spending', async (t) => {
  const redis = await connect()
  const local = createInProcessState({ onError: unexpected })
  for (let i = 0; i < 120; i++) {
    const cost = 1 + ((i * 7) % 5)
    const [limit, key] = i % 2 === 0 ? [40, 'small'] : [300, 'great']
    const [a, b] = [
      await redis.consume(`same-${key}`, limit, 600, cost),
      await local.consume(key, limit, 600, cost),
    ]
    t.equal(a.allowed, b.allowed)
    t.equal(a.remaining, b.remaining)
    t.ok(Math.abs(a.retryAfterS - b.retryAfterS) <= 1)
  }
})

void test('a lock of a holder that died is free after its time', async (t) => {
  const dead = await connect()
  void dead.withLock('orphan', 200, () => new Promise(() => undefined)).catch(() => undefined)
  await until(() => true)
  await new Promise((resolve) => setTimeout(resolve, 50))
  await dead.close()
  const state = await connect()
  t.equal(await state.withLock('orphan', 1_000, async () => 'free'), 'free')
})

void test('a holder learns that its lock was lost, and does not release another one', async (t) => {
  const [a, b, c] = [await connect(), await connect(), await connect({ lockWaitMs: 100 })]
  let finish = (): void => undefined
  let next: Promise<void> = Promise.resolve()
  await a.withLock('stolen', 150, async (lease) => {
    await a.delete('lock:stolen')
    next = b.withLock('stolen', 5_000, () => new Promise((resolve) => (finish = resolve)))
    await until(() => lease.signal.aborted)
  })
  await t.rejects(
    c.withLock('stolen', 1_000, async () => 1),
    { code: 'dependency_unavailable' },
    'the second holder still has it',
  )
  finish()
  await next
  t.equal(await c.withLock('stolen', 1_000, async () => 'free'), 'free')
})

void test('a lock that stays taken is refused after the wait', async (t) => {
  const [a, b] = [await connect(), await connect({ lockWaitMs: 100 })]
  await a.withLock('taken', 1_000, async () => {
    await t.rejects(
      b.withLock('taken', 1_000, async () => 1),
      { code: 'dependency_unavailable' },
    )
  })
})

for (const how of ['killed', 'standing still'] as const) {
  void test(`Redis ${how}: commands are refused, then it recovers by itself`, async (t) => {
    const state = await connect({ commandTimeoutMs: 500 })
    const seen: string[] = []
    state.onStatus((status) => seen.push(status))
    const heard: string[] = []
    await state.subscribe('while-away', (m) => heard.push(m))

    if (how === 'killed') await server.kill()
    else server.pause()
    await t.rejects(state.get('k'), { code: 'dependency_unavailable' })
    if (how === 'standing still') t.equal(statusOf(state), 'down', 'from the first timeout on')
    await until(() => statusOf(state) === 'down')
    const refused = await Promise.allSettled([
      state.get('k'),
      state.set('k', 'v', 1_000),
      state.consume('k', 1, 1),
      state.publish('c', 'm'),
      state.withLock('k', 1_000, async () => 1),
      state.ping(),
    ])
    t.strictSame(
      refused.map((r) => (r.status === 'rejected' ? r.reason.code : 'fulfilled')),
      Array.from(refused, () => 'dependency_unavailable'),
    )
    const endLate = await state.subscribe('asked-while-down', (m) => heard.push(m))

    if (how === 'killed') await server.start()
    else server.resume()
    await until(() => statusOf(state) === 'ok')
    await state.publish('while-away', 'back')
    await state.publish('asked-while-down', 'too')
    await until(() => heard.length === 2)
    t.strictSame(heard, ['back', 'too'])
    t.strictSame(seen, ['ok', 'down', 'ok'])
    endLate()
  })
}

void test('an outage is reported once', async (t) => {
  const errors: unknown[] = []
  const state = await createRedisState({
    url,
    keyPrefix: 'test:',
    onError: (error) => errors.push(error),
  })
  open.push(state)
  for (let outage = 1; outage <= 2; outage++) {
    await server.kill()
    await until(() => statusOf(state) === 'down' && errors.length >= outage)
    // Time for several attempts to connect.
    await new Promise((resolve) => setTimeout(resolve, 500))
    t.equal(errors.length, outage)
    await server.start()
    await until(() => statusOf(state) === 'ok')
  }
})

void test('without Redis at the start the state is down, and comes up with it', async (t) => {
  await server.kill()
  const state = await connect()
  t.equal(statusOf(state), 'down')
  await t.rejects(state.get('k'), { code: 'dependency_unavailable' })
  await server.start()
  await until(() => statusOf(state) === 'ok')
  t.equal(await state.get('k'), null)
})

function statusOf(state: State): string {
  let status = ''
  state.onStatus((now) => (status = now))()
  return status
}
