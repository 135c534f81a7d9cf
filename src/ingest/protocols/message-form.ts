import { isUtf8 } from 'node:buffer'

import { PbfReader } from 'pbf'

import { checkRequest } from '../formats/json-size.js'
import { parseCounted } from '../formats/json-text.js'
import { emptyRecord, isRecord, type JsonRecord, toWellFormed } from '../formats/json-value.js'

/**
 * The type of a field of a protobuf message, and the value that it becomes. `time`: nanoseconds, as ms with a fraction. `id`: bytes,
 * as hex digits. `fixed`, `sfixed`: unsigned and signed integers of 64 bits. `any`, `attributes`: AnyValue and KeyValue lists of
 * OpenTelemetry, as plain JSON values. Lists of numbers may be packed or not.
 */
type Kind =
  | 'text'
  | 'id'
  | 'time'
  | 'int'
  | 'sint'
  | 'fixed'
  | 'sfixed'
  | 'double'
  | 'any'
  | 'attributes'
  | 'ints'
  | 'fixeds'
  | 'doubles'

/** The fields of a message by number: the name in its JSON form, and what it contains; a list in brackets. */
export interface MessageForm {
  readonly [field: number]: readonly [
    name: string,
    kind: Kind | MessageForm | readonly [MessageForm],
  ]
}

/** A message deeper than this is not read: values of OpenTelemetry may contain each other. */
const MAX_DEPTH = 16

/** A list of messages, as opposed to one. */
const isList = (kind: unknown): kind is readonly [MessageForm] => Array.isArray(kind)

/**
 * The most nested messages and attributes of one message that is read as a whole: two bytes of
 * input may be one of them, which takes a hundred bytes of memory.
 */
const MAX_VALUES = 100_000

/** Reads protobuf messages. It throws an Error for invalid bytes. */
export class MessageReader extends PbfReader {
  #left = MAX_VALUES
  readonly #bytes: Buffer

  constructor(bytes: Uint8Array) {
    super(bytes)
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get bytes(): Buffer {
    return this.#bytes
  }

  /**
   * Lets `take` read fields from the reader's position, and continues where it stopped.
   *
   * @param take returns the offset of the first field that it did not read
   */
  skipTo(take: (from: number) => number): void {
    // A message that ends with a field of number 0 makes the next field one that is passed over.
    // oxlint-disable-next-line no-underscore-dangle -- the library's name
    if (this.pos !== this._valueStart) this.pos = take(this.pos)
  }

  /** Reads the message up to `end`, or that of the field at the reader. */
  message(form: MessageForm, end = this.fieldEnd()): JsonRecord {
    this.#left = MAX_VALUES
    return readMessage(this, form, end)
  }

  /** Calls `visit` for each field up to `end`; it need not read the value. */
  each(end: number, visit: (no: number) => void): void {
    for (let no = this.nextField(end); no !== 0; no = this.nextField(end)) visit(no)
    if (this.pos !== end) throw cutOff()
  }

  text(): string {
    return readText(this)
  }

  /**
   * The end of a length-delimited field, whose bytes follow.
   *
   * @throws Error when it is truncated or of another type
   */
  fieldEnd(): number {
    const end = this.type === LENGTH_DELIMITED ? this.readVarint() + this.pos : Infinity
    if (end > this.length) throw cutOff()
    return end
  }

  count(): void {
    if (--this.#left < 0) throw new Error(`the message has more than ${MAX_VALUES} values`)
  }
}

function readMessage(reader: MessageReader, form: MessageForm, end: number): JsonRecord {
  reader.count()
  const message: JsonRecord = {}
  for (let no = reader.nextField(end); no !== 0; no = reader.nextField(end)) {
    const field = form[no]
    if (field !== undefined) readField(reader, field, message)
    if (reader.pos > end) throw cutOff()
  }
  if (reader.pos !== end) throw cutOff()
  return message
}

const cutOff = (): Error => new Error('the message is cut off')

function readField(
  reader: MessageReader,
  [name, kind]: MessageForm[number] & object,
  message: JsonRecord,
): void {
  if (typeof kind === 'string') {
    if (kind === 'attributes') addAttribute(reader, listOf(message, name), 0)
    else message[name] = READINGS[kind](reader, message[name])
  } else if (isList(kind)) {
    const list = (message[name] ??= []) as JsonRecord[]
    list.push(readMessage(reader, kind[0], reader.fieldEnd()))
  } else message[name] = readMessage(reader, kind, reader.fieldEnd())
}

/** Attributes become a plain object; the first value of a name wins. */
const listOf = (message: JsonRecord, name: string): JsonRecord =>
  (message[name] ??= Object.create(null)) as JsonRecord

const LENGTH_DELIMITED = 2

type Reading = (reader: MessageReader, before: unknown) => unknown

const READINGS: Readonly<Record<Exclude<Kind, 'attributes'>, Reading>> = {
  text: readText,
  id: (reader) => readBytes(reader).toString('hex'),
  time: readTime,
  int: readInteger,
  sint: (reader) => reader.readSVarint(),
  fixed: (reader) => reader.readFixed64(),
  sfixed: (reader) => reader.readSFixed64(),
  double: (reader) => reader.readDouble(),
  any: (reader) => readAny(reader, 0),
  ints: (reader, before) => readNumbers(reader, 'ints', before),
  fixeds: (reader, before) => readNumbers(reader, 'fixeds', before),
  doubles: (reader, before) => readNumbers(reader, 'doubles', before),
}

function readNumbers(
  reader: MessageReader,
  kind: 'ints' | 'fixeds' | 'doubles',
  before: unknown,
): number[] {
  const numbers = (before ?? []) as number[] // of the same field
  if (reader.type === LENGTH_DELIMITED) {
    const at = reader.pos
    reader.fieldEnd()
    reader.pos = at
  }
  if (kind === 'ints') return reader.readPackedVarint(numbers)
  return kind === 'fixeds' ? reader.readPackedFixed64(numbers) : reader.readPackedDouble(numbers)
}

function readText(reader: MessageReader): string {
  const end = reader.fieldEnd()
  const text = reader.bytes.toString('utf8', reader.pos, end)
  reader.pos = end
  return text
}

function readBytes(reader: MessageReader): Buffer {
  const end = reader.fieldEnd()
  const bytes = reader.bytes.subarray(reader.pos, end)
  reader.pos = end
  return bytes
}

/** 2^32 ns are 4294 ms and 967296 ns; a double of all nanoseconds would be inexact. */
function readTime(reader: MessageReader): number {
  const low = reader.readFixed32()
  const high = reader.readFixed32()
  const restNs = high * 967_296 + low
  const ms = Math.floor(restNs / 1e6)
  return high * 4294 + ms + (restNs - ms * 1e6) / 1e6
}

/** Reads an integer of 64 bits; one beyond 2^53 keeps its digits as text. */
function readInteger(reader: MessageReader): number | string {
  const at = reader.pos
  const value = reader.readVarint(true)
  if (Number.isSafeInteger(value)) return value
  let whole = 0n
  for (let i = at; i < reader.pos; i++)
    whole |= BigInt((reader.buf[i] ?? 0) & 0x7f) << BigInt(7 * (i - at))
  return BigInt.asIntN(64, whole).toString()
}

function addAttribute(reader: MessageReader, attributes: JsonRecord, depth: number): void {
  const end = reader.fieldEnd()
  reader.count()
  let key = ''
  let value: unknown = null
  for (let no = reader.nextField(end); no !== 0; no = reader.nextField(end)) {
    if (no === 1) key = readText(reader)
    else if (no === 2) value = readAny(reader, depth)
  }
  if (reader.pos !== end) throw cutOff()
  if (!(key in attributes)) attributes[key] = value
}

/** Reads an AnyValue of OpenTelemetry as a plain value. */
function readAny(reader: MessageReader, depth: number): unknown {
  const end = reader.fieldEnd()
  reader.count()
  let value: unknown = null
  for (let no = reader.nextField(end); no !== 0; no = reader.nextField(end))
    value = readAnyField(reader, no, depth, value)
  if (reader.pos !== end) throw cutOff()
  return value
}

function readAnyField(reader: MessageReader, no: number, depth: number, before: unknown): unknown {
  switch (no) {
    case 1:
      return readText(reader)
    case 2:
      return reader.readBoolean()
    case 3:
      return readInteger(reader)
    case 4:
      return finite(reader.readDouble())
    case 5:
    case 6:
      return readMany(reader, no, depth)
    case 7:
      return textOrBase64(readBytes(reader))
    default:
      return before
  }
}

/** Control characters but those of lines and of colours. */
const BINARY = new RegExp(String.raw`[^\P{Cc}\t\n\r\u001b]`, 'u')

/** The OpenTelemetry Collector sends lines of files without an encoding as bytes. */
function textOrBase64(bytes: Buffer): string {
  const text = isUtf8(bytes) ? bytes.toString('utf8') : null
  return text === null || BINARY.test(text) ? bytes.toString('base64') : text
}

/** Reads a list (5) or an object (6). */
function readMany(reader: MessageReader, no: 5 | 6, depth: number): unknown {
  const end = reader.fieldEnd()
  if (depth >= MAX_DEPTH) {
    reader.pos = end
    return null
  }
  const list: unknown[] = []
  const members = emptyRecord()
  for (let inner = reader.nextField(end); inner !== 0; inner = reader.nextField(end)) {
    if (inner !== 1) continue
    if (no === 5) list.push(readAny(reader, depth + 1))
    else addAttribute(reader, members, depth + 1)
  }
  if (reader.pos !== end) throw cutOff()
  return no === 5 ? list : members
}

/** JSON has no number for these. */
export const finite = (value: number): number | string =>
  Number.isFinite(value) ? value : String(value)

/**
 * Reads a body as a JSON object, whatever its Content-Type. Only parsing can tell, because protobuf
 * and Snappy may also begin with blanks and a brace.
 *
 * @returns null when it is not a JSON object
 * @throws AppError `body_too_large` for too many values
 */
export function readJsonForm(bytes: Buffer): JsonRecord | null {
  const isText = (byte: number): boolean => byte > 0x20
  if (bytes[bytes.findIndex(isText)] !== 0x7b || bytes[bytes.findLastIndex(isText)] !== 0x7d)
    return null
  checkRequest(bytes)
  const value = toWellFormed(parseCounted(bytes.toString('utf8')))
  return isRecord(value) ? value : null
}

/** Reads a message from the JSON form of protobuf. Members of other types than their field's are left out. */
export function fromJson(form: MessageForm, value: unknown): JsonRecord {
  const message: JsonRecord = {}
  if (!isRecord(value)) return message
  for (const [name, kind] of Object.values(form) as MessageForm[number][]) {
    const item = memberOf(value, name)
    if (item === undefined || item === null) continue
    if (typeof kind === 'string') message[name] = JSON_READINGS[kind](item)
    else if (!isList(kind)) message[name] = fromJson(kind, item)
    else if (Array.isArray(item)) message[name] = item.map((each) => fromJson(kind[0], each))
  }
  return message
}

/** A member by its name in lower camel case, or by the field's name, as some writers have it. */
export const memberOf = (value: JsonRecord, name: string): unknown =>
  value[name] ?? value[snakeCase(name)]

const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined

const numbersIn = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(toNumber) : undefined

const JSON_READINGS: Readonly<Record<Kind, (value: unknown) => unknown>> = {
  text: textIn,
  id: (value) => (typeof value === 'string' ? toHex(value) : undefined),
  time: toMs,
  int: toNumber,
  sint: toNumber,
  fixed: toNumber,
  sfixed: toNumber,
  double: toNumber,
  any: (value) => plainAny(value, 0),
  attributes: (value) => (Array.isArray(value) ? plainPairs(value, 0) : undefined),
  ints: numbersIn,
  fixeds: numbersIn,
  doubles: numbersIn,
}

/** Ids are hex in OTLP; other writers of protobuf's JSON form use base64. */
const toHex = (text: string): string =>
  /^(?:[\dA-Za-z+/]{11}=|[\dA-Za-z+/]{22}==)$/.test(text)
    ? Buffer.from(text, 'base64').toString('hex')
    : text.toLowerCase()

/** Converts nanoseconds, as a number or as digits because a double cannot hold all of them. */
function toMs(value: unknown): number | undefined {
  if (typeof value === 'number') return value / 1e6
  if (typeof value !== 'string' || !/^\d{1,20}$/.test(value)) return undefined
  const digits = value.padStart(7, '0')
  return Number(`${digits.slice(0, -6)}.${digits.slice(-6)}`)
}

function toNumber(value: unknown): unknown {
  if (typeof value !== 'string') return value
  const number = Number(value)
  return value.trim() === '' || Number.isNaN(number) ? value : number
}

function plainAny(value: unknown, depth: number): unknown {
  if (!isRecord(value) || depth > MAX_DEPTH) return null
  for (const [name, item] of Object.entries(value)) {
    switch (name.replace(/_v/, 'V')) {
      case 'stringValue':
      case 'boolValue':
        return item
      case 'bytesValue':
        return typeof item === 'string' ? textOrBase64(Buffer.from(item, 'base64')) : item
      case 'doubleValue':
      case 'intValue':
        return safeNumber(item)
      case 'arrayValue':
        return listIn(item).map((each) => plainAny(each, depth + 1))
      case 'kvlistValue':
        return plainPairs(listIn(item), depth + 1)
    }
  }
  return null
}

const listIn = (value: unknown): readonly unknown[] =>
  isRecord(value) && Array.isArray(value['values']) ? value['values'] : []

/** An integer beyond 2^53 keeps its digits. */
function safeNumber(value: unknown): unknown {
  const number = toNumber(value)
  const isExact = typeof number !== 'number' || !Number.isInteger(number)
  return isExact || Number.isSafeInteger(number) ? number : value
}

function plainPairs(pairs: readonly unknown[], depth: number): JsonRecord {
  const plain = emptyRecord()
  for (const pair of pairs) {
    const key = isRecord(pair) ? pair['key'] : undefined
    if (typeof key === 'string' && isRecord(pair) && !(key in plain))
      plain[key] = plainAny(pair['value'], depth)
  }
  return plain
}
