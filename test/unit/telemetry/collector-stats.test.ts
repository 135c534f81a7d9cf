import { array, assert, constantFrom, integer, property, record } from 'fast-check'
import { test } from 'tap'
import { createCollectorStats } from '../../../src/telemetry/collector-stats.js'
import { HOUR_MS } from '../../../src/model/time.js'

const body = {
  protocol: 'ingest',
  sources: ['web'],
  received: 3,
  accepted: 2,
  rejected: 1,
  bytes: 100,
}

void test('figures are kept by protocol and source, the most received first', async (t) => {
  const stats = createCollectorStats(() => 1_000_000)
  stats.note(body)
  stats.note({ ...body, protocol: 'webhook', received: 9, accepted: 9, rejected: 0 })
  stats.note({ ...body, sources: ['a', 'b'], received: 1, accepted: 1, rejected: 0 })
  stats.note({ ...body, sources: [], received: 1, accepted: 0, rejected: 1 })
  stats.note(body)
  t.strictSame(
    stats.list().map((f) => [f.protocol, f.source, f.received, f.stored, f.rejected, f.bytes]),
    [
      ['webhook', 'web', 9, 9, 0, 100],
      ['ingest', 'web', 6, 4, 2, 200],
      ['ingest', null, 2, 1, 1, 200],
    ],
  )
})

void test('the rate is that of the last minute, whatever was before', async (t) => {
  let now = 5_000_000
  const stats = createCollectorStats(() => now)
  const rate = () => stats.list()[0]?.ratePerSecond
  stats.note({ ...body, received: 600 })
  t.equal(rate(), 10)
  now += 30_000
  stats.note({ ...body, received: 600 })
  t.equal(rate(), 20)
  now += 30_000
  t.equal(rate(), 10, 'the first is a minute old')
  now += HOUR_MS
  t.equal(rate(), 0)
  stats.note({ ...body, received: 60 })
  t.equal(rate(), 1)
})

void test('the last event is the last that was accepted', async (t) => {
  let now = 7_000
  const stats = createCollectorStats(() => now)
  stats.note({ ...body, accepted: 0 })
  t.equal(stats.list()[0]?.lastEventAtMs, null)
  stats.note(body)
  now = 9_000
  stats.note({ ...body, accepted: 0 })
  t.equal(stats.list()[0]?.lastEventAtMs, 7_000)
})

void test('however many sources there are, the keys are bounded and the sums are exact', async () => {
  const steps = array(
    record({
      source: integer({ min: 1, max: 20 }),
      protocol: constantFrom('ingest', 'upload'),
      received: integer({ min: 0, max: 9 }),
      waitMs: integer({ min: 0, max: 5_000 }),
    }),
    { maxLength: 80 },
  )
  assert(
    property(steps, (all) => {
      let now = 1_000_000
      const seen: { atMs: number; received: number }[] = []
      const stats = createCollectorStats(() => now, 4)
      for (const { source, protocol, received, waitMs } of all) {
        now += waitMs
        const counts = { received, accepted: received, rejected: 0, bytes: received }
        stats.note({ protocol, sources: [`s${source}`], ...counts })
        seen.push({ atMs: now, received })
      }
      const list = stats.list()
      const sum = (of: (figures: (typeof list)[number]) => number) =>
        list.reduce((total, figures) => total + of(figures), 0)
      const total = seen.reduce((n, { received }) => n + received, 0)
      const from = Math.floor(now / 1_000) - 59
      const recent = seen
        .filter(({ atMs }) => Math.floor(atMs / 1_000) >= from)
        .reduce((n, { received }) => n + received, 0)
      const rates = sum((f) => f.ratePerSecond)
      return (
        list.length <= 6 &&
        sum((f) => f.received) === total &&
        sum((f) => f.bytes) === total &&
        Math.abs(rates * 60 - recent) < 0.61 * Math.max(1, list.length)
      )
    }),
  )
})
