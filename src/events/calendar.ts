import type { Priority } from '../model/event.js'
import type { Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { DAY_MS } from '../model/time.js'

export interface CalendarDay {
  /** YYYY-MM-DD, UTC */
  readonly day: string
  /** Occurrences. */
  readonly value: number
}

interface CalendarQuery {
  /** An empty list matches any. */
  readonly priorities: readonly Priority[]
  /** An empty list matches any. */
  readonly sources: readonly string[]
  /** 1..730, today being the last. */
  readonly days: number
}

const calendarSql = statement<
  {
    readonly first: string
    readonly last: string
    readonly priorities: readonly Priority[]
    readonly sources: readonly string[]
  },
  CalendarDay
>('calendar')

export function createCalendar(store: Pick<Store, 'query'>, nowMs: () => number = Date.now) {
  return {
    /** @returns days with occurrences, ascending */
    days: async (
      { priorities, sources, days }: CalendarQuery,
      signal?: AbortSignal,
    ): Promise<readonly CalendarDay[]> => {
      const now = nowMs()
      const params = {
        first: toDay(now - (days - 1) * DAY_MS),
        last: toDay(now),
        priorities,
        sources,
      }
      const rows = await store.query(calendarSql, params, signal === undefined ? {} : { signal })
      return rows.map(({ day, value }) => ({ day, value }))
    },
  }
}

const toDay = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10)
