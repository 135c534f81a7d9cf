import { ByteBuffer } from '../lib/byte-buffer.js'
import { hashBytes, mixInto } from '../lib/hash.js'
import { EVENT_TYPES, type CanonicalEvent } from '../model/event.js'
import { DictColumn, FixedColumn, StringColumn, toNativeBlock } from '../lib/native-columns.js'
import type { MissBlock, RowBlock } from './block.js'
import { FoldTable } from './fold-table.js'

/** What the encoder needs from mining: shape hashes and the templates known for them. */
export interface ShapeLookup {
  /** the hash pair every shape of a source starts from */
  sourceSeed(source: string, out: Int32Array): void
  scanShape(
    bytes: Uint8Array,
    range: { readonly start: number; readonly end: number },
    seed: Int32Array,
    out: Int32Array,
  ): void
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

interface SourceHashes {
  readonly index: number
  readonly shapeSeed: Int32Array
  readonly dedup: Int32Array
}

/** An event on its way into the columns. */
interface Incoming {
  readonly event: CanonicalEvent
  readonly tags: string
  /** index into SEVERITIES */
  readonly severity: number
  readonly source: SourceHashes
  /** where the message's bytes are in its column */
  readonly start: number
  readonly end: number
}

/**
 * Turns events into one block of landing rows. Equal messages of the same millisecond are one row with a
 * count; the side arrays carry what the sequencer decides on. Buffers are reused: one encoder per thread.
 */
export class BlockEncoder {
  readonly #lookup: ShapeLookup
  readonly #id = new FixedColumn('id', 'UInt64', 8)
  readonly #isNew = new FixedColumn('is_new', 'UInt8', 1)
  readonly #n = new FixedColumn('n', 'Int32', 4)
  readonly #receivedAt = new FixedColumn('received_at', "DateTime64(3, 'UTC')", 8)
  readonly #ts = new FixedColumn('ts', "DateTime64(3, 'UTC')", 8)
  readonly #source = new DictColumn('source')
  readonly #type = new FixedColumn('type', ENUM_TYPE, 1)
  readonly #severity = new FixedColumn('severity', ENUM_SEVERITY, 1)
  readonly #priority = new FixedColumn('priority', ENUM_PRIORITY, 1)
  readonly #prioritySource = new FixedColumn('priority_source', ENUM_PRIORITY_SOURCE, 1)
  readonly #confidence = new FixedColumn('confidence', 'Float32', 4)
  readonly #modelVersion = new DictColumn('model_version')
  readonly #templateId = new FixedColumn('template_id', 'UInt64', 8)
  readonly #host = new DictColumn('host')
  readonly #environment = new DictColumn('environment')
  readonly #traceId = new StringColumn('trace_id')
  readonly #spanId = new StringColumn('span_id')
  readonly #message = new StringColumn('message')
  readonly #searchWords = new StringColumn('search_words')
  readonly #summary = new StringColumn('summary')
  readonly #tags = new StringColumn('tags')
  readonly #dedupKey = new StringColumn('dedup_key')
  readonly #columns = [
    this.#id,
    this.#isNew,
    this.#n,
    this.#receivedAt,
    this.#ts,
    this.#source,
    this.#type,
    this.#severity,
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
  readonly #out = new ByteBuffer(65_536)
  readonly #scratch = new ByteBuffer(4096)
  readonly #fold = new FoldTable()
  readonly #hash = new Int32Array(2)
  readonly #shape = new Int32Array(2)
  readonly #sourceHashes: SourceHashes[] = []
  readonly #seed: Int32Array
  #templateNos: number[] = []
  readonly #misses = new MissList()
  #receivedAtMs = 0
  #modelVersionIndex = 0

  constructor(lookup: ShapeLookup, seed: Int32Array) {
    this.#lookup = lookup
    this.#seed = seed
  }

  get rows(): number {
    return this.#fold.rows
  }

  begin(receivedAtMs: number, modelVersion: string): void {
    for (const column of this.#columns) column.clear()
    this.#fold.clear()
    this.#misses.clear()
    this.#sourceHashes.length = 0
    this.#templateNos = []
    this.#receivedAtMs = receivedAtMs
    this.#modelVersionIndex = this.#modelVersion.index(modelVersion)
  }

  /** @param severity index into SEVERITIES */
  add(event: CanonicalEvent, severity: number): void {
    const source = this.#hashesOf(event.source)
    const tags = event.tags === null ? '' : JSON.stringify(event.tags)
    const { data } = this.#message
    const before = data.length
    const start = this.#message.push(event.message)
    const incoming = { event, tags, severity, source, start, end: data.length }
    this.#hashEvent(incoming)
    const known = this.#fold.find(this.#hash, event.timestampMs)
    if (known >= 0) {
      data.length = before
      this.#message.rows--
      this.#fold.count(known)
      return
    }
    this.#fold.add(this.#hash, event.timestampMs)
    this.#pushFields(incoming)
    this.#templateNos.push(this.#template(incoming))
  }

  /** The block, in arrays of its own; null when nothing was added. */
  finish(): RowBlock | null {
    const rows = this.#fold.rows
    if (rows === 0) return null
    this.#fillConstants(rows)
    const { bytes, offsets } = toNativeBlock(this.#columns, rows, this.#out)
    const at = (column: FixedColumn): number => offsets[this.#columns.indexOf(column)] ?? 0
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
      severities: this.#severity.data.copy(),
      sourceIndexes: Uint32Array.from({ length: rows }, (_, row) => this.#source.at(row)),
      templateNos: Int32Array.from(this.#templateNos),
      sources: [...this.#source.values],
      misses: this.#misses.finish(),
    }
  }

  #fillConstants(rows: number): void {
    this.#id.zeros(rows)
    this.#isNew.zeros(rows)
    this.#priority.zeros(rows)
    this.#prioritySource.zeros(rows)
    this.#confidence.zeros(rows)
    this.#templateId.zeros(rows)
    for (let row = 0; row < rows; row++) {
      this.#n.data.u32(this.#fold.counts[row] ?? 0)
      this.#receivedAt.data.u64(this.#receivedAtMs)
      this.#modelVersion.pushIndex(this.#modelVersionIndex)
    }
  }

  #hashesOf(source: string): SourceHashes {
    const index = this.#source.index(source)
    const known = this.#sourceHashes[index]
    if (known !== undefined) return known
    const shapeSeed = new Int32Array(2)
    this.#lookup.sourceSeed(source, shapeSeed)
    const dedup = Int32Array.from(this.#seed)
    this.#hashText(source, dedup)
    const hashes = { index, shapeSeed, dedup }
    this.#sourceHashes[index] = hashes
    return hashes
  }

  #hashText(text: string, out: Int32Array): void {
    this.#scratch.clear()
    const start = this.#scratch.string(text)
    hashBytes(this.#scratch.bytes, start, this.#scratch.length, out)
  }

  /** What makes two messages the same event; see the decisions on counting in the README. */
  #hashEvent({ event, tags, severity, source, start, end }: Incoming): void {
    const hash = this.#hash
    hash[0] = source.dedup[0] ?? 0
    hash[1] = source.dedup[1] ?? 0
    if (event.dedupKey !== '') {
      this.#hashText(event.dedupKey, hash)
      mixInto(hash, 1, 1)
      return
    }
    hashBytes(this.#message.data.bytes, start, end, hash)
    this.#hashText(event.host, hash)
    this.#hashText(event.environment, hash)
    if (event.traceId !== '') this.#hashText(event.traceId, hash)
    if (event.type !== 'log') this.#hashText(tags, hash)
    mixInto(hash, severity + 2, EVENT_TYPES.indexOf(event.type) + 2)
  }

  #pushFields({ event, tags, severity, source, start, end }: Incoming): void {
    this.#ts.data.u64(event.timestampMs)
    this.#source.pushIndex(source.index)
    this.#type.data.u8(EVENT_TYPES.indexOf(event.type))
    this.#severity.data.u8(severity)
    this.#host.push(event.host)
    this.#environment.push(event.environment)
    this.#traceId.push(event.traceId)
    this.#spanId.push(event.spanId)
    this.#searchWords.push(searchWords(event, end - start))
    this.#summary.push(event.summary)
    this.#tags.push(tags)
    this.#dedupKey.push(event.dedupKey)
  }

  #template({ event, source, start, end }: Incoming): number {
    if (event.template !== '') return this.#readyMade(event.template, source)
    const { bytes } = this.#message.data
    const minedEnd = Math.min(end, start + MINED_BYTES)
    this.#lookup.scanShape(bytes, { start, end: minedEnd }, source.shapeSeed, this.#shape)
    const no = this.#lookup.templateNo(this.#shape[0] ?? 0, this.#shape[1] ?? 0)
    if (no === 0) {
      const miss = { sourceIndex: source.index, readyMade: false, row: this.#templateNos.length }
      this.#misses.add(this.#shape, bytes.subarray(start, minedEnd), miss)
    }
    return no
  }

  #readyMade(template: string, source: SourceHashes): number {
    const shape = this.#shape
    shape[0] = (source.shapeSeed[0] ?? 0) ^ READY_MADE
    shape[1] = source.shapeSeed[1] ?? 0
    this.#scratch.clear()
    const start = this.#scratch.string(template)
    const text = this.#scratch.bytes.subarray(start, this.#scratch.length)
    hashBytes(text, 0, text.length, shape)
    const no = this.#lookup.templateNo(shape[0], shape[1])
    if (no === 0) {
      const miss = { sourceIndex: source.index, readyMade: true, row: this.#templateNos.length }
      this.#misses.add(shape, text, miss)
    }
    return no
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
