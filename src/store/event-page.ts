import { setImmediate } from 'node:timers/promises'
import {
  PRIORITIES,
  SEVERITIES,
  type EventType,
  type Priority,
  type Severity,
} from '../model/event.js'
import type { RequestOptions, Store } from './client.js'
import { findTexts, toConditions, type Condition, type EventFilter } from './event-search.js'
import { statement, type Statement } from './statement.js'

/** Where a page goes on: below this event in (time, id) order. */
export interface EventPosition {
  readonly tsMs: number
  readonly id: number
}

export interface EventQuery {
  readonly filter: EventFilter
  /** inclusive */
  readonly fromMs: number
  /** exclusive; null = no bound */
  readonly toMs: number | null
  readonly after: EventPosition | null
  readonly limit: number
}

/** What a list shows of an event. */
export interface ListedRow {
  readonly id: number
  readonly ts_ms: number
  readonly n: number
  readonly source: string
  readonly type: EventType
  readonly severity: Severity
  readonly priority: Priority
  readonly template: string
  readonly host: string
  readonly environment: string
  readonly trace_id: string
  readonly skeleton: string
  readonly message: string
  readonly tags: string
  readonly correction_reason: string
}

type PageParams = Readonly<Record<string, unknown>>

const pageSql = statement<PageParams, ListedRow>('event_page')
const spanSql = statement<Record<string, never>, Span>('event_span')
const hoursSql = statement<
  PageParams & { readonly from: number; readonly until: number },
  HourCount
>('event_hours')

interface HourCount {
  /** s since 1970 */
  readonly hour: number
  /** no more events than so many */
  readonly most: number
}

interface Span {
  readonly first_ms: number
  readonly last_ms: number
  readonly hours: number
  readonly events: number
}

const HOUR_MS = 3_600_000
const HOUR_S = 3_600
/** hours that one question names; more are asked for in further ones */
const MAX_HOURS = 1000
const NO_SPAN: Span = { first_ms: 0, last_ms: 0, hours: 0, events: 0 }
/** where the times of the rollups end, in 2106 */
const END_MS = 0xffff_ffff * 1000
/** no event is accepted that is more than a day ahead of its arrival */
export const MAX_AHEAD_MS = 25 * HOUR_MS

/** events that are looked through for what no rollup counts, before the range grows */
const FIRST_EVENTS = 50_000
const GROWTH = 6
/** of a range without a single match; bench/flow/query.ts: each further question takes as long as 100,000 rows */
const BARREN_GROWTH = 36
/** A second thread takes longer to start than to read so many hours of what was counted. */
const HOURS_OF_A_THREAD = 24

/** Newest first; walks time ranges from the newest data backwards until the page is full. */
export async function pageRows(
  answers: Pick<Store, 'query'>,
  query: EventQuery,
  signal: AbortSignal | undefined,
): Promise<ListedRow[]> {
  const options = signal === undefined ? {} : { signal }
  const [texts, [span = NO_SPAN]] = await Promise.all([
    findTexts(answers, query.filter.search, options),
    isCounted(query.filter) ? [] : answers.query(spanSql, {}, options),
  ])
  const conditions = [...toConditions(query.filter, texts), ...toPosition(query.after)]
  const rows: ListedRow[] = []
  for await (const range of ranges(query, { span, answers, options }, () => rows.length)) {
    const narrowed = range.hours === null ? conditions : [...conditions, withinHours(range.hours)]
    const params = {
      from_ms: range.fromMs,
      to_ms: range.toMs,
      arrived_ms: Math.max(0, range.fromMs - MAX_AHEAD_MS),
      limit: query.limit - rows.length,
      ...Object.assign({}, ...narrowed.map((condition) => condition.params)),
    }
    const settings = range.isSmall ? { max_threads: 1 } : {}
    const found = await answers.query(withConditions(narrowed), params, { ...options, settings })
    rows.push(...found)
    if (rows.length >= query.limit) break
  }
  return rows
}

const withConditions = (conditions: readonly Condition[]): Statement<PageParams, ListedRow> => ({
  name: pageSql.name,
  sql: pageSql.sql.replace('/*conditions*/', () =>
    conditions.map((condition) => `AND ${condition.sql}`).join('\n    '),
  ),
})

const toPosition = (after: EventPosition | null): readonly Condition[] =>
  after === null
    ? []
    : [
        {
          sql:
            '(ts < fromUnixTimestamp64Milli({after_ms:Int64}) OR' +
            ' (ts = fromUnixTimestamp64Milli({after_ms:Int64}) AND id < {after_id:UInt64}))',
          params: { after_ms: after.tsMs, after_id: after.id },
        },
      ]

const withinHours = (hours: readonly number[]): Condition => ({
  sql: "toStartOfHour(ts) IN {hours:Array(DateTime('UTC'))}",
  params: { hours },
})

interface TimeRange {
  /** inclusive */
  readonly fromMs: number
  /** exclusive */
  readonly toMs: number
  /** the only hours in it that can hold matches, s since 1970; null = any */
  readonly hours: readonly number[] | null
  readonly isSmall: boolean
}

interface Asking {
  /** of all events; of none for what is counted */
  readonly span: Span
  readonly answers: Pick<Store, 'query'>
  readonly options: RequestOptions
}

/**
 * Time ranges from the newest backwards, without gaps but those that hold no match.
 *
 * @param found how many matches the ranges before have held
 */
async function* ranges(
  query: EventQuery,
  asking: Asking,
  found: () => number,
): AsyncGenerator<TimeRange> {
  const { filter, fromMs: firstMs, after } = query
  if (filter.sources?.length === 0) return
  const bounds = [query.toMs ?? END_MS, END_MS, ...(after === null ? [] : [after.tsMs + 1])]
  const toMs = Math.min(...bounds)
  if (toMs <= firstMs) return
  if (isCounted(filter)) yield* countedRanges(query, asking, { firstMs, toMs })
  else yield* growingRanges(asking.span, { firstMs, toMs }, found)
}

interface Bounds {
  readonly firstMs: number
  readonly toMs: number
}

/** Ranges for what nobody has counted: of so many events, then longer ones. */
function* growingRanges(span: Span, bounds: Bounds, found: () => number): Generator<TimeRange> {
  if (span.hours === 0) return
  const firstMs = Math.max(bounds.firstMs, span.first_ms)
  let lengthMs = HOUR_MS * Math.ceil(FIRST_EVENTS / Math.max(1, span.events / span.hours))
  for (let toMs = Math.min(bounds.toMs, span.last_ms + HOUR_MS); toMs > firstMs;) {
    const fromMs = Math.max(firstMs, toMs - lengthMs)
    yield { fromMs, toMs, hours: null, isSmall: false }
    toMs = fromMs
    lengthMs *= found() > 0 ? GROWTH : BARREN_GROWTH
  }
}

/** The hours that the rollup names; the newest one is not waited for when its answer is not there yet. */
async function* countedRanges(
  query: EventQuery,
  asking: Asking,
  { firstMs, toMs: endMs }: Bounds,
): AsyncGenerator<TimeRange> {
  let toMs = endMs
  const planned = plannedHours(query, asking, { firstMs, toMs })
  let next = planned.next()
  // whoever has his page by then does not wait for it
  next.catch(() => undefined)
  if (!(await isAtHand(next))) {
    // of whole hours, so that whoever asks next asks the same
    const hourMs = Math.floor(Math.min(toMs, Date.now()) / HOUR_MS) * HOUR_MS
    const fromMs = Math.max(firstMs, hourMs - HOUR_MS)
    yield { fromMs, toMs, hours: null, isSmall: true }
    toMs = fromMs
  }
  for (let step = await next; step.done !== true; step = await next) {
    const hours = step.value.filter((hour) => hour * 1000 < toMs)
    const oldest = hours.at(-1)
    if (oldest !== undefined && toMs > firstMs) {
      const fromMs = Math.max(firstMs, oldest * 1000)
      const isSmall = hours.length <= HOURS_OF_A_THREAD
      const endOfNewestMs = ((hours[0] ?? 0) + HOUR_S) * 1000
      const untilMs = Math.min(toMs, endOfNewestMs)
      yield { fromMs, toMs: untilMs, hours: hasGaps(hours) ? hours : null, isSmall }
      toMs = fromMs
    }
    next = planned.next()
  }
}

/** Without waiting for an answer of anybody else. */
const isAtHand = (work: Promise<unknown>): Promise<boolean> =>
  Promise.race([work.then(() => true), setImmediate(false)])

const hasGaps = (hours: readonly number[]): boolean =>
  (hours[0] ?? 0) - (hours.at(-1) ?? 0) !== (hours.length - 1) * HOUR_S

/** Whether the hourly rollup knows which hours hold matches: it counts by source, severity and priority. */
const isCounted = ({ severities, priorities, sources, ...others }: EventFilter): boolean =>
  severities.length + priorities.length + (sources?.length ?? 0) > 0 || !isNarrowed(others)

const isNarrowed = ({
  types,
  environments,
  templateIds,
  search,
}: Pick<EventFilter, 'types' | 'environments' | 'templateIds' | 'search'>): boolean =>
  types.length + environments.length + templateIds.length > 0 || search.trim() !== ''

/** Hours that can hold matches, the newest first, each time for more of them. */
async function* plannedHours(
  { filter, limit }: EventQuery,
  { answers, options }: Asking,
  { firstMs, toMs }: Bounds,
): AsyncGenerator<readonly number[]> {
  const counters = { ...toCounters(filter), sources: filter.sources ?? [] }
  const from = Math.floor(firstMs / HOUR_MS) * HOUR_S
  // repeats are counted too
  let wanted = isNarrowed(filter) ? FIRST_EVENTS : 2 * limit
  const end = Math.min(Math.ceil(toMs / HOUR_MS) * HOUR_S, END_MS / 1000)
  for (let until = end; until > from; wanted *= GROWTH) {
    const params = { ...counters, from, until, limit: MAX_HOURS }
    const found = await answers.query(hoursSql, params, options)
    yield* stepsOf(found, wanted)
    if (found.length < MAX_HOURS) return
    until = found.at(-1)?.hour ?? 0
  }
}

/** Hours with so many events, then those with more. */
function* stepsOf(counts: readonly HourCount[], first: number): Generator<readonly number[]> {
  let [wanted, most] = [first, 0]
  let hours: number[] = []
  for (const one of counts) {
    hours.push(one.hour)
    most += one.most
    if (most < wanted) continue
    yield hours
    hours = []
    most = 0
    wanted *= GROWTH
  }
  if (hours.length > 0) yield hours
}

/** 1 for each severity and priority that is wanted, 0 for the others. */
function toCounters({ severities, priorities }: EventFilter): Readonly<Record<string, 0 | 1>> {
  const isWanted = (wanted: readonly string[], one: string): 0 | 1 =>
    wanted.length === 0 || wanted.includes(one) ? 1 : 0
  return Object.fromEntries([
    ...SEVERITIES.map((one) => [one.toLowerCase(), isWanted(severities, one)]),
    ...PRIORITIES.map((one) => [one.toLowerCase(), isWanted(priorities, one)]),
  ])
}
