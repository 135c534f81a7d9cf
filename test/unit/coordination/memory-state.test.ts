import { test } from 'tap'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { stateContract } from '../../support/state-contract.js'
import { MINUTE_MS } from '../../../src/model/time.js'

const unexpected = (error: unknown): never => {
  throw error
}

const errors: unknown[] = []
const shared = createInProcessState({ onError: (error) => errors.push(error) })

void test('the state of a process keeps the contract of a state', async (t) => {
  stateContract(t, async () => shared)
})

void test('a subscriber that throws is reported', async (t) => {
  t.match(errors, [{ message: 'boom' }])
})

void test('values beyond the limit of bytes push out the least recently used', async (t) => {
  const state = createInProcessState({ onError: unexpected, maxBytes: 100_000 })
  for (let i = 0; i < 1_000; i++) await state.set(`k${i}`, 'x'.repeat(100), MINUTE_MS)
  t.equal(await state.get('k0'), null)
  t.equal(await state.get('k999'), 'x'.repeat(100))
  let kept = 0
  for (let i = 0; i < 1_000; i++) if ((await state.get(`k${i}`)) !== null) kept++
  t.ok(kept > 100 && kept < 300, `${kept}`)
})

void test('windows beyond the limit push out the least recently used', async (t) => {
  const state = createInProcessState({ onError: unexpected, maxWindows: 10 })
  await state.consume('first', 1, 60)
  for (let i = 0; i < 10; i++) await state.consume(`k${i}`, 1, 60)
  t.equal((await state.consume('k9', 1, 60)).allowed, false)
  t.equal((await state.consume('first', 1, 60)).allowed, true)
})

void test('retry-after is the second at which the request fits, to the millisecond', async (t) => {
  let nowMs = 1_000_000
  const state = createInProcessState({ onError: unexpected, nowMs: () => nowMs })
  await state.consume('k', 2, 60)
  nowMs += 10_500
  await state.consume('k', 2, 60)
  t.strictSame(await state.consume('k', 2, 60), { allowed: false, remaining: 0, retryAfterS: 50 })
  nowMs += 49_499
  t.match(await state.consume('k', 2, 60), { allowed: false, retryAfterS: 1 })
  nowMs += 1
  t.match(await state.consume('k', 2, 60), { allowed: true })
  t.match(await state.consume('k', 2, 60), { allowed: false, retryAfterS: 11 })
})

void test('a lock that is not given back in time refuses the next', async (t) => {
  const state = createInProcessState({ onError: unexpected, lockWaitMs: 30 })
  let finish = (): void => undefined
  const holding = state.withLock(
    'k',
    1_000,
    () => new Promise<void>((resolve) => (finish = resolve)),
  )
  await t.rejects(
    state.withLock('k', 1_000, async () => 1),
    { code: 'dependency_unavailable' },
  )
  finish()
  await holding
  t.equal(await state.withLock('k', 1_000, async () => 2), 2)
})

void test('too many waiters of one lock are refused at once', async (t) => {
  const state = createInProcessState({ onError: unexpected })
  let finish = (): void => undefined
  const holding = state.withLock(
    'k',
    1_000,
    () => new Promise<void>((resolve) => (finish = resolve)),
  )
  const waiters = Array.from({ length: 1_000 }, () => state.withLock('k', 1_000, async () => 1))
  await t.rejects(
    state.withLock('k', 1_000, async () => 1),
    { code: 'dependency_unavailable' },
  )
  finish()
  await holding
  t.equal((await Promise.all(waiters)).length, 1_000)
})
