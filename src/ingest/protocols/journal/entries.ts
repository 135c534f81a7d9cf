import { AppError } from '../../../model/errors.js'
import type { BodySplitter } from '../body-splitter.js'

const NEWLINE = 10
const EQUALS = 61
const LENGTH_BYTES = 8
/** The longest name of a field. The journal allows 64 bytes; a longer line without `=` is no field. */
const NAME_BYTES = 256
/** A longer field is truncated: entries may contain the core dump of a program that crashed. */
const FIELD_BYTES = 4 * 1024 * 1024
/** The greatest size of an entry. The last fields of a longer entry are left out. */
const ENTRY_BYTES = 8 * 1024 * 1024
const FIRST_BYTES = 64 * 1024

/** The part of an entry that the next byte belongs to. The rest of a truncated field is skipped. */
type Place = 'line' | 'length' | 'content' | 'after content'

/**
 * Splits a stream in the journal's export format into whole entries, in bounded memory. An entry
 * has a line for each field, and ends with a blank line. A field that is not plain text consists of
 * its name, eight bytes of length, the bytes and a line end.
 */
export class JournalEntries implements BodySplitter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES)
  #size = 0
  /** The offsets of the current entry and of its current field. */
  #entryAt = 0
  #fieldAt = 0
  #place: Place = 'line'
  /** The bytes of the field's content that are still to come, and how many of them are kept. */
  #left = 0
  #wanted = 0
  readonly #length = Buffer.alloc(LENGTH_BYTES)

  get wholeBytes(): number {
    return this.#entryAt
  }

  get heldBytes(): number {
    return this.#size
  }

  /** @throws AppError `bad_request` for another format */
  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    for (let at = 0; at < bytes.length;) at = this.#step(bytes, at)
  }

  take(): Buffer {
    const whole = this.#bytes.subarray(0, this.#entryAt)
    const rest = this.#size - this.#entryAt
    const next = Buffer.allocUnsafe(Math.max(FIRST_BYTES, rest * 2))
    this.#bytes.copy(next, 0, this.#entryAt, this.#size)
    this.#bytes = next
    this.#size = rest
    this.#fieldAt -= this.#entryAt
    this.#entryAt = 0
    return whole
  }

  end(): Buffer {
    this.#entryAt = this.#size
    this.#fieldAt = this.#size
    return this.take()
  }

  #step(bytes: Buffer, at: number): number {
    switch (this.#place) {
      case 'line':
        return this.#readLine(bytes, at)
      case 'length':
        return this.#readLength(bytes, at)
      case 'content':
        return this.#readContent(bytes, at)
      case 'after content':
        this.#append(bytes, at, at + 1)
        this.#endField()
        return at + 1
    }
  }

  #readLine(bytes: Buffer, from: number): number {
    const found = bytes.indexOf(NEWLINE, from)
    const to = found === -1 ? bytes.length : found
    const room = Math.max(FIELD_BYTES - (this.#size - this.#fieldAt), 0)
    this.#append(bytes, from, Math.min(to, from + room))
    const line = this.#bytes.subarray(this.#fieldAt, this.#size)
    const isText = line.subarray(0, NAME_BYTES).includes(EQUALS)
    if (!isText && line.length > NAME_BYTES)
      throw new AppError('bad_request', "the body does not have the journal's export format")
    if (found === -1) return to
    this.#append(bytes, found, found + 1)
    if (line.length === 0) {
      this.#entryAt = this.#size
      this.#fieldAt = this.#size
    } else if (isText) this.#endField()
    else {
      this.#place = 'length'
      this.#left = LENGTH_BYTES
    }
    return found + 1
  }

  #readLength(bytes: Buffer, at: number): number {
    const to = Math.min(at + this.#left, bytes.length)
    bytes.copy(this.#length, LENGTH_BYTES - this.#left, at, to)
    this.#left -= to - at
    if (this.#left > 0) return to
    const length = Number(this.#length.readBigUInt64LE())
    this.#left = length
    this.#wanted = Math.min(length, FIELD_BYTES)
    this.#length.writeBigUInt64LE(BigInt(this.#wanted))
    this.#append(this.#length, 0, LENGTH_BYTES)
    this.#place = length === 0 ? 'after content' : 'content'
    return to
  }

  #readContent(bytes: Buffer, at: number): number {
    const to = Math.min(at + this.#left, bytes.length)
    const kept = Math.min(to - at, this.#wanted)
    this.#append(bytes, at, at + kept)
    this.#wanted -= kept
    this.#left -= to - at
    if (this.#left === 0) this.#place = 'after content'
    return to
  }

  #endField(): void {
    if (this.#size - this.#entryAt > ENTRY_BYTES) this.#size = this.#fieldAt
    this.#fieldAt = this.#size
    this.#place = 'line'
  }

  #append(bytes: Buffer, from: number, to: number): void {
    const needed = this.#size + to - from
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(needed * 2)
      this.#bytes.copy(larger, 0, 0, this.#size)
      this.#bytes = larger
    }
    bytes.copy(this.#bytes, this.#size, from, to)
    this.#size = needed
  }
}
