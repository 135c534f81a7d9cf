import { parse } from 'fast-csv'
import { AppError } from '../../model/errors.js'
import type { DecodeContext } from '../../model/event.js'
import { chooseColumns, isBlankRow, rowToRecord } from './csv-columns.js'
import type { Problem } from './draft.js'
import type { RecordDecoder } from './record.js'

/** More columns are no table of log records. */
const MAX_COLUMNS = 1000
const DELIMITERS = [',', ';', '\t', '|'] as const

/**
 * Decodes a CSV file as spreadsheets and log tools export it: any of `, ; tab |` between the
 * columns, quoted line breaks, a header or none. A row of another width than the header is
 * rejected, the others go on.
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
  const rows = await parseRows(body, hinted?.[1] ?? findDelimiter(body), context.maxRows)
  const skipped = hinted === null ? 1 : 2
  const first = rows.findIndex((row) => !isBlankRow(row))
  if (first === -1) return
  const columns = chooseColumns(rows.slice(first), context.nowMs)
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

/** The mark that stands most often in the first line, outside quotes. */
function findDelimiter(text: string): string {
  const line = (/^[^\r\n]{0,65536}/.exec(text.trimStart())?.[0] ?? '').replace(/"[^"]*"/g, '')
  const counts = DELIMITERS.map((mark) => line.split(mark).length)
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ','
}

type Cells = readonly string[]

/** Row n of the result is row n of the file, blank rows included. */
function parseRows(text: string, delimiter: string, maxRows: number): Promise<readonly Cells[]> {
  const limit = Number.isFinite(maxRows) ? maxRows + 2 : 0
  const parser = parse({ delimiter, headers: false, maxRows: limit })
  return new Promise((resolve, reject) => {
    const rows: Cells[] = []
    parser.on('data', (row: unknown) => {
      const cells = Array.isArray(row) && row.length <= MAX_COLUMNS ? row.map(String) : null
      if (cells === null) parser.destroy(unreadable())
      else rows.push(cells)
    })
    // The parser's own words quote the file.
    parser.on('error', () => reject(unreadable()))
    parser.on('end', () => resolve(rows))
    parser.end(text)
  })
}
