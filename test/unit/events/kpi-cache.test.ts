import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { createKpiCache, type CacheState } from '../../../src/events/kpi-cache.js'
import { toKpiSnapshot } from '../../../src/events/kpi-snapshot.js'
import type { ComputedKpis } from '../../../src/model/kpi.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { stateUnavailable } from '../../../src/coordination/state.js'

const unexpected = (error: unknown): never => {
  throw error
}

const QUIET = { events: 0, eventsBefore: 0, errors: 0, errorsBefore: 0 }

/** A snapshot with a distinct first figure. */
const snapshotOf = (events: number): ComputedKpis => ({
  ...toKpiSnapshot(
    {
      stored: {
        events,
        occurrences: events,
        errors: 0,
        routine: 0,
        unsure: 0,
        routineOccurrences: 0,
      },
      deadLetters: { total: 0, lastDay: 0 },
      lastMinute: { events: 0, errors: 0 },
      last5Minutes: 0,
      hour: QUIET,
      day: { ...QUIET, criticals: 0, p1: 0 },
      sparkline: [],
      sources: new Map(),
      topErrors: [],
    },
    {
      applications: [],
      alerts: { open: 0, recent: [] },
      templatesKnown: 0,
      textOfTemplate: () => null,
      mlHealth: null,
    },
  ),
  computed_at: '2026-01-01T00:00:00.000Z',
})

/** Counts computations; each sees the store as it was when it began, and takes a while. */
function counting(state: CacheState) {
  const seen = { stored: 0, computed: 0, atOnce: 0, most: 0, failure: null as Error | null }
  const compute = async (): Promise<ComputedKpis> => {
    seen.computed++
    seen.most = Math.max(seen.most, ++seen.atOnce)
    const { stored } = seen
    await sleep(5)
    seen.atOnce--
    if (seen.failure !== null) throw seen.failure
    return snapshotOf(stored)
  }
  return { seen, compute, cache: createKpiCache(state, compute) }
}

const events = async (json: Promise<string>): Promise<number> =>
  (JSON.parse(await json) as ComputedKpis).unique_events

void test('a snapshot is computed once for everyone', async (t) => {
  const state = createInProcessState({ onError: unexpected })
  t.teardown(() => state.close())
  const { seen, compute, cache } = counting(state)
  const other = createKpiCache(state, compute)
  const all = await Promise.all(
    Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? cache : other).get()),
  )
  t.equal(new Set(all).size, 1)
  t.equal(seen.computed, 1)
})

void test('what was written shows in the current snapshot and may wait in the cached one', async (t) => {
  const state = createInProcessState({ onError: unexpected })
  t.teardown(() => state.close())
  const { seen, cache } = counting(state)
  t.equal(await events(cache.get()), 0)
  seen.stored = 1
  await cache.noteWritten()
  t.equal(await events(cache.get()), 0, 'cached')
  t.equal(await events(cache.current()), 1, 'current')
  t.equal(await events(cache.get()), 1, 'the current one is cached')
  t.equal(await events(cache.current()), 1)
  t.equal(seen.computed, 2)
})

void test('nobody sees a snapshot from before an invalidation', async (t) => {
  const state = createInProcessState({ onError: unexpected })
  t.teardown(() => state.close())
  const { seen, compute, cache } = counting(state)
  const other = createKpiCache(state, compute)
  seen.stored = 10
  t.equal(await events(cache.get()), 10)
  await cache.noteWritten()
  const underWay = cache.current()
  await sleep(1)
  seen.stored = 3
  await other.invalidate()
  t.equal(await events(cache.get()), 3, 'although another one was under way')
  await underWay
  t.equal(await events(cache.get()), 3, 'and ended later')
  t.equal(await events(other.get()), 3)
})

void test('instances take turns', async (t) => {
  const state = createInProcessState({ onError: unexpected })
  t.teardown(() => state.close())
  const { seen, compute, cache } = counting(state)
  const caches = [cache, createKpiCache(state, compute), createKpiCache(state, compute)]
  for (let round = 0; round < 5; round++) {
    await cache.noteWritten()
    await Promise.all(caches.map((each) => each.current()))
  }
  t.equal(seen.most, 1)
  t.equal(seen.computed, 5)
})

void test('a failed computation is reported and not cached', async (t) => {
  const state = createInProcessState({ onError: unexpected })
  t.teardown(() => state.close())
  const { seen, cache } = counting(state)
  seen.failure = new Error('the store is away')
  await t.rejects(cache.get(), { message: 'the store is away' })
  t.equal(seen.computed, 1)
  seen.failure = null
  seen.stored = 4
  t.equal(await events(cache.get()), 4)
})

void test('without the state each call computes, and an invalidation is made up for', async (t) => {
  const real = createInProcessState({ onError: unexpected })
  t.teardown(() => real.close())
  let isDown = false
  const whenUp = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isDown) throw stateUnavailable('the state is away')
    return await work()
  }
  const state: CacheState = {
    get: (key) => whenUp(() => real.get(key)),
    set: (key, value, ttlMs) => whenUp(() => real.set(key, value, ttlMs)),
    withLock: (key, ttlMs, work) => whenUp(() => real.withLock(key, ttlMs, work)),
  }
  const { seen, cache } = counting(state)
  seen.stored = 1
  t.equal(await events(cache.get()), 1)
  isDown = true
  seen.stored = 2
  t.equal(await events(cache.get()), 2)
  seen.stored = 3
  await t.rejects(cache.invalidate(), { code: 'dependency_unavailable' })
  t.equal(await events(cache.get()), 3)
  isDown = false
  t.equal(await events(cache.get()), 3, 'not the one from before')
})
