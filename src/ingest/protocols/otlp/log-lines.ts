import { SEVERITIES } from '../../../model/event.js'
import type { LineFeed } from '../line-feed.js'
import { type MessageReader, readTime } from '../message-form.js'
import { isSpanName, isTraceName, levelOf } from './log-record.js'
import type { Common } from './origin.js'

const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const MAX_ATTRIBUTES = 16
/** Limits of what is remembered of the bodies of one thread. */
const MAX_NAMES = 4096
const MAX_WORDS = 64
const TRACE_BYTES = 16
const SPAN_BYTES = 8

interface Name {
  /** As a member of an object. */
  readonly json: string
  /** Whether a record with it is not simple. */
  readonly isOdd: boolean
  readonly isTrace: boolean
  readonly isSpan: boolean
}

/**
 * Writes simple log records in protobuf as lines: with a severity number, a text as body, and attributes of plain values.
 * The others are to be read by their form; `toLog` says what both mean.
 */
export class LogLines {
  readonly #feed: LineFeed
  readonly #levels = new Map<string, string>()
  readonly #names = new Map<string, Name>()
  readonly #attributes: Name[] = []
  #common: Common | null = null
  #head = ''
  #tags = ''

  constructor(feed: LineFeed) {
    this.#feed = feed
  }

  /** Takes the record at the reader. @returns false, and stays before it, when it is not simple */
  take(reader: MessageReader, common: Common): boolean {
    const { pos, type } = reader
    const end = reader.fieldEnd()
    if (common !== this.#common) this.#begin(common)
    const record = readSimple(reader, end)
    if (record !== null && this.#write(reader, record)) {
      reader.pos = end
      return true
    }
    reader.pos = pos
    reader.type = type
    return false
  }

  #begin(common: Common): void {
    this.#common = common
    this.#head = ''
    for (const [name, value] of Object.entries(common.fields))
      if (value !== '') this.#head += `,"${name}":${JSON.stringify(value)}`
    this.#tags = JSON.stringify(common.tags).slice(1, -1)
  }

  #write(reader: MessageReader, record: Simple): boolean {
    const { bytes } = reader
    const level = this.#levelOf(record.severityNumber, textOf(bytes, record.severityText))
    if (level === '') return false
    const traceId = idAt(bytes, record.traceId)
    const spanId = idAt(bytes, record.spanId)
    const tags = this.#tagsOf(reader, record, { hasTrace: traceId !== '', hasSpan: spanId !== '' })
    if (tags === null) return false
    const ms = Math.floor(record.timeMs > 0 ? record.timeMs : record.observedMs)
    const time = ms > 0 ? `"timestamp":${ms},` : ''
    const head = `{${time}"severity":"${level}"${this.#head},"message":"`
    const trace = traceId === '' ? '' : `,"trace_id":"${traceId}"`
    const span = spanId === '' ? '' : `,"span_id":"${spanId}"`
    const tail = `"${trace}${span}${tags === '' ? '' : `,"tags":{${tags}}`}}`
    return this.#feed.line(head, bytes, record.body, tail)
  }

  /** @returns '' for a level that is not said by the number alone */
  #levelOf(number: number, word: string): string {
    const key = `${number} ${word}`
    const known = this.#levels.get(key)
    if (known !== undefined) return known
    const { severity, kept } = levelOf({ severityNumber: number, severityText: word }, {})
    const found = kept === '' && isSeverity(severity) ? severity : ''
    if (this.#levels.size < MAX_WORDS) this.#levels.set(key, found)
    return found
  }

  /** @returns the members of the tags as JSON; null when a name or value is not simple */
  #tagsOf(reader: MessageReader, { attributes }: Simple, ids: Ids): string | null {
    let tags = ''
    const seen = this.#attributes
    seen.length = 0
    for (let i = 0; i < attributes.length; i += 2) {
      reader.pos = attributes[i] ?? 0
      const end = attributes[i + 1] ?? 0
      const name = this.#nameAt(reader, end)
      const value = name === null || !isTag(name, ids) ? null : readValue(reader, end)
      if (name === null || value === null || seen.includes(name)) return null
      seen.push(name)
      tags += (tags === '' ? '' : ',') + name.json + value
    }
    return tags === '' || this.#tags === '' ? tags + this.#tags : `${tags},${this.#tags}`
  }

  #nameAt(reader: MessageReader, end: number): Name | null {
    if (reader.nextField(end) !== 1 || reader.type !== BYTES) return null
    const text = reader.text()
    const known = this.#names.get(text)
    if (known !== undefined) return known
    const name = {
      json: `${JSON.stringify(text)}:`,
      isOdd: !/^[a-z]/i.test(text) || text === 'scope' || text.startsWith('resource.'),
      isTrace: isTraceName(text),
      isSpan: isSpanName(text),
    }
    if (this.#names.size < MAX_NAMES) this.#names.set(text, name)
    // A name that is not remembered can't be told from its repeat.
    return this.#names.has(text) ? name : null
  }
}

const isSeverity = (word: string): boolean => SEVERITIES.some((known) => known === word)

interface Ids {
  readonly hasTrace: boolean
  readonly hasSpan: boolean
}

/** An attribute may be the id that the record itself has not. */
const isTag = ({ isOdd, isTrace, isSpan }: Name, { hasTrace, hasSpan }: Ids): boolean =>
  !isOdd && (hasTrace || !isTrace) && (hasSpan || !isSpan)

type Span = readonly [from: number, to: number]
const NOWHERE: Span = [0, 0]

/** Where the fields of a record are. */
interface Simple {
  timeMs: number
  observedMs: number
  severityNumber: number
  severityText: Span
  body: Span
  traceId: Span
  spanId: Span
  /** The beginning and the end of each. */
  readonly attributes: number[]
}

/** @returns null for a record that is not simple, or cut off */
function readSimple(reader: MessageReader, end: number): Simple | null {
  const record: Simple = {
    timeMs: 0,
    observedMs: 0,
    severityNumber: 0,
    severityText: NOWHERE,
    body: NOWHERE,
    traceId: NOWHERE,
    spanId: NOWHERE,
    attributes: [],
  }
  for (let no = reader.nextField(end); no !== 0; no = reader.nextField(end))
    if (!readField(reader, no, record) || reader.pos > end) return null
  const isWhole = reader.pos === end && record.body[1] > record.body[0]
  return isWhole && record.severityNumber > 0 ? record : null
}

/** @returns false for a field that makes the record not a simple one */
function readField(reader: MessageReader, no: number, record: Simple): boolean {
  switch (no) {
    case 1:
    case 11: {
      if (reader.type !== FIXED64 || reader.pos + 8 > reader.length) return false
      const ms = readTime(reader)
      if (no === 1) record.timeMs = ms
      else record.observedMs = ms
      return true
    }
    case 2:
      if (reader.type !== VARINT) return false
      record.severityNumber = reader.readVarint()
      return record.severityNumber <= 24
    case 3:
      record.severityText = spanAt(reader)
      return record.severityText[1] - record.severityText[0] <= 16
    case 5:
      record.body = bodyAt(reader)
      return record.body !== NOWHERE
    case 6: {
      const [from, to] = spanAt(reader)
      record.attributes.push(from, to)
      return record.attributes.length <= 2 * MAX_ATTRIBUTES
    }
    default:
      return readId(reader, no, record)
  }
}

function readId(reader: MessageReader, no: number, record: Simple): boolean {
  switch (no) {
    case 9:
      record.traceId = spanAt(reader)
      return isEmptyOr(record.traceId, TRACE_BYTES)
    case 10:
      record.spanId = spanAt(reader)
      return isEmptyOr(record.spanId, SPAN_BYTES)
    // The name of an event.
    case 12:
      return isEmptyOr(spanAt(reader), 0)
    default:
      return true
  }
}

const isEmptyOr = ([from, to]: Span, bytes: number): boolean => to === from || to - from === bytes

/** Passes over a field with a length. @throws Error as `fieldEnd` */
function spanAt(reader: MessageReader): Span {
  const to = reader.fieldEnd()
  const from = reader.pos
  reader.pos = to
  return [from, to]
}

/** @returns where the text of a value is, NOWHERE for a value that is something else */
function bodyAt(reader: MessageReader): Span {
  const end = reader.fieldEnd()
  if (reader.nextField(end) !== 1 || reader.type !== BYTES) return NOWHERE
  const span = spanAt(reader)
  return span[1] === end ? span : NOWHERE
}

/** Reads the value of an attribute as JSON. @returns null for one that is not plain */
function readValue(reader: MessageReader, attributeEnd: number): string | null {
  if (reader.nextField(attributeEnd) !== 2 || reader.type !== BYTES) return null
  const end = reader.fieldEnd()
  if (end !== attributeEnd) return null
  const no = reader.nextField(end)
  const json = readPlain(reader, no)
  return reader.pos === end ? json : null
}

function readPlain(reader: MessageReader, no: number): string | null {
  const { type } = reader
  if (no === 1 && type === BYTES) return JSON.stringify(reader.text())
  if (no === 2 && type === VARINT) return String(reader.readBoolean())
  if (no === 3 && type === VARINT) return finiteJson(reader.readVarint(true), Number.isSafeInteger)
  return no === 4 && type === FIXED64 ? finiteJson(reader.readDouble(), Number.isFinite) : null
}

const finiteJson = (value: number, isFit: (value: number) => boolean): string | null =>
  isFit(value) ? JSON.stringify(value) : null

const textOf = (bytes: Buffer, [from, to]: Span): string => bytes.toString('latin1', from, to)

/** @returns '' for an id that is missing or of zeros */
function idAt(bytes: Buffer, [from, to]: Span): string {
  for (let i = from; i < to; i++) if (bytes[i] !== 0) return bytes.toString('hex', from, to)
  return ''
}
