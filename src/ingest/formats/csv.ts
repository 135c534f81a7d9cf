import { Readable } from 'node:stream'
import { parse } from 'fast-csv'
import { AppError } from '../../model/errors.js'
import type { DecodeContext } from '../../model/event.js'
import { chooseColumns, isBlankRow, rowToRecord, SAMPLE_ROWS, type Columns } from './csv-columns.js'
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
  const hinted = /^sep=([^"\r\n])\r?\n/i.exec(text)
  const body = hinted === null ? text : text.slice(hinted[0].length)
  const delimiter = hinted?.[1] ?? findDelimiter(body)
  const pieces = cutAtRows(body, delimiter, context.maxRows)
  const table = new Table(context, decoder, hinted === null ? 1 : 2)
  for await (const row of readRows(pieces, delimiter)) table.add(row)
  table.end()
}

/** The rows of a text, blank ones too. */
async function* readRows(pieces: readonly string[], delimiter: string): AsyncGenerator<Cells> {
  try {
    for await (const row of Readable.from(pieces).pipe(parse({ delimiter, headers: false }))) {
      if (!Array.isArray(row) || row.length > MAX_COLUMNS) throw unreadable()
      yield row.map(String)
    }
  } catch {
    // The parser's message contains parts of the file.
    throw unreadable()
  }
}

type Cells = readonly string[]

/** Decodes rows as they come, once there are enough of them to name the columns. */
class Table {
  readonly #context: DecodeContext
  readonly #decoder: RecordDecoder
  /** Of the next row; blank ones count. */
  #number: number
  #columns: Columns | null = null
  readonly #first: { readonly number: number; readonly row: Cells }[] = []

  constructor(context: DecodeContext, decoder: RecordDecoder, firstNumber: number) {
    this.#context = context
    this.#decoder = decoder
    this.#number = firstNumber
  }

  add(row: Cells): void {
    const number = this.#number++
    if (isBlankRow(row)) return
    if (this.#columns !== null) {
      this.#decode(number, row, this.#columns)
      return
    }
    this.#first.push({ number, row })
    if (this.#first.length > SAMPLE_ROWS) this.end()
  }

  /** Chooses the columns by the sampled rows and decodes these, at the latest at the end of the file. */
  end(): void {
    if (this.#columns !== null || this.#first.length === 0) return
    const rows = this.#first.splice(0)
    const columns = chooseColumns(
      rows.map(({ row }) => row),
      this.#context,
    )
    this.#columns = columns
    for (const { number, row } of rows.slice(columns.headerRows)) this.#decode(number, row, columns)
  }

  #decode(number: number, row: Cells, { names }: Columns): void {
    const raw = () => row.join(',')
    const record = rowToRecord(row, names)
    if (record === null) this.#decoder.put(number, raggedRow(names.length), raw)
    else this.#decoder.decode(number, record, raw)
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
/** The most lines of a file for each row that it may have. Blank lines are no rows, but take time. */
const BLANK_ROWS = 10
/** The characters that are parsed at once. A piece has whole rows, because the parser would parse a partial row again. */
const PIECE = 65_536

/**
 * Splits a text between rows. Rows and cells are counted before any is parsed, which takes far
 * longer.
 *
 * @throws AppError `file_parse_error` for too many rows or columns
 */
function cutAtRows(text: string, delimiter: string, maxRows: number): readonly string[] {
  const pieces: string[] = []
  const delimiterCode = delimiter.charCodeAt(0)
  // A header does not count as a row.
  const mostRows = maxRows + 1
  let place: Place = 'start'
  let [pieceFrom, rowFrom, rows, lines, delimiters] = [0, 0, 0, 0, 0]
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (place === 'quoted' || !isEnd(code, delimiterCode)) {
      place = placeAfter(place, code)
      continue
    }
    place = 'start'
    if (code === delimiterCode) {
      if (++delimiters >= MAX_COLUMNS) throw unreadable()
      continue
    }
    lines++
    if (i > rowFrom) rows++
    if (rows > mostRows || lines > mostRows * BLANK_ROWS) throw tooManyRows(maxRows)
    delimiters = 0
    rowFrom = i + 1
    if (rowFrom - pieceFrom < PIECE) continue
    pieces.push(text.slice(pieceFrom, rowFrom))
    pieceFrom = rowFrom
  }
  if (place === 'quoted') throw unreadable()
  return [...pieces, text.slice(pieceFrom)]
}

/** Whether a character outside quotes ends the cell. */
const isEnd = (code: number, delimiterCode: number): boolean =>
  code === delimiterCode || code === NEWLINE || code === RETURN

/**
 * Which part of a CSV cell the next character is in. Quotes count only around a whole cell, as for the parser. If a quote
 * inside a plain cell counted too, the line breaks after it would not be counted as rows.
 */
type Place = 'start' | 'plain' | 'quoted' | 'closed'

function placeAfter(place: Place, code: number): Place {
  if (place === 'quoted') return code === QUOTE ? 'closed' : 'quoted'
  if (place === 'plain') return 'plain'
  if (code === QUOTE) return 'quoted'
  return place === 'start' && isSpace(code) ? 'start' : 'plain'
}

const isSpace = (code: number): boolean => /\s/.test(String.fromCharCode(code))
