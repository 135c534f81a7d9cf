import { AppError } from '../../model/errors.js'
import { FieldCandidates, NamePlace } from './field-candidates.js'
import type { FileText } from './file-text.js'
import { excessOf, itemEnds, objectEnd } from './json-size.js'
import { isRecord, type JsonRecord, toWellFormed } from './json-value.js'
import { parseCounted, parseJson, rawText } from './json-text.js'
import { decodeJsonLines } from './ndjson.js'
import type { RecordDecoder } from './record.js'

const MAX_DEPTH = 3

/**
 * Decodes a JSON file: an array, NDJSON, one object, or an object that contains the records (`{"logs":[…]}`,
 * Elasticsearch hits, Loki streams, OTLP logs).
 *
 * @throws AppError `file_parse_error` when no part of it is JSON
 */
export function decodeJsonFile({ text, bytes }: FileText, decoder: RecordDecoder): void {
  checkSize(bytes, decoder)
  const whole = parseCounted(text)
  if (Array.isArray(whole)) decodeRecords(whole, decoder)
  else if (isRecord(whole)) decodeRecords(recordsInside(whole), decoder)
  else if (whole === undefined) {
    decodeJsonLines(bytes, decoder)
    if (decoder.readable === 0) throw unreadable()
  } else throw unreadable()
}

function checkSize(bytes: Buffer, decoder: RecordDecoder): void {
  const start = bytes.findIndex((byte) => byte > 32)
  if (bytes[start] === 0x5b) decoder.expect(itemEnds(bytes, start + 1, decoder.left)?.length ?? 0)
  const excess = excessOf(bytes)
  if (excess !== null) throw new AppError('file_parse_error', `the file has more than ${excess}`)
}

/** Whether a text is one JSON value on several lines. */
export function isJsonFile({ text, bytes }: FileText): boolean {
  const mayBe = /^\s*[[{]/.test(text) && /[\]}]\s*$/.test(text.slice(-64))
  return mayBe && (excessOf(bytes) !== null || isList(parseCounted(text)))
}

/** Whether a text is JSON objects, each on several lines, one after another. */
export function isIndentedJson({ text, bytes }: FileText): boolean {
  if (!/^\s{0,1024}\{[ \r]{0,16}\n/.test(text)) return false
  const start = bytes.indexOf('{')
  const end = objectEnd(bytes, start)
  return end !== -1 && isList(parseJson(bytes.toString('utf8', start, end)))
}

const isList = (value: unknown): boolean => typeof value === 'object' && value !== null

function decodeRecords(records: readonly unknown[], decoder: RecordDecoder): void {
  for (const [i, record] of records.entries()) {
    decoder.decode(i + 1, toWellFormed(record), () => rawText(record))
  }
}

const unreadable = (): AppError =>
  new AppError('file_parse_error', 'the file is not readable as JSON')

function recordsInside(whole: JsonRecord): readonly unknown[] {
  if (isLogRecord(whole)) return [whole]
  if (Array.isArray(whole['resourceLogs'])) return otlpRecords(whole['resourceLogs'])
  const lists = listsInside(whole, 0)
  const logs = lists.filter((list) => list.some((item) => isLogRecord(item) || isLokiStream(item)))
  const [list] = logs.length > 0 ? logs : lists
  if (list === undefined) return [whole]
  return list.flatMap((item) => (isLokiStream(item) ? lokiRecords(item) : [item]))
}

function listsInside(record: JsonRecord, depth: number): (readonly unknown[])[] {
  return Object.values(record).flatMap((value) => {
    if (Array.isArray(value)) return [value]
    return isRecord(value) && depth < MAX_DEPTH ? listsInside(value, depth + 1) : []
  })
}

const isLogRecord = (value: unknown): boolean =>
  isRecord(value) &&
  new FieldCandidates(value, new NamePlace())
    .of('message')
    .some((found) => typeof found.value === 'string')

interface LokiStream {
  readonly stream: JsonRecord
  readonly values: readonly unknown[]
}

const isLokiStream = (value: unknown): value is LokiStream =>
  isRecord(value) && isRecord(value['stream']) && Array.isArray(value['values'])

const lokiRecords = ({ stream, values }: LokiStream): readonly unknown[] =>
  values.map((pair) => (Array.isArray(pair) ? { ts: pair[0], line: pair[1], stream } : pair))

function otlpRecords(resources: readonly unknown[]): readonly unknown[] {
  const records: unknown[] = []
  for (const resource of resources.filter(isRecord)) {
    for (const scope of members(resource['scopeLogs'])) {
      for (const record of members(scope['logRecords'])) {
        records.push({ ...record, resource: resource['resource'] })
      }
    }
  }
  return records
}

const members = (value: unknown): readonly JsonRecord[] =>
  Array.isArray(value) ? value.filter(isRecord) : []
