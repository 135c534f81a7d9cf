import { ByteBuffer } from '../lib/byte-buffer.js'

/**
 * Columns in ClickHouse's Native format, built in memory and reused from block to block.
 * Source: the Native format of ClickHouse's documentation; the LowCardinality layout is that of
 * SerializationLowCardinality: version 1, a flag word, the dictionary, the indexes.
 */
export interface Column {
  readonly name: string
  readonly type: string
  readonly rows: number
  write(out: ByteBuffer): void
  clear(): void
}

/** Values of one to eight bytes, little-endian. */
export class FixedColumn implements Column {
  readonly data = new ByteBuffer(4096)
  readonly name: string
  readonly type: string
  readonly #width: number

  constructor(name: string, type: string, width: 1 | 4 | 8) {
    this.name = name
    this.type = type
    this.#width = width
  }

  get rows(): number {
    return this.data.length / this.#width
  }

  /** Appends `rows` zero values, to be patched later. */
  zeros(rows: number): void {
    const extra = rows * this.#width
    this.data.reserve(extra)
    this.data.bytes.fill(0, this.data.length, this.data.length + extra)
    this.data.length += extra
  }

  write(out: ByteBuffer): void {
    out.append(this.data.bytes.subarray(0, this.data.length))
  }

  clear(): void {
    this.data.clear()
  }
}

export class StringColumn implements Column {
  readonly data = new ByteBuffer(65_536)
  readonly name: string
  readonly type = 'String'
  rows = 0

  constructor(name: string) {
    this.name = name
  }

  /** @returns where the text begins in `data` */
  push(text: string): number {
    this.rows++
    if (text === '') {
      this.data.u8(0)
      return this.data.length
    }
    return this.data.string(text)
  }

  pushBytes(text: Uint8Array): void {
    this.rows++
    this.data.varint(text.length)
    this.data.append(text)
  }

  write(out: ByteBuffer): void {
    out.append(this.data.bytes.subarray(0, this.data.length))
  }

  clear(): void {
    this.data.clear()
    this.rows = 0
  }
}

const ADDITIONAL_KEYS = 1 << 9
const NEED_UPDATE = 1 << 10

/** LowCardinality(String): a dictionary per block and an index per row. */
export class DictColumn implements Column {
  readonly name: string
  readonly type = 'LowCardinality(String)'
  readonly #indexOf = new Map<string, number>()
  readonly values: string[] = []
  #indexes = new Uint32Array(4096)
  rows = 0

  constructor(name: string) {
    this.name = name
  }

  /** @returns the dictionary index of `value`, added when new */
  index(value: string): number {
    const known = this.#indexOf.get(value)
    if (known !== undefined) return known
    const index = this.values.length
    this.#indexOf.set(value, index)
    this.values.push(value)
    return index
  }

  pushIndex(index: number): void {
    if (this.rows === this.#indexes.length) {
      const grown = new Uint32Array(this.rows * 2)
      grown.set(this.#indexes)
      this.#indexes = grown
    }
    this.#indexes[this.rows++] = index
  }

  push(value: string): void {
    this.pushIndex(this.index(value))
  }

  at(row: number): number {
    return this.#indexes[row] ?? 0
  }

  write(out: ByteBuffer): void {
    const size = this.values.length
    const indexes = this.#indexes.subarray(0, this.rows)
    const keyType = size <= 0x100 ? 0 : size <= 0x1_0000 ? 1 : 2
    out.u64(1)
    out.u64(ADDITIONAL_KEYS | NEED_UPDATE | keyType)
    out.u64(size)
    for (const value of this.values) out.string(value)
    out.u64(this.rows)
    out.append(
      keyType === 2
        ? new Uint8Array(indexes.buffer, 0, this.rows * 4)
        : keyType === 1
          ? new Uint8Array(Uint16Array.from(indexes).buffer)
          : Uint8Array.from(indexes),
    )
  }

  clear(): void {
    this.#indexOf.clear()
    this.values.length = 0
    this.rows = 0
  }
}

export interface NativeBlock {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** where each column's data begins in `bytes`, in the order of the columns */
  readonly offsets: readonly number[]
}

/** Writes one Native block. @throws Error `bug:` when a column has another number of rows */
export function toNativeBlock(
  columns: readonly Column[],
  rows: number,
  out: ByteBuffer,
): NativeBlock {
  out.clear()
  out.varint(columns.length)
  out.varint(rows)
  const offsets: number[] = []
  for (const column of columns) {
    if (column.rows !== rows)
      throw new Error(`bug: column ${column.name} has ${column.rows} rows, the block ${rows}`)
    out.string(column.name)
    out.string(column.type)
    offsets.push(out.length)
    column.write(out)
  }
  return { bytes: out.copy(), offsets }
}
