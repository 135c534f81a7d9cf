import { StreamBuffer } from './stream-buffer.js'
import type { Framing, RecordSink } from '../record-batch.js'

const CR = 13

/**
 * Splits a stream into records that end with one byte. A record beyond the limit is cut: its
 * beginning is passed on and the rest is skipped.
 */
export class DelimitedFraming implements Framing {
  readonly #stream = new StreamBuffer()
  readonly #delimiter: number
  readonly #maxBytes: number
  /** The number of bytes that were searched without finding a delimiter. */
  #searched = 0
  #isSkipped = false

  constructor(delimiter: number, maxBytes: number) {
    this.#delimiter = delimiter
    this.#maxBytes = maxBytes
  }

  get heldBytes(): number {
    return this.#stream.heldBytes
  }

  push(chunk: Buffer, sink: RecordSink): void {
    this.#stream.append(chunk)
    while (this.#step(sink));
    sink.settle()
    this.#stream.settle()
  }

  /** Without its delimiter a record is never complete. */
  idle(): void {}

  end(sink: RecordSink): void {
    const { from, to } = this.#stream
    if (!this.#isSkipped) this.#emit(sink, from, to)
    this.#stream.from = to
    sink.settle()
    this.#stream.settle()
  }

  #step(sink: RecordSink): boolean {
    const stream = this.#stream
    const found = stream.bytes.indexOf(this.#delimiter, stream.from + this.#searched)
    const isWhole = found !== -1 && found < stream.to
    const end = isWhole ? found : stream.to
    const isLong = end - stream.from > this.#maxBytes
    if (isWhole || isLong) {
      if (!this.#isSkipped) this.#emit(sink, stream.from, end)
      stream.from = isWhole ? end + 1 : end
      this.#searched = 0
      this.#isSkipped = !isWhole
      return isWhole
    }
    // The skipped part of a record is dropped from memory.
    if (this.#isSkipped) stream.from = end
    this.#searched = stream.length
    return false
  }

  #emit(sink: RecordSink, from: number, to: number): void {
    const { bytes } = this.#stream
    const isCut = to - from > this.#maxBytes
    let end = isCut ? from + this.#maxBytes : to
    while (end > from && bytes[end - 1] === CR) end -= 1
    if (end > from) sink.record(bytes, from, end, isCut)
  }
}
