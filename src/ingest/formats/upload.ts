import { AppError } from '../../model/errors.js'
import type { DecodeContext, EventSink } from '../../model/event.js'
import { decodeCsv } from './csv.js'
import { type FileText, isBinary, readAnyText, readFileText } from './file-text.js'
import { decodeJournalExport, isJournalExport } from './journal-export.js'
import { decodeJsonFile, isIndentedJson, isJsonFile } from './json-file.js'
import { RecordDecoder } from './record.js'
import { decodeText } from './text.js'

type FileDecoder = (
  file: FileText,
  context: DecodeContext,
  decoder: RecordDecoder,
) => Promise<void> | void

const FILE_TYPES = {
  csv: (file, context, decoder) => decodeCsv(file.text, context, decoder),
  json: (file, _context, decoder) => decodeJsonFile(file, decoder),
  txt: decodeTextFile,
} as const satisfies Record<string, FileDecoder>

export type FileType = keyof typeof FILE_TYPES

/**
 * Decodes an uploaded file of at most `context.maxRows` rows. An invalid row is rejected with its number; the source of
 * all rows is `context.source`, and a row without a time has the time of the upload.
 *
 * @returns the number of rows received: events and rejections together, at least 1
 * @throws AppError `empty_file` for a file without rows
 * @throws AppError `file_parse_error` for a file of another type or with too many rows; the message contains no part of
 *   the file
 */
export async function decodeUpload(
  fileType: FileType,
  body: Uint8Array,
  context: DecodeContext,
  sink: EventSink,
): Promise<number> {
  const decoder = new RecordDecoder(context, sink)
  await FILE_TYPES[fileType](readFileText(body), context, decoder)
  if (decoder.received === 0) throw new AppError('empty_file', 'the file holds no rows')
  return decoder.received
}

/**
 * Decodes a body of text lines, as an uploaded text file is decoded.
 *
 * @throws AppError `bad_request` for binary data
 * @throws AppError `file_parse_error` for more records than `context.maxRows`
 */
export function decodeTextLines(body: Uint8Array, context: DecodeContext, sink: EventSink): void {
  const file = readAnyText(body)
  if (isBinary(file)) throw new AppError('bad_request', 'the body is not text')
  decodeTextFile(file, context, new RecordDecoder(context, sink))
}

function decodeTextFile(file: FileText, context: DecodeContext, decoder: RecordDecoder): void {
  if (isJournalExport(file.text)) decodeJournalExport(file.bytes, decoder)
  else if (isJsonFile(file) || isIndentedJson(file)) decodeJsonFile(file, decoder)
  else decodeText(file.text, context, decoder)
}
