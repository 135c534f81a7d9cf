import { decode, ExtData, ExtensionCodec } from '@msgpack/msgpack'

import { AppError } from '../../../model/errors.js'
import type { DecodeContext, EventSink } from '../../../model/event.js'
import { rawText } from '../../formats/json-text.js'
import { isRecord, type JsonRecord, toWellFormed } from '../../formats/json-value.js'
import { isTime } from '../../formats/record-fields.js'
import { RecordDecoder } from '../../formats/record.js'
import type { Clock } from '../../formats/zone.js'
import { arrayAt, type ArrayHead, scanOn, startScan } from './scan.js'

/** The most values of one record, as for JSON. */
const RECORD_VALUES = 50_000

/** Fluentd's time: seconds and nanoseconds of 32 bits each. */
const codec = new ExtensionCodec()
codec.register({
  type: 0,
  encode: () => null,
  decode: (data) => {
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
    return data.byteLength === 8 ? view.getUint32(0) + view.getUint32(4) / 1e9 : null
  },
})

/** Whether a body begins with an array or a map of MessagePack. JSON and text never do. */
export function isMsgpack([first = 0]: Uint8Array): boolean {
  return (first >= 0x80 && first <= 0x9f) || (first >= 0xdc && first <= 0xdf)
}

/**
 * The most nested lists. Only the end of a list's first item shows whether the list is an entry, so
 * each level reads the body once more.
 */
const LISTS = 4

/**
 * Decodes a stream of MessagePack: maps, arrays of maps, and the entries of Fluentd and Fluent Bit, which are pairs of a time and
 * a map.
 *
 * @throws AppError `bad_request` when it begins with no MessagePack; what follows a broken record is one rejection
 */
export function decodeMsgpack(bytes: Buffer, context: DecodeContext, sink: EventSink): void {
  const decoder = new RecordDecoder(context, sink, { isTolerant: true })
  /** The number of remaining items of each open list. */
  const open: number[] = []
  for (let at = 0; at < bytes.length;) {
    const left = open.pop()
    if (left !== undefined && left > 1) open.push(left - 1)
    const list = open.length < LISTS ? arrayAt(bytes, at) : null
    const isRecords = list !== null && !isEntry(bytes, list)
    if (isRecords && list.items > 0) open.push(list.items)
    const next = isRecords ? list.from : put(bytes, at, decoder, context)
    if (next === null) return
    at = next
  }
  if (open.length > 0) putBroken(decoder)
}

/** @throws AppError `bad_request` when nothing was decoded before */
function putBroken(decoder: RecordDecoder): void {
  if (decoder.received === 0) throw new AppError('bad_request', 'the body is no MessagePack')
  decoder.put(decoder.received + 1, BROKEN, () => '')
}

/** Decodes the value at an offset. @returns the offset after it, null when the rest cannot be read */
function put(bytes: Buffer, at: number, decoder: RecordDecoder, clock: Clock): number | null {
  const line = decoder.received + 1
  const { end, values } = measure(bytes, at)
  if (end === null) {
    putBroken(decoder)
    return null
  }
  if (values > RECORD_VALUES) decoder.put(line, TOO_MANY, () => '')
  else {
    const record = toRecord(read(bytes.subarray(at, end)), clock)
    decoder.decode(line, record, () => rawText(record))
  }
  return end
}

const BROKEN = {
  reason: 'invalid_event',
  message: 'the rest of the body is no MessagePack',
  source: '',
} as const
const TOO_MANY = { ...BROKEN, message: `the record has more than ${RECORD_VALUES} values` } as const

/**
 * Names may be bytes, because Ruby and Python write texts without an encoding so.
 *
 * @throws Error for anything else
 */
function toName(key: unknown): string {
  const name = key instanceof Uint8Array ? Buffer.from(key).toString('utf8') : key
  const isName = typeof name === 'string' || typeof name === 'number' || typeof name === 'bigint'
  if (!isName || name === '__proto__') throw new TypeError('the key of a map is no name')
  return String(name)
}

const OPTIONS = { extensionCodec: codec, useBigInt64: true, mapKeyConverter: toName } as const

/** @returns undefined for a value that cannot be read */
function read(bytes: Uint8Array): unknown {
  try {
    // A text may hold the bytes of half a surrogate pair.
    return toWellFormed(plain(decode(bytes, OPTIONS), 0))
  } catch {
    return undefined
  }
}

/**
 * Moves the time of an entry into its record, unless the record has one. A `timestamp` of the record
 * that is no time becomes a tag.
 */
function toRecord(value: unknown, clock: Clock): unknown {
  if (!Array.isArray(value) || value.length !== 2) return value
  const [head, record] = value as readonly unknown[]
  if (!isRecord(record)) return value
  const timestamp: unknown = Array.isArray(head) ? head[0] : head
  if (typeof timestamp !== 'number') return record
  const { timestamp: own = null, ...others } = record
  if (own === null || own === '') return { timestamp, ...others }
  return isTime(own, clock) ? record : { '@timestamp': timestamp, ...record }
}

/**
 * Converts bytes to text and times to ISO 8601; other extensions have no JSON form. An integer
 * beyond 2^53 keeps its digits as text. The library returns every integer of eight bytes as a
 * bigint.
 */
function plain(value: unknown, depth: number): unknown {
  if (typeof value === 'bigint')
    return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (value instanceof ExtData || depth > MAX_DEPTH) return null
  if (Array.isArray(value)) return value.map((item) => plain(item, depth + 1))
  const record = value as JsonRecord // a map of MessagePack
  for (const [key, item] of Object.entries(record)) record[key] = plain(item, depth + 1)
  return record
}

const MAX_DEPTH = 32

const isMap = (first: number): boolean =>
  (first >= 0x80 && first <= 0x8f) || first === 0xde || first === 0xdf

/** Whether an array is a pair of a time, possibly with metadata, and a map. */
function isEntry(bytes: Buffer, { from, items }: ArrayHead): boolean {
  if (items !== 2 || isMap(bytes[from] ?? 0)) return false
  const { end } = measure(bytes, from)
  return end !== null && isMap(bytes[end] ?? 0)
}

/**
 * Finds the end of a value and counts the values in it.
 *
 * @returns no end for invalid or incomplete bytes
 */
function measure(
  bytes: Buffer,
  from: number,
): { readonly end: number | null; readonly values: number } {
  const scan = startScan(from)
  const isWhole = scanOn(bytes, scan, bytes.length) === true
  return { end: isWhole ? scan.at : null, values: scan.values }
}
