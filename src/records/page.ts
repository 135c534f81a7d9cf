import { decodeCursor, encodeCursor, type CursorFilters } from './cursor.js'

/** The parameters of a list; a cursor is valid for the same `list`, filters and key only. */
export interface PageQuery {
  readonly limit: number
  readonly cursor?: string | undefined
  readonly filters: CursorFilters
  readonly cursorKey: Buffer
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly next_cursor: string | null
  readonly has_more: boolean
}

/** The position of a record in a list: a number that grows with creation, then the id. */
export type Position = readonly [created: number, id: string]

/**
 * Returns one page of records in memory. The cursor holds the position of the page's last record,
 * so that paging returns each remaining record exactly once, even if records are created and
 * deleted meanwhile.
 *
 * @param after returns the records after a position in the order of the list, all of them for null
 * @throws AppError invalid_cursor
 */
export function takePage<T>(
  { limit, cursor, filters, cursorKey }: PageQuery,
  after: (position: Position | null) => Iterable<T>,
  positionOf: (record: T) => Position,
): Page<T> {
  const items: T[] = []
  const from = cursor === undefined ? null : decodeCursor(cursorKey, filters, cursor, isPosition)
  for (const record of after(from)) {
    const last = items.at(-1)
    if (items.length === limit && last !== undefined) {
      const next = encodeCursor(cursorKey, filters, positionOf(last))
      return { items, next_cursor: next, has_more: true }
    }
    items.push(record)
  }
  return { items, next_cursor: null, has_more: false }
}

/** A list that ClickHouse keeps. */
interface StoredList<Row, At> {
  readonly isPosition: (value: unknown) => value is At
  /** Reads the first rows behind a position, those of the whole list for null. */
  readonly read: (after: At | null, limit: number) => Promise<readonly Row[]>
  readonly positionOf: (row: Row) => At
}

/**
 * Reads one page of a list in ClickHouse by keyset. One row more than fits tells whether there are more.
 *
 * @throws AppError invalid_cursor
 */
export async function readPage<Row, At>(
  { limit, cursor, filters, cursorKey }: PageQuery,
  { isPosition: isOfList, read, positionOf }: StoredList<Row, At>,
): Promise<Page<Row>> {
  const after = cursor === undefined ? null : decodeCursor(cursorKey, filters, cursor, isOfList)
  const rows = await read(after, limit + 1)
  const items = rows.slice(0, limit)
  const last = rows.length > limit ? items.at(-1) : undefined
  const next = last === undefined ? null : encodeCursor(cursorKey, filters, positionOf(last))
  return { items, next_cursor: next, has_more: next !== null }
}

interface Dated {
  readonly id: string
  readonly createdAtMs: number
}

/**
 * Returns a page of a small list, which is sorted on each call, oldest first.
 *
 * @throws AppError invalid_cursor
 */
export const pageOldestFirst = <T extends Dated>(
  records: readonly T[],
  query: PageQuery,
): Page<T> => pageInOrder(records, query, comparePositions)

/** The same, in the opposite order. */
export const pageNewestFirst = <T extends Dated>(
  records: readonly T[],
  query: PageQuery,
): Page<T> => pageInOrder(records, query, (a, b) => comparePositions(b, a))

function pageInOrder<T extends Dated>(
  records: readonly T[],
  query: PageQuery,
  compare: (a: Position, b: Position) => number,
): Page<T> {
  const positionOf = ({ createdAtMs, id }: T): Position => [createdAtMs, id]
  const sorted = records.toSorted((a, b) => compare(positionOf(a), positionOf(b)))
  return takePage(
    query,
    (position) =>
      position === null
        ? sorted
        : sorted.filter((record) => compare(positionOf(record), position) > 0),
    positionOf,
  )
}

export function comparePositions([aCreated, a]: Position, [bCreated, b]: Position): number {
  if (aCreated !== bCreated) return aCreated - bCreated
  return a < b ? -1 : Number(a > b)
}

const isPosition = (value: unknown): value is Position =>
  Array.isArray(value) &&
  value.length === 2 &&
  Number.isFinite(value[0]) &&
  typeof value[1] === 'string'
