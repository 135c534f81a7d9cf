import { HOUR_S, SECOND_MS } from '../model/time.js'
import type { EventFilter } from './filter.js'
import { END_MS } from './range-rows.js'

/** A time range that begins and ends with an hour. Both are in seconds since 1970, and the end is exclusive. */
export interface WholeHours {
  readonly fromS: number
  readonly untilS: number
}

const END_S = END_MS / SECOND_MS
const HOUR_MS = HOUR_S * SECOND_MS

/** No hours. */
export const NO_HOURS: WholeHours = { fromS: END_S, untilS: END_S }

interface Range {
  readonly filter: EventFilter
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
}

/** The whole hours of a range after `sinceMs`, of which `template_stats` has the number of events. */
export function wholeHours({ filter, fromMs, toMs }: Range, sinceMs: number): WholeHours {
  const fromS = Math.ceil(Math.max(fromMs, sinceMs) / HOUR_MS) * HOUR_S
  const untilS = Math.min(Math.floor(toMs / HOUR_MS) * HOUR_S, END_S)
  const isCounted = filter.terms.length + filter.clauses.length === 0
  return isCounted && fromS < untilS ? { fromS, untilS } : NO_HOURS
}
