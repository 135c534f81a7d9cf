import { Type, type TSchema } from '@sinclair/typebox'
import { decodeCursor, encodeCursor, type CursorFilters } from './cursor.js'

/** What records in memory are paged by: their moment of creation, then their id. */
interface Keyed {
  readonly id: string
  readonly createdAtMs: number
}

type Position = readonly [createdAtMs: number, id: string]

interface PageRequest {
  readonly order: 'oldest' | 'newest'
  readonly limit: number
  /** where the page before ended */
  readonly cursor: string | undefined
  /** the list and the filters that `records` has passed */
  readonly filters: CursorFilters
  readonly cursorKey: Buffer
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly next_cursor: string | null
  readonly has_more: boolean
}

/** Query parameters of a list. */
export const PageParameters = {
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 50 }),
  cursor: Type.Optional(
    Type.String({ maxLength: 2_048, description: '`next_cursor` of the page before' }),
  ),
}

/** Reply of a list. */
export const PageSchema = <T extends TSchema>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    next_cursor: Type.Union([Type.String(), Type.Null()]),
    has_more: Type.Boolean(),
  })

/**
 * One page of records held in memory. Walking the pages shows each record that lasts exactly once,
 * whatever is created and deleted meanwhile.
 *
 * @throws AppError invalid_cursor
 */
export function keysetPage<T extends Keyed>(records: readonly T[], request: PageRequest): Page<T> {
  const { order, limit, cursor, filters, cursorKey } = request
  const sign = order === 'oldest' ? 1 : -1
  const sorted = records.toSorted((a, b) => sign * compare(positionOf(a), positionOf(b)))
  const rest = cursor === undefined ? sorted : sorted.slice(startAfter(cursor))
  const items = rest.slice(0, limit)
  const last = items.at(-1)
  const hasMore = rest.length > items.length && last !== undefined
  return {
    items,
    next_cursor: hasMore ? encodeCursor(cursorKey, filters, positionOf(last)) : null,
    has_more: hasMore,
  }

  function startAfter(text: string): number {
    const position = decodeCursor(cursorKey, filters, text, isPosition)
    const at = sorted.findIndex((record) => sign * compare(positionOf(record), position) > 0)
    return at === -1 ? sorted.length : at
  }
}

const positionOf = ({ createdAtMs, id }: Keyed): Position => [createdAtMs, id]

function compare([aMs, a]: Position, [bMs, b]: Position): number {
  if (aMs !== bMs) return aMs - bMs
  return a < b ? -1 : Number(a > b)
}

const isPosition = (value: unknown): value is Position =>
  Array.isArray(value) &&
  value.length === 2 &&
  Number.isFinite(value[0]) &&
  typeof value[1] === 'string'
