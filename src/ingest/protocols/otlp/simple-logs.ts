import { SEVERITIES } from '../../../model/event.js'
import { type MessageReader, readTime } from '../message-form.js'
import type { RecordFeed } from '../record-feed.js'
import { isSpanName, isTraceName, levelOf } from './log-record.js'
import type { Common } from './origin.js'

const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const MAX_ATTRIBUTES = 16
/** Limit of the attribute names that are remembered for a body. */
const MAX_NAMES = 4096
const MAX_LEVEL = 24
const MAX_LEVEL_BYTES = 16
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

/** A text of the body, by its first byte and the one behind it. */
interface Extent {
  from: number
  to: number
}

/**
 * Adds simple log records in protobuf without making objects of them: those with a severity number, a text as body, and
 * attributes of plain values. The others are to be read by their form; `toLog` says what both mean.
 */
export class SimpleLogs {
  readonly #feed: RecordFeed
  readonly #levels = new Levels()
  readonly #names = new Map<string, Name>()
  readonly #attributes: Name[] = []
  readonly #record = new SimpleRecord()
  #common: Common | null = null
  #tags = ''
  #level = ''
  #hasIds = false
  #hasTags = false

  constructor(feed: RecordFeed) {
    this.#feed = feed
  }

  /** Takes the record at the reader. @returns false, and stays before it, when it is not simple */
  take(reader: MessageReader, common: Common): boolean {
    const { pos, type } = reader
    const end = reader.fieldEnd()
    if (common !== this.#common) this.#begin(common)
    if (this.#record.read(reader, end) && this.#put(reader)) {
      reader.pos = end
      return true
    }
    reader.pos = pos
    reader.type = type
    return false
  }

  #begin(common: Common): void {
    const { source, host, environment } = common.fields
    const text = (value: unknown): string => (typeof value === 'string' ? value : '')
    this.#common = common
    this.#feed.set('source', text(source))
    this.#feed.set('host', text(host))
    this.#feed.set('environment', text(environment))
    this.#tags = JSON.stringify(common.tags).slice(1, -1)
    this.#setTags(this.#tags)
    this.#hasTags = false
  }

  #put(reader: MessageReader): boolean {
    const { bytes } = reader
    const record = this.#record
    const level = this.#levels.of(bytes, record)
    if (level === '' || !this.#setAttributes(reader)) return false
    if (level !== this.#level) this.#feed.set('severity', (this.#level = level))
    if (record.hasTrace || record.hasSpan || this.#hasIds) {
      this.#feed.set('traceId', record.hasTrace ? hexOf(bytes, record.traceId) : '')
      this.#feed.set('spanId', record.hasSpan ? hexOf(bytes, record.spanId) : '')
      this.#hasIds = record.hasTrace || record.hasSpan
    }
    const ms = Math.floor(record.timeMs > 0 ? record.timeMs : record.observedMs)
    return this.#feed.put(Math.max(ms, 0), record.body.from, record.body.to)
  }

  /** @returns false when the attributes are not simple */
  #setAttributes(reader: MessageReader): boolean {
    const hasTags = this.#record.attributeCount > 0
    if (hasTags) {
      const tags = this.#tagsOf(reader)
      if (tags === null) return false
      this.#setTags(tags)
    } else if (this.#hasTags) this.#setTags(this.#tags)
    this.#hasTags = hasTags
    return true
  }

  #setTags(members: string): void {
    this.#feed.set('tags', members === '' ? '' : `{${members}}`)
  }

  /** @returns the members of the tags as JSON; null when a name or value is not simple */
  #tagsOf(reader: MessageReader): string | null {
    let tags = ''
    const seen = this.#attributes
    seen.length = 0
    const { attributes, attributeCount } = this.#record
    for (let i = 0; i < attributeCount; i++) {
      reader.pos = attributes[2 * i] ?? 0
      const end = attributes[2 * i + 1] ?? 0
      const name = this.#nameAt(reader, end)
      const value = name !== null && isTag(name, this.#record) ? readValue(reader, end) : null
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

/** An attribute may be the id that the record itself has not. */
const isTag = ({ isOdd, isTrace, isSpan }: Name, { hasTrace, hasSpan }: SimpleRecord): boolean =>
  !isOdd && (hasTrace || !isTrace) && (hasSpan || !isSpan)

/** The levels that a severity number says by itself, with the word that came with it last. */
class Levels {
  readonly #words: (Buffer | undefined)[] = []
  readonly #levels: string[] = []

  /** @returns '' for a level that is not said by the number alone */
  of(bytes: Buffer, { severityNumber: no, severityText: { from, to } }: SimpleRecord): string {
    const word = this.#words[no]
    if (word !== undefined && isSame(word, bytes, from, to)) return this.#levels[no] ?? ''
    const text = bytes.toString('latin1', from, to)
    const { severity, kept } = levelOf({ severityNumber: no, severityText: text }, {})
    const level = kept === '' && isSeverity(severity) ? severity : ''
    this.#words[no] = Buffer.from(bytes.subarray(from, to))
    this.#levels[no] = level
    return level
  }
}

function isSame(word: Buffer, bytes: Buffer, from: number, to: number): boolean {
  if (word.length !== to - from) return false
  for (let i = 0; i < word.length; i++) if (word[i] !== bytes[from + i]) return false
  return true
}

const isSeverity = (word: string): boolean => SEVERITIES.some((known) => known === word)

/** Where the fields of a record are. One object serves all records, because it is filled for each. */
class SimpleRecord {
  timeMs = 0
  observedMs = 0
  severityNumber = 0
  attributeCount = 0
  hasTrace = false
  hasSpan = false
  readonly severityText: Extent = { from: 0, to: 0 }
  readonly body: Extent = { from: 0, to: 0 }
  readonly traceId: Extent = { from: 0, to: 0 }
  readonly spanId: Extent = { from: 0, to: 0 }
  /** The beginning and the end of each. */
  readonly attributes: number[] = []

  /** @returns false for a record that is not simple, or cut off */
  read(reader: MessageReader, end: number): boolean {
    this.timeMs = 0
    this.observedMs = 0
    this.severityNumber = 0
    this.attributeCount = 0
    clear(this.severityText)
    clear(this.body)
    clear(this.traceId)
    clear(this.spanId)
    for (let no = reader.nextField(end); no !== 0; no = reader.nextField(end))
      if (!this.#readField(reader, no) || reader.pos > end) return false
    this.hasTrace = isId(reader.bytes, this.traceId)
    this.hasSpan = isId(reader.bytes, this.spanId)
    return reader.pos === end && this.body.to > this.body.from && this.severityNumber > 0
  }

  /** @returns false for a field that makes the record not a simple one */
  #readField(reader: MessageReader, no: number): boolean {
    switch (no) {
      case 1:
      case 11: {
        if (reader.type !== FIXED64 || reader.pos + 8 > reader.length) return false
        const ms = readTime(reader)
        if (no === 1) this.timeMs = ms
        else this.observedMs = ms
        return true
      }
      case 2:
        if (reader.type !== VARINT) return false
        this.severityNumber = reader.readVarint()
        return this.severityNumber <= MAX_LEVEL
      case 3:
        return pass(reader, this.severityText) <= MAX_LEVEL_BYTES
      case 5:
        return readBody(reader, this.body)
      case 6:
        return this.#readAttribute(reader)
      default:
        return this.#readId(reader, no)
    }
  }

  #readAttribute(reader: MessageReader): boolean {
    const to = reader.fieldEnd()
    this.attributes[2 * this.attributeCount] = reader.pos
    this.attributes[2 * this.attributeCount + 1] = to
    this.attributeCount += 1
    reader.pos = to
    return this.attributeCount <= MAX_ATTRIBUTES
  }

  #readId(reader: MessageReader, no: number): boolean {
    switch (no) {
      case 9:
        return isLong(pass(reader, this.traceId), TRACE_BYTES)
      case 10:
        return isLong(pass(reader, this.spanId), SPAN_BYTES)
      // The name of an event.
      case 12: {
        const to = reader.fieldEnd()
        const isNone = to === reader.pos
        reader.pos = to
        return isNone
      }
      default:
        return true
    }
  }
}

function clear(extent: Extent): void {
  extent.from = 0
  extent.to = 0
}

const isLong = (bytes: number, wanted: number): boolean => bytes === 0 || bytes === wanted

/** Passes over a field with a length. @returns its bytes @throws Error as `fieldEnd` */
function pass(reader: MessageReader, extent: Extent): number {
  const to = reader.fieldEnd()
  extent.from = reader.pos
  extent.to = to
  reader.pos = to
  return to - extent.from
}

/** @returns false for a value that is no text */
function readBody(reader: MessageReader, body: Extent): boolean {
  const end = reader.fieldEnd()
  if (reader.nextField(end) !== 1 || reader.type !== BYTES) return false
  pass(reader, body)
  return body.to === end
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

/** Whether an id is there and not of zeros. */
function isId(bytes: Buffer, { from, to }: Extent): boolean {
  for (let i = from; i < to; i++) if (bytes[i] !== 0) return true
  return false
}

const hexOf = (bytes: Buffer, { from, to }: Extent): string => bytes.toString('hex', from, to)
