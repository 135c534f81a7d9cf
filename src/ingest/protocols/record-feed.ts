import type { DecodeContext } from '../../model/event.js'
import type { RecordDecoder } from '../formats/record.js'
import type { Member, ProtobufForm, RecordTaker, SyslogMessages } from '../record-rows.js'

/**
 * Adds records to the block without creating objects, which is the fastest way for a protocol
 * (bench/NOTES.md). Records that it does not take must be decoded. A feed belongs to one body.
 */
export class RecordFeed {
  readonly #decoder: RecordDecoder
  readonly #taker: RecordTaker | null

  /** @param taker null when all records must be decoded */
  constructor(
    body: Uint8Array,
    context: DecodeContext,
    decoder: RecordDecoder,
    taker: RecordTaker | null,
  ) {
    this.#decoder = decoder
    this.#taker = taker?.begin(body, context) === true ? taker : null
  }

  /** See `RecordTaker.set`. */
  set(member: Member, text: string): void {
    this.#taker?.set(member, text)
  }

  setDefaultSource(source: string): void {
    this.#taker?.setDefaultSource(source)
  }

  /** Sets a line of the body as the head of the next records. See `RecordTaker`. */
  setHead(from: number, to: number, no: number, source: string): void {
    this.#taker?.setHead(from, to, no, source)
  }

  /**
   * Adds the records with known heads from an offset on.
   *
   * @returns the offset after them, and the number of the head of each
   */
  headed(from: number): { readonly next: number; readonly heads: Uint32Array } {
    if (this.#taker === null) return { next: from, heads: NO_HEADS }
    const taken = this.#taker.takeHeaded(from, this.#decoder.left + 1)
    this.#decoder.count(taken.heads.length)
    return taken
  }

  /**
   * Adds messages of a batch of syslog, those with the numbers from `from` to before `to`.
   *
   * @returns the number of the first that must be decoded, `to` for none
   */
  messages(messages: SyslogMessages, from: number, to: number): number {
    if (this.#taker === null) return from
    const most = from + this.#decoder.left + 1
    const next = this.#taker.takeMessages(messages, from, Math.min(to, most))
    this.#decoder.count(next - from)
    return next
  }

  /**
   * Adds records in protobuf: the fields of a message between two offsets.
   *
   * @returns the offset of the first field that must be decoded, `to` for none
   */
  records(form: ProtobufForm, from: number, to: number): number {
    if (this.#taker === null) return from
    const { next, taken } = this.#taker.takeRecords(form, from, to, this.#decoder.left + 1)
    this.#decoder.count(taken)
    return next
  }

  /**
   * Adds the JSON line at an offset.
   *
   * @returns the offset after it, or the same offset for a line that must be decoded
   */
  line(from: number): number {
    if (this.#taker === null) return from
    const { next, taken } = this.#taker.take(from, 1)
    this.#decoder.count(taken)
    return next
  }
}

const NO_HEADS = new Uint32Array(0)
