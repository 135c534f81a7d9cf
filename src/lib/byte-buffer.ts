const encoder = new TextEncoder()

/** A byte array that grows by doubling and is reused from block to block. */
export class ByteBuffer {
  bytes: Uint8Array
  length = 0

  /** @param memory the initial array, or its size */
  constructor(memory: Uint8Array | number = 1024) {
    this.bytes = typeof memory === 'number' ? new Uint8Array(memory) : memory
  }

  /** Grows the array so that `extra` more bytes fit. */
  reserve(extra: number): void {
    const needed = this.length + extra
    if (needed <= this.bytes.length) return
    const grown = new Uint8Array(Math.max(needed, this.bytes.length * 2))
    grown.set(this.bytes.subarray(0, this.length))
    this.bytes = grown
  }

  u8(value: number): void {
    this.reserve(1)
    this.bytes[this.length++] = value
  }

  /** @param value integer in -2^31..2^32-1, little-endian */
  u32(value: number): void {
    this.reserve(4)
    const { bytes, length } = this
    bytes[length] = value
    bytes[length + 1] = value >>> 8
    bytes[length + 2] = value >>> 16
    bytes[length + 3] = value >>> 24
    this.length = length + 4
  }

  /** @param value non-negative integer up to 2^53-1, little-endian in 8 bytes */
  u64(value: number): void {
    this.u32(value % 0x1_0000_0000)
    this.u32(Math.floor(value / 0x1_0000_0000))
  }

  /** LEB128, as ClickHouse writes lengths. */
  varint(value: number): void {
    this.reserve(5)
    let rest = value
    while (rest >= 0x80) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.bytes[this.length++] = rest
  }

  /** Appends a byte for each element: its low eight bits. */
  append(source: Uint8Array | Uint32Array): void {
    this.reserve(source.length)
    this.bytes.set(source, this.length)
    this.length += source.length
  }

  zeros(count: number): void {
    this.reserve(count)
    this.bytes.fill(0, this.length, this.length + count)
    this.length += count
  }

  /**
   * Appends a length-prefixed UTF-8 string, encoded in place.
   *
   * @returns where the text begins; it ends at `length`
   */
  string(text: string): number {
    this.reserve(text.length * 3 + 5)
    const start = this.length
    // The prefix has the size for an ASCII text; a longer prefix moves the text.
    const guess = varintBytes(text.length)
    const written = encoder.encodeInto(text, this.bytes.subarray(start + guess)).written
    const actual = varintBytes(written)
    if (actual !== guess)
      this.bytes.copyWithin(start + actual, start + guess, start + guess + written)
    this.varint(written)
    this.length = start + actual + written
    return start + actual
  }

  clear(): void {
    this.length = 0
  }

  /** A view of the written bytes, valid until the next write. */
  get written(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }

  /** A copy of the written bytes. */
  copy(): Uint8Array<ArrayBuffer> {
    return this.bytes.slice(0, this.length)
  }
}

const varintBytes = (value: number): number => {
  if (value < 0x80) return 1
  if (value < 0x4000) return 2
  if (value < 0x20_0000) return 3
  return value < 0x1000_0000 ? 4 : 5
}
