import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { RequestOptions, Store } from '../clickhouse/client.js'
import type { EventPosition, EventQuery, PageRow } from './page.js'
import { toQuestion, type TimeRange } from './event-ranges.js'
import type { Condition } from './event-search.js'
import { statement } from '../clickhouse/statement.js'

interface Part {
  readonly name: string
  readonly made: string
  readonly events: number
}

const partsSql = statement<{ readonly first_day: string }, Part>('event_parts')

type Parts = readonly Part[]

interface Place extends EventPosition {
  readonly part: string
}

/** What a search has found. */
interface Looked {
  /** the same have the same matches in the same part */
  readonly conditions: string
  readonly parts: Parts
  /** where all matches in them are, from the oldest that was looked for on */
  readonly places: readonly Place[]
  /** Everything from here on was looked for: where a page was full, from its last event on. */
  readonly oldest: EventPosition
}

/** the one asked longest ago goes first */
const MAX_QUESTIONS = 50
/** more take longer to name than they spare, and memory: 150 bytes for each of a question */
const MAX_PARTS = 1000
/** A second thread takes longer to start than to look so many up by an index. */
const EVENTS_OF_A_THREAD = 1_000_000
const ONE_THREAD = { max_threads: 1 }
/** between two tries to list parts: a server under load is spared, a user who may not see them asks in vain */
const RETRY_MS = 10_000

export interface Asked {
  /** up to now */
  readonly range: Pick<TimeRange, 'fromMs'>
  /** None of them arrived before. */
  readonly arrivedMs: number
  /** with what the words of a search were looked up as, and the hours that can hold matches */
  readonly conditions: Promise<readonly Condition[]>
  readonly options: RequestOptions
  /** The page of the events that meet these conditions. */
  ask(conditions: readonly Condition[], isSmall: boolean): Promise<readonly PageRow[]>
}

/**
 * Remembers which parts searches have looked through. Rows of a part never change but for corrected priorities, so a search
 * that found few events is asked again of what came or was merged since only, and what it found before is read by its
 * places. No answer depends on when parts are merged or dropped: events are found in whichever part they are then, a merged
 * part is one that was not looked through, and what was found twice is listed once.
 */
export interface LookedThrough {
  /** The page of a search that is asked of all its time at once, newest first. */
  page(query: EventQuery, asked: Asked): Promise<readonly PageRow[]>
}

export function createLookedThrough(
  answers: Pick<Store, 'query'>,
  nowMs = (): number => performance.now(),
): LookedThrough {
  const known = new LRUCache<string, Looked>({ max: MAX_QUESTIONS })
  let failedAtMs = -Infinity
  /** @returns null when they are not known, as where the user may not see them, or too many */
  const list = async (arrivedMs: number, options: RequestOptions): Promise<Parts | null> => {
    if (nowMs() - failedAtMs < RETRY_MS) return null
    const params = { first_day: toDay(arrivedMs) }
    const listing = answers.query(partsSql, params, { ...options, settings: ONE_THREAD })
    const parts = await listing.catch(() => {
      if (options.signal?.aborted !== true) failedAtMs = nowMs()
      return null
    })
    return parts === null || parts.length > MAX_PARTS ? null : parts
  }
  return {
    page: async (query, { conditions, options, ask, range, arrivedMs }) => {
      const question = toQuestion(query)
      const { limit } = query
      const before = known.get(question) ?? null
      // before the others are asked: what is merged meanwhile is among them
      const again = before === null ? [] : readPlaces(before.places, ask)
      // a question whose places can't be read is asked as a new one the next time
      const old = Promise.resolve(again).catch((error: unknown) => {
        if (options.signal?.aborted !== true) known.delete(question)
        throw error
      })
      // listed before they are asked, so that none counts as looked through that was not
      const [wanted, parts, found] = await Promise.all([conditions, list(arrivedMs, options), old])
      // what is remembered stays right
      if (parts === null) return await ask(wanted, false)
      const { fromMs } = range
      const named = toHash(wanted)
      const keep = (rows: readonly PageRow[]): readonly PageRow[] => {
        known.set(question, toLooked({ conditions: named, parts, rows }, limit, fromMs))
        return rows
      }
      if (before?.conditions === named) {
        const passed = bothIn(before.parts, parts)
        const others = await ask([...wanted, notIn(passed, parts)], isSmall(parts, passed))
        const rows = merged([...found, ...others], limit)
        if (isAllOf(rows, { before, limit, fromMs })) return keep(rows)
      }
      return keep(await ask([...wanted, notIn([], parts)], isSmall(parts, [])))
    },
  }
}

interface Found extends Pick<Looked, 'conditions' | 'parts'> {
  readonly rows: readonly PageRow[]
}

function toLooked({ conditions, parts, rows }: Found, limit: number, fromMs: number): Looked {
  const places = rows.map((row) => ({ ...toPosition(row), part: row.part }))
  const last = places.at(-1)
  const isFull = last !== undefined && rows.length >= limit
  return { conditions, parts, places, oldest: isFull ? last : { tsMs: fromMs, id: 0 } }
}

interface Wanted {
  readonly before: Looked
  readonly limit: number
  readonly fromMs: number
}

/** What is older than was looked for then may be missing: its page was full, or it was of less time. */
function isAllOf(rows: readonly PageRow[], { before, limit, fromMs }: Wanted): boolean {
  const last = rows[limit - 1]
  const end = last === undefined ? { tsMs: fromMs, id: 0 } : toPosition(last)
  return newestFirst(end, before.oldest) <= 0
}

const toPosition = ({ ts_ms: tsMs, id }: PageRow): EventPosition => ({ tsMs, id })

const newestFirst = (a: EventPosition, b: EventPosition): number => b.tsMs - a.tsMs || b.id - a.id

/** Names of the parts that were looked through and are still there. */
function bothIn(before: Parts, parts: Parts): readonly string[] {
  const made = new Map(before.map((part) => [part.name, part.made]))
  return parts.filter((part) => made.get(part.name) === part.made).map(({ name }) => name)
}

/** A kept answer serves only if it was asked after the same parts were listed. */
const notIn = (passed: readonly string[], parts: Parts): Condition => ({
  sql: '_part NOT IN {passed:Array(String)}',
  params: { passed, listed: toHash(parts) },
})

/**
 * Where they were found, or in whichever parts they are since. They are not compared with what was searched for:
 * no id is given twice, and but for the priority no event changes.
 */
async function readPlaces(
  places: readonly Place[],
  ask: Asked['ask'],
): Promise<readonly PageRow[]> {
  if (places.length === 0) return []
  const parts = [...new Set(places.map(({ part }) => part))]
  const inParts = { sql: '_part IN {place_parts:Array(String)}', params: { place_parts: parts } }
  const found = await ask([inParts, at(places)], true)
  return found.length === places.length ? found : await ask([at(places)], true)
}

/** Sets, which the key and the index of ids know; what is computed from a parameter they do not. */
const at = (places: readonly EventPosition[]): Condition => ({
  sql: "ts IN {place_times:Array(DateTime64(3, 'UTC'))} AND id IN {place_ids:Array(UInt64)}",
  params: {
    place_times: places.map(({ tsMs }) => toDateTime(tsMs)),
    place_ids: places.map(({ id }) => id),
  },
})

const toDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

const toDateTime = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').slice(0, -1)

/** Whether few events are in the parts that were not looked through. */
function isSmall(parts: Parts, passed: readonly string[]): boolean {
  const lookedThrough = new Set(passed)
  const others = parts.filter(({ name }) => !lookedThrough.has(name))
  return others.reduce((sum, { events }) => sum + events, 0) <= EVENTS_OF_A_THREAD
}

/** Each event once, the newest first. */
function merged(rows: readonly PageRow[], limit: number): readonly PageRow[] {
  const byId = new Map(rows.map((row) => [row.id, row]))
  return [...byId.values()]
    .toSorted((a, b) => newestFirst(toPosition(a), toPosition(b)))
    .slice(0, limit)
}

/** The same for the same texts, in whatever order they were found. */
const toHash = (what: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(what, inOrder)).digest('base64')

const inOrder = (_key: string, value: unknown): unknown => {
  if (typeof value === 'bigint') return `${value}n`
  return isTexts(value) ? value.toSorted() : value
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')
