import {
  array,
  assert,
  constantFrom,
  integer,
  nat,
  oneof,
  property,
  record,
  type Arbitrary,
} from 'fast-check'
import { test } from 'tap'
import { DedupWindow } from '../../../src/pipeline/dedup-window.js'

interface Known {
  readonly hash: number
  readonly firstMs: number
  readonly id: number
  owner: number
  priority: number
}

const windowMs = 1000

/** What the window is to do, the plain way. */
class Reference {
  events: Known[] = []
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  candidates(hash: number, timeMs: number): readonly Known[] {
    return this.events.filter(
      (event) =>
        event.hash === hash &&
        event.owner >= 0 &&
        timeMs >= event.firstMs &&
        timeMs < event.firstMs + windowMs,
    )
  }

  add(event: Known): void {
    if (this.events.length === this.#limit) this.events.shift()
    this.events.push(event)
  }
}

type Step =
  | {
      readonly kind: 'message'
      readonly hash: number
      readonly timeMs: number
      readonly owner: number
    }
  | { readonly kind: 'forget'; readonly owner: number }
  | { readonly kind: 'priority'; readonly pick: number; readonly priority: number }
  | { readonly kind: 'clear' }

// around the edges of windows and steps, late and early, and far away
const times = oneof(
  integer({ min: 0, max: 4000 }),
  constantFrom(0, 999, 1000, 1001, 1999, 2000, 15_999, 16_000, 16_001, 31_500, 32_100),
  integer({ min: 0, max: 4000 }).map((ms) => ms + 1_700_000_000_000),
)
const message: Arbitrary<Step> = record({
  kind: constantFrom('message' as const),
  hash: nat(3),
  timeMs: times,
  owner: integer({ min: 1, max: 3 }),
})
const rare: Arbitrary<Step> = oneof(
  record({ kind: constantFrom('forget' as const), owner: integer({ min: 1, max: 3 }) }),
  record({ kind: constantFrom('priority' as const), pick: nat(), priority: nat(3) }),
  record({ kind: constantFrom('clear' as const) }),
)
const steps = array(oneof({ weight: 30, arbitrary: message }, { weight: 1, arbitrary: rare }), {
  maxLength: 400,
  size: 'max',
})

function run(all: readonly Step[], limit: number, maxTurns?: number): void {
  const window = new DedupWindow(windowMs, limit, maxTurns)
  const reference = new Reference(limit)
  let nextId = 1
  for (const step of all) {
    if (step.kind === 'clear') {
      window.clear()
      reference.events = []
    } else if (step.kind === 'forget') {
      window.forget(step.owner)
      for (const event of reference.events) if (event.owner === step.owner) event.owner = -1
    } else if (step.kind === 'priority') {
      const event = reference.events[step.pick % Math.max(1, reference.events.length)]
      if (event === undefined) continue
      event.priority = step.priority
      window.setPriority(event.id, step.priority)
    } else {
      // hashes that share one half: the other must tell them apart
      const [lo, hi] = [step.hash & 1, step.hash >> 1]
      const expected = reference.candidates(step.hash, step.timeMs)
      const found = window.find(lo, hi, step.timeMs)
      if (found >= 0 !== expected.length > 0)
        throw new Error(`found ${found}, due ${expected.length}`)
      const event = expected.find(({ id }) => found >= 0 && id === window.idAt(found))
      if (found >= 0 && event === undefined) throw new Error('an event it does not belong to')
      if (event !== undefined && event.priority !== window.priorityAt(found))
        throw new Error('another priority')
      if (found >= 0) continue
      const added = { firstMs: step.timeMs, id: nextId++, owner: step.owner, priority: nextId % 4 }
      window.add({ lo, hi, ...added })
      reference.add({ hash: step.hash, ...added })
    }
    if (window.size !== reference.events.length) throw new Error(`${window.size} entries`)
  }
}

void test('a message joins an event exactly when its time lies in [first, first + window)', async () => {
  assert(
    property(steps, (all) => run(all, 100_000)),
    { numRuns: 200 },
  )
})

void test('at its limit the window forgets the event that was added first', async () => {
  assert(
    property(steps, integer({ min: 1, max: 40 }), (all, limit) => run(all, limit)),
    {
      numRuns: 200,
    },
  )
})

void test('it outlives the numbers of its entries', async () => {
  const limits = integer({ min: 1, max: 40 })
  const turns = integer({ min: 41, max: 90 })
  assert(property(steps, limits, turns, run), { numRuns: 200 })
})

void test('it grows to its limit and no further, and keeps what it holds', async (t) => {
  const window = new DedupWindow(windowMs, 10_000)
  const add = (n: number): void =>
    window.add({ lo: n, hi: -n, firstMs: n * 7, id: n + 1, owner: 1, priority: 0 })
  for (let n = 0; n < 10_000; n++) add(n)
  const isKnown = (n: number): boolean => {
    const entry = window.find(n, -n, n * 7 + 999)
    return entry >= 0 && window.idAt(entry) === n + 1
  }
  t.equal(window.size, 10_000)
  t.ok(Array.from({ length: 10_000 }, (_, n) => n).every(isKnown))
  for (let n = 10_000; n < 15_000; n++) add(n)
  t.equal(window.size, 10_000)
  t.notOk(Array.from({ length: 5_000 }, (_, n) => n).some(isKnown))
  t.ok(Array.from({ length: 10_000 }, (_, n) => n + 5_000).every(isKnown))
})

void test('equal messages whose times run backwards each begin an event, and cost no more than others', async (t) => {
  const window = new DedupWindow(60_000, 50_000)
  for (let n = 0; n < 400_000; n++) {
    const timeMs = 1_700_000_400_000 - n
    if (window.find(1, 1, timeMs) >= 0) return t.fail(`message ${n} joined a later event`)
    window.add({ lo: 1, hi: 1, firstMs: timeMs, id: n + 1, owner: 1, priority: 0 })
  }
  return t.equal(window.size, 50_000)
})
