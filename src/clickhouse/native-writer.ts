import { ByteBuffer } from '../lib/byte-buffer.js'
import {
  DICTIONARY_FLAGS,
  DICTIONARY_VERSION,
  indexAt,
  readBlock,
  type Dictionary,
  type NativeBlock,
} from './native-reader.js'

/**
 * Writes one block of ClickHouse's Native format, column after column; `native-reader.ts` says what the format is.
 * The columns of a block are collected by `FixedColumn`, `StringColumn` and `DictColumn`, or are bytes that stand
 * somewhere in memory already, as those of the ingest kernel do (`ingest/landing-block.ts`).
 */
export class NativeWriter {
  readonly #out: ByteBuffer
  readonly #rows: number

  constructor(out: ByteBuffer, columns: number, rows: number) {
    this.#out = out
    this.#rows = rows
    out.varint(columns)
    out.varint(rows)
  }

  /** Writes the column's values as they are. @returns where they begin */
  values(name: string, type: string, bytes: Uint8Array): number {
    const at = this.#head(name, type)
    this.#out.append(bytes)
    return at
  }

  /** Writes a zero of `width` bytes for each row, to be set later. @returns where they begin */
  zeros(name: string, type: string, width: number): number {
    const at = this.#head(name, type)
    this.#out.zeros(this.#rows * width)
    return at
  }

  /** Writes a LowCardinality(String). @returns where its data begins */
  dictionary(name: string, values: readonly string[], indexes: Uint32Array): number {
    const at = this.#head(name, 'LowCardinality(String)')
    beginDictionary(this.#out, values.length)
    for (const value of values) this.#out.string(value)
    endDictionary(this.#out, values.length, indexes)
    return at
  }

  #head(name: string, type: string): number {
    this.#out.string(name)
    this.#out.string(type)
    return this.#out.length
  }
}

/** The width of an index as the format encodes it: 0, 1, 2 for one, two, four bytes. */
const indexType = (keys: number): 0 | 1 | 2 => (keys <= 0x100 ? 0 : keys <= 0x1_0000 ? 1 : 2)

function beginDictionary(out: ByteBuffer, keys: number): void {
  out.u64(DICTIONARY_VERSION)
  out.u64(DICTIONARY_FLAGS + indexType(keys))
  out.u64(keys)
}

function endDictionary(out: ByteBuffer, keys: number, indexes: Uint32Array): void {
  out.u64(indexes.length)
  switch (indexType(keys)) {
    case 0:
      out.append(indexes)
      return
    case 1:
      out.append(new Uint8Array(new Uint16Array(indexes).buffer))
      return
    case 2:
      out.append(new Uint8Array(indexes.buffer, indexes.byteOffset, indexes.length * 4))
  }
}

/** A column that is collected in memory and reused for every block. */
export interface Column {
  readonly name: string
  readonly rows: number
  /** @returns where the data begins */
  write(writer: NativeWriter): number
  clear(): void
}

/** Values of one to eight bytes, little-endian. */
export class FixedColumn implements Column {
  readonly data = new ByteBuffer(4096)
  readonly name: string
  readonly #type: string
  readonly #width: number

  constructor(name: string, type: string, width: 1 | 2 | 4 | 8) {
    this.name = name
    this.#type = type
    this.#width = width
  }

  get rows(): number {
    return this.data.length / this.#width
  }

  /** Appends `rows` zero values, to be set later. */
  zeros(rows: number): void {
    this.data.zeros(rows * this.#width)
  }

  write(writer: NativeWriter): number {
    return writer.values(this.name, this.#type, this.data.written)
  }

  clear(): void {
    this.data.clear()
  }
}

export class StringColumn implements Column {
  readonly data = new ByteBuffer(65_536)
  readonly name: string
  rows = 0

  constructor(name: string) {
    this.name = name
  }

  push(text: string): void {
    this.rows++
    this.data.string(text)
  }

  pushBytes(text: Uint8Array): void {
    this.rows++
    this.data.varint(text.length)
    this.data.append(text)
  }

  write(writer: NativeWriter): number {
    return writer.values(this.name, 'String', this.data.written)
  }

  clear(): void {
    this.data.clear()
    this.rows = 0
  }
}

/** LowCardinality(String): a dictionary per block and an index per row. */
export class DictColumn implements Column {
  readonly name: string
  readonly #numberOf = new Map<string, number>()
  #indexes = new Uint32Array(4096)
  rows = 0

  constructor(name: string) {
    this.name = name
  }

  push(value: string): void {
    if (this.rows === this.#indexes.length) {
      const grown = new Uint32Array(this.rows * 2)
      grown.set(this.#indexes)
      this.#indexes = grown
    }
    this.#indexes[this.rows++] = numberIn(this.#numberOf, value)
  }

  write(writer: NativeWriter): number {
    const indexes = this.#indexes.subarray(0, this.rows)
    return writer.dictionary(this.name, [...this.#numberOf.keys()], indexes)
  }

  clear(): void {
    this.#numberOf.clear()
    this.rows = 0
  }
}

/** @returns the index of the key, the next one when it is new */
function numberIn(numberOf: Map<string, number>, key: string): number {
  const known = numberOf.get(key)
  if (known !== undefined) return known
  numberOf.set(key, numberOf.size)
  return numberOf.size - 1
}

interface WrittenBlock {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Where each column's data begins in `bytes`, in the order of the columns. */
  readonly offsets: readonly number[]
}

/** @throws Error `bug:` when a column has another number of rows */
export function toNativeBlock(
  columns: readonly Column[],
  rows: number,
  out: ByteBuffer,
): WrittenBlock {
  out.clear()
  const writer = new NativeWriter(out, columns.length, rows)
  const offsets = columns.map((column) => {
    if (column.rows !== rows)
      throw new Error(`bug: column ${column.name} has ${column.rows} rows, the block ${rows}`)
    return column.write(writer)
  })
  return { bytes: out.copy(), offsets }
}

/** Joining larger blocks saves ClickHouse no time. With 70 rows a block it takes 4 µs a row (bench/flow/ingest.ts --small). */
const SMALL_BYTES = 65_536
/** Joining this much takes a few milliseconds of the caller's thread. */
const JOINED_BYTES = 1024 * 1024

/**
 * Joins neighbouring small blocks into one with the same rows in the same order. The same blocks give the same bytes.
 * Bytes that are not known to be a whole block, or have other columns than the block before, stay as they are.
 */
export function* joinBlocks(blocks: readonly Uint8Array[]): Generator<Uint8Array> {
  let run: NativeBlock[] = []
  let bytes = 0
  for (const each of blocks) {
    const block = each.length > SMALL_BYTES ? null : readJoinable(each)
    const [first] = run
    const isNext = block !== null && (first === undefined || hasSameColumns(first, block))
    if (!isNext || bytes + each.length > JOINED_BYTES) {
      if (first !== undefined) yield join(first, run)
      run = []
      bytes = 0
    }
    if (block === null) yield each
    else {
      run.push(block)
      bytes += each.length
    }
  }
  const [first] = run
  if (first !== undefined) yield join(first, run)
}

/** @returns null when an index has no key: joined, it would get the key of another row */
function readJoinable(bytes: Uint8Array): NativeBlock | null {
  const block = readBlock(bytes)
  for (const { data } of block?.columns.values() ?? [])
    if (data.kind === 'dictionary' && !hasAllKeys(data, block?.rows ?? 0)) return null
  return block
}

function hasAllKeys(data: Dictionary, rows: number): boolean {
  for (let row = 0; row < rows; row++) if (indexAt(data, row) >= data.keys.count) return false
  return true
}

function hasSameColumns(a: NativeBlock, b: NativeBlock): boolean {
  if (a.columns.size !== b.columns.size) return false
  const others = b.columns.values()
  for (const { head } of a.columns.values())
    if (others.next().value?.head.equals(head) !== true) return false
  return true
}

function join(first: NativeBlock, blocks: readonly NativeBlock[]): Uint8Array {
  if (blocks.length === 1) return first.bytes
  const rows = blocks.reduce((sum, block) => sum + block.rows, 0)
  const most = blocks.reduce((sum, { bytes }) => sum + bytes.length, 1024)
  const out = new ByteBuffer(Buffer.allocUnsafe(most))
  out.varint(first.columns.size)
  out.varint(rows)
  for (const [name, { head }] of first.columns) {
    out.append(head)
    const columns = blocks.flatMap((block) => block.columns.get(name)?.data ?? [])
    const dictionaries = columns.filter((data) => data.kind === 'dictionary')
    if (dictionaries.length > 0) joinDictionaries(out, dictionaries, rows)
    for (const data of columns) {
      if (data.kind === 'text') out.append(data.texts.bytes)
      if (data.kind === 'fixed') out.append(data.values)
    }
  }
  return out.written
}

function joinDictionaries(out: ByteBuffer, columns: readonly Dictionary[], rows: number): void {
  /** Keys of the map are the length and the text of a dictionary entry, as Latin-1. */
  const numberOf = new Map<string, number>()
  const indexes = new Uint32Array(rows)
  let row = 0
  for (const column of columns) {
    const { starts, bytes, count } = column.keys
    const numbers = Array.from({ length: count }, (_, i) =>
      numberIn(numberOf, bytes.toString('latin1', starts[i], starts[i + 1])),
    )
    const rowsOf = column.indexes.length / column.width
    for (let at = 0; at < rowsOf; at++) indexes[row++] = numbers[indexAt(column, at)] ?? 0
  }
  beginDictionary(out, numberOf.size)
  for (const key of numberOf.keys()) out.append(Buffer.from(key, 'latin1'))
  endDictionary(out, numberOf.size, indexes)
}
