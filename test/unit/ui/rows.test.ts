import t from 'tap'

import {
  Rows,
  type Bucket,
  type Page,
  type Row,
  type Source,
} from '../../../src/ui/explore/rows.js'

/** A log in which row i, newest first, is a function of i: it has the id i and lies i × STEP before the end. */
const STEP_MS = 7
const END_MS = 2_000_000_000_000
const PAGE = 200
const timeOf = (i: number): number => END_MS - 1 - i * STEP_MS
const rowOf = (i: number): Row => ({ id: i, timestamp: new Date(timeOf(i)).toISOString() }) as Row // what Rows reads

interface Log extends Source {
  asked: number
}

function logOf(total: number, fail: () => boolean = () => false): Log {
  /** The first row that is older than a time. */
  const firstBefore = (ms: number): number =>
    Math.min(total, Math.max(0, Math.ceil((END_MS - ms) / STEP_MS)))
  const log: Log = {
    asked: 0,
    page: async (toMs, cursor): Promise<Page> => {
      log.asked++
      if (fail()) throw new Error('no answer')
      const from = cursor === null ? firstBefore(Math.min(toMs, END_MS)) : Number(cursor)
      const items = Array.from({ length: Math.min(PAGE, total - from) }, (_, i) => rowOf(from + i))
      const next = from + items.length
      return { items, next_cursor: next < total ? String(next) : null }
    },
    counts: async (bucket) => {
      log.asked++
      return bucketsOf(bucket.fromMs, bucket.toMs)
    },
  }
  function bucketsOf(fromMs: number, toMs: number): readonly Bucket[] {
    const step = Math.max(1000, Math.ceil((toMs - fromMs) / 300 / 1000) * 1000)
    const found: Bucket[] = []
    for (let ms = fromMs; ms < toMs; ms += step) {
      const end = Math.min(ms + step, toMs)
      found.push({ fromMs: ms, toMs: end, count: firstBefore(ms) - firstBefore(end) })
    }
    return found
  }
  return Object.assign(log, { first: bucketsOf(timeOf(total), END_MS) })
}

async function open(total: number, counted = total) {
  const log = logOf(total)
  const buckets = await log.counts({ fromMs: timeOf(total), toMs: END_MS, count: total })
  const rows = new Rows(log, () => undefined)
  rows.count({ total: counted, buckets })
  log.asked = 0
  return { log, rows }
}

/** Shows rows until all of them are loaded, as a list does that is drawn again after each change. */
async function shown(rows: Rows, first: number, last: number): Promise<void> {
  for (let turn = 0; turn < 50; turn++) {
    rows.show(first, last)
    await new Promise((resolve) => setImmediate(resolve))
    if (Array.from({ length: last - first }, (_, i) => rows.at(first + i)).every(Boolean)) return
  }
}

t.test('a million rows: the right row at any place, with few requests', async (t) => {
  const total = 1_000_000
  const { log, rows } = await open(total)
  t.equal(rows.total, total)
  for (const place of [0, 1, 999, 60_000, 500_000, 731_313, 999_959, 12, 999_000]) {
    log.asked = 0
    const last = Math.min(total, place + 40)
    await shown(rows, place, last)
    for (let i = place; i < last; i++)
      if (rows.at(i)?.id !== i) t.fail(`place ${i} has ${rows.at(i)?.id}`)
    t.ok(log.asked <= 12, `place ${place}: ${log.asked} requests`)
  }
  t.equal(rows.placeOf(999_010), 999_010)
  t.equal(rows.placeOf(300_000), -1, 'what is not loaded is not found')
})

t.test('what stays in memory is bounded, and comes back', async (t) => {
  const { rows } = await open(100_000)
  for (let first = 0; first < 40_000; first += 150) await shown(rows, first, first + 50)
  const loaded = Array.from({ length: 100_000 }, (_, i) => rows.at(i)).filter(Boolean).length
  t.ok(loaded < 14_000, `${loaded} rows`)
  t.equal(rows.at(0), undefined)
  await shown(rows, 0, 40)
  t.equal(rows.at(39)?.id, 39)
})

t.test('events that came in or were deleted since the count', async (t) => {
  const { rows } = await open(500, 530)
  await shown(rows, 480, 530)
  t.equal(rows.total, 500, 'the end says how many there are')
  t.equal(rows.at(499)?.id, 499)
})

t.test('an error is told, and asked again', async (t) => {
  let isDown = true
  const log = logOf(100, () => isDown)
  const rows: Rows = new Rows(log, () => undefined)
  rows.count({ total: 100, buckets: [] })
  await shown(rows, 0, 10)
  t.match(rows.error, { message: 'no answer' })
  isDown = false
  await shown(rows, 0, 10)
  t.equal(rows.error, null)
  t.equal(rows.at(9)?.id, 9)
})

t.test('a row is replaced where it stands', async (t) => {
  const { rows } = await open(50)
  await shown(rows, 0, 50)
  rows.replace({ ...rowOf(7), host: 'changed' })
  t.equal(rows.at(7)?.host, 'changed')
})

t.test('the newest rows are there before the counts, and those after them', async (t) => {
  const total = 5000
  const log = logOf(total)
  let changes = 0
  const rows = new Rows(log, () => changes++)
  await shown(rows, 0, 60)
  t.equal(rows.total, PAGE, 'what is loaded')
  t.equal(changes, 1)
  await shown(rows, 180, 240)
  t.equal(rows.at(239)?.id, 239)
  const buckets = await log.counts({ fromMs: timeOf(total), toMs: END_MS, count: total })
  rows.count({ total, buckets })
  t.equal(rows.total, total)
  t.equal(rows.at(239)?.id, 239, 'what was loaded stays')
  await shown(rows, 4900, 4950)
  t.equal(rows.at(4949)?.id, 4949)
})

t.test('a result that ends before it is counted is known', async (t) => {
  const rows = new Rows(logOf(70), () => undefined)
  await shown(rows, 0, 60)
  t.equal(rows.total, 70)
  rows.count({ total: 90, buckets: [] })
  t.equal(rows.total, 70, 'the rows tell')
  let changes = 0
  const none = new Rows(logOf(0), () => changes++)
  none.show(0, 60)
  none.count({ total: 0, buckets: [] })
  t.equal(changes, 0, 'the rows are waited for')
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(changes, 1)
  t.equal(none.total, 0)
})
