import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { PRIORITIES, SEVERITIES } from '../model/event.js'
import type { RequestOptions, Store } from '../clickhouse/client.js'
import type { Density, EventHints } from './event-hints.js'
import type { EventPosition, EventQuery, ListedRow } from './page.js'
import { hasIndex, hasWordOfValues, type EventFilter, type FoundTexts } from './event-search.js'
import { statement } from '../clickhouse/statement.js'
import { HOUR_MS, HOUR_S } from '../model/time.js'

export interface TimeRange {
  /** inclusive */
  readonly fromMs: number
  /** exclusive */
  readonly toMs: number
  /** the only hours in it that can hold matches, s since 1970; null = any */
  readonly hours: readonly number[] | null
  readonly isSmall: boolean
  /** worth remembering which parts it looked through: few matches in much, up to now */
  readonly isDeep?: boolean
  /** few matches in much: indexes had better be looked up for all of it before anything is read */
  readonly isSparse?: boolean
}

export interface Asking {
  readonly answers: Pick<Store, 'query'>
  readonly hints: EventHints
  readonly options: RequestOptions
  /** the texts of all the time that is asked for that hold words of the search */
  readonly allTexts: () => Promise<FoundTexts>
  /** what the ranges before have held */
  readonly rows: readonly ListedRow[]
}

interface HourCount {
  /** s since 1970 */
  readonly hour: number
  /** no more events than so many */
  readonly most: number
}

const hoursSql = statement<
  Readonly<Record<string, unknown>> & { readonly from: number; readonly until: number },
  HourCount
>('event_hours')

/** hours that one question names; more are asked for in further ones */
const MAX_HOURS = 1000
/** where the times of the rollups end, in 2106 */
const END_MS = 0xffff_ffff * 1000

/** of so many the index of words takes less to look up than a question more; a common word reads each part's first rows */
const EVENTS_AT_ONCE = 3_000_000
/** events that are looked through for what no rollup counts, before the range grows */
const FIRST_EVENTS = 50_000
const GROWTH = 6
/** of a range without a single match; bench/flow/query.ts: each further question takes as long as 100,000 rows */
const BARREN_GROWTH = 36
/** A range is made so much longer than the matches so far ask for. */
const RESERVE = 1.5
/** A page's matches lie seldom so much thinner than those of the page before. */
const PAGE_ROOMS = [1.5, 6]
const PAGE_LEAST_MS = 500
/** A second thread takes longer to start than to read so many rows, of parts of so few hours. */
const ROWS_OF_A_THREAD = 50_000
const HOURS_OF_A_THREAD = 24

/** What is counted is read in a few milliseconds, in which a second thread only starts. */
const ONE_THREAD = { max_threads: 1 }

/** What a question is remembered by: short, however many sources it names. */
export const toQuestion = ({ filter, limit, after }: EventQuery): string =>
  createHash('sha256')
    .update(JSON.stringify([filter, limit, after === null]))
    .digest('base64')

/** Time ranges from the newest backwards, without gaps but those that hold no match. */
export async function* timeRanges(query: EventQuery, asking: Asking): AsyncGenerator<TimeRange> {
  if (query.filter.sources?.length === 0) return
  const toMs = endOf(query)
  if (toMs <= query.fromMs) return
  let restMs = toMs
  let isOver = false
  try {
    for (const likely of likelyRanges(query, asking.hints, toMs)) {
      restMs = likely.fromMs
      yield likely
    }
    yield* sparseRanges(query, asking, restMs)
    isOver = true
  } finally {
    // of a question that was given up half-way nothing is known
    if (isOver || asking.rows.length >= query.limit) notePage(query, asking, restMs)
  }
}

/** Of less than the hours that the page ends in, and likely to fill it. */
function* likelyRanges(query: EventQuery, hints: EventHints, endMs: number): Generator<TimeRange> {
  const denseMs = hints.denseSince()
  const leastMs = Math.max(query.fromMs + 1, newestHours(endMs).fromMs)
  const nowMs = Date.now()
  let toMs = endMs
  for (const fromMs of likelyStarts(query, hints, denseMs)) {
    if (fromMs < leastMs || fromMs >= toMs) return
    const isSmall = denseMs !== null && Math.min(endMs, nowMs) - fromMs <= nowMs - denseMs
    yield { fromMs, toMs, hours: null, isSmall }
    toMs = fromMs
  }
}

const likelyStarts = (query: EventQuery, hints: EventHints, denseMs: number | null): number[] =>
  query.after === null ? newestStarts(query, hints, denseMs) : nextStarts(query, query.after, hints)

/** Where an hour holds very many events: the newest of them. */
function newestStarts(query: EventQuery, hints: EventHints, denseMs: number | null): number[] {
  if (denseMs === null) return []
  const fullMs = isNewest(query) ? hints.fullSince(toQuestion(query)) : null
  if (fullMs !== null) return [fullMs]
  // what no rollup counts may be rare, which one question more would only delay
  return isCounted(query.filter) ? [denseMs] : []
}

/** A page takes about as much time as the one before it. */
function nextStarts(query: EventQuery, after: EventPosition, hints: EventHints): number[] {
  const pageMs = hints.pageMs(toQuestion(firstOf(query)))
  if (pageMs === null) return []
  return PAGE_ROOMS.map((room) => Math.floor(after.tsMs - room * Math.max(pageMs, PAGE_LEAST_MS)))
}

const firstOf = (query: EventQuery): EventQuery => ({ ...query, after: null })

function notePage(query: EventQuery, { hints, rows }: Asking, likelyMs: number): void {
  const [newest, oldest] = [rows[0], rows.at(-1)]
  const isFull = newest !== undefined && oldest !== undefined && rows.length >= query.limit
  const page = isFull ? { newestMs: newest.ts_ms, oldestMs: oldest.ts_ms } : null
  const question = toQuestion(firstOf(query))
  if (page !== null)
    hints.notePageMs(question, (query.after?.tsMs ?? page.newestMs) - page.oldestMs)
  if (!isNewest(query)) return
  hints.notePage(question, page, query.fromMs)
  if (page !== null && page.oldestMs >= likelyMs) hints.note(question, true)
}

const isNewest = ({ after, toMs }: EventQuery): boolean => after === null && toMs === null

/** As if an hour held few events. */
async function* sparseRanges(
  query: EventQuery,
  asking: Asking,
  toMs: number,
): AsyncGenerator<TimeRange> {
  const { filter, fromMs: firstMs, limit } = query
  const { hints, options, rows } = asking
  const isDeep = isDeepSearch(query, toMs) && !wasFull(query, hints)
  // what was looked through before takes less than what the hours tell
  const byHour = isCounted(filter) && !(isDeepSearch(query, toMs) && wasDeep(query, hints))
  const newest = byHour ? newestHours(toMs) : newestEvents(await hints.density(options), toMs)
  if (newest.fromMs <= firstMs) {
    yield { fromMs: firstMs, toMs, hours: null, isSmall: !byHour || isOfAll(query), isDeep }
    return
  }
  const bounds = { firstMs, newest, toMs }
  try {
    if (await isFoundAtOnce(query, asking))
      yield { fromMs: firstMs, toMs, hours: null, isSmall: true, isDeep }
    else yield* byHour ? countedRanges(query, asking, bounds) : growingRanges(query, asking, bounds)
  } finally {
    const oldestMs = rows.at(-1)?.ts_ms ?? 0
    hints.note(toQuestion(query), rows.length >= limit && oldestMs >= newest.fromMs)
  }
}

/** A word that stands in values only is seldom a common one, and an index of few events is looked up in no time. */
async function isFoundAtOnce(query: EventQuery, asking: Asking): Promise<boolean> {
  const { search } = query.filter
  const { hints, options } = asking
  if (!hasIndex({ templateIds: [], search }) || hints.sufficed(toQuestion(query)) === true)
    return false
  const { events } = await hints.density(options)
  return events <= EVENTS_AT_ONCE && hasWordOfValues(search, await asking.allTexts())
}

const isSearch = ({ search }: Pick<EventFilter, 'search'>): boolean => search.trim() !== ''

/** Up to now. A corrected priority changes what matches in a part. */
const isLookedThrough = (query: EventQuery, toMs: number): boolean =>
  query.filter.priorities.length === 0 && isNewest(query) && toMs === endOf(query)

const isDeepSearch = (query: EventQuery, toMs: number): boolean =>
  isSearch(query.filter) && isLookedThrough(query, toMs)

/** A page that is full soon is read sooner than it is looked up where it was. */
const wasFull = (query: EventQuery, hints: EventHints): boolean =>
  (hints.fullSince(toQuestion(query)) ?? 0) > 0

const wasDeep = (query: EventQuery, hints: EventHints): boolean =>
  isOfAll(query) && (neededSince(query, hints) ?? Infinity) < newestHours(END_MS).fromMs

const neededSince = (query: EventQuery, hints: EventHints): number | null =>
  isNewest(query) ? hints.neededSince(toQuestion(query)) : null

function endOf({ toMs, after }: EventQuery): number {
  return Math.min(toMs ?? END_MS, END_MS, after === null ? END_MS : after.tsMs + 1)
}

/** What is looked through first. */
interface Newest {
  readonly fromMs: number
  /** from there to the newest event, or to where the question ends */
  readonly lengthMs: number
}

/** Of whole hours, so that whoever asks next asks the same. */
function newestHours(toMs: number): Newest {
  const hourMs = Math.floor(Math.min(toMs, Date.now()) / HOUR_MS) * HOUR_MS
  return { fromMs: hourMs - HOUR_MS, lengthMs: 2 * HOUR_MS }
}

function newestEvents({ lastMs, eventsPerHour }: Density, toMs: number): Newest {
  if (eventsPerHour === 0) return { fromMs: 0, lengthMs: toMs }
  const lengthMs = HOUR_MS * Math.ceil(FIRST_EVENTS / eventsPerHour)
  return { fromMs: Math.min(toMs, lastMs + HOUR_MS) - lengthMs, lengthMs }
}

interface Bounds {
  /** inclusive */
  readonly firstMs: number
  readonly newest: Newest
  /** exclusive */
  readonly toMs: number
}

/** Ranges for what nobody has counted: of so many events, then longer ones. */
function* growingRanges(
  query: EventQuery,
  { hints, rows }: Asking,
  { firstMs, newest, toMs: endMs }: Bounds,
): Generator<TimeRange> {
  const { filter, limit } = query
  const startMs = Math.max(firstMs, Math.min(newest.fromMs, neededSince(query, hints) ?? Infinity))
  const isFirst = startMs === newest.fromMs
  const isSmall = isFirst && hints.denseSince() === null
  const isDeep = !isFirst && isDeepSearch(query, endMs)
  yield { fromMs: startMs, toMs: endMs, hours: null, isSmall, isDeep, isSparse: isDeep }
  // with an index the oldest range costs little more than a part of it, and without a match there is nothing to go by
  const barrenGrowth = hasIndex(filter) ? Infinity : BARREN_GROWTH
  const lastMs = newest.fromMs + newest.lengthMs
  let toMs = startMs
  let lengthMs = lastMs - startMs
  while (toMs > firstMs) {
    const found = rows.length
    const missingMs = ((lastMs - toMs) * (limit - found) * RESERVE) / found
    lengthMs = found > 0 ? Math.max(lengthMs * GROWTH, missingMs) : lengthMs * barrenGrowth
    const fromMs = Math.max(firstMs, Math.floor(toMs - lengthMs))
    const isSparse = found === 0 && hasIndex(filter)
    yield { fromMs, toMs, hours: null, isSmall: false, isSparse }
    toMs = fromMs
  }
}

/** The hours that the rollup names; where they are not known yet, the newest ones are asked at once. */
async function* countedRanges(
  query: EventQuery,
  asking: Asking,
  bounds: Bounds,
): AsyncGenerator<TimeRange> {
  const sufficed = asking.hints.sufficed(toQuestion(query))
  const planned = plannedHours(query, asking, bounds)
  const next = sufficed === true ? null : planned.next()
  // whoever has his page by then does not wait for it
  next?.catch(() => undefined)
  const { newest, toMs } = bounds
  if (next === null || (sufficed === null && isOfAll(query) && !(await isAtHand(next)))) {
    yield { fromMs: newest.fromMs, toMs, hours: null, isSmall: isOfAll(query) }
    yield* hourRanges(query, asking, { ...bounds, toMs: newest.fromMs }, { planned, next })
  } else yield* hourRanges(query, asking, bounds, { planned, next })
}

interface Planning {
  readonly planned: AsyncGenerator<PlannedHours>
  /** its first step, where that was asked for */
  readonly next: Promise<IteratorResult<PlannedHours>> | null
}

async function* hourRanges(
  query: EventQuery,
  { hints, options, rows }: Asking,
  { firstMs, toMs: endMs }: Bounds,
  { planned, next }: Planning,
): AsyncGenerator<TimeRange> {
  const { eventsPerHour } = await hints.density(options)
  let step = await (next ?? planned.next())
  for (let toMs = endMs; step.done !== true && toMs > firstMs; step = await planned.next()) {
    const hours = step.value.hours.filter((hour) => hour * 1000 < toMs)
    const oldest = hours.at(-1)
    if (oldest === undefined) continue
    const fromMs = Math.max(firstMs, oldest * 1000)
    const isSmall = isOfOneThread(hours.length, eventsPerHour, query.limit / step.value.most)
    const endOfNewestMs = ((hours[0] ?? 0) + HOUR_S) * 1000
    const untilMs = Math.min(toMs, endOfNewestMs)
    const isSparse = rows.length === 0 && toMs < endOf(query) && hasIndex(query.filter)
    const gaps = hasGaps(hours)
    const isDeep = gaps && step.value.most < query.limit && isLookedThrough(query, toMs)
    yield { fromMs, toMs: untilMs, hours: gaps ? hours : null, isSmall, isSparse, isDeep }
    toMs = fromMs
  }
}

/** Of a source among many it is seldom the first rows that match, and its hours are known soon. */
const isOfAll = ({ filter }: EventQuery): boolean => filter.sources === null

/** @param share of the matches that the page takes */
const isOfOneThread = (hours: number, eventsPerHour: number, share: number): boolean =>
  hours <= HOURS_OF_A_THREAD && hours * eventsPerHour * Math.min(1, share) <= ROWS_OF_A_THREAD

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
  types.length + environments.length + templateIds.length > 0 || isSearch({ search })

interface PlannedHours {
  /** the newest first, s since 1970 */
  readonly hours: readonly number[]
  /** They hold no more matches than so many. */
  readonly most: number
}

/** Hours that can hold matches, the newest first, each time for more of them. */
async function* plannedHours(
  { filter, limit }: EventQuery,
  { answers, options }: Asking,
  { firstMs, toMs }: Omit<Bounds, 'newest'>,
): AsyncGenerator<PlannedHours> {
  const counters = { ...toCounters(filter), sources: filter.sources ?? [] }
  const from = Math.floor(firstMs / HOUR_MS) * HOUR_S
  // repeats are counted too
  let wanted = isNarrowed(filter) ? FIRST_EVENTS : 2 * limit
  // with an index all hours cost little more than some of them
  const growth = hasIndex(filter) ? Infinity : GROWTH
  const end = Math.min(Math.ceil(toMs / HOUR_MS) * HOUR_S, END_MS / 1000)
  for (let until = end; until > from; wanted *= growth) {
    const params = { ...counters, from, until, limit: MAX_HOURS }
    const found = await answers.query(hoursSql, params, { ...options, settings: ONE_THREAD })
    yield* stepsOf(found, wanted, growth)
    if (found.length < MAX_HOURS) return
    until = found.at(-1)?.hour ?? 0
  }
}

/** Hours with so many events, then those with more. */
function* stepsOf(
  counts: readonly HourCount[],
  first: number,
  growth: number,
): Generator<PlannedHours> {
  let [wanted, most] = [first, 0]
  let hours: number[] = []
  for (const one of counts) {
    hours.push(one.hour)
    most += one.most
    if (most < wanted) continue
    yield { hours, most }
    hours = []
    most = 0
    wanted *= growth
  }
  if (hours.length > 0) yield { hours, most }
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
