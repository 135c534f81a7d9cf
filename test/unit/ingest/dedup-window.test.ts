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
import { DedupWindow } from '../../../src/ingest/dedup-window.js'
import { MINUTE_MS } from '../../../src/model/time.js'

interface Known {
  readonly hash: number
  readonly firstMs: number
  readonly id: number
  owner: number
  priority: number
}

const windowMs = 1000

/** A simple model of the window. */
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

interface Message {
  readonly hash: number
  readonly timeMs: number
  readonly owner: number
}

type Step =
  | { readonly kind: 'messages'; readonly messages: readonly Message[] }
  | { readonly kind: 'forget'; readonly owner: number }
  | { readonly kind: 'priority'; readonly pick: number; readonly priority: number }
  | { readonly kind: 'clear' }

interface Row {
  readonly begins: boolean
  readonly id: number
  readonly priority: number
}

const priorityOf = (id: number): number => id % 4

/** Adds messages as one batch; new events get ids from `firstId` on. */
function take(window: DedupWindow, messages: readonly Message[], firstId: number): Row[] {
  const { hashes, tsMs, owners, begins, ids, priorities, idBytes } = window.batch()
  messages.forEach(({ hash, timeMs, owner }, i) => {
    // Hashes that are equal in one half.
    hashes.set([hash & 1, hash >> 1], i * 2)
    tsMs[i] = timeMs
    owners[i] = owner
  })
  const added = window.lookUp(messages.length)
  let id = firstId
  for (let i = 0; i < messages.length; i++) {
    if (begins[i] !== 1) continue
    ids[i] = id
    priorities[i] = priorityOf(id++)
  }
  if (id - firstId !== added) throw new Error(`${added} added`)
  window.settle(messages.length)
  const view = new DataView(idBytes.buffer, idBytes.byteOffset)
  return messages.map((_, i) => ({
    begins: begins[i] === 1,
    id: Number(view.getBigUint64(i * 8, true)),
    priority: priorities[i] ?? -1,
  }))
}

// Times around the limits of windows and steps, late and early, and far away.
const times = oneof(
  integer({ min: 0, max: 4000 }),
  constantFrom(0, 999, 1000, 1001, 1999, 2000, 15_999, 16_000, 16_001, 31_500, 32_100),
  integer({ min: 0, max: 4000 }).map((ms) => ms + 1_700_000_000_000),
)
const message: Arbitrary<Message> = record({
  hash: nat(3),
  timeMs: times,
  owner: integer({ min: 1, max: 3 }),
})
const messages: Arbitrary<Step> = record({
  kind: constantFrom('messages' as const),
  messages: array(message, { minLength: 1, maxLength: 6 }),
})
const rare: Arbitrary<Step> = oneof(
  record({ kind: constantFrom('forget' as const), owner: integer({ min: 1, max: 3 }) }),
  record({ kind: constantFrom('priority' as const), pick: nat(), priority: nat(3) }),
  record({ kind: constantFrom('clear' as const) }),
)
const steps = array(oneof({ weight: 30, arbitrary: messages }, { weight: 1, arbitrary: rare }), {
  maxLength: 150,
  size: 'max',
})

function run(all: readonly Step[], limit: number, lastSerial?: number): void {
  const window = new DedupWindow(windowMs, limit, lastSerial)
  const reference = new Reference(limit)
  let nextId = 1
  const check = (sent: Message | undefined, row: Row): void => {
    if (sent === undefined) throw new Error('a row too many')
    const expected = reference.candidates(sent.hash, sent.timeMs)
    if (row.begins) {
      if (expected.length > 0) throw new Error('a repeat was not found')
      if (row.id !== nextId || row.priority !== priorityOf(nextId)) throw new Error('another event')
      const { hash, timeMs, owner } = sent
      reference.add({ hash, firstMs: timeMs, id: nextId++, owner, priority: row.priority })
      return
    }
    const event = expected.find(({ id }) => id === row.id)
    if (event === undefined) throw new Error('an event it does not belong to')
    if (event.priority !== row.priority) throw new Error('another priority')
  }
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
      const rows = take(window, step.messages, nextId)
      for (const [i, row] of rows.entries()) check(step.messages[i], row)
    }
    if (window.size !== reference.events.length) throw new Error(`${window.size} entries`)
  }
}

void test('a message repeats an event exactly when its time is in [first, first + window)', async () => {
  assert(
    property(steps, (all) => run(all, 100_000)),
    { numRuns: 200 },
  )
})

void test('at its limit the window evicts the oldest event', async () => {
  assert(
    property(steps, integer({ min: 1, max: 40 }), (all, limit) => run(all, limit)),
    {
      numRuns: 200,
    },
  )
})

void test('serial numbers are reduced at their limit', async () => {
  const limits = integer({ min: 1, max: 40 })
  const serials = integer({ min: 41, max: 90 })
  assert(property(steps, limits, serials, run), { numRuns: 200 })
})

void test('a window of no time finds no repeat', async (t) => {
  const window = new DedupWindow(0, 10)
  const same = { hash: 7, timeMs: 1_763_717_299_123, owner: 1 }
  const rows = [
    ...take(window, [same, same, { ...same, timeMs: 0 }], 1),
    ...take(window, [same], 4),
  ]
  t.same(
    rows.map(({ begins }) => begins),
    [true, true, true, true],
  )
})

void test('it grows to its limit, and its entries stay valid', async (t) => {
  const window = new DedupWindow(windowMs, 10_000)
  const at = (n: number): Message => ({ hash: n * 2, timeMs: n * 7, owner: 1 })
  for (let n = 0; n < 10_000; n++) take(window, [at(n)], n + 1)
  const isKnown = (n: number): boolean => {
    const [row] = take(window, [{ ...at(n), timeMs: n * 7 + 999 }], 1_000_000 + n)
    return row?.begins === false && row.id === n + 1
  }
  t.equal(window.size, 10_000)
  t.ok(Array.from({ length: 10_000 }, (_, n) => n).every(isKnown))
  for (let n = 10_000; n < 15_000; n++) take(window, [at(n)], n + 1)
  t.equal(window.size, 10_000)
  t.ok(Array.from({ length: 10_000 }, (_, n) => n + 5_000).every(isKnown))
  t.notOk(Array.from({ length: 5_000 }, (_, n) => n).some(isKnown))
})

void test("a message that repeats an event which is evicted in the same batch has the event's id", async (t) => {
  const window = new DedupWindow(windowMs, 2)
  const at = (hash: number): Message => ({ hash, timeMs: 5, owner: 1 })
  take(window, [at(2), at(4)], 1)
  const rows = take(window, [at(2), at(6), at(8), at(6), at(2), at(10), at(2)], 3)
  t.same(
    rows.map(({ begins, id }) => [begins, id]),
    [
      [false, 1],
      [true, 3],
      [true, 4],
      [false, 3],
      [true, 5],
      [true, 6],
      [false, 5],
    ],
  )
})

void test('equal messages whose times run backwards are new events and take no longer than others', async (t) => {
  const window = new DedupWindow(MINUTE_MS, 50_000)
  for (let n = 0; n < 400_000; n += window.batchRows) {
    const batch = Array.from({ length: window.batchRows }, (_, i) => ({
      hash: 3,
      timeMs: 1_700_000_400_000 - n - i,
      owner: 1,
    }))
    if (!take(window, batch, n + 1).every(({ begins }) => begins))
      return t.fail(`one of the messages from ${n} on joined a later event`)
  }
  return t.equal(window.size, 50_000)
})
