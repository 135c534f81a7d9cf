/** A small reader of ClickHouse's Native format, as far as our blocks use it. */
export interface NativeColumn {
  readonly name: string
  readonly type: string
  /** numbers as bigint, text as bytes */
  readonly values: readonly (bigint | number | Buffer)[]
}

export interface NativeRead {
  readonly rows: number
  readonly columns: readonly NativeColumn[]
}

class Reader {
  at = 0
  readonly #bytes: Buffer

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  varint(): number {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#bytes.readUInt8(this.at++)
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }

  take(length: number): Buffer {
    if (this.at + length > this.#bytes.length) throw new Error('the block ends too early')
    const taken = this.#bytes.subarray(this.at, this.at + length)
    this.at += length
    return taken
  }

  text(): Buffer {
    return this.take(this.varint())
  }

  u64(): bigint {
    return this.take(8).readBigUInt64LE()
  }

  get isAtEnd(): boolean {
    return this.at === this.#bytes.length
  }
}

/** @throws Error when the bytes are not exactly one block */
export function readNative(bytes: Uint8Array): NativeRead {
  const reader = new Reader(bytes)
  const count = reader.varint()
  const rows = reader.varint()
  const columns = Array.from({ length: count }, () => {
    const name = reader.text().toString()
    const type = reader.text().toString()
    return { name, type, values: readValues(reader, type, rows) }
  })
  if (!reader.isAtEnd) throw new Error('bytes are left behind the block')
  return { rows, columns }
}

function readValues(reader: Reader, type: string, rows: number): (bigint | number | Buffer)[] {
  const each = <T>(read: () => T): T[] => Array.from({ length: rows }, read)
  if (type === 'LowCardinality(String)') return readDictionary(reader, rows)
  if (type === 'String') return each(() => reader.text())
  if (type === 'UInt64' || type.startsWith('DateTime64')) return each(() => reader.u64())
  if (type === 'Int32') return each(() => reader.take(4).readInt32LE())
  if (type === 'UInt32') return each(() => reader.take(4).readUInt32LE())
  if (type === 'Float32') return each(() => reader.take(4).readFloatLE())
  if (/^(UInt8|Int8|Enum8)/.test(type)) return each(() => reader.take(1).readUInt8())
  throw new Error(`no reader for ${type}`)
}

function readDictionary(reader: Reader, rows: number): Buffer[] {
  if (rows === 0) return []
  if (reader.u64() !== 1n) throw new Error('another version of the dictionary')
  const flags = reader.u64()
  if ((flags & ~0xffn) !== 0x600n) throw new Error(`flags ${flags}`)
  const width = [1, 2, 4, 8][Number(flags & 0xffn)] ?? 0
  const keys = Array.from({ length: Number(reader.u64()) }, () => reader.text())
  if (Number(reader.u64()) !== rows) throw new Error('another number of indexes than rows')
  return Array.from({ length: rows }, () => {
    const key = keys[reader.take(width).readUIntLE(0, width)]
    if (key === undefined) throw new Error('an index outside the dictionary')
    return key
  })
}
