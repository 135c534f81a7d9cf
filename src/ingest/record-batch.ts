/** Receives the records that a framing finds in a stream. */
export interface RecordSink {
  /**
   * Receives a record as a part of `bytes`, which do not change until `settle`.
   *
   * @param isCut whether the record exceeds the limit and only its beginning is there
   */
  record(bytes: Buffer, from: number, to: number, isCut: boolean): void
  /** Must be called before the bytes of the last records change. */
  settle(): void
}

/** Splits the stream of one connection into records, as its protocol separates them. */
export interface Framing {
  /** The bytes of an incomplete record. */
  readonly heldBytes: number
  push(chunk: Buffer, sink: RecordSink): void
  /** Called after a moment without data: a record that may be complete is complete. */
  idle(sink: RecordSink): void
  /** Called at the end of the stream: the rest is a record. */
  end(sink: RecordSink): void
}

const FIRST_BYTES = 4096
const WORD_BYTES = 4
/** The bytes of a record in the table. */
const EXTENT_BYTES = 2 * WORD_BYTES
/** A bit in the length of a record that was truncated. */
const CUT = 0x8000_0000
/** Separators between two records, such as a line feed, are copied with them up to this length. */
const MAX_GAP = 32
const NO_BYTES: Buffer = Buffer.alloc(0)

/**
 * The records of one sender as one body: the length of the sender's address and the address, the
 * bytes of the records, a table with the offset and length of each, and the number of records. The
 * length of the address is one byte, other numbers are four bytes, little-endian. Adjacent records
 * are copied at once, with their separators.
 */
export class RecordBatch implements RecordSink {
  readonly #sender: Buffer
  #bytes = NO_BYTES
  #size = 0
  /** About the size of the last body, with which the next one starts, because growing copies all of it to new memory. */
  #usualSize = FIRST_BYTES
  #table: number[] = []
  /** The part of a stream that is to be copied. */
  readonly #run = { bytes: NO_BYTES, from: 0, to: 0 }

  /** @param sender address of the sender */
  constructor(sender: string) {
    this.#sender = Buffer.from(sender, 'latin1').subarray(0, 255)
  }

  get size(): number {
    return this.#size + (this.#run.to - this.#run.from) + this.#table.length * WORD_BYTES
  }

  get records(): number {
    return this.#table.length / 2
  }

  record(bytes: Buffer, from: number, to: number, isCut: boolean): void {
    const run = this.#run
    if (this.#size === 0) this.#begin()
    if (bytes !== run.bytes || from < run.to || from > run.to + MAX_GAP) {
      this.settle()
      run.bytes = bytes
      run.from = from
    }
    run.to = to
    this.#table.push(this.#size + from - run.from, isCut ? to - from + CUT : to - from)
  }

  settle(): void {
    const { bytes, from, to } = this.#run
    if (to > from) {
      this.#reserve(to - from)
      this.#size += bytes.copy(this.#bytes, this.#size, from, to)
    }
    this.#run.bytes = NO_BYTES
    this.#run.from = 0
    this.#run.to = 0
  }

  /** Returns the body and begins the next one. */
  take(): Buffer {
    this.settle()
    if (this.records > 0) {
      const words = Uint32Array.from([...this.#table, this.records])
      this.#reserve(words.byteLength)
      this.#size += Buffer.from(words.buffer).copy(this.#bytes, this.#size)
    }
    const body = this.#bytes.subarray(0, this.#size)
    this.#usualSize = Math.max(FIRST_BYTES, this.#size + (this.#size >> 2))
    this.#bytes = NO_BYTES
    this.#size = 0
    this.#table = []
    return body
  }

  #begin(): void {
    this.#reserve(1 + this.#sender.length)
    this.#bytes[0] = this.#sender.length
    this.#sender.copy(this.#bytes, 1)
    this.#size = 1 + this.#sender.length
  }

  #reserve(bytes: number): void {
    const needed = this.#size + bytes
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#usualSize, needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#size)
    this.#bytes = larger
  }
}

/** The position of a record in a batch. */
interface RecordExtent {
  readonly from: number
  readonly to: number
  readonly isCut: boolean
}

export interface BatchReader {
  /** Address of the sender. */
  readonly sender: string
  readonly bytes: Buffer
  /** Number of the records. */
  readonly records: number
  /** The offset of the table of positions. */
  readonly table: number
  /** @param no from 0 on */
  extent(no: number): RecordExtent
  /** Calls `take` with each record and its number from 1 on. @returns the number of records */
  each(take: (record: Buffer, isCut: boolean, line: number) => void): number
}

/** Reads what `RecordBatch` wrote. Other bytes give a batch without records, or with parts of the bytes as records. */
export function readBatch(body: Uint8Array): BatchReader {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const first = Math.min(1 + (bytes[0] ?? 0), bytes.length)
  const end = Math.max(first, bytes.length - WORD_BYTES)
  const most = Math.floor((end - first) / EXTENT_BYTES)
  const records = most === 0 ? 0 : Math.min(bytes.readUInt32LE(end), most)
  const table = end - records * EXTENT_BYTES
  const extent = (no: number): RecordExtent => {
    const at = table + no * EXTENT_BYTES
    const length = bytes.readUInt32LE(at + WORD_BYTES)
    const from = Math.min(bytes.readUInt32LE(at), table)
    return { from, to: Math.min(from + (length & ~CUT), table), isCut: (length & CUT) !== 0 }
  }
  return {
    sender: bytes.toString('latin1', 1, first),
    bytes,
    records,
    table,
    extent,
    each: (take) => {
      for (let no = 0; no < records; no++) {
        const { from, to, isCut } = extent(no)
        take(bytes.subarray(from, to), isCut, no + 1)
      }
      return records
    },
  }
}
