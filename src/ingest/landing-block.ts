import { NativeWriter } from '../clickhouse/native-writer.js'
import type { Kernel } from '../wasm/kernel.js'
import * as layout from '../wasm/layout.js'
import { POOLED_FROM } from '../lib/buffer-pool.js'
import { ByteBuffer } from '../lib/byte-buffer.js'
import { SEVERITIES } from '../model/event.js'
import type { BlockSlice } from '../wal/block-pool.js'
import type { MissBlock, RowBlock } from './block.js'

const ENUM_TYPE = "Enum8('log' = 0, 'metric' = 1, 'trace' = 2, 'event' = 3)"
const ENUM_SEVERITY = "Enum8('DEBUG' = 0, 'INFO' = 1, 'WARNING' = 2, 'ERROR' = 3, 'CRITICAL' = 4)"
const ENUM_PRIORITY = "Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3)"
const ENUM_PRIORITY_SOURCE = "Enum8('auto' = 0, 'template' = 1, 'manual' = 2)"
const TIME = "DateTime64(3, 'UTC')"
const TEXT = 'String'

const TEXT_COLUMNS = [
  ['trace_id', layout.TRACE_TEXTS],
  ['span_id', layout.SPAN_TEXTS],
  ['summary', layout.SUMMARY_TEXTS],
  ['attribute_values', layout.ATTRIBUTE_VALUE_TEXTS],
  ['tags_text', layout.TAGS_TEXTS],
  ['dedup_key', layout.DEDUP_KEY_TEXTS],
] as const
const DICTIONARY_COLUMNS = [
  ['host', layout.HOST_WORDS],
  ['environment', layout.ENVIRONMENT_WORDS],
  ['constant_text', layout.CONSTANT_TEXT_WORDS],
  ['attribute_names', layout.ATTRIBUTE_NAME_WORDS],
] as const
/** The columns of a block beside those of the two lists. */
const OTHER_COLUMNS = 15
/** A smaller block has all columns, because neighbouring small blocks are joined when their columns are the same. */
const SPARSE_FROM_ROWS = 1000

/** A row whose message is not ASCII. */
export interface WideRow {
  readonly row: number
  /** The row's words for the word index. */
  readonly words: string
}

export interface LandingInput {
  readonly rows: number
  readonly receivedAtMs: number
  readonly modelVersion: string
  /** By row, ascending. */
  readonly wide: readonly WideRow[]
  readonly misses: MissBlock | null
  readonly attributesLeftOut: number
  readonly slice: BlockSlice | null
}

/**
 * Writes the kernel's rows as one block in ClickHouse's Native format. The columns that the sequencer fills in are
 * zero; `at` has their offsets. Columns in which all rows are empty are left out: ClickHouse fills them in.
 */
export function writeLanding(kernel: Kernel, input: LandingInput): RowBlock {
  const { calls } = kernel
  const { rows } = input
  const sources = dictionary(kernel, layout.SOURCE_WORDS)
  const most = aligned(sizeOf(kernel, input))
  // Columns are not aligned, so the block is assembled in WebAssembly's memory and copied once.
  const memory = kernel.view(calls.scratchAt(most), most)
  const buffer = new ByteBuffer(memory)
  const isSparse = rows >= SPARSE_FROM_ROWS
  const hasWords = !isSparse || input.wide.length > 0
  const texts = TEXT_COLUMNS.filter(([, column]) => !isSparse || calls.textsLength(column) > rows)
  const dictionaries = DICTIONARY_COLUMNS.filter(
    ([, column]) => !isSparse || hasWord(kernel, column),
  )
  const columns = OTHER_COLUMNS + Number(hasWords) + texts.length + dictionaries.length
  const out = new NativeWriter(buffer, columns, rows)
  const id = out.zeros('id', 'UInt64', 8)
  const keptDays = out.zeros('kept_days', 'UInt16', 2)
  const isNew = out.zeros('is_new', 'UInt8', 1)
  const counts = kernel.view(calls.addressOf(layout.ROW_COUNTS), rows * 4)
  out.values('n', 'Int32', counts)
  out.values('received_at', TIME, repeated(input.receivedAtMs, rows))
  const times = kernel.view(calls.addressOf(layout.ROW_TIMES), rows * 8)
  out.values('ts', TIME, times)
  out.dictionary('source', sources, kernel.words32(calls.indexesAt(layout.SOURCE_WORDS), rows))
  out.values('type', ENUM_TYPE, kernel.view(calls.addressOf(layout.ROW_TYPES), rows))
  out.values('severity', ENUM_SEVERITY, kernel.view(calls.addressOf(layout.ROW_SEVERITIES), rows))
  const priority = out.zeros('priority', ENUM_PRIORITY, 1)
  const prioritySource = out.zeros('priority_source', ENUM_PRIORITY_SOURCE, 1)
  const confidence = out.zeros('confidence', 'Float32', 4)
  out.dictionary('model_version', [input.modelVersion], new Uint32Array(rows))
  const templateId = out.zeros('template_id', 'UInt64', 8)
  for (const [name, column] of dictionaries)
    out.dictionary(name, dictionary(kernel, column), kernel.words32(calls.indexesAt(column), rows))
  for (const [name, column] of texts) out.values(name, TEXT, textsOf(kernel, column))
  out.values(
    'variables',
    TEXT,
    kernel.view(calls.addressOf(layout.MESSAGES), calls.lengthOf(layout.MESSAGES)),
  )
  if (hasWords) out.values('search_words', TEXT, searchWordsOf(input))
  if (buffer.bytes !== memory) throw new Error('bug: a block is larger than its estimate')
  const made = buffer.written
  const sides = aligned(made.length)
  const { buffer: target, at } = placeOf(sides + rows * SIDE_BYTES + SIDE_SPARE, input.slice)
  const bytes = new Uint8Array(target, at, made.length)
  bytes.set(made)
  return {
    bytes,
    rows,
    at: { id, keptDays, isNew, priority, prioritySource, confidence, templateId },
    ...sideArrays(kernel, rows, { buffer: target, at: at + sides }),
    sources,
    occurrences: countOccurrences(kernel, rows, sources.length),
    misses: input.misses,
    attributesLeftOut: input.attributesLeftOut,
  }
}

function countOccurrences(kernel: Kernel, rows: number, sources: number): Uint32Array {
  const { calls } = kernel
  const sourceOf = kernel.words32(calls.indexesAt(layout.SOURCE_WORDS), rows)
  const counts = kernel.words32(calls.addressOf(layout.ROW_COUNTS), rows)
  const severities = kernel.view(calls.addressOf(layout.ROW_SEVERITIES), rows)
  const sums = new Uint32Array(sources * SEVERITIES.length)
  for (let row = 0; row < rows; row++) {
    const at = (sourceOf[row] ?? 0) * SEVERITIES.length + (severities[row] ?? 0)
    sums[at] = (sums[at] ?? 0) + (counts[row] ?? 0)
  }
  return sums
}

/** Bytes of a row in the side arrays: hash, time, count, source, template, severity. */
const SIDE_BYTES = 8 + 8 + 4 + 4 + 4 + 1
/** Padding of the side arrays to multiples of 8, because unaligned shared memory is copied byte by byte. */
const SIDE_SPARE = 6 * 8

const aligned = (bytes: number): number => Math.ceil(bytes / 8) * 8

interface Place {
  readonly buffer: ArrayBufferLike
  /** A multiple of 8. */
  readonly at: number
}

function placeOf(bytes: number, slice: BlockSlice | null): Place {
  if (slice !== null && slice.bytes >= bytes) return slice
  const buffer = bytes < POOLED_FROM ? new ArrayBuffer(bytes) : new SharedArrayBuffer(bytes)
  return { buffer, at: 0 }
}

function sideArrays(
  kernel: Kernel,
  rows: number,
  to: Place,
): Pick<RowBlock, 'hashes' | 'tsMs' | 'counts' | 'sourceIndexes' | 'templateNos' | 'severities'> {
  const { calls } = kernel
  const { buffer } = to
  let { at } = to
  const placed = (address: number, width: number): number => {
    const place = at
    new Uint8Array(buffer, at, rows * width).set(kernel.view(address, rows * width))
    at = aligned(at + rows * width)
    return place
  }
  return {
    tsMs: new Float64Array(buffer, placed(calls.addressOf(layout.ROW_TIMES_F64), 8), rows),
    hashes: new Int32Array(buffer, placed(calls.addressOf(layout.ROW_HASHES), 8), rows * 2),
    counts: new Int32Array(buffer, placed(calls.addressOf(layout.ROW_COUNTS), 4), rows),
    sourceIndexes: new Uint32Array(buffer, placed(calls.indexesAt(layout.SOURCE_WORDS), 4), rows),
    templateNos: new Int32Array(buffer, placed(calls.addressOf(layout.ROW_TEMPLATES), 4), rows),
    severities: new Uint8Array(buffer, placed(calls.addressOf(layout.ROW_SEVERITIES), 1), rows),
  }
}

function dictionary(kernel: Kernel, column: number): string[] {
  const { calls } = kernel
  const size = calls.dictionarySize(column)
  return Array.from(kernel.words32(calls.dictionaryAt(column), size), (word) => kernel.word(word))
}

/** Whether some row has a text in this column. */
const hasWord = (kernel: Kernel, column: number): boolean =>
  dictionary(kernel, column).some((word) => word !== '')

const textsOf = (kernel: Kernel, column: number): Uint8Array => {
  const length = kernel.calls.textsLength(column)
  return kernel.view(kernel.calls.textsAt(column), length)
}

const repeated = (ms: number, rows: number): Uint8Array =>
  new Uint8Array(new BigUint64Array(rows).fill(BigInt(ms)).buffer)

function searchWordsOf({ rows, wide }: LandingInput): Uint8Array {
  const out = new ByteBuffer(rows)
  let row = 0
  for (const { row: at, words } of wide) {
    out.zeros(at - row)
    out.string(words)
    row = at + 1
  }
  out.zeros(rows - row)
  return out.written
}

/** Returns an upper bound of the block's bytes. */
function sizeOf(kernel: Kernel, { rows, wide, modelVersion }: LandingInput): number {
  const { calls } = kernel
  let bytes = 4096 + modelVersion.length * 3 + rows * (FIXED_BYTES + 6 * 4 + 1)
  let longest = 0
  for (const column of [layout.SOURCE_WORDS, ...DICTIONARY_COLUMNS.map(([, id]) => id)]) {
    for (const word of kernel.words32(calls.dictionaryAt(column), calls.dictionarySize(column))) {
      bytes += calls.wordLength(word) + 5
      longest = Math.max(longest, calls.wordLength(word))
    }
  }
  // Room for a text must exist at three bytes a character before it is written.
  bytes += 2 * longest
  for (const [, column] of TEXT_COLUMNS) bytes += calls.textsLength(column)
  for (const { words } of wide) bytes += words.length * 3 + 5
  return bytes + calls.lengthOf(layout.MESSAGES)
}

/** Bytes of a row: id, kept_days, is_new, n, two times, type, severity, priority and its source, confidence, template. */
const FIXED_BYTES = 8 + 2 + 1 + 4 + 16 + 1 + 1 + 1 + 1 + 4 + 8
