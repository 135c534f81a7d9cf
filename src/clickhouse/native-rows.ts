/**
 * One block of ClickHouse's Native format, read so far that rows can be looked at and cut out. The types
 * are those that `native-columns.ts` writes and the plain ones beside them.
 */
export interface NativeRows {
  readonly rows: number
  /** The rows from `from` up to, not including, `to` as a block of their own. */
  slice(from: number, to: number): Uint8Array
  /** Text of a column of text, null of another or of none. */
  text(column: string, row: number): string | null
  /** Number of a column of numbers, null of another or of none. */
  number(column: string, row: number): number | null
  /** Number of a column of 64 bits as 16 hex digits, null of another or of none. */
  hex(column: string, row: number): string | null
  /** The block with one byte of a column of bytes changed. */
  withByte(column: string, row: number, value: number): Uint8Array
}

type Data =
  | { readonly kind: 'fixed'; readonly width: number; readonly at: number }
  /** where each text begins; the last is where the column ends */
  | { readonly kind: 'text'; readonly starts: Uint32Array }
  | {
      readonly kind: 'dictionary'
      /** version, flags and keys */
      readonly head: Uint8Array
      readonly keys: readonly Buffer[]
      readonly width: number
      readonly at: number
    }

interface ReadColumn {
  readonly type: string
  /** name and type as they stand in the block */
  readonly head: Uint8Array
  readonly data: Data
}

/** @returns null for bytes that are not exactly one block of types known here */
export function readNativeRows(bytes: Uint8Array): NativeRows | null {
  try {
    const reader = new Reader(bytes)
    const count = reader.varint()
    const rows = reader.varint()
    const columns = new Map<string, ReadColumn>()
    for (let i = 0; i < count; i++) {
      const start = reader.at
      const name = reader.text().toString()
      const type = reader.text().toString()
      const head = bytes.subarray(start, reader.at)
      columns.set(name, { type, head, data: readData(reader, type, rows) })
    }
    return reader.isAtEnd && columns.size === count ? new Rows(reader.bytes, rows, columns) : null
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

class Rows implements NativeRows {
  readonly rows: number
  readonly #bytes: Buffer
  readonly #columns: ReadonlyMap<string, ReadColumn>

  constructor(bytes: Buffer, rows: number, columns: ReadonlyMap<string, ReadColumn>) {
    this.#bytes = bytes
    this.rows = rows
    this.#columns = columns
  }

  slice(from: number, to: number): Uint8Array {
    const parts: Uint8Array[] = [varint(this.#columns.size), varint(to - from)]
    for (const { head, data } of this.#columns.values())
      parts.push(head, ...this.#cut(data, from, to))
    return Buffer.concat(parts)
  }

  text(column: string, row: number): string | null {
    const data = this.#columns.get(column)?.data
    switch (data?.kind) {
      case 'text': {
        const end = data.starts[row + 1] ?? 0
        return new Reader(this.#bytes.subarray(data.starts[row] ?? 0, end)).text().toString()
      }
      case 'dictionary':
        return (
          data.keys[this.#bytes.readUIntLE(data.at + row * data.width, data.width)]?.toString() ??
          null
        )
      case 'fixed':
      case undefined:
        return null
    }
  }

  number(column: string, row: number): number | null {
    const found = this.#columns.get(column)
    if (found?.data.kind !== 'fixed') return null
    const { at, width } = found.data
    if (found.type.startsWith('Float')) return null
    if (width === 8) return Number(this.#bytes.readBigInt64LE(at + row * 8))
    return /^(U|Enum)/.test(found.type)
      ? this.#bytes.readUIntLE(at + row * width, width)
      : this.#bytes.readIntLE(at + row * width, width)
  }

  hex(column: string, row: number): string | null {
    const data = this.#columns.get(column)?.data
    if (data?.kind !== 'fixed' || data.width !== 8) return null
    return this.#bytes
      .readBigUInt64LE(data.at + row * 8)
      .toString(16)
      .padStart(16, '0')
  }

  withByte(column: string, row: number, value: number): Uint8Array {
    const data = this.#columns.get(column)?.data
    if (data?.kind !== 'fixed' || data.width !== 1) return this.#bytes
    const changed = Buffer.from(this.#bytes)
    changed.writeUInt8(value, data.at + row)
    return changed
  }

  #cut(data: Data, from: number, to: number): readonly Uint8Array[] {
    const bytes = this.#bytes
    switch (data.kind) {
      case 'fixed':
        return [bytes.subarray(data.at + from * data.width, data.at + to * data.width)]
      case 'text':
        return [bytes.subarray(data.starts[from], data.starts[to])]
      case 'dictionary': {
        const rows = Buffer.alloc(8)
        rows.writeBigUInt64LE(BigInt(to - from))
        const indexes = bytes.subarray(data.at + from * data.width, data.at + to * data.width)
        return [data.head, rows, indexes]
      }
    }
  }
}

/** Reads forward. @throws RangeError beyond the end */
class Reader {
  at = 0
  readonly bytes: Buffer

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  get isAtEnd(): boolean {
    return this.at === this.bytes.length
  }

  varint(): number {
    let value = 0
    for (let scale = 1; scale <= 2 ** 49; scale *= 128) {
      const byte = this.bytes.readUInt8(this.at++)
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
    throw new RangeError('a number is too long')
  }

  take(length: number): Buffer {
    if (this.at + length > this.bytes.length) throw new RangeError('the block ends too early')
    const taken = this.bytes.subarray(this.at, this.at + length)
    this.at += length
    return taken
  }

  text(): Buffer {
    return this.take(this.varint())
  }

  u64(): number {
    return Number(this.take(8).readBigUInt64LE())
  }
}

function readData(reader: Reader, type: string, rows: number): Data {
  if (type === 'String') return readTexts(reader, rows)
  if (type === 'LowCardinality(String)') return readDictionary(reader, rows)
  const at = reader.at
  const width = widthOf(type)
  reader.take(rows * width)
  return { kind: 'fixed', width, at }
}

export function widthOf(type: string): number {
  const bits = /^(?:U?Int|Float|Enum)(8|16|32|64)(?:\(|$)/.exec(type)?.[1]
  if (bits !== undefined) return Number(bits) / 8
  if (type.startsWith('DateTime64(')) return 8
  throw new RangeError('a type that is not known')
}

function readTexts(reader: Reader, rows: number): Data {
  // each text takes a byte at least
  if (rows > reader.bytes.length) throw new RangeError('the block ends too early')
  const starts = new Uint32Array(rows + 1)
  for (let row = 0; row < rows; row++) {
    starts[row] = reader.at
    reader.text()
  }
  starts[rows] = reader.at
  return { kind: 'text', starts }
}

const INDEX_WIDTHS = [1, 2, 4]

/** Version, flags (their low byte tells the width of an index), keys, rows, indexes. */
function readDictionary(reader: Reader, rows: number): Data {
  const start = reader.at
  reader.u64()
  const width = INDEX_WIDTHS[reader.u64() & 0xff]
  if (width === undefined) throw new RangeError('an index of another width')
  const size = reader.u64()
  const keys: Buffer[] = []
  for (let i = 0; i < size; i++) keys.push(reader.text())
  const head = reader.bytes.subarray(start, reader.at)
  if (reader.u64() !== rows) throw new RangeError('another number of indexes than rows')
  const at = reader.at
  reader.take(rows * width)
  return { kind: 'dictionary', head, keys, width, at }
}

export function varint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
  bytes.push(rest)
  return Uint8Array.from(bytes)
}
