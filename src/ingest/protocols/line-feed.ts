import { parseJson } from '../formats/json-text.js'
import type { JsonRecord } from '../formats/json-value.js'
import type { LineTaker } from '../formats/ndjson.js'
import type { RecordDecoder } from '../formats/record.js'
import type { DecodeContext } from '../../model/event.js'

const NEWLINE = 10
const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
const BUFFER_BYTES = 256 * 1024
/** A byte of a text becomes at most so many, as `\u001f`. */
const ESCAPED_BYTES = 6
const NO_TEXT = new Uint8Array(0)
const HEX = Buffer.from('0123456789abcdef')

/**
 * Writes records as lines of `/ingest`, which WebAssembly reads. It is the quickest way from a protocol to the block
 * (bench/NOTES.md); a line that WebAssembly does not take is parsed. One feed belongs to one body.
 */
export class LineFeed {
  readonly #context: DecodeContext
  readonly #decoder: RecordDecoder
  readonly #lines: LineTaker
  readonly #bytes = Buffer.allocUnsafe(BUFFER_BYTES)
  #at = 0

  constructor(context: DecodeContext, decoder: RecordDecoder, lines: LineTaker) {
    this.#context = context
    this.#decoder = decoder
    this.#lines = lines
  }

  /**
   * Adds a line: `head`, the bytes of a text with their escapes, `tail`.
   *
   * @returns false for one that is too long
   */
  line(
    head: string,
    text: Uint8Array,
    [from, to]: readonly [number, number],
    tail: string,
  ): boolean {
    const most = (head.length + tail.length) * 3 + (to - from) * ESCAPED_BYTES + 1
    if (most > BUFFER_BYTES) return false
    if (this.#at + most > BUFFER_BYTES) this.flush()
    const bytes = this.#bytes
    let at = this.#at + bytes.write(head, this.#at)
    for (let i = from; i < to; i++) {
      const c = text[i] ?? 0
      if (c >= SPACE && c !== QUOTE && c !== BACKSLASH) bytes[at++] = c
      else at = writeEscape(bytes, at, c)
    }
    at += bytes.write(tail, at)
    bytes[at++] = NEWLINE
    this.#at = at
    return true
  }

  /** Adds a record. @returns false for one that is too long */
  record(record: JsonRecord): boolean {
    return this.line(JSON.stringify(record), NO_TEXT, [0, 0], '')
  }

  /** Passes the lines on; to be called before a record that is no line, and at the end. */
  flush(): void {
    const bytes = this.#bytes.subarray(0, this.#at)
    this.#at = 0
    if (bytes.length === 0) return
    const decoder = this.#decoder
    const isReady = this.#lines.begin(bytes, this.#context)
    for (let at = 0; at < bytes.length;) {
      if (isReady) {
        const { next, taken } = this.#lines.take(at, decoder.left + 1)
        decoder.count(taken)
        at = next
        if (at >= bytes.length) return
      }
      const end = bytes.indexOf(NEWLINE, at)
      const line = bytes.toString('utf8', at, end)
      decoder.decode(decoder.received + 1, parseJson(line), () => line)
      at = end + 1
    }
  }
}

function writeEscape(bytes: Uint8Array, from: number, c: number): number {
  let at = from
  bytes[at++] = BACKSLASH
  if (c >= SPACE) {
    bytes[at++] = c
    return at
  }
  bytes[at++] = 0x75
  bytes[at++] = 0x30
  bytes[at++] = 0x30
  bytes[at++] = HEX[c >> 4] ?? 0
  bytes[at++] = HEX[c & 15] ?? 0
  return at
}
