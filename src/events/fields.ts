/*
 * The attributes of events. A query that names only sources is answered from attribute_stats, which
 * counts by days; any other from the matching events.
 */

import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { DAY_MS } from '../model/time.js'
import type { Bounded, Counting } from './bounded-range.js'
import { GROUP_LIMITS, type Counter } from './counts.js'
import { matchesNothing, type EventFilter } from './filter.js'
import type { EventQuestion, RangeQuestion } from './occurrences.js'
import { END_MS } from './range-rows.js'

export interface AttributeField {
  readonly name: string
  readonly type: 'text' | 'number' | 'boolean' | 'mixed'
  /** Of the occurrences; 0 to 1. */
  readonly share: number
  /** JSON, cut at 100 characters. */
  readonly examples: readonly string[]
}

export interface Fields {
  /** Most frequent first. */
  readonly attributes: readonly AttributeField[]
  /** Occurrences. */
  readonly total: number
  /** Whether there are attributes that are not listed. */
  readonly isCapped: boolean
  readonly answeredFrom: 'catalogue' | 'events'
}

type FieldRow = {
  readonly name: string
  readonly n: number
  readonly kinds: number
  readonly examples: readonly string[]
  readonly known: number
}
type Params = Readonly<Record<string, unknown>>

const catalogueSql = statement<Params, FieldRow>('attribute_fields')
const eventsSql = statement<Params, FieldRow>('event_fields')

/** The most attributes that are listed. */
const MAX_FIELDS = 1000
/** One more row to detect that there are more, and one without a name, for occurrences whose attributes are not counted. */
const ALL = { start: '', limit: MAX_FIELDS + 2 }
const TYPES: Readonly<Record<number, AttributeField['type']>> = {
  1: 'text',
  2: 'boolean',
  4: 'number',
}

interface CatalogueQuery extends Pick<EventQuestion, 'fromMs' | 'toMs'> {
  readonly sources: readonly string[] | null
  /** The prefix of the names. */
  readonly start: string
  readonly limit: number
}

const readCatalogue = (
  store: Pick<Store, 'query'>,
  { sources, fromMs, toMs, start, limit }: CatalogueQuery,
  options: RequestOptions,
): Promise<readonly FieldRow[]> => {
  const toS = Math.min(toMs ?? END_MS, END_MS) / 1000
  const params = { sources: sources ?? [], from_s: fromMs / 1000, to_s: toS, start, limit }
  return store.query(catalogueSql, params, options)
}

export function createFields({ store, counter, bounded }: Counting) {
  const fromCatalogue = async (
    question: RangeQuestion,
    options: RequestOptions,
  ): Promise<Fields> => {
    const days = wholeDays(question)
    const [rows, total] = await Promise.all([
      readCatalogue(store, { ...days, sources: days.filter.sources, ...ALL }, options),
      occurrencesOf(counter, days, options),
    ])
    return toFields(rows, total, 'catalogue')
  }

  const fromEvents = async (question: RangeQuestion, options: RequestOptions): Promise<Fields> => {
    const expressions = ['attribute_names', 'attribute_values'].map((sql) => ({ sql, params: {} }))
    const [{ sql, params }, total] = await Promise.all([
      counter.rowsOf(question, { expressions }, options),
      occurrencesOf(counter, question, options),
    ])
    const asked = { ...eventsSql, sql: eventsSql.sql.replace('/*rows*/', () => sql) }
    const settings = { ...GROUP_LIMITS, ...options.settings }
    const rows = await store.query(asked, { ...params, limit: ALL.limit }, { ...options, settings })
    return toFields(rows, total, 'events')
  }

  return {
    /** The attributes of the events that match. */
    of: async (question: EventQuestion, signal?: AbortSignal): Promise<Bounded<Fields>> => {
      const found = await bounded(question, signal, async (range, options) => {
        if (range.fromMs >= range.toMs || matchesNothing(range.filter)) return NOTHING
        return isOfSources(range.filter)
          ? await fromCatalogue(range, options)
          : await fromEvents(range, options)
      })
      const isOfDays = found.answer.answeredFrom === 'catalogue'
      return isOfDays ? { ...found, completeFromMs: dayOf(found.completeFromMs) } : found
    },

    /** The attributes of recent days whose name has this prefix, most frequent first. */
    starting: async (
      { start, limit }: { readonly start: string; readonly limit: number },
      signal?: AbortSignal,
    ): Promise<readonly AttributeField[]> => {
      const fromMs = dayOf(Date.now()) - RECENT_DAYS * DAY_MS
      const options = { timeoutMs: OFFER_MS, ...(signal === undefined ? {} : { signal }) }
      const rows = await readCatalogue(
        store,
        { sources: null, fromMs, toMs: null, start, limit: limit + 1 },
        options,
      )
      return toFields(rows, 0, 'catalogue').attributes.slice(0, limit)
    },
  }
}

const RECENT_DAYS = 7
/** The timeout of suggestions, because a typing user does not wait longer. */
const OFFER_MS = 1000

const NOTHING: Fields = { attributes: [], total: 0, isCapped: false, answeredFrom: 'catalogue' }

const isOfSources = ({
  severities,
  priorities,
  templateIds,
  terms,
  clauses,
}: EventFilter): boolean =>
  [severities, priorities, templateIds].every((names) => names === null) &&
  terms.length + clauses.length === 0

const dayOf = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS

/** The days that the range touches. */
const wholeDays = (question: RangeQuestion): RangeQuestion => ({
  ...question,
  fromMs: dayOf(question.fromMs),
  toMs: Math.min(Math.ceil(question.toMs / DAY_MS) * DAY_MS, END_MS),
})

async function occurrencesOf(
  counter: Counter,
  question: RangeQuestion,
  options: RequestOptions,
): Promise<number> {
  const names = { redirects: [], applications: [] }
  const by = { field: null, stepS: 0, counted: 'occurrences', top: 0, names } as const
  return (await counter.countBy(question, by, options)).total
}

function toFields(
  rows: readonly FieldRow[],
  total: number,
  answeredFrom: Fields['answeredFrom'],
): Fields {
  const named = rows.filter(({ name, n }) => name !== '' && n > 0)
  const isCut = rows.some(({ name, n }) => name === '' && n > 0)
  return {
    attributes: named.slice(0, MAX_FIELDS).map(({ name, n, kinds, examples }) => ({
      name,
      type: TYPES[kinds] ?? 'mixed',
      share: total === 0 ? 0 : Math.min(1, n / total),
      examples,
    })),
    total,
    isCapped: isCut || (rows[0]?.known ?? 0) > MAX_FIELDS + 1,
    answeredFrom,
  }
}
