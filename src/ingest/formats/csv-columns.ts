import { parseSeverity } from '../../model/severity.js'
import { aliasesOf, comparedName, type Field } from './aliases.js'
import { emptyRecord, type JsonRecord } from './json-value.js'
import { parseTimestamp } from './timestamp.js'
import type { Clock } from './zone.js'

/** Rows that are sampled to find the meaning of columns without a known name. */
export const SAMPLE_ROWS = 50

type Cells = readonly string[]

export interface Columns {
  readonly names: readonly string[]
  /** 0 for a file that begins with data. */
  readonly headerRows: 0 | 1
}

/**
 * Names the columns. Without a header that names a message, the contents decide: times, levels, and the longest texts
 * of the other columns are the messages.
 *
 * @param rows the first is the header, if there is one
 */
export function chooseColumns(rows: readonly Cells[], clock: Clock): Columns {
  const [first = []] = rows
  const names = uniqueNames(first)
  if (names.some((name) => isNameOf(name, 'message'))) return { names, headerRows: 1 }
  const isData =
    first.some((cell) => isTime(cell, clock)) || (rows.length === 1 && !isHeader(names))
  const sample = rows.slice(isData ? 0 : 1, SAMPLE_ROWS + 1)
  const guessed = guessNames(names, sample, clock)
  if (!isData) return { names: guessed.withHeader, headerRows: 1 }
  return { names: guessed.withoutHeader, headerRows: 0 }
}

/** Whether a row that stands alone names columns. */
const isHeader = (names: readonly string[]): boolean =>
  names.filter((name) => aliasesOf(comparedName(name)).length > 0).length >= 2

/** @returns null for a row whose number of cells, without blank ones at its end, is not that of the columns */
export function rowToRecord(row: Cells, names: readonly string[]): JsonRecord | null {
  if (row.length < names.length || row.slice(names.length).some((cell) => cell !== '')) return null
  const record = emptyRecord()
  for (const [i, name] of names.entries()) {
    const cell = row[i]
    if (cell !== undefined && cell !== '') record[name] = cell
  }
  return record
}

export const isBlankRow = (row: Cells): boolean => row.every((cell) => cell.trim() === '')

const isNameOf = (name: string, field: Field): boolean =>
  aliasesOf(comparedName(name)).some((alias) => alias.field === field)

/** Replaces an empty name by the number of its column and numbers repeated names. */
function uniqueNames(header: Cells): readonly string[] {
  const seen = new Map<string, number>()
  return header.map((cell, i) => {
    const name = cell.trim() === '' ? `column_${i + 1}` : cell.trim()
    const count = (seen.get(name) ?? 0) + 1
    seen.set(name, count)
    return count === 1 ? name : `${name}_${count}`
  })
}

/** Recognises times of eight characters or more, because a short number may be anything. */
const isTime = (cell: string, clock: Clock): boolean =>
  cell.trim().length >= 8 && parseTimestamp(cell, clock) !== null

function guessNames(names: readonly string[], rows: readonly Cells[], clock: Clock) {
  const cellsOf = (i: number) => rows.map((row) => row[i] ?? '').filter((cell) => cell !== '')
  const allAre = (i: number, is: (cell: string) => boolean) => {
    const cells = cellsOf(i)
    return cells.length > 0 && cells.every(is)
  }
  const indexes = names.map((_, i) => i)
  const time = indexes.find((i) => allAre(i, (cell) => isTime(cell, clock)))
  const level = indexes.find((i) => allAre(i, (cell) => parseSeverity(cell) !== null))
  const free = indexes.filter((i) => i !== time && i !== level)
  const lengthOf = (i: number) => cellsOf(i).reduce((sum, cell) => sum + cell.length, 0)
  const longest = Math.max(...free.map(lengthOf))
  const message = free.find((i) => lengthOf(i) === longest)
  const roles = new Map([
    [time, 'timestamp'],
    [level, 'severity'],
    [message, 'message'],
  ])
  return {
    withHeader: names.map((name, i) => (i === message ? 'message' : name)),
    withoutHeader: indexes.map((i) => roles.get(i) ?? `column_${i + 1}`),
  }
}
