/** What takes the records that a framing finds in a stream. */
export interface RecordSink {
  /** @param isCut whether only the beginning of a record beyond the limit is there */
  record(bytes: Buffer, from: number, to: number, isCut: boolean): void
}

/** Splits the stream of one connection into records, as its protocol separates them. */
export interface Framing {
  /** Bytes of memory that wait for the rest of a record. */
  readonly heldBytes: number
  push(chunk: Buffer, sink: RecordSink): void
  /** Called when nothing came for a moment: what may be complete is complete. */
  idle(sink: RecordSink): void
  /** Called at the end of the stream: what is left is all that there is. */
  end(sink: RecordSink): void
}

const FIRST_BYTES = 4096
const LENGTH_BYTES = 4
/** Set in the length of a record that was cut. */
const CUT = 0x8000_0000

/**
 * Records of one sender as one body: the length of the sender's address and the address, then for each record its length and
 * its bytes. Lengths are four bytes, little-endian; that of the address is one byte.
 */
export class RecordBatch implements RecordSink {
  readonly #sender: Buffer
  #bytes = Buffer.alloc(0)
  #size = 0
  #records = 0

  /** @param sender address of the sender */
  constructor(sender: string) {
    this.#sender = Buffer.from(sender, 'latin1').subarray(0, 255)
  }

  get size(): number {
    return this.#size
  }

  get records(): number {
    return this.#records
  }

  record(bytes: Buffer, from: number, to: number, isCut: boolean): void {
    const length = to - from
    if (this.#size === 0) this.#begin()
    this.#reserve(LENGTH_BYTES + length)
    this.#bytes.writeUInt32LE((isCut ? CUT | length : length) >>> 0, this.#size)
    bytes.copy(this.#bytes, this.#size + LENGTH_BYTES, from, to)
    this.#size += LENGTH_BYTES + length
    this.#records += 1
  }

  /** Returns the body and begins the next one. */
  take(): Buffer {
    const body = this.#bytes.subarray(0, this.#size)
    this.#bytes = Buffer.alloc(0)
    this.#size = 0
    this.#records = 0
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
    const larger = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#size)
    this.#bytes = larger
  }
}

/** Where a record of a batch is. */
export interface RecordExtent {
  readonly from: number
  readonly to: number
  readonly isCut: boolean
  /** From 1 on. */
  readonly line: number
}

export interface BatchReader {
  /** Address of the sender. */
  readonly sender: string
  readonly bytes: Buffer
  /** Calls `take` with the extent of each record, which is another one afterwards. @returns the number of records */
  extents(take: (extent: RecordExtent) => void): number
  /** Calls `take` with each record and its number from 1 on. @returns the number of records */
  each(take: (record: Buffer, isCut: boolean, line: number) => void): number
}

/** Reads what `RecordBatch` wrote. Of other bytes it reads what can be read. */
export function readBatch(body: Uint8Array): BatchReader {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const first = 1 + (bytes[0] ?? 0)
  const extents: BatchReader['extents'] = (take) => {
    const extent = { from: 0, to: 0, isCut: false, line: 0 }
    for (let at = first; at + LENGTH_BYTES <= bytes.length;) {
      const word = bytes.readUInt32LE(at)
      extent.from = at + LENGTH_BYTES
      at = extent.from + (word & ~CUT)
      extent.to = Math.min(at, bytes.length)
      extent.isCut = (word & CUT) !== 0
      extent.line += 1
      take(extent)
    }
    return extent.line
  }
  return {
    sender: bytes.toString('latin1', 1, first),
    bytes,
    extents,
    each: (take) =>
      extents(({ from, to, isCut, line }) => take(bytes.subarray(from, to), isCut, line)),
  }
}
