import { test } from 'tap'
import { createWatermark } from '../../../src/alerting/watermark.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { MINUTE_MS } from '../../../src/model/time.js'

const KEY = 'alerting:watermarks'

/** An instance whose oldest record waits for so long in its WAL, and its oldest body for so long before it. */
function createInstance(
  self: string,
  state: ReturnType<typeof createInProcessState>,
  kind: 'in-process' | 'redis' = 'redis',
) {
  const wal = { oldestMs: 0, waiting: [] as { seq: number }[] }
  const pipeline = { oldestMs: 0 }
  const { get, setIfAbsent, compareAndSet } = state
  const shared = { kind, get, setIfAbsent, compareAndSet }
  const open = () => createWatermark({ state: shared, self, wal, pipeline })
  return { wal, pipeline, open }
}

const openState = () => createInProcessState({ onError: () => undefined })
/** How long ago everything is stored; the clock goes on between the two readings. */
const ageMs = async (watermark: { readonly now: () => Promise<number> }): Promise<number> =>
  Math.round((Date.now() - (await watermark.now())) / MINUTE_MS) * MINUTE_MS

void test('what waits longest before the store is the watermark', async (t) => {
  const { wal, pipeline, open } = createInstance('a', openState(), 'in-process')
  const watermark = open()
  t.equal(await ageMs(watermark), 0, 'nothing waits')
  wal.oldestMs = 5 * MINUTE_MS
  t.equal(await ageMs(watermark), 5 * MINUTE_MS)
  pipeline.oldestMs = 7 * MINUTE_MS
  t.equal(await ageMs(watermark), 7 * MINUTE_MS)
})

void test('what an earlier run left has no time, and nothing is judged before it is stored', async (t) => {
  const { wal, open } = createInstance('a', openState(), 'in-process')
  wal.waiting.push({ seq: 3 }, { seq: 4 })
  const watermark = open()
  t.equal(await watermark.now(), 0)
  wal.waiting.splice(0, 2, { seq: 5 })
  t.equal(await ageMs(watermark), 0, 'the one that waits came later')
})

void test('of several instances the one that is furthest behind counts, until it is gone', async (t) => {
  const state = openState()
  const [first, second] = [createInstance('a', state), createInstance('b', state)]
  second.wal.oldestMs = 6 * MINUTE_MS
  await second.open().now()
  t.equal(await ageMs(first.open()), 6 * MINUTE_MS)
  const marks = JSON.parse((await state.get(KEY)) ?? '') as Record<string, { atMs: number }>
  const silent = { ...marks, b: { ...marks['b'], atMs: Date.now() - 3 * MINUTE_MS } }
  await state.set(KEY, JSON.stringify(silent), MINUTE_MS)
  t.equal(await ageMs(first.open()), 0)
})
