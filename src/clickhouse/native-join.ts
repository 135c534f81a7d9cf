import { varint, widthOf } from './native-rows.js'

/** ClickHouse reads a larger block as fast alone. bench/flow/ingest.ts --small: 70 rows a block cost it 4 µs a row */
const SMALL_BYTES = 65_536
/** what one step makes: a few milliseconds of the caller's thread */
const JOINED_BYTES = 1024 * 1024

/**
 * Blocks of the Native format with neighbouring small ones made one, row by row the same. The same blocks give the
 * same bytes. What is not known to be a whole block, or has other columns than the one before it, stays as it is.
 */
export function* joinBlocks(blocks: readonly Uint8Array[]): Generator<Uint8Array> {
  let run: Block[] = []
  let bytes = 0
  for (const each of blocks) {
    const block = each.length > SMALL_BYTES ? null : readBlock(each)
    const [first] = run
    const isNext = block !== null && (first === undefined || isAlike(first, block))
    if (!isNext || bytes + each.length > JOINED_BYTES) {
      if (run.length > 0) yield join(run)
      run = []
      bytes = 0
    }
    if (block === null) yield each
    else {
      run.push(block)
      bytes += each.length
    }
  }
  if (run.length > 0) yield join(run)
}

interface Block {
  readonly bytes: Buffer
  readonly rows: number
  readonly columns: readonly Column[]
}

interface Column {
  /** name and type as they stand in the block */
  readonly head: Buffer
  /** the values as they stand in the block; of a dictionary its indexes */
  readonly data: Buffer
  readonly dictionary: Dictionary | null
}

interface Dictionary {
  /** each byte a character */
  readonly keys: readonly string[]
  /** bytes of an index */
  readonly width: number
}

const isAlike = (a: Block, b: Block): boolean =>
  a.columns.length === b.columns.length &&
  a.columns.every(({ head }, i) => b.columns[i]?.head.equals(head))

/** @returns null for bytes that are not exactly one block of types known here */
function readBlock(bytes: Uint8Array): Block | null {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const scan = new Scan(buffer)
  try {
    const count = scan.varint()
    const rows = scan.varint()
    const columns: Column[] = []
    for (let i = 0; i < count; i++) columns.push(readColumn(scan, rows))
    return scan.at === buffer.length ? { bytes: buffer, rows, columns } : null
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

function readColumn(scan: Scan, rows: number): Column {
  const start = scan.at
  scan.skip(scan.varint())
  const type = scan.text()
  const head = scan.since(start)
  if (type === 'LowCardinality(String)') return { head, ...readDictionary(scan, rows) }
  const from = scan.at
  if (type === 'String') for (let row = 0; row < rows; row++) scan.skip(scan.varint())
  else scan.skip(rows * widthOf(type))
  return { head, data: scan.since(from), dictionary: null }
}

const INDEX_WIDTHS = [1, 2, 4]
const VERSION = 1
const ADDITIONAL_KEYS = 1 << 9
const NEED_UPDATE = 1 << 10

/** Version, flags (their low byte tells the width of an index), keys, rows, indexes. */
function readDictionary(scan: Scan, rows: number): Pick<Column, 'data' | 'dictionary'> {
  const [version, flags] = [scan.u64(), scan.u64()]
  const width = INDEX_WIDTHS[flags & 0xff]
  const isKnown = version === VERSION && flags >> 8 === (ADDITIONAL_KEYS | NEED_UPDATE) >> 8
  if (width === undefined || !isKnown) throw new RangeError('a dictionary of another kind')
  const size = scan.u64()
  const keys: string[] = []
  for (let i = 0; i < size; i++) keys.push(scan.text())
  if (scan.u64() !== rows) throw new RangeError('another number of indexes than rows')
  const from = scan.at
  scan.skip(rows * width)
  const data = scan.since(from)
  for (let row = 0; row < rows; row++)
    if (indexAt(data, row, width) >= size) throw new RangeError('an index without a key')
  return { data, dictionary: { keys, width } }
}

function indexAt(data: Buffer, row: number, width: number): number {
  if (width === 1) return data[row] ?? 0
  return width === 2 ? data.readUInt16LE(row * 2) : data.readUInt32LE(row * 4)
}

function join(blocks: readonly Block[]): Uint8Array {
  const [first] = blocks
  if (first === undefined) throw new Error('bug: no block to join')
  if (blocks.length === 1) return first.bytes
  const rows = blocks.reduce((sum, block) => sum + block.rows, 0)
  const parts: Uint8Array[] = [varint(first.columns.length), varint(rows)]
  first.columns.forEach(({ head, dictionary }, i) => {
    const columns = blocks.flatMap((block) => block.columns[i] ?? [])
    parts.push(head)
    if (dictionary === null) for (const { data } of columns) parts.push(data)
    else parts.push(...joinDictionaries(columns, rows))
  })
  return Buffer.concat(parts)
}

function joinDictionaries(columns: readonly Column[], rows: number): readonly Uint8Array[] {
  const numberOf = new Map<string, number>()
  const indexes = new Uint32Array(rows)
  let row = 0
  for (const { data, dictionary } of columns) {
    if (dictionary === null) throw new Error('bug: a column without a dictionary')
    const numbers = dictionary.keys.map((key) => numberIn(numberOf, key))
    const end = row + data.length / dictionary.width
    for (let at = 0; row < end; at++)
      indexes[row++] = numbers[indexAt(data, at, dictionary.width)] ?? 0
  }
  const size = numberOf.size
  const keyType = size <= 0x100 ? 0 : size <= 0x1_0000 ? 1 : 2
  const keys = [...numberOf.keys()].flatMap((key) => [
    varint(key.length),
    Buffer.from(key, 'latin1'),
  ])
  const head = u64s(VERSION, ADDITIONAL_KEYS | NEED_UPDATE | keyType, size)
  return [head, ...keys, u64s(rows), narrowed(indexes, keyType)]
}

function numberIn(numberOf: Map<string, number>, key: string): number {
  const known = numberOf.get(key)
  if (known !== undefined) return known
  numberOf.set(key, numberOf.size)
  return numberOf.size - 1
}

function narrowed(indexes: Uint32Array, keyType: number): Uint8Array {
  if (keyType === 0) return new Uint8Array(indexes)
  return new Uint8Array(keyType === 1 ? new Uint16Array(indexes).buffer : indexes.buffer)
}

const u64s = (...values: readonly number[]): Uint8Array =>
  new Uint8Array(BigUint64Array.from(values, BigInt).buffer)

/** Passes over the bytes of a block. @throws RangeError beyond the end */
class Scan {
  at = 0
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  varint(): number {
    let value = 0
    for (let scale = 1; scale <= 2 ** 28; scale *= 128) {
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

  /** each byte a character */
  text(): string {
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
