/**
 * For random queries and ranges, histogram, facets, stats and list count what going through all messages in JavaScript
 * counts. The data has repeats, also across the ends of ranges, late events, corrections and a deleted source. With
 * TEST_SHARDS=2 it is on two shards.
 */
import * as fc from 'fast-check'
import { t as suite, test } from 'tap'
import { createClusterStore } from '../../../src/clickhouse/cluster/cluster.js'
import type { Store } from '../../../src/clickhouse/client.js'
import { createEvents } from '../../../src/events/events.js'
import type { EventQuestion } from '../../../src/events/occurrences.js'
import { PRIORITIES, SEVERITIES } from '../../../src/model/event.js'
import { DAY_MS, HOUR_MS } from '../../../src/model/time.js'
import { encodeCorrection } from '../../../src/priority/correction-rows.js'
import { parseQuery } from '../../../src/query/parser.js'
import { printQuery } from '../../../src/query/printer.js'
import { toField } from '../../../src/query/fields.js'
import { createBatchStore } from '../../../src/writer/batch-store.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'
import { clusterOptions, startCluster } from '../../support/cluster.js'
import {
  eventsWithin,
  ranked,
  sumOf,
  textOf,
  type CountedEvent,
  type EventInRange,
} from '../../support/count-model.js'
import { filterOf } from '../../support/event-filter.js'
import { applySchema } from '../../support/landing.js'
import {
  END_MS,
  FROM_MS,
  NAMES,
  anyTellingQuery,
  firstRow,
  makeEvents,
  modelOf,
} from '../../support/query-data.js'

const SEED = Number(process.env['SEED'] ?? 5)
const RUNS = Number(process.env['RUNS'] ?? 80)
const SHARDS = Number(process.env['TEST_SHARDS'] ?? 0)
const EVENTS = 400
const DEDUP_WINDOW_S = 60

async function openStore(): Promise<Store> {
  if (SHARDS === 0) {
    const server = await startTestServer()
    const { store } = await createTestDatabase(server)
    suite.teardown(async () => {
      await store.close()
      await server.stop()
    })
    await applySchema(store)
    return store
  }
  const cluster = await startCluster(SHARDS)
  const store = createClusterStore(clusterOptions(cluster, 'counted'))
  suite.teardown(async () => {
    await store.close()
    await cluster.stop()
  })
  await store.prepare({ numbers: { retention_days: 20_000, rollup_days: 20_031 }, log: quietLog })
  return store
}

const iso = (ms: number): string => new Date(ms).toISOString()

interface Repeated {
  readonly milliseconds: number
  readonly repeats: readonly { readonly afterMs: number; readonly n: number }[]
  readonly arrivalDays: number
}

const anyRepeats: fc.Arbitrary<Repeated> = fc.record({
  milliseconds: fc.constantFrom(0, 1, 500, 999),
  repeats: fc.array(
    fc.record({
      afterMs: fc.oneof(fc.nat(DEDUP_WINDOW_S * 1000 - 1), fc.nat(1500)),
      n: fc.integer({ min: 1, max: 5 }),
    }),
    { maxLength: 4 },
  ),
  arrivalDays: fc.constantFrom(0, 0, 1, 9),
})

/** Stores events with repeats. @returns them as the model sees them */
async function store(into: Store): Promise<readonly CountedEvent[]> {
  const made = makeEvents(SEED, EVENTS)
  const repeated = fc.sample(anyRepeats, { seed: SEED, numRuns: EVENTS })
  const rows: object[] = []
  const events = made.map((one, i): CountedEvent => {
    const { milliseconds, repeats, arrivalDays } = repeated[i] ?? { ...NEVER }
    const id = i + 1
    const tsMs = one.tsMs + milliseconds
    const first = 1 + (i % 3 === 0 ? 1 : 0)
    // Repeats may arrive on another day than their event.
    const arrivedMs = Math.max(END_MS - arrivalDays * DAY_MS, tsMs - DAY_MS)
    const row = { ...firstRow({ ...one, tsMs }, id), n: first, received_at: iso(arrivedMs) }
    rows.push(row)
    for (const { afterMs, n } of repeats)
      rows.push({ ...row, is_new: 0, n, ts: iso(tsMs + afterMs), received_at: iso(END_MS) })
    const occurrences = repeats.map(({ afterMs, n }) => ({
      atMs: Math.max(tsMs, Math.floor((tsMs + afterMs) / 1000) * 1000),
      n,
    }))
    const count = first + sumOf(repeats.map(({ n }) => n))
    return { id, ...one, tsMs, count, occurrences: [{ atMs: tsMs, n: first }, ...occurrences] }
  })
  for (let from = 0; from < rows.length; from += 200)
    await into.insertRows('landing', rows.slice(from, from + 200))
  return events
}

const NEVER: Repeated = { milliseconds: 0, repeats: [], arrivalDays: 0 }

/** Corrects every twentieth event, and deletes a source. */
async function change(
  into: Store,
  events: readonly CountedEvent[],
): Promise<readonly CountedEvent[]> {
  const reader = createEvents(into)
  const changed: CountedEvent[] = []
  for (const event of events) {
    if (event.id % 20 !== 0) {
      changed.push(event)
      continue
    }
    const priority = PRIORITIES[event.id % 4] ?? 'P1'
    const { id, tsMs, source, templateId } = event
    const record = await reader.get(id)
    if (record === null) throw new Error(`bug: ${id} is not stored`)
    const counted = await reader.counted(id)
    const severity = SEVERITIES.find((name) => name === event.severity) ?? 'INFO'
    const { receivedAtMs, type } = record
    const corrected = { id, receivedAtMs, source, type, severity, templateId, counted }
    const rows = encodeCorrection(corrected, priority)
    if (rows !== null) await into.insertNative('landing', rows.bytes, into.newToken())
    await reader.correct({ id, tsMs, priority, reason: 'eu-west' })
    const tags = { ...event.tags, correction_reason: 'eu-west' }
    changed.push({ ...event, priority, tags })
  }
  await createBatchStore(into).deleteSources(['rare'])
  return changed.filter(({ source }) => source !== 'rare')
}

const FIELDS = [
  'severity',
  'priority',
  'source',
  'type',
  'host',
  'environment',
  'template',
  'application',
  'trace',
  'status',
  'user.id',
  'correction_reason',
] as const

/** Ends of ranges: anywhere, at whole seconds, minutes and hours. */
const anyTime = fc
  .tuple(fc.integer({ min: FROM_MS, max: END_MS }), fc.constantFrom(1, 1000, 60_000, HOUR_MS))
  .map(([ms, unit]) => Math.floor(ms / unit) * unit)
/** Short ranges often lie between an event and its repeats. */
const anyShortRange = fc
  .tuple(anyTime, fc.integer({ min: 1, max: 120_000 }))
  .map(([from, length]) => [from, from + length] as const)
const anyRange = fc.oneof(
  anyShortRange,
  fc.constant([FROM_MS - HOUR_MS, null] as const),
  fc.tuple(anyTime, anyTime).map(([a, b]) => [Math.min(a, b), Math.max(a, b) + 1] as const),
)
const SIMPLE_LINES = [
  '',
  'severity:error',
  'severity>=warning source:web,cart',
  'priority:P1,P3',
  '-priority:P2',
  'source:ship',
  'severity>=error priority:P1',
]
const anyLine = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...SIMPLE_LINES) },
  { weight: 2, arbitrary: anyTellingQuery.map(printQuery) },
)
const anyQuestion = fc.record({
  line: anyLine,
  range: anyRange,
  field: fc.option(fc.constantFrom(...FIELDS)),
  top: fc.constantFrom(1, 3, 50),
  buckets: fc.constantFrom(1, 2, 7, 60, 300),
  counted: fc.constantFrom<'occurrences' | 'events'>('occurrences', 'occurrences', 'events'),
})

void test('whatever counts, counts the same', async (t) => {
  t.comment(`SEED=${SEED} RUNS=${RUNS} TEST_SHARDS=${SHARDS}`)
  const database = await openStore()
  const all = await change(database, await store(database))
  const events = createEvents(database, { dedupWindowSeconds: DEDUP_WINDOW_S, retentionDays: 90 })
  const base = modelOf(all)
  const names = { ...NAMES, applications: () => NAMES.applications }
  const answered = { rollup: 0, events: 0 }
  let cut = 0

  const histogram = async (
    { question, field, top, buckets, counted }: Asked,
    within: readonly EventInRange[],
    of: (event: CountedEvent) => string,
  ): Promise<void> => {
    const { answer, completeFromMs } = await events.histogram({
      question,
      field: field === null ? null : toField(field),
      top,
      buckets,
      counted,
      names: NAMES,
    })
    answered[answer.answeredFrom] += 1
    same(completeFromMs, question.fromMs, 'complete from')
    const pieces = within.flatMap(({ event, occurrences }) =>
      counted === 'occurrences'
        ? occurrences.map(({ atMs, n }) => ({ event, atMs, n }))
        : [{ event, atMs: Math.max(event.tsMs, question.fromMs), n: 1 }],
    )
    same(answer.total, sumOf(pieces.map(({ n }) => n)), 'total')
    same(answer.uniqueEvents, within.length, 'events')
    const wanted = ranked(pieces.map(({ event, n }) => [of(event), n] as const)).slice(0, top)
    same(
      answer.values,
      wanted.map(({ value }) => value),
      'values',
    )
    if (answer.buckets.length > buckets) throw new Error('too many buckets')
    for (const { startS, total, counts } of answer.buckets) {
      const inside = pieces.filter(
        ({ atMs }) => Math.floor(atMs / 1000 / answer.stepS) * answer.stepS === startS,
      )
      same(total, sumOf(inside.map(({ n }) => n)), `bucket ${startS}`)
      wanted.forEach(({ value }, i) => {
        const own = inside.filter(({ event }) => of(event) === value).map(({ n }) => n)
        same(counts[i], sumOf(own), `bucket ${startS} of ${value}`)
      })
    }
    same(sumOf(answer.buckets.map(({ total }) => total)), answer.total, 'sum of buckets')
  }

  const check = async (asked: QuestionOf): Promise<boolean> => {
    const { line, range, ...by } = asked
    const [fromMs, end] = range
    const toMs = end ?? Infinity
    const { query } = parseQuery(line)
    if (query === null) throw new Error(`${line} is no query`)
    const model = { ...base, endMs: Math.min(toMs, Date.now()) }
    const within = eventsWithin(all, query, { range: { fromMs, toMs }, model })
    if (within.some(({ event }) => event.tsMs < fromMs)) cut += 1
    const filter = filterOf({ q: line }, names, NAMES.redirects)
    const question = { filter, fromMs, toMs: end }
    const of = (event: CountedEvent): string =>
      by.field === null ? '' : textOf(event, toField(by.field), model)
    await histogram({ question, ...by }, within, of)
    return true
  }
  await fc.assert(fc.asyncProperty(anyQuestion, check), { seed: SEED, numRuns: RUNS })
  t.ok(answered.rollup > RUNS / 20, `${answered.rollup} were answered by rollups`)
  t.ok(answered.events > RUNS / 3, `${answered.events} were answered by events`)
  t.ok(cut > RUNS / 20, `${cut} ranges began between an event and its repeat`)
})

type QuestionOf = typeof anyQuestion extends fc.Arbitrary<infer Q> ? Q : never

interface Asked extends Omit<QuestionOf, 'line' | 'range'> {
  readonly question: EventQuestion
}

function same(got: unknown, wanted: unknown, what: string): void {
  if (JSON.stringify(got) === JSON.stringify(wanted)) return
  throw new Error(`${what}: ${JSON.stringify(got)} is not ${JSON.stringify(wanted)}`)
}
