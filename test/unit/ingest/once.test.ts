import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'

import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { createOnce, rememberStored, type SeenKeys } from '../../../src/ingest/once.js'

/** The state of a single instance, which counts the most operations that begin in one turn of the event loop. */
function countedState() {
  const state = createInProcessState({ onError: () => undefined })
  let inTurn = 0
  let most = 0
  const count = (): void => {
    if (inTurn === 0)
      setImmediate(() => {
        inTurn = 0
      })
    inTurn += 1
    most = Math.max(most, inTurn)
  }
  const seen: SeenKeys = {
    get: (key) => (count(), state.get(key)),
    set: (key, value, ttlMs) => (count(), state.set(key, value, ttlMs)),
    setIfAbsent: (key, value, ttlMs) => (count(), state.setIfAbsent(key, value, ttlMs)),
    delete: (key) => (count(), state.delete(key)),
  }
  const takeMost = (): number => {
    const taken = most
    most = 0
    return taken
  }
  return { seen, takeMost }
}

void test('the keys of a large body are worked on with turns of the event loop between', async (t) => {
  const { seen, takeMost } = countedState()
  const here = countedState()
  const once = createOnce(seen, here.seen)
  const keys = Array.from({ length: 10_500 }, (_, i) => `once:record:${i}`)
  const isBounded = (step: string): void => {
    const most = takeMost()
    // A repeat takes two operations, and each step has a few of its own.
    t.ok(most >= 1000 && most <= 2010, `${step}: ${most} in one turn`)
  }

  const first = await once.claim(keys, null)
  t.same(new Set(first.isNew), new Set([true]))
  isBounded('claim')
  await nextTurn()
  await first.release()
  isBounded('release')

  const second = await once.claim(keys, null)
  t.same(new Set(second.isNew), new Set([true]), 'what was released is new')
  takeMost()
  await nextTurn()
  await second.stored(new Set(keys.slice(0, 10_000)))
  isBounded('stored')
  t.equal(here.takeMost(), 1000)

  await nextTurn()
  const third = await once.claim(keys, null)
  t.same(
    third.isNew,
    keys.map((_, i) => i >= 10_000),
    'each key has its own outcome',
  )
  isBounded('claim of repeats')

  await nextTurn()
  await rememberStored(seen, keys)
  isBounded('remember')
})

void test('of two large bodies with the same keys one stores them, in whichever order', async (t) => {
  const keys = Array.from({ length: 5000 }, (_, i) => `once:record:${i}`)
  for (const others of [keys, keys.toReversed()]) {
    const { seen } = countedState()
    const once = createOnce(seen, countedState().seen)
    const claims = await Promise.all(
      [keys, others].map(async (of) => {
        const claim = await once.claim(of, null)
        await claim.stored()
        return claim.isNew.filter(Boolean).length
      }),
    )
    t.same(
      claims.toSorted((a, b) => a - b),
      [0, 5000],
    )
  }
})
