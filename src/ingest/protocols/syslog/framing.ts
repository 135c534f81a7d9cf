import { withoutMark } from '../../formats/file-text.js'
import { StreamBuffer } from '../stream-buffer.js'
import type { Framing, RecordSink } from '../../record-batch.js'

const NUL = 0
const LF = 10
const CR = 13
const BLANK = 32
const ZERO = 48
const NINE = 57
const LESS = 60
const GREATER = 62
/** The most digits of a length; more are not syslog. */
const MAX_COUNT_DIGITS = 9

/** A message preceded by its length, or `none` for other bytes; `more` when further bytes decide. */
type Counted = 'none' | 'more' | { readonly from: number; readonly length: number }

const isDigit = (byte: number | undefined): boolean =>
  byte !== undefined && byte >= ZERO && byte <= NINE

/**
 * @returns the offset after `<PRI>`, -1 for other bytes, 0 when they may be the beginning of one
 */
function priEnd(bytes: Buffer, at: number, to: number): number {
  if (at >= to) return 0
  if (bytes[at] !== LESS) return -1
  let end = at + 1
  while (end < to && end <= at + 3 && isDigit(bytes[end])) end += 1
  if (end === to && end <= at + 4) return 0
  return end > at + 1 && bytes[end] === GREATER ? end + 1 : -1
}

/** Reads the count of RFC 6587: `123 <134>…`. */
function readCount(bytes: Buffer, at: number, to: number): Counted {
  if (bytes[at] === ZERO || !isDigit(bytes[at])) return 'none'
  let end = at
  let length = 0
  while (end < to && isDigit(bytes[end])) {
    length = length * 10 + (bytes[end] ?? 0) - ZERO
    end += 1
    if (end - at > MAX_COUNT_DIGITS) return 'none'
  }
  if (end === to) return 'more'
  if (bytes[end] !== BLANK) return 'none'
  const pri = priEnd(bytes, end + 1, to)
  if (pri === -1) return 'none'
  return pri === 0 ? 'more' : { from: end + 1, length }
}

/**
 * Finds the messages in a stream of syslog. For each message by itself: if it begins with a count, the count says where it ends
 * (RFC 6587); else it ends with a line feed or NUL. A line that does not begin with `<PRI>` belongs to the message before it, if
 * that began with one and did not end with NUL. So the last message is known to be complete when the next one begins, or when
 * nothing comes for a moment. Of a message beyond the limit the beginning is passed on and the rest is skipped.
 */
export class SyslogFraming implements Framing {
  readonly #stream = new StreamBuffer()
  readonly #maxBytes: number
  /** Bytes of a counted message that are still to be skipped. */
  #skipBytes = 0
  #isLineSkipped = false
  /** The end of the first message, relative to the stream's beginning, when further lines may belong to it; otherwise -1. */
  #openEnd = -1
  /** The start of the next line, relative to the stream's beginning. */
  #next = 0
  /** The number of bytes of the next line that were searched without finding its end. */
  #searched = 0
  /** The offset of the first unread NUL, -1 for none. */
  #nulAt = -1

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get heldBytes(): number {
    return this.#stream.heldBytes
  }

  push(chunk: Buffer, sink: RecordSink): void {
    this.#stream.append(chunk)
    this.#nulAt = this.#findNul(this.#unread)
    while (this.#step(sink, false));
    sink.settle()
    this.#stream.settle()
  }

  idle(sink: RecordSink): void {
    this.#close(sink)
    sink.settle()
    this.#stream.settle()
  }

  end(sink: RecordSink): void {
    this.#nulAt = this.#findNul(this.#unread)
    while (this.#step(sink, true));
    this.#close(sink)
    sink.settle()
  }

  /** The first byte that was not searched for the end of a line. */
  get #unread(): number {
    return this.#stream.from + this.#next + this.#searched
  }

  /** Reads one line or counted message. @returns false when more bytes are needed */
  #step(sink: RecordSink, isEnd: boolean): boolean {
    const stream = this.#stream
    if (!this.#skipRest()) return false
    if (this.#openEnd === -1) this.#skipSeparators()
    const at = stream.from + this.#next
    if (at >= stream.to) return false
    const counted = this.#searched === 0 ? readCount(stream.bytes, at, stream.to) : 'none'
    if (counted === 'more' && !isEnd) return false
    return typeof counted === 'object'
      ? this.#readCounted(counted, sink, isEnd)
      : this.#readLine(at, sink, isEnd)
  }

  #readCounted(
    { from, length }: { readonly from: number; readonly length: number },
    sink: RecordSink,
    isEnd: boolean,
  ): boolean {
    const stream = this.#stream
    const wanted = Math.min(length, this.#maxBytes)
    if (stream.to - from < wanted && !isEnd) return false
    const end = Math.min(from + wanted, stream.to)
    this.#close(sink)
    emit(sink, stream.bytes, { from, to: end, isCut: wanted < length })
    this.#advance(end)
    this.#skipBytes = length - wanted
    return true
  }

  #readLine(at: number, sink: RecordSink, isEnd: boolean): boolean {
    const stream = this.#stream
    const found = this.#lineEnd(at + this.#searched)
    const end = found === -1 ? stream.to : found
    if (end - at > this.#maxBytes) {
      this.#close(sink)
      emit(sink, stream.bytes, { from: at, to: at + this.#maxBytes, isCut: true })
      this.#advance(end)
      this.#isLineSkipped = found === -1
      return true
    }
    if (found === -1 && !isEnd) {
      this.#searched = stream.to - at
      return false
    }
    this.#takeLine(at, end, sink)
    if (stream.bytes[end] === NUL && end < stream.to) this.#close(sink)
    return true
  }

  #takeLine(at: number, end: number, sink: RecordSink): void {
    const stream = this.#stream
    const isHead = priEnd(stream.bytes, at, end) > 0
    const isOpen = this.#openEnd !== -1
    const belongs = isOpen && !isHead && end - stream.from <= this.#maxBytes
    if (isOpen && !belongs) this.#close(sink)
    if (isHead) stream.from = at
    if (isHead || belongs) {
      if (!isBlank(stream.bytes, at, end)) this.#openEnd = end - stream.from
      this.#next = Math.min(end + 1, stream.to) - stream.from
      this.#searched = 0
    } else {
      emit(sink, stream.bytes, { from: at, to: end, isCut: false })
      this.#advance(end)
    }
  }

  /** Passes on the message to which further lines could have belonged. */
  #close(sink: RecordSink): void {
    if (this.#openEnd === -1) return
    const stream = this.#stream
    const { from } = stream
    emit(sink, stream.bytes, { from, to: from + this.#openEnd, isCut: false })
    stream.from += this.#next
    this.#next = 0
    this.#openEnd = -1
  }

  #advance(to: number): void {
    this.#stream.from = to
    this.#next = 0
    this.#searched = 0
  }

  /** @returns false when the rest of a message beyond the limit has not ended yet */
  #skipRest(): boolean {
    const stream = this.#stream
    if (this.#skipBytes > 0) {
      const skipped = Math.min(this.#skipBytes, stream.length)
      this.#skipBytes -= skipped
      stream.from += skipped
      return this.#skipBytes === 0
    }
    if (!this.#isLineSkipped) return true
    const end = this.#lineEnd(stream.from)
    stream.from = end === -1 ? stream.to : end
    this.#isLineSkipped = end === -1
    return end !== -1
  }

  /** Skips what may stand between two messages. */
  #skipSeparators(): void {
    const stream = this.#stream
    if (this.#searched > 0) return
    while (stream.from < stream.to) {
      const byte = stream.bytes[stream.from]
      if (byte !== LF && byte !== CR && byte !== NUL) return
      stream.from += 1
    }
  }

  /** @returns -1 when the line has no end yet */
  #lineEnd(from: number): number {
    const { bytes, to } = this.#stream
    if (this.#nulAt !== -1 && this.#nulAt < from) this.#nulAt = this.#findNul(from)
    const found = bytes.indexOf(LF, from)
    const end = found === -1 || found >= to ? -1 : found
    return this.#nulAt !== -1 && (end === -1 || this.#nulAt < end) ? this.#nulAt : end
  }

  /** The offset of the first NUL is cached, because a stream without any would be searched to its end for each line. */
  #findNul(from: number): number {
    const { bytes, to } = this.#stream
    const found = bytes.indexOf(NUL, from)
    return found >= to ? -1 : found
  }
}

interface Extent {
  readonly from: number
  readonly to: number
  readonly isCut: boolean
}

const isBlank = (bytes: Buffer, from: number, to: number): boolean =>
  from === to || (to === from + 1 && bytes[from] === CR)

/** A datagram is one message, whatever lines it has. */
export function takeDatagram(datagram: Buffer, sink: RecordSink): void {
  const bytes = withoutMark(datagram)
  emit(sink, bytes, { from: 0, to: bytes.length, isCut: false })
}

/** Passes on a message without line ends after it. Line ends alone are no message. */
function emit(sink: RecordSink, bytes: Buffer, { from, to, isCut }: Extent): void {
  let end = to
  while (end > from && (bytes[end - 1] === LF || bytes[end - 1] === CR || bytes[end - 1] === NUL))
    end -= 1
  if (end > from) sink.record(bytes, from, end, isCut)
}
