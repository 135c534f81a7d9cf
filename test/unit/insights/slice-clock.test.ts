import fc from 'fast-check'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { pauseAfter, SliceClock } from '../../../src/insights/slice-clock.js'
import { MINUTE_MS } from '../../../src/model/time.js'

/** Longer than a slice. */
const STEP_MS = 10

function work(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until;);
}

test('runs take no more than their share of a core, and come no sooner than the interval', async (t) => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1e7, noNaN: true }),
      fc.integer({ min: 0, max: 86_400 }),
      fc.integer({ min: 1, max: 100 }),
      (costMs, insightsIntervalSeconds, insightsCpuPct) => {
        const pauseMs = pauseAfter(costMs, { insightsIntervalSeconds, insightsCpuPct })
        const share = costMs === 0 ? 0 : costMs / (costMs + pauseMs)
        return share <= insightsCpuPct / 100 && pauseMs >= insightsIntervalSeconds * 1000
      },
    ),
  )
  t.equal(pauseAfter(4_000, { insightsIntervalSeconds: 300, insightsCpuPct: 5 }), 300_000)
  t.equal(pauseAfter(MINUTE_MS, { insightsIntervalSeconds: 300, insightsCpuPct: 5 }), 1_200_000)
})

test('a run gives the thread back whenever a slice is used up', async (t) => {
  let others = 0
  let isOver = false
  const tick = (): void => {
    others++
    if (!isOver) setImmediate(tick)
  }
  setImmediate(tick)
  const clock = new SliceClock([])
  const steps = 20
  for (let i = 0; i < steps; i++) {
    work(STEP_MS)
    await clock.pause()
  }
  isOver = true
  t.ok(others >= steps, `others ran ${others} times in ${steps} steps`)
})

test('what a run takes is its own time and what it waited for, not the time of others', async (t) => {
  const clock = new SliceClock([])
  let others = 0
  const isBusy = (): boolean => others < 10
  const greedy = (): void => {
    work(5 * STEP_MS)
    others++
    if (isBusy()) setImmediate(greedy)
  }
  setImmediate(greedy)
  const startedAt = performance.now()
  do {
    work(STEP_MS)
    await clock.pause()
  } while (isBusy())
  const untilNow = performance.now() - startedAt
  const own = clock.totalMs()
  t.ok(
    own < untilNow - 10 * 5 * STEP_MS + STEP_MS,
    'what others took between slices is not counted',
  )
  await clock.wait(sleep(3 * STEP_MS))
  t.ok(clock.totalMs() >= own + 2 * STEP_MS, 'what was waited for is')
})

test('a run ends at its next pause when it is aborted', async (t) => {
  const end = new AbortController()
  const clock = new SliceClock([end.signal])
  await clock.wait(Promise.resolve())
  end.abort(new Error('over'))
  await t.rejects(clock.wait(Promise.resolve()), { message: 'over' })
  work(STEP_MS)
  await t.rejects(clock.pause(), { message: 'over' })
})
