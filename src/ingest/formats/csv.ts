import { parse } from 'fast-csv'
import { AppError } from '../../model/errors.js'
import type { DecodeContext } from '../../model/event.js'
import { chooseColumns, isBlankRow, rowToRecord } from './csv-columns.js'
import type { Problem } from './draft.js'
import { tooManyRows, type RecordDecoder } from './record.js'

/** A file with more columns is refused. */
const MAX_COLUMNS = 1000
const DELIMITERS = [',', ';', '\t', '|'] as const

/**
 * Decodes a CSV file of a spreadsheet or log tool: one of `, ; tab |` between the columns, quoted line breaks, with or
 * without a header. A row with another number of cells than the header is rejected, and the others are decoded.
 *
 * @throws AppError `file_parse_error` when the quotes do not close, or for too many rows or columns
 */
export async function decodeCsv(
  text: string,
  context: DecodeContext,
  decoder: RecordDecoder,
): Promise<void> {
  const hinted = /^sep=(.)\r?\n/i.exec(text)
  const body = hinted === null ? text : text.slice(hinted[0].length)
  // A header is no row.
  if (hasMoreRows(body, context.maxRows + 1)) throw tooManyRows(context.maxRows)
  const rows = await parseRows(body, hinted?.[1] ?? findDelimiter(body), context.maxRows)
  const skipped = hinted === null ? 1 : 2
  const first = rows.findIndex((row) => !isBlankRow(row))
  if (first === -1) return
  const columns = chooseColumns(rows.slice(first), context)
  for (const [i, row] of rows.entries()) {
    if (i < first + columns.headerRows || isBlankRow(row)) continue
    const raw = () => row.join(',')
    const record = rowToRecord(row, columns.names)
    if (record === null) decoder.put(i + skipped, raggedRow(columns.names.length), raw)
    else decoder.decode(i + skipped, record, raw)
  }
}

const unreadable = (): AppError =>
  new AppError('file_parse_error', 'the file is not readable as CSV')

const raggedRow = (columns: number): Problem => ({
  reason: 'invalid_event',
  message: `the row has not the ${columns} columns of the header`,
  source: '',
})

/** Returns the delimiter that is most frequent in the first line, outside quotes. */
function findDelimiter(text: string): string {
  const line = (/^[^\r\n]{0,65536}/.exec(text.trimStart())?.[0] ?? '').replace(/"[^"]*"/g, '')
  const counts = DELIMITERS.map((delimiter) => line.split(delimiter).length)
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ','
}

const [NEWLINE, RETURN, QUOTE] = [10, 13, 34]

/** Blank rows are no rows of the file, but cost memory. */
const BLANK_ROWS = 10

/** Counts lines outside quotes: the parser looks at its limit only when it has parsed the whole text. */
function hasMoreRows(text: string, most: number): boolean {
  let rows = 0
  let lines = 0
  let isQuoted = false
  let isBlank = true
  for (let i = 0; i < text.length && rows <= most && lines <= most * BLANK_ROWS; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) isQuoted = !isQuoted
    if ((code === NEWLINE || code === RETURN) && !isQuoted) {
      if (!isBlank) rows++
      lines++
      isBlank = true
    } else isBlank = false
  }
  return rows > most || lines > most * BLANK_ROWS
}

type Cells = readonly string[]

/** Parses all rows, blank ones included, so that row n of the result is row n of the file. */
function parseRows(text: string, delimiter: string, maxRows: number): Promise<readonly Cells[]> {
  const limit = Number.isFinite(maxRows) ? (maxRows + 2) * BLANK_ROWS : 0
  const parser = parse({ delimiter, headers: false, maxRows: limit })
  return new Promise((resolve, reject) => {
    const rows: Cells[] = []
    parser.on('data', (row: unknown) => {
      const cells = Array.isArray(row) && row.length <= MAX_COLUMNS ? row.map(String) : null
      if (cells === null) parser.destroy(unreadable())
      else rows.push(cells)
    })
    // The parser's message contains parts of the file.
    parser.on('error', () => reject(unreadable()))
    parser.on('end', () => resolve(rows))
    parser.end(text)
  })
}
