/**
 * Reads ClickHouse's Native format: the blocks in the WAL, and query results of millions of numbers.
 *
 * A block is the number of its columns, the number of its rows, and for each column its name, its type and its data.
 * A reader scans that data once and stores the offsets; values are decoded on access. Types are
 * numbers of one to eight bytes, String (each text behind its length), LowCardinality(String) (version, flags, keys,
 * one index a row) and Array of a number (the end of each row's items, then all items).
 *
 * Source: the Native format of ClickHouse's documentation, SerializationLowCardinality and SerializationArray.
 */
export class NativeBlock {
  readonly bytes: Buffer
  readonly rows: number
  readonly columns: ReadonlyMap<string, NativeColumn>

  constructor(bytes: Buffer, rows: number, columns: ReadonlyMap<string, NativeColumn>) {
    this.bytes = bytes
    this.rows = rows
    this.columns = columns
  }

  /** @returns null for a column of another type, or none */
  utf8(column: string, row: number): Buffer | null {
    const data = this.columns.get(column)?.data
    if (data?.kind === 'text') return data.texts.at(row)
    return data?.kind === 'dictionary' ? data.keys.at(indexAt(data, row)) : null
  }

  /** @returns null for a column of another type, or none */
  text(column: string, row: number): string | null {
    return this.utf8(column, row)?.toString() ?? null
  }

  /** @returns null for a column of another type, or none */
  number(column: string, row: number): number | null {
    const found = this.columns.get(column)
    return found?.data.kind === 'fixed' ? numberAt(found.type, found.data, row) : null
  }

  /** @returns a value of 64 bits as 16 digits, null for a column of another type, or none */
  hex(column: string, row: number): string | null {
    const data = this.columns.get(column)?.data
    if (data?.kind !== 'fixed' || data.width !== 8) return null
    return toHex(data.values.readBigUInt64LE(row * 8))
  }

  /** @throws TypeError when there is no such column of String */
  texts(column: string): readonly string[] {
    const data = this.#expected(column, 'text')
    return Array.from({ length: this.rows }, (_, row) => data.texts.at(row)?.toString() ?? '')
  }

  /**
   * The texts of a column, read in place.
   *
   * @throws TypeError when there is no such column of String
   */
  spans(column: string): Texts {
    return this.#expected(column, 'text').texts
  }

  /** @throws TypeError when there is no such column of LowCardinality(String) */
  dictionary(column: string): Dictionary {
    return this.#expected(column, 'dictionary')
  }

  /** The bytes of a column of numbers. @throws TypeError when there is no such column */
  fixed(column: string): Buffer {
    return this.#expected(column, 'fixed').values
  }

  /** @throws TypeError when there is no such column of numbers */
  numbers(column: string): Numbers {
    const { values } = this.#expected(column, 'fixed')
    return toNumbers(this.columns.get(column)?.type ?? '', values)
  }

  /** @returns values of 64 bits, each as 16 digits. @throws TypeError when there is no such column */
  hexIds(column: string): readonly string[] {
    const { values } = this.#expected(column, 'fixed')
    return Array.from(new BigUint64Array(copyOf(values)), toHex)
  }

  /** @throws TypeError when there is no such column of lists of numbers */
  lists(column: string): NumberLists {
    const { ends, type, items } = this.#expected(column, 'list')
    return { ends, items: toNumbers(type, items) }
  }

  /** The rows from `from` up to, not including, `to` as a block. */
  slice(from: number, to: number): Uint8Array {
    const parts: Uint8Array[] = [varint(this.columns.size), varint(to - from)]
    for (const { head, data } of this.columns.values()) parts.push(head, ...sliceOf(data, from, to))
    return Buffer.concat(parts)
  }

  /** A copy of the block with other values in some rows of a one-byte column. */
  withBytes(column: string, values: ReadonlyMap<number, number>): Uint8Array {
    const data = this.columns.get(column)?.data
    if (data?.kind !== 'fixed' || data.width !== 1) return this.bytes
    const changed = Buffer.from(this.bytes)
    const at = data.values.byteOffset - this.bytes.byteOffset
    for (const [row, value] of values) changed.writeUInt8(value, at + row)
    return changed
  }

  #expected<K extends Data['kind']>(column: string, kind: K): Extract<Data, { kind: K }> {
    const data = this.columns.get(column)?.data
    if (data === undefined || !isOfKind(data, kind))
      throw new TypeError(`bug: a block without the column ${column} of kind ${kind}`)
    return data
  }
}

export type Numbers = Uint16Array | Int32Array | Uint32Array | Float64Array

export interface NumberLists {
  /** For each row, the index after its last item. */
  readonly ends: Float64Array
  readonly items: Numbers
}

interface NativeColumn {
  readonly type: string
  /** The encoded name and type. */
  readonly head: Buffer
  readonly data: Data
}

type Data = Fixed | Text | Dictionary | List

interface Fixed {
  readonly kind: 'fixed'
  /** Bytes per value. */
  readonly width: number
  readonly values: Buffer
}

interface Text {
  readonly kind: 'text'
  readonly texts: Texts
}

export interface Dictionary {
  readonly kind: 'dictionary'
  /** The encoded version, flags and keys. */
  readonly head: Buffer
  readonly keys: Texts
  /** Bytes per index. */
  readonly width: number
  readonly indexes: Buffer
}

interface List {
  readonly kind: 'list'
  /** The type of an item. */
  readonly type: string
  readonly ends: Float64Array
  readonly items: Buffer
}

/** A sequence of length-prefixed texts. */
export class Texts {
  readonly count: number
  readonly bytes: Buffer
  #starts: Uint32Array | null = null

  constructor(bytes: Buffer, count: number) {
    this.bytes = bytes
    this.count = count
  }

  /** @returns null when there is no text at this index */
  at(index: number): Buffer | null {
    const start = this.starts[index]
    return index < this.count && start !== undefined ? new Cursor(this.bytes, start).text() : null
  }

  /** Where the bytes of a text begin; they end where the next one starts. */
  textStart(index: number): number {
    let at = this.starts[index] ?? 0
    while ((this.bytes[at++] ?? 0) >= 0x80);
    return at
  }

  /** Where each text and the length before it begin; one more entry says where the last text ends. */
  get starts(): Uint32Array {
    this.#starts ??= this.#findStarts()
    return this.#starts
  }

  #findStarts(): Uint32Array {
    const starts = new Uint32Array(this.count + 1)
    const cursor = new Cursor(this.bytes, 0)
    for (let i = 0; i < this.count; i++) {
      starts[i] = cursor.at
      cursor.skip(cursor.varint())
    }
    starts[this.count] = cursor.at
    return starts
  }
}

/** @returns null for bytes that are not exactly one block of numbers and texts */
export function readBlock(bytes: Uint8Array): NativeBlock | null {
  try {
    const cursor = new Cursor(bytes, 0)
    const block = nextBlock(cursor)
    const hasList = [...block.columns.values()].some(({ data }) => data.kind === 'list')
    return cursor.isAtEnd && !hasList ? block : null
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

/**
 * Reads the response of a query; blocks without rows are left out.
 *
 * @throws RangeError when the bytes end too early, or a type is not one of the four kinds
 */
export function readBlocks(bytes: Uint8Array): readonly NativeBlock[] {
  const cursor = new Cursor(bytes, 0)
  const blocks: NativeBlock[] = []
  while (!cursor.isAtEnd) {
    const block = nextBlock(cursor)
    if (block.rows > 0) blocks.push(block)
  }
  return blocks
}

function nextBlock(cursor: Cursor): NativeBlock {
  const start = cursor.at
  const count = cursor.varint()
  const rows = cursor.varint()
  const columns = new Map<string, NativeColumn>()
  for (let i = 0; i < count; i++) {
    const headAt = cursor.at
    const name = cursor.latin1()
    const type = cursor.latin1()
    const head = cursor.since(headAt)
    columns.set(name, { type, head, data: readData(cursor, type, rows) })
  }
  if (columns.size !== count) throw new RangeError('two columns of one name')
  return new NativeBlock(cursor.since(start), rows, columns)
}

function readData(cursor: Cursor, type: string, rows: number): Data {
  if (type === 'String') return { kind: 'text', texts: readTexts(cursor, rows) }
  if (type === 'LowCardinality(String)') return readDictionary(cursor, rows)
  const item = /^Array\((\w+)\)$/.exec(type)?.[1]
  if (item !== undefined) return readLists(cursor, item, rows)
  const width = widthOf(type)
  return { kind: 'fixed', width, values: cursor.take(rows * width) }
}

function readTexts(cursor: Cursor, count: number): Texts {
  const start = cursor.at
  for (let i = 0; i < count; i++) cursor.skip(cursor.varint())
  return new Texts(cursor.since(start), count)
}

/** The version and the flags of a dictionary. The flags say that each block has its own complete set of keys. */
export const DICTIONARY_VERSION = 1
export const DICTIONARY_FLAGS = (1 << 9) | (1 << 10)
/** Bytes per index, by the low byte of the flags. */
const INDEX_WIDTHS = [1, 2, 4]

function readDictionary(cursor: Cursor, rows: number): Dictionary {
  const start = cursor.at
  const [version, flags] = [cursor.u64(), cursor.u64()]
  const width = INDEX_WIDTHS[flags & 0xff]
  if (version !== DICTIONARY_VERSION || flags - (flags & 0xff) !== DICTIONARY_FLAGS || !width)
    throw new RangeError(`a dictionary of version ${version} with flags ${flags}`)
  const keys = readTexts(cursor, cursor.u64())
  const head = cursor.since(start)
  if (cursor.u64() !== rows) throw new RangeError('another number of indexes than rows')
  return { kind: 'dictionary', head, keys, width, indexes: cursor.take(rows * width) }
}

function readLists(cursor: Cursor, type: string, rows: number): List {
  const words = new Uint32Array(copyOf(cursor.take(rows * 8)))
  const ends = new Float64Array(rows)
  for (let row = 0; row < rows; row++)
    ends[row] = (words[2 * row] ?? 0) + (words[2 * row + 1] ?? 0) * 2 ** 32
  return { kind: 'list', type, ends, items: cursor.take((ends.at(-1) ?? 0) * widthOf(type)) }
}

function widthOf(type: string): number {
  if (type === 'UInt64') return 8
  const bits = /^(?:U?Int|Float|Enum)(8|16|32|64)(?:\(|$)/.exec(type)?.[1]
  if (bits !== undefined) return Number(bits) / 8
  if (type.startsWith('DateTime64(')) return 8
  throw new RangeError(`a column of type ${type} is not read`)
}

function numberAt(type: string, { width, values }: Fixed, row: number): number {
  const at = row * width
  if (type === 'Float32') return values.readFloatLE(at)
  if (type === 'Float64') return values.readDoubleLE(at)
  if (width === 8) return Number(values.readBigInt64LE(at))
  return /^(U|Enum)/.test(type) ? values.readUIntLE(at, width) : values.readIntLE(at, width)
}

export function indexAt({ width, indexes }: Dictionary, row: number): number {
  if (width === 1) return indexes[row] ?? 0
  return width === 2 ? indexes.readUInt16LE(row * 2) : indexes.readUInt32LE(row * 4)
}

function sliceOf(data: Data, from: number, to: number): readonly Uint8Array[] {
  switch (data.kind) {
    case 'fixed':
      return [data.values.subarray(from * data.width, to * data.width)]
    case 'text':
      return [data.texts.bytes.subarray(data.texts.starts[from], data.texts.starts[to])]
    case 'dictionary': {
      const rows = Buffer.alloc(8)
      rows.writeBigUInt64LE(BigInt(to - from))
      return [data.head, rows, data.indexes.subarray(from * data.width, to * data.width)]
    }
    case 'list':
      throw new Error('bug: a column of lists has no row ranges')
  }
}

const NUMBERS = {
  UInt16: Uint16Array,
  Int32: Int32Array,
  UInt32: Uint32Array,
  Float64: Float64Array,
} as const

function toNumbers(type: string, bytes: Buffer): Numbers {
  if (!isNumberType(type)) throw new TypeError(`bug: numbers of type ${type} are not read`)
  return new NUMBERS[type](copyOf(bytes))
}

const isNumberType = (type: string): type is keyof typeof NUMBERS => Object.hasOwn(NUMBERS, type)

const isOfKind = <K extends Data['kind']>(
  data: Data,
  kind: K,
): data is Extract<Data, { kind: K }> => data.kind === kind

/** Copies bytes, because typed arrays must be aligned to their width and columns are not. */
const copyOf = (bytes: Buffer): ArrayBuffer => new Uint8Array(bytes).buffer

const toHex = (value: bigint): string => value.toString(16).padStart(16, '0')

function varint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
  bytes.push(rest)
  return Uint8Array.from(bytes)
}

/** Moves forward over bytes. @throws RangeError beyond the end */
class Cursor {
  at: number
  readonly #bytes: Buffer

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.at = at
  }

  get isAtEnd(): boolean {
    return this.at >= this.#bytes.length
  }

  varint(): number {
    let value = 0
    for (let scale = 1; scale <= 2 ** 42; scale *= 128) {
      const byte = this.#bytes[this.at++]
      if (byte === undefined) break
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
    throw new RangeError('no number, or one that is too large')
  }

  skip(length: number): void {
    this.at += length
    if (this.at > this.#bytes.length) throw new RangeError('the block ends too early')
  }

  take(length: number): Buffer {
    this.skip(length)
    return this.#bytes.subarray(this.at - length, this.at)
  }

  text(): Buffer {
    return this.take(this.varint())
  }

  /** The names and types of columns are ASCII. */
  latin1(): string {
    const length = this.varint()
    this.skip(length)
    return this.#bytes.toString('latin1', this.at - length, this.at)
  }

  u64(): number {
    this.skip(8)
    return Number(this.#bytes.readBigUInt64LE(this.at - 8))
  }

  since(start: number): Buffer {
    return this.#bytes.subarray(start, this.at)
  }
}
