import { ByteBuffer } from '../lib/byte-buffer.js'
import { copyAndHash, hashBytes, mixInto } from '../lib/hash.js'
import type { Interner } from '../lib/interner.js'
import {
  type Column,
  DictColumn,
  StringColumn,
  toNativeBlock,
  ViewColumn,
} from '../lib/native-columns.js'
import { EVENT_TYPES, type CanonicalEvent } from '../model/event.js'
import type { LineFields } from '../model/line-fields.js'
import type { MissBlock, RowBlock } from './block.js'
import { FoldTable } from './fold-table.js'
import { WordColumn } from './word-column.js'

/** What the encoder needs from mining: shape hashes and the templates known for them. */
export interface ShapeLookup {
  /** the hash pair every shape of a source starts from */
  sourceSeed(source: string, out: Int32Array): void
  // oxlint-disable-next-line max-params -- hot path
  scanShape(bytes: Uint8Array, start: number, end: number, seed: Int32Array, out: Int32Array): void
  /** @returns 0 when unknown */
  templateNo(lo: number, hi: number): number
}

const ENUM_TYPE = "Enum8('log' = 0, 'metric' = 1, 'trace' = 2, 'event' = 3)"
const ENUM_SEVERITY = "Enum8('DEBUG' = 0, 'INFO' = 1, 'WARNING' = 2, 'ERROR' = 3, 'CRITICAL' = 4)"
const ENUM_PRIORITY = "Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3)"
const ENUM_PRIORITY_SOURCE = "Enum8('auto' = 0, 'template' = 1, 'manual' = 2)"

/** bytes of a message that its template is mined from */
const MINED_BYTES = 16_384
const READY_MADE = 0x5bd1e995

/** What a row takes from its message besides its columns; filled again for each message. */
interface Incoming {
  tsMs: number
  /** places in the columns' dictionaries */
  source: number
  host: number
  environment: number
  type: number
  severity: number
  /** where the message's bytes are in its column */
  start: number
  end: number
}

/**
 * Turns messages into one block of landing rows. Equal messages of the same millisecond are one row with a
 * count; the side arrays carry what the sequencer decides on. Buffers are reused: one encoder per thread.
 * bench/micro/encode.bench.ts
 */
export class BlockEncoder {
  readonly #lookup: ShapeLookup
  readonly #fold = new FoldTable()
  readonly #rows = new RowRegisters()
  readonly #source: WordColumn
  readonly #host: WordColumn
  readonly #environment: WordColumn
  readonly #modelVersion = new DictColumn('model_version')
  readonly #traceId = new StringColumn('trace_id')
  readonly #spanId = new StringColumn('span_id')
  readonly #message = new StringColumn('message')
  readonly #searchWords = new StringColumn('search_words')
  readonly #summary = new StringColumn('summary')
  readonly #tags = new StringColumn('tags')
  readonly #dedupKey = new StringColumn('dedup_key')
  readonly #id = new ViewColumn('id', 'UInt64', (rows) => this.#rows.zeros(rows * 8))
  readonly #isNew = new ViewColumn('is_new', 'UInt8', (rows) => this.#rows.zeros(rows))
  readonly #priority = new ViewColumn('priority', ENUM_PRIORITY, (rows) => this.#rows.zeros(rows))
  readonly #prioritySource = new ViewColumn('priority_source', ENUM_PRIORITY_SOURCE, (rows) =>
    this.#rows.zeros(rows),
  )
  readonly #confidence = new ViewColumn('confidence', 'Float32', (rows) =>
    this.#rows.zeros(rows * 4),
  )
  readonly #templateId = new ViewColumn('template_id', 'UInt64', (rows) =>
    this.#rows.zeros(rows * 8),
  )
  readonly #columns: readonly (Column & { rows: number })[]
  readonly #scratch = new ByteBuffer(4096)
  readonly #hash = new Int32Array(2)
  readonly #shape = new Int32Array(2)
  readonly #incoming: Incoming = {
    tsMs: 0,
    source: 0,
    host: 0,
    environment: 0,
    type: 0,
    severity: 0,
    start: 0,
    end: 0,
  }
  /** two per source of the block */
  readonly #shapeSeeds: Int32Array[] = []
  readonly #misses = new MissList()
  #receivedAtMs = 0

  /** @param words the decoder's, whose numbers `LineFields` hold */
  constructor(lookup: ShapeLookup, seed: Int32Array, words: Interner) {
    this.#lookup = lookup
    this.#source = new WordColumn('source', words, seed)
    this.#host = new WordColumn('host', words, seed)
    this.#environment = new WordColumn('environment', words, seed)
    const fold = this.#fold
    const registers = this.#rows
    this.#columns = [
      this.#id,
      this.#isNew,
      new ViewColumn('n', 'Int32', (rows) => bytesOf(fold.counts, rows)),
      new ViewColumn('received_at', "DateTime64(3, 'UTC')", (rows) =>
        registers.times(rows, () => this.#receivedAtMs),
      ),
      new ViewColumn('ts', "DateTime64(3, 'UTC')", (rows) =>
        registers.times(rows, (row) => fold.times[row] ?? 0),
      ),
      this.#source,
      new ViewColumn('type', ENUM_TYPE, (rows) => bytesOf(registers.types, rows)),
      new ViewColumn('severity', ENUM_SEVERITY, (rows) => bytesOf(registers.severities, rows)),
      this.#priority,
      this.#prioritySource,
      this.#confidence,
      this.#modelVersion,
      this.#templateId,
      this.#host,
      this.#environment,
      this.#traceId,
      this.#spanId,
      this.#message,
      this.#searchWords,
      this.#summary,
      this.#tags,
      this.#dedupKey,
    ]
  }

  get rows(): number {
    return this.#fold.rows
  }

  begin(receivedAtMs: number, modelVersion: string): void {
    for (const column of this.#columns) column.clear()
    this.#fold.clear()
    this.#misses.clear()
    this.#shapeSeeds.length = 0
    this.#receivedAtMs = receivedAtMs
    this.#modelVersion.index(modelVersion)
  }

  /** @param severity index into SEVERITIES */
  add(event: CanonicalEvent, severity: number): void {
    const incoming = this.#incoming
    incoming.tsMs = event.timestampMs
    incoming.source = this.#source.index(event.source)
    incoming.host = this.#host.index(event.host)
    incoming.environment = this.#environment.index(event.environment)
    incoming.type = EVENT_TYPES.indexOf(event.type)
    incoming.severity = severity
    const { data } = this.#message
    const before = data.length
    this.#startHash()
    incoming.start = this.#message.push(event.message)
    incoming.end = data.length
    const tags = event.tags === null ? '' : JSON.stringify(event.tags)
    if (event.dedupKey === '') {
      hashBytes(data.bytes, incoming.start, incoming.end, this.#hash)
      this.#mixWords()
      if (event.traceId !== '') this.#hashText(event.traceId)
      if (event.type !== 'log') this.#hashText(tags)
    } else {
      this.#hashText(event.dedupKey)
      mixInto(this.#hash, 1, 1)
    }
    const row = this.#place(before)
    if (row < 0) return
    if (event.traceId !== '') pushAt(this.#traceId, row, event.traceId)
    if (event.spanId !== '') pushAt(this.#spanId, row, event.spanId)
    if (event.summary !== '') pushAt(this.#summary, row, event.summary)
    if (event.dedupKey !== '') pushAt(this.#dedupKey, row, event.dedupKey)
    if (tags !== '') pushAt(this.#tags, row, tags)
    const words = searchWords(event, incoming.end - incoming.start)
    if (words !== '') pushAt(this.#searchWords, row, words)
    this.#rows.templateNos[row] =
      event.template === '' ? this.#mine(row) : this.#readyMade(event.template, row)
  }

  /** As `add`, for a message that came as ranges of bytes. @param severity index into SEVERITIES */
  addLine(fields: LineFields, severity: number): void {
    const incoming = this.#incoming
    incoming.tsMs = fields.timestampMs
    incoming.source = this.#source.place(fields.source)
    incoming.host = this.#host.place(fields.host)
    incoming.environment = this.#environment.place(fields.environment)
    incoming.type = fields.type
    incoming.severity = severity
    const { data } = this.#message
    const before = data.length
    const bytes = fields.textEnd - fields.textStart
    data.reserve(bytes + 5)
    data.varint(bytes)
    incoming.start = data.length
    incoming.end = data.length + bytes
    data.length += bytes
    this.#message.rows++
    this.#startHash()
    copyAndHash(
      fields.text,
      fields.textStart,
      fields.textEnd,
      data.bytes,
      incoming.start,
      this.#hash,
    )
    this.#mixWords()
    if (fields.hasTexts || fields.tags !== '') this.#hashTexts(fields)
    const row = this.#place(before)
    if (row < 0) return
    if (fields.hasTexts) this.#pushTexts(fields, row)
    if (fields.tags !== '') pushAt(this.#tags, row, fields.tags)
    if (!fields.isAscii) pushAt(this.#searchWords, row, this.#wordsOfLine(fields))
    this.#rows.templateNos[row] = this.#mine(row)
  }

  /** The block, in arrays of its own; null when nothing was added. */
  finish(): RowBlock | null {
    const rows = this.#fold.rows
    if (rows === 0) return null
    this.#modelVersion.pushIndexes(0, rows)
    for (const column of this.#columns) {
      if (column instanceof StringColumn) column.fillTo(rows)
      if (column instanceof ViewColumn) column.rows = rows
    }
    const { bytes, offsets } = toNativeBlock(this.#columns, rows, new ByteBuffer(this.#size(rows)))
    const at = (column: Column): number =>
      offsets[this.#columns.findIndex((c) => c === column)] ?? 0
    return {
      bytes,
      rows,
      at: {
        id: at(this.#id),
        isNew: at(this.#isNew),
        priority: at(this.#priority),
        prioritySource: at(this.#prioritySource),
        confidence: at(this.#confidence),
        templateId: at(this.#templateId),
      },
      hashes: this.#fold.hashes.slice(0, rows * 2),
      tsMs: this.#fold.times.slice(0, rows),
      counts: this.#fold.counts.slice(0, rows),
      severities: this.#rows.severities.slice(0, rows),
      sourceIndexes: this.#source.indexes.slice(),
      templateNos: this.#rows.templateNos.slice(0, rows),
      sources: [...this.#source.values],
      misses: this.#misses.finish(),
    }
  }

  /** Bytes that the block takes at most. */
  #size(rows: number): number {
    let bytes = 2048 + rows * FIXED_BYTES
    for (const column of this.#columns) {
      if (column instanceof StringColumn) bytes += column.data.length
      if (column instanceof DictColumn) bytes += column.maxBytes
    }
    return bytes
  }

  #startHash(): void {
    const { hashes } = this.#source
    const at = this.#incoming.source * 2
    this.#hash[0] = hashes[at] ?? 0
    this.#hash[1] = hashes[at + 1] ?? 0
  }

  /** Host, environment, severity and type are part of what makes two messages the same event. */
  #mixWords(): void {
    const { host, environment, severity, type } = this.#incoming
    const [hosts, environments] = [this.#host.hashes, this.#environment.hashes]
    const kind = severity * EVENT_TYPES.length + type + 2
    mixInto(
      this.#hash,
      (hosts[host * 2] ?? 0) ^ Math.imul(environments[environment * 2] ?? 0, 0x9e3779b1),
      (hosts[host * 2 + 1] ?? 0) ^
        Math.imul((environments[environment * 2 + 1] ?? 0) + kind, 0x85ebca77),
    )
  }

  #hashText(text: string): void {
    this.#scratch.clear()
    const start = this.#scratch.string(text)
    hashBytes(this.#scratch.bytes, start, this.#scratch.length, this.#hash)
  }

  /** Fields that few lines have; see `add`. */
  #hashTexts(fields: LineFields): void {
    const { line } = fields
    if (fields.dedupEnd > fields.dedupStart) {
      this.#startHash()
      hashBytes(line, fields.dedupStart, fields.dedupEnd, this.#hash)
      mixInto(this.#hash, 1, 1)
      return
    }
    if (fields.traceEnd > fields.traceStart)
      hashBytes(line, fields.traceStart, fields.traceEnd, this.#hash)
    if (fields.type !== LOG) this.#hashText(fields.tags)
  }

  /** @returns the row, -1 when the message repeats an earlier row; its text is taken back then */
  #place(before: number): number {
    const incoming = this.#incoming
    const known = this.#fold.find(this.#hash, incoming.tsMs)
    if (known >= 0) {
      this.#message.data.length = before
      this.#message.rows--
      this.#fold.count(known)
      return -1
    }
    const row = this.#fold.rows
    this.#fold.add(this.#hash, incoming.tsMs)
    this.#rows.set(row, incoming)
    this.#source.pushIndex(incoming.source)
    this.#host.pushIndex(incoming.host)
    this.#environment.pushIndex(incoming.environment)
    return row
  }

  #pushTexts(fields: LineFields, row: number): void {
    const { line } = fields
    pushRangeAt(this.#traceId, row, line, fields.traceStart, fields.traceEnd)
    pushRangeAt(this.#spanId, row, line, fields.spanStart, fields.spanEnd)
    pushRangeAt(this.#summary, row, line, fields.summaryStart, fields.summaryEnd)
    pushRangeAt(this.#dedupKey, row, line, fields.dedupStart, fields.dedupEnd)
  }

  #wordsOfLine(fields: LineFields): string {
    const { start, end, host } = this.#incoming
    const message = Buffer.from(this.#message.data.bytes.buffer, start, end - start).toString()
    const trace = Buffer.from(fields.line.subarray(fields.traceStart, fields.traceEnd)).toString()
    return toSearchWords(`${message} ${this.#host.values[host]} ${trace}`).join(' ')
  }

  /** @returns the template's number, 0 when the shape was never seen */
  #mine(row: number): number {
    const { start, end, source } = this.#incoming
    const { bytes } = this.#message.data
    const minedEnd = end - start > MINED_BYTES ? start + MINED_BYTES : end
    const shape = this.#shape
    this.#lookup.scanShape(bytes, start, minedEnd, this.#seedOf(source), shape)
    const no = this.#lookup.templateNo(shape[0] ?? 0, shape[1] ?? 0)
    if (no === 0) {
      const miss = { sourceIndex: source, readyMade: false, row }
      this.#misses.add(shape, bytes.subarray(start, minedEnd), miss)
    }
    return no
  }

  #readyMade(template: string, row: number): number {
    const shape = this.#shape
    const seed = this.#seedOf(this.#incoming.source)
    shape[0] = (seed[0] ?? 0) ^ READY_MADE
    shape[1] = seed[1] ?? 0
    this.#scratch.clear()
    const start = this.#scratch.string(template)
    const text = this.#scratch.bytes.subarray(start, this.#scratch.length)
    hashBytes(text, 0, text.length, shape)
    const no = this.#lookup.templateNo(shape[0], shape[1])
    if (no === 0)
      this.#misses.add(shape, text, { sourceIndex: this.#incoming.source, readyMade: true, row })
    return no
  }

  #seedOf(source: number): Int32Array {
    const known = this.#shapeSeeds[source]
    if (known !== undefined) return known
    const seed = new Int32Array(2)
    this.#lookup.sourceSeed(this.#source.values[source] ?? '', seed)
    this.#shapeSeeds[source] = seed
    return seed
  }
}

const LOG = EVENT_TYPES.indexOf('log')
/** of a row: id, is_new, n, two times, type, severity, priority and its source, confidence, template */
const FIXED_BYTES = 8 + 1 + 4 + 16 + 1 + 1 + 1 + 1 + 4 + 8

function pushAt(column: StringColumn, row: number, text: string): void {
  column.fillTo(row)
  column.push(text)
}

// oxlint-disable-next-line max-params -- hot path
function pushRangeAt(
  column: StringColumn,
  row: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): void {
  if (end === start) return
  column.fillTo(row)
  column.pushBytes(bytes.subarray(start, end))
}

const bytesOf = (values: Uint8Array | Int32Array, rows: number): Uint8Array =>
  new Uint8Array(values.buffer, 0, rows * values.BYTES_PER_ELEMENT)

/** Plain values of the rows, by row. */
class RowRegisters {
  types = new Uint8Array(1024)
  severities = new Uint8Array(1024)
  templateNos = new Int32Array(1024)
  #bytes = new Uint8Array(65_536)
  #words = new Uint32Array(2048)

  set(row: number, { type, severity }: Incoming): void {
    if (row === this.types.length) this.#grow()
    this.types[row] = type
    this.severities[row] = severity
  }

  zeros(bytes: number): Uint8Array {
    // never written to
    if (bytes > this.#bytes.length) this.#bytes = new Uint8Array(bytes * 2)
    return this.#bytes.subarray(0, bytes)
  }

  /** Times of the rows as 64-bit integers; good until the next call. */
  times(rows: number, timeOf: (row: number) => number): Uint8Array {
    if (rows * 2 > this.#words.length) this.#words = new Uint32Array(rows * 4)
    for (let row = 0; row < rows; row++) {
      const ms = timeOf(row)
      this.#words[row * 2] = ms
      this.#words[row * 2 + 1] = ms / 0x1_0000_0000
    }
    return new Uint8Array(this.#words.buffer, 0, rows * 8)
  }

  #grow(): void {
    const [types, severities, nos] = [this.types, this.severities, this.templateNos]
    this.types = new Uint8Array(types.length * 2)
    this.severities = new Uint8Array(types.length * 2)
    this.templateNos = new Int32Array(types.length * 2)
    this.types.set(types)
    this.severities.set(severities)
    this.templateNos.set(nos)
  }
}

/** Words of a record with letters beyond ASCII, for the word index; '' when the texts themselves will do. */
function searchWords(event: CanonicalEvent, messageBytes: number): string {
  // UTF-8 longer than UTF-16 means that some character is not ASCII
  const ascii =
    messageBytes === event.message.length && isAscii(event.host) && isAscii(event.traceId)
  if (ascii) return ''
  return toSearchWords(`${event.message} ${event.host} ${event.traceId}`).join(' ')
}

const isAscii = (text: string): boolean => !/[^\p{ASCII}]/u.test(text)

/** Runs of letters and digits, lower case: what a search compares. */
const toSearchWords = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

class MissList {
  readonly #byShape = new Map<number, Map<number, number>>()
  #shapes: number[] = []
  readonly #bytes = new ByteBuffer(4096)
  #ends: number[] = []
  #sources: number[] = []
  #readyMade: number[] = []
  #rows: number[] = []
  #missOfRow: number[] = []

  add(
    shape: Int32Array,
    text: Uint8Array,
    at: { readonly sourceIndex: number; readonly readyMade: boolean; readonly row: number },
  ): void {
    const lo = shape[0] ?? 0
    const hi = shape[1] ?? 0
    const byHi = this.#byShape.get(lo) ?? new Map<number, number>()
    this.#byShape.set(lo, byHi)
    let miss = byHi.get(hi)
    if (miss === undefined) {
      miss = this.#ends.length
      byHi.set(hi, miss)
      this.#shapes.push(lo, hi)
      this.#bytes.append(text)
      this.#ends.push(this.#bytes.length)
      this.#sources.push(at.sourceIndex)
      this.#readyMade.push(at.readyMade ? 1 : 0)
    }
    this.#rows.push(at.row)
    this.#missOfRow.push(miss)
  }

  finish(): MissBlock | null {
    if (this.#ends.length === 0) return null
    return {
      shapes: Int32Array.from(this.#shapes),
      bytes: this.#bytes.copy(),
      ends: Uint32Array.from(this.#ends),
      sourceIndexes: Uint32Array.from(this.#sources),
      readyMade: Uint8Array.from(this.#readyMade),
      rows: Uint32Array.from(this.#rows),
      missOfRow: Uint32Array.from(this.#missOfRow),
    }
  }

  clear(): void {
    this.#byShape.clear()
    this.#shapes = []
    this.#bytes.clear()
    this.#ends = []
    this.#sources = []
    this.#readyMade = []
    this.#rows = []
    this.#missOfRow = []
  }
}
