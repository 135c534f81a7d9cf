import { readFieldText } from './file-text.js'
import { emptyRecord, type JsonRecord } from './json-value.js'

const NEWLINE = 10
const EQUALS = 61
const LENGTH_BYTES = 8

/** Recognises the output of `journalctl -o export`: a field per line, a blank line after each journal entry. */
export const isJournalExport = (text: string): boolean =>
  /^\s*__(?:CURSOR|REALTIME_TIMESTAMP)=/.test(text)

/**
 * Decodes the export format of the systemd journal. A field that is not plain text consists of its name on a line,
 * eight bytes of length (little endian), the bytes and a line end.
 */
export function decodeJournalExport(
  bytes: Buffer,
  decoder: { decode(line: number, record: JsonRecord, rawOf: () => string): void },
): void {
  let record = emptyRecord()
  let begin = 1
  let line = 0
  const finish = () => {
    if (Object.keys(record).length > 0) decoder.decode(begin, record, () => JSON.stringify(record))
    record = emptyRecord()
    begin = line + 1
  }
  for (let at = 0; at < bytes.length;) {
    const end = lineEnd(bytes, at)
    line += 1
    const equals = bytes.subarray(at, end).indexOf(EQUALS)
    if (end === at) {
      finish()
      at = end + 1
    } else if (equals >= 0) {
      record[bytes.toString('utf8', at, at + equals)] = bytes.toString('utf8', at + equals + 1, end)
      at = end + 1
    } else {
      const field = readSized(bytes, end + 1)
      record[bytes.toString('utf8', at, end)] = field.text
      line += field.lines
      at = field.next
    }
  }
  finish()
}

function lineEnd(bytes: Buffer, from: number): number {
  const newline = bytes.indexOf(NEWLINE, from)
  return newline === -1 ? bytes.length : newline
}

/** Reads a field with a length. A field that is longer than the file ends with the file. */
function readSized(bytes: Buffer, at: number) {
  const from = Math.min(at + LENGTH_BYTES, bytes.length)
  const size = from - at === LENGTH_BYTES ? Number(bytes.readBigUInt64LE(at)) : 0
  const to = Math.min(from + size, bytes.length)
  const text = readFieldText(bytes.subarray(from, to))
  return { text, lines: text.split('\n').length, next: to + 1 }
}
