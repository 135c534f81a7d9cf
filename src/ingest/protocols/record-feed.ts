import type { DecodeContext } from '../../model/event.js'
import type { RecordDecoder } from '../formats/record.js'
import type { Member, RecordTaker } from '../record-rows.js'

/**
 * Hands records to the block without making objects of them, which is the quickest way for a protocol (bench/NOTES.md). What
 * it does not take is to be decoded. One feed belongs to one body.
 */
export class RecordFeed {
  readonly #decoder: RecordDecoder
  readonly #taker: RecordTaker | null

  /** @param taker null when everything must be decoded */
  constructor(
    body: Uint8Array,
    context: DecodeContext,
    decoder: RecordDecoder,
    taker: RecordTaker | null,
  ) {
    this.#decoder = decoder
    this.#taker = taker?.begin(body, context) === true ? taker : null
  }

  /** Sets a text of the next records, until it is set again; '' for none. */
  set(member: Member, text: string): void {
    this.#taker?.set(member, text)
  }

  setDefaultSource(source: string): void {
    this.#taker?.setDefaultSource(source)
  }

  /**
   * Adds a record whose message is a part of the body.
   *
   * @param timeMs 0 for a record without a time
   * @returns false for a record that must be decoded
   */
  put(timeMs: number, from: number, to: number): boolean {
    if (this.#taker?.put(timeMs, from, to) !== true) return false
    this.#decoder.count(1)
    return true
  }

  /** Adds the line of JSON at an offset. @returns the offset behind it, or the same for a line that must be decoded */
  line(from: number): number {
    if (this.#taker === null) return from
    const { next, taken } = this.#taker.take(from, 1)
    this.#decoder.count(taken)
    return next
  }
}
