/**
 * For random queries and ranges, histogram, facets, stats, list, export, context, the live tail and alert rules count what going
 * through all messages in JavaScript counts. The data has equal times, repeats, also across the ends of ranges, late events, corrections, a deleted source and events that were
 * deleted by queries. With TEST_SHARDS=2 it is on two shards.
 */
import * as fc from 'fast-check'
import { t as suite, test } from 'tap'
import { createClusterStore } from '../../../src/clickhouse/cluster/cluster.js'
import type { Store } from '../../../src/clickhouse/client.js'
import { createCountReader, type CountRequest } from '../../../src/alerting/counts.js'
import { createArrivalReader } from '../../../src/events/arrivals.js'
import { createEvents } from '../../../src/events/events.js'
import { toExportLines } from '../../../src/events/export-columns.js'
import type { EventPage } from '../../../src/events/page.js'
import type { EventQuestion } from '../../../src/events/occurrences.js'
import type { Metric, StatsGroup } from '../../../src/events/stats.js'
import { MAX_AHEAD_MS, type EventPosition } from '../../../src/events/range-rows.js'
import { resolveNames } from '../../../src/events/resolve.js'
import { PRIORITIES, SEVERITIES, type ListedEvent } from '../../../src/model/event.js'
import { DAY_MS, HOUR_MS } from '../../../src/model/time.js'
import { encodeCorrection } from '../../../src/priority/correction-rows.js'
import type { Field, Query } from '../../../src/query/ast.js'
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
import { END_MS, FROM_MS, firstRow, makeEvents } from '../../support/event-data.js'
import { NAMES, anyTellingQuery, modelOf } from '../../support/query-data.js'
import { isMeant, leavesOf, toNumber, type Model } from '../../support/query-model.js'

const SEED = Number(process.env['SEED'] ?? 5)
const RUNS = Number(process.env['RUNS'] ?? 40)
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
  await store.prepare({ numbers: { rollup_days: 20_031 }, log: quietLog })
  return store
}

const iso = (ms: number): string => new Date(ms).toISOString()

/** An event with the time of its arrival. */
interface StoredEvent extends CountedEvent {
  readonly arrivedMs: number
}

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
async function store(into: Store): Promise<readonly StoredEvent[]> {
  // The events of one template are alike, so that its counts by hour tell those of its events.
  const made = makeEvents(SEED, EVENTS).map((one) =>
    one.templateId === '00000000000000cc' ? { ...one, severity: 'ERROR', priority: 'P2' } : one,
  )
  const repeated = fc.sample(anyRepeats, { seed: SEED, numRuns: EVENTS })
  const rows: object[] = []
  const events = made.map((one, i): StoredEvent => {
    const { repeats, arrivalDays } = repeated[i] ?? NEVER
    const id = i + 1
    // Every fourth event has the time of the one before.
    const timed = i % 4 === 3 ? i - 1 : i
    const tsMs = (made[timed] ?? one).tsMs + (repeated[timed] ?? NEVER).milliseconds
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
    const own = [{ atMs: tsMs, n: first }, ...occurrences]
    return { id, ...one, tsMs, count, occurrences: own, arrivedMs }
  })
  for (let from = 0; from < rows.length; from += 200)
    await into.insertRows('landing', rows.slice(from, from + 200))
  return events
}

const NEVER: Repeated = { milliseconds: 0, repeats: [], arrivalDays: 0 }

/** Corrects every twentieth event, and deletes a source. */
async function change(
  into: Store,
  events: readonly StoredEvent[],
): Promise<readonly StoredEvent[]> {
  const reader = createEvents(into)
  const changed: StoredEvent[] = []
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
    const corrected = { id, keptDays: 0, receivedAtMs, source, type, severity, templateId, counted }
    const rows = encodeCorrection(corrected, priority)
    if (rows !== null) await into.insertNative('landing', rows.bytes, into.newToken())
    await reader.correct({ id, tsMs, priority, reason: 'eu-west' })
    const tags = { ...event.tags, correction_reason: 'eu-west' }
    changed.push({ ...event, priority, tags })
  }
  await createBatchStore(into).deleteSources(['rare'])
  return changed.filter(({ source }) => source !== 'rare')
}

/** Corrected events are among them, and events that began before the range. */
const DELETED = [
  { line: 'priority:P1 -severity:info', fromMs: FROM_MS, toMs: END_MS - 2 * HOUR_MS },
  { line: 'timeout OR has:trace', fromMs: END_MS - HOUR_MS / 2, toMs: END_MS },
] as const

/** Deletes events by queries, as `DELETE /api/logs` does. @returns what is left */
async function deleteSome(
  into: Store,
  all: readonly StoredEvent[],
): Promise<readonly StoredEvent[]> {
  const { removal, rangeOf } = createEvents(into)
  const names = { ...NAMES, applications: () => NAMES.applications }
  let left = all
  for (const { line, ...span } of DELETED) {
    const { query } = parseQuery(line)
    if (query === null) throw new Error(`${line} is no query`)
    const model = { ...modelOf(left), endMs: span.toMs }
    const meant = new Set(
      eventsWithin(left, query, { range: span, model }).map(({ event }) => event.id),
    )
    const filter = filterOf({ q: line }, names, NAMES.redirects)
    const ids = await removal.ids(rangeOf({ filter, ...span }, END_MS), EVENTS)
    same(
      ids,
      [...meant].toSorted((a, b) => a - b),
      `deleted by ${line}`,
    )
    if (ids.length < 5) throw new Error(`${line} deletes ${ids.length} events only`)
    for (const rows of await removal.rows(ids)) {
      await into.insertNative('landing', rows.landing, into.newToken())
      const stats = Buffer.from(rows.stats).toString('base64')
      const deletion = {
        kind: 'delete-events',
        ids: rows.ids,
        stats,
        token: into.newToken(),
      } as const
      await createBatchStore(into).deleteEvents(deletion)
    }
    left = left.filter(({ id }) => !meant.has(id))
  }
  return left
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
  top: fc.constantFrom<number>(1, 3, 50),
  buckets: fc.constantFrom<number>(1, 2, 7, 60, 300),
  by: fc.array(fc.constantFrom(...FIELDS), { maxLength: 2 }),
  stepS: fc.constantFrom<number>(0, 0, 600, 7200),
  limit: fc.constantFrom<number>(37, 150, 1000),
  order: fc.constantFrom<'asc' | 'desc'>('asc', 'desc'),
  counted: fc.constantFrom<'occurrences' | 'events'>('occurrences', 'occurrences', 'events'),
  keptMs: fc.option(anyTime),
})

void test('whatever counts, counts the same', async (t) => {
  t.comment(`SEED=${SEED} RUNS=${RUNS} TEST_SHARDS=${SHARDS}`)
  const database = await openStore()
  const all = await deleteSome(database, await change(database, await store(database)))
  let keptSinceMs = 0
  const events = createEvents(database, {
    config: { dedupWindowSeconds: DEDUP_WINDOW_S },
    retention: { keptSinceMs: () => keptSinceMs, cold: { untilMs: () => 0 } },
    fewMatches: 20,
  })
  const base = modelOf(all)
  const names = { ...NAMES, applications: () => NAMES.applications }
  const answered = { rollup: 0, events: 0 }
  let [cut, checked] = [0, 0]

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

  const facets = async (
    { question, field, top }: Asked,
    within: readonly EventInRange[],
    model: Model,
  ): Promise<void> => {
    const fields = ['severity', field ?? 'source', 'host'].map(toField)
    const { answer } = await events.facets({ question, fields, top, names: NAMES })
    same(answer.total, sumOf(within.map(({ count }) => count)), 'total of facets')
    fields.forEach((one, i) => {
      const wanted = ranked(within.map(({ event, count }) => [textOf(event, one, model), count]))
      same(answer.facets[i]?.distinct, wanted.length, `distinct ${one.name}`)
      const got = answer.facets[i]?.values.map(({ value, count }) => ({ value, count }))
      same(got, wanted.slice(0, top), `values of ${one.name}`)
    })
  }

  const stats = async (
    { question, by, top, stepS }: Asked,
    within: readonly EventInRange[],
    model: Model,
  ): Promise<void> => {
    const fields = by.map(toField)
    const asked = { question, by: fields, metrics: METRICS, stepS, top, names: NAMES }
    const { answer } = await events.stats(asked)
    const wanted = statsWithin(within, { by: fields, stepS, model })
    same(answer.groupCount, wanted.length, 'groups')
    same(answer.groups.map(rounded), wanted.slice(0, top).map(rounded), 'stats')
    const counts = await events.stats({ ...asked, by: fields.slice(0, 1), metrics: COUNT })
    const simple = statsWithin(within, { by: fields.slice(0, 1), stepS, model })
    const countsOf = (groups: readonly StatsGroup[]) =>
      groups.slice(0, top).map(({ keys, values, series }) => ({
        keys,
        n: values[0],
        series: series.map((one) => [one.startS, one.values[0]]),
      }))
    same(countsOf(counts.answer.groups), countsOf(simple), 'counts of stats')
  }

  /** Exports all, or what follows the middle of the list. */
  const exportOn = async (
    { question, order }: Asked,
    wanted: readonly EventInRange[],
    isResumed: boolean,
  ): Promise<void> => {
    const at = isResumed ? Math.floor(wanted.length / 2) : 0
    const last = wanted[at - 1]?.event
    const after = last === undefined ? null : { tsMs: last.tsMs, id: last.id }
    const lines = toExportLines('ndjson', ['id', 'occurrence_count'], NAMES.redirects)
    const asker = {
      ask: <T>(work: () => Promise<T>) => work(),
      signal: new AbortController().signal,
    }
    let text = ''
    for await (const { bytes } of events.exported({ ...question, order, after, lines }, asker))
      text += Buffer.from(bytes).toString()
    const rest = wanted
      .slice(at)
      .map(({ event: { id }, count }) => `{"id":${id},"occurrence_count":${count}}\n`)
    same(text, rest.join(''), `export ${order}`)
  }

  /** The events beside one of a list, of those that share some fields with it. */
  const context = async (event: CountedEvent, isAlike: boolean): Promise<void> => {
    const record = await events.get(event.id)
    if (record === null) throw new Error(`bug: ${event.id} is not stored`)
    const [fields, limit] = isAlike ? [['source', 'host', 'trace'] as const, 5] : [[], 20]
    const others = all
      .filter(({ id, source, host, traceId }) => {
        const isSame =
          source === event.source &&
          host === event.host &&
          traceId.toLowerCase() === event.traceId.toLowerCase()
        return id !== event.id && (!isAlike || isSame)
      })
      .toSorted((a, b) => a.tsMs - b.tsMs || a.id - b.id)
    const isBefore = ({ tsMs, id }: CountedEvent): boolean =>
      tsMs < event.tsMs || (tsMs === event.tsMs && id < event.id)
    for (const [side, wanted] of [
      ['before', others.filter(isBefore).toReversed()],
      ['after', others.filter((one) => !isBefore(one))],
    ] as const) {
      const asked = { event: record, same: fields, side, from: null, limit, within: null }
      const { events: got } = await events.context(asked)
      same(
        got.map(({ id, occurrenceCount }) => [id, occurrenceCount]),
        wanted.slice(0, limit).map(({ id, count }) => [id, count]),
        `${side} ${event.id}`,
      )
    }
  }

  const list = async (
    { question, limit, order }: Asked,
    within: readonly EventInRange[],
  ): Promise<void> => {
    const wanted = order === 'desc' ? within : within.toReversed()
    const listed: ListedEvent[] = []
    for (let after: EventPosition | null = null; ;) {
      const { events: page }: EventPage = await events.page({ ...question, after, order, limit })
      listed.push(...page)
      const last = page.at(-1)
      if (last === undefined || page.length < limit) break
      after = { tsMs: last.timestampMs, id: last.id }
    }
    const got = listed.map(({ id, occurrenceCount }) => [id, occurrenceCount])
    same(
      got,
      wanted.map(({ event, count }) => [event.id, count]),
      `list ${order}`,
    )
    // From the middle of the list its cursor goes on in the other order.
    const at = Math.floor(listed.length / 2)
    const middle = listed[at]
    if (middle === undefined) return
    const after = { tsMs: middle.timestampMs, id: middle.id }
    const other = order === 'asc' ? 'desc' : 'asc'
    const { events: back } = await events.page({ ...question, after, order: other, limit: 1000 })
    same(
      back.map(({ id }) => id),
      listed
        .slice(0, at)
        .toReversed()
        .map(({ id }) => id),
      `list back ${other}`,
    )
  }

  const arrivals = createArrivalReader(database)
  const newest = await arrivals.newest()
  const resolve = (query: Query): Query => resolveNames(query, names)
  const { redirects } = NAMES

  /** What the live tail sends of all that arrived. */
  const tail = async (query: Query): Promise<void> => {
    const nowMs = Date.now()
    const after = newest.map(([shard]) => [shard, 0] as const)
    const blocks = { after, upTo: newest }
    const asked = { query: resolve(query), redirects, ...blocks, limit: 3, nowMs }
    const { matched, events: sent } = await arrivals.read(asked)
    const model = { ...base, endMs: nowMs }
    const meant = all
      .filter((event) => isMeant(event, query, model))
      .toSorted((a, b) => b.tsMs - a.tsMs || b.id - a.id)
    same(matched, meant.length, 'matched by the tail')
    same(
      sent.map(({ id, occurrenceCount }) => [id, occurrenceCount]),
      meant.slice(0, 3).map(({ id, count }) => [id, count]),
      'sent by the tail',
    )
  }

  const rules = createCountReader({
    store: database,
    redirects: () => redirects,
    findings: async () => [],
    resolve,
  })
  const countedBy = async (
    request: Pick<CountRequest, 'counter' | 'isByEventTime' | 'maxAgeMs'>,
    range: { readonly fromMs: number; readonly toMs: number },
  ): Promise<number> => {
    const asked = { ...request, groupBy: [], everyMs: HOUR_MS, isLast: false }
    const [counts] = await rules.read([asked], range)
    if (counts === undefined || counts instanceof Error) throw counts ?? new Error('no answer')
    return sumOf(counts.map(({ count }) => count))
  }

  /** What an alert rule counts, by the times of the messages and by their arrival. */
  const rule = async (
    query: Query,
    { fromMs, toMs }: Pick<EventQuestion, 'fromMs' | 'toMs'>,
    within: readonly EventInRange[],
  ): Promise<void> => {
    const range = { fromMs, toMs: toMs ?? END_MS + DAY_MS }
    const counter = { kind: 'events', query, of: 'occurrences' } as const
    const ofTimes = { counter, isByEventTime: true, maxAgeMs: DAY_MS }
    // A rule knows the times of messages to the second.
    if (range.fromMs % 1000 === 0 && range.toMs % 1000 === 0)
      same(
        await countedBy(ofTimes, range),
        sumOf(within.map(({ count }) => count)),
        'counted by a rule',
      )
    const arrived = { fromMs: END_MS - 20 * DAY_MS, toMs: END_MS + DAY_MS }
    const meant = all.filter(
      (event) => event.tsMs >= event.arrivedMs - HOUR_MS && isMeant(event, query, base),
    )
    const ofEvents = { counter: { ...counter, of: 'events' } } as const
    same(await countedBy(ofEvents, arrived), meant.length, 'arrivals counted by a rule')
  }

  const check = async (asked: QuestionOf): Promise<boolean> => {
    const { line, range, keptMs, ...by } = asked
    keptSinceMs = keptMs === null ? 0 : keptMs - MAX_AHEAD_MS
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
    await list({ question, ...by }, within)
    checked += 1
    if (checked % 4 === 1) await tail(query)
    if (checked % 4 === 2 && !usesStatement(query)) await rule(query, question, within)
    if (checked % 4 === 0) {
      const ordered = by.order === 'desc' ? within : within.toReversed()
      await exportOn({ question, ...by }, ordered, checked % 8 === 0)
      const beside = within[Math.floor(within.length / 3)]?.event
      if (beside !== undefined) await context(beside, checked % 8 === 0)
    }
    await histogram({ question, ...by }, within, of)
    await facets({ question, ...by }, within, model)
    await stats({ question, ...by }, within, model)
    return true
  }
  const examples = examplesOf(all).map((one): [QuestionOf] => [one])
  await fc.assert(fc.asyncProperty(anyQuestion, check), { seed: SEED, numRuns: RUNS, examples })
  t.ok(answered.rollup > 5, `${answered.rollup} were answered by rollups`)
  t.ok(answered.events > RUNS / 3, `${answered.events} were answered by events`)
  t.ok(cut > 0, `${cut} ranges began between an event and its repeat`)
})

/** Questions for rollups, of whole and of broken hours, also of times when events may be gone, and one whose range begins between an event and its repeat. */
function examplesOf(events: readonly CountedEvent[]): readonly QuestionOf[] {
  const base = { top: 3, buckets: 60, stepS: 600, limit: 150, order: 'asc' } as const
  const more = { ...base, by: [], counted: 'occurrences' as const, keptMs: null }
  // Of the hours at the ends, the smaller parts are outside of the first range and inside of the second.
  const broken = [FROM_MS + 123_456, END_MS - 654_321] as const
  const inner = [FROM_MS + 2_345_678, END_MS - 2_654_321] as const
  const whole = [FROM_MS, END_MS] as const
  const repeated = events.find(
    ({ tsMs, occurrences }) => (occurrences.at(-1)?.atMs ?? 0) > tsMs + 2000,
  )
  const startMs = (repeated?.tsMs ?? 0) + 1000
  const keptMs = FROM_MS + 1.5 * HOUR_MS
  // Within a second, and an event is next.
  const cut = events
    .filter(({ tsMs }) => tsMs % 1000 > 0 && tsMs > keptMs + 2 * HOUR_MS)
    .slice(0, 3)
    .map(({ tsMs }) => [FROM_MS, tsMs] as const)
  return [
    ...(['severity', 'priority', 'source', 'host', 'template'] as const).flatMap((field) =>
      [null, keptMs].map((since) => ({
        ...more,
        line: '',
        range: broken,
        field,
        buckets: 2,
        keptMs: since,
      })),
    ),
    ...cut.map((range) => ({ ...more, line: '', range, field: 'severity' as const, keptMs })),
    ...[broken, inner].map((range) => ({
      ...more,
      line: 'severity>=warning',
      range,
      field: 'host' as const,
      buckets: 1,
    })),
    { ...more, line: `template:${events[0]?.templateId}`, range: whole, field: 'severity' },
    { ...more, line: `id:${repeated?.id}`, range: [startMs, startMs + HOUR_MS], field: null },
  ]
}

/** Whether a query has clauses that a rule does not take, or that mean the arrival of each message there. */
const usesStatement = (query: Query): boolean =>
  'nodes' in query
    ? query.nodes.some(usesStatement)
    : 'node' in query
      ? usesStatement(query.node)
      : 'field' in query && ['count', 'new'].includes(query.field.name)

const STATUS = 'status'
const COUNT: readonly Metric[] = [{ kind: 'count' }]
const METRICS: readonly Metric[] = [
  { kind: 'count' },
  ...(['sum', 'avg', 'min', 'max', 'p50', 'p90', 'p99'] as const).map((of): Metric => ({
    kind: 'number',
    of,
    attribute: STATUS,
  })),
  { kind: 'distinct', field: toField('host') },
]

/** What METRICS are, from lists of all values. */
function metricsOf(within: readonly EventInRange[]): readonly (number | null)[] {
  const numbers = within
    .flatMap(({ event, count }) => {
      const text = leavesOf(event).find(([path]) => path === STATUS)?.[1] ?? ''
      const number = toNumber(text)
      return number === null ? [] : Array.from({ length: count }, () => number)
    })
    .toSorted((a, b) => a - b)
  const rank = (level: number): number | null =>
    numbers[Math.max(0, Math.ceil(numbers.length * level) - 1)] ?? null
  const hosts = new Set(within.map(({ event }) => event.host).filter((host) => host !== ''))
  const sum = numbers.length === 0 ? null : sumOf(numbers)
  return [
    sumOf(within.map(({ count }) => count)),
    sum,
    sum === null ? null : sum / numbers.length,
    numbers[0] ?? null,
    numbers.at(-1) ?? null,
    rank(0.5),
    rank(0.9),
    rank(0.99),
    hosts.size,
  ]
}

interface Grouping {
  readonly by: readonly Field[]
  readonly stepS: number
  readonly model: Model
}

function statsWithin(
  within: readonly EventInRange[],
  { by, stepS, model }: Grouping,
): readonly StatsGroup[] {
  const groups = new Map<string, EventInRange[]>(by.length === 0 ? [['[]', []]] : [])
  for (const one of within) {
    const keys = JSON.stringify(by.map((field) => textOf(one.event, field, model)))
    groups.set(keys, [...(groups.get(keys) ?? []), one])
  }
  return Array.from(groups, ([keys, members]) => ({
    keys: JSON.parse(keys),
    values: metricsOf(members),
    series: stepS === 0 ? [] : seriesOf(members, stepS),
  })).toSorted(
    (a, b) =>
      (b.values[0] ?? 0) - (a.values[0] ?? 0) ||
      Buffer.compare(Buffer.from(a.keys.join('\0')), Buffer.from(b.keys.join('\0'))),
  )
}

function seriesOf(members: readonly EventInRange[], stepS: number): StatsGroup['series'] {
  const stepOf = (atMs: number): number => Math.floor(atMs / 1000 / stepS) * stepS
  const starts = members.flatMap(({ occurrences }) => occurrences.map(({ atMs }) => stepOf(atMs)))
  return [...new Set(starts)]
    .toSorted((a, b) => a - b)
    .map((startS) => ({
      startS,
      values: metricsOf(
        members
          .map((one) => {
            const own = one.occurrences.filter(({ atMs }) => stepOf(atMs) === startS)
            return { ...one, occurrences: own, count: sumOf(own.map(({ n }) => n)) }
          })
          .filter(({ count }) => count > 0),
      ),
    }))
}

/** Sums of fractions depend on their order. */
const rounded = (group: StatsGroup): unknown =>
  JSON.parse(JSON.stringify(group), (_, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(12)) : value,
  )

type QuestionOf = typeof anyQuestion extends fc.Arbitrary<infer Q> ? Q : never

interface Asked extends Omit<QuestionOf, 'line' | 'range' | 'keptMs'> {
  readonly question: EventQuestion
}

function same(got: unknown, wanted: unknown, what: string): void {
  if (JSON.stringify(got) === JSON.stringify(wanted)) return
  throw new Error(`${what}: ${JSON.stringify(got)} is not ${JSON.stringify(wanted)}`)
}
