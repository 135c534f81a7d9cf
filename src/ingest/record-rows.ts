import type { Kernel } from '../wasm/kernel.js'
import * as layout from '../wasm/layout.js'
import type { LineTaker } from './formats/ndjson.js'

/** The texts of a record beside its message. `tags` is the JSON of an object. */
const MEMBERS = {
  source: layout.MEMBER_SOURCE,
  severity: layout.MEMBER_SEVERITY,
  host: layout.MEMBER_HOST,
  environment: layout.MEMBER_ENVIRONMENT,
  traceId: layout.MEMBER_TRACE,
  spanId: layout.MEMBER_SPAN,
  tags: layout.MEMBER_TAGS,
} as const

export type Member = keyof typeof MEMBERS

/**
 * Encodes records without objects: lines of JSON, and records whose messages a parser has found in its body. They mean what
 * the same record means as a line of `/ingest`.
 */
export interface RecordTaker extends LineTaker {
  /**
   * Encodes messages of a batch of syslog, those with the numbers from `from` to before `to`, up to the first that must be
   * parsed.
   *
   * @returns the number of the message behind them
   */
  takeMessages(messages: SyslogMessages, from: number, to: number): number
  /**
   * Makes a line of the body a head: further lines with the same bytes stand before a record each.
   *
   * @param no as `takeHeaded` gives it
   * @param source is that of records that name none
   */
  setHead(from: number, to: number, no: number, source: string): void
  /**
   * Encodes records that stand behind heads, from an offset on, up to the first that must be parsed.
   *
   * @returns the offset after them, and the number of the head of each
   */
  takeHeaded(from: number, most: number): { readonly next: number; readonly heads: Uint32Array }
  /** Sets the source of the next records that name none. */
  setDefaultSource(source: string): void
  /** Sets a text of the next records, until it is set again; '' for none. */
  set(member: Member, text: string): void
  /**
   * Adds a record whose message is the bytes of the body between two offsets.
   *
   * @param timeMs 0 for a record without a time
   * @returns false for a record that must be decoded
   */
  put(timeMs: number, from: number, to: number): boolean
}

/** What is known of a batch of syslog. */
export interface SyslogMessages {
  /** Where the table of extents begins. */
  readonly table: number
  /** Severity and tags of each syslog priority, in the layout of `wasm/layout.ts`. */
  readonly priorities: Uint8Array
  /** Reads a time without a year, as ms since 1970. @returns null for another text */
  readonly readTime: (text: string) => number | null
}

const TEXT_BYTES = 1024
const TAGS_BYTES = 8192
/** Memory for the texts behind a body. */
export const TEXTS_BYTES = 16 * TEXT_BYTES + TAGS_BYTES

/** Adds records of one body to the block that the kernel builds. */
export class RecordRows {
  readonly #kernel: Kernel
  #bodyAt = 0
  #textsAt = 0
  /** A bit for each member that has a text. */
  #seen = 0
  /** A bit for each member whose text must be decoded. */
  #unfit = 0

  constructor(kernel: Kernel) {
    this.#kernel = kernel
  }

  /** Begins a body, whose copy in the kernel is at an address. */
  begin(bodyAt: number, bodyBytes: number): void {
    this.#bodyAt = bodyAt
    this.#textsAt = bodyAt + bodyBytes
    this.#seen = 0
    this.#unfit = 0
  }

  set(member: Member, text: string): void {
    const no = MEMBERS[member]
    const bit = 1 << no
    this.#seen &= ~bit
    this.#unfit &= ~bit
    if (text === '') return
    if (this.#place(no, text)) this.#seen |= bit
    else this.#unfit |= bit
  }

  /** @returns a `RECORD_…` of `wasm/layout.ts` */
  put(timeMs: number, from: number, to: number): number {
    if (this.#unfit !== 0) return layout.RECORD_UNREAD
    return this.#kernel.calls.addRecord(this.#seen, timeMs, this.#bodyAt + from, to - from)
  }

  /** Writes a text behind the body. @returns false for one that is long, or not of printable ASCII */
  #place(no: number, text: string): boolean {
    const isTags = no === layout.MEMBER_TAGS
    if (text.length > (isTags ? TAGS_BYTES : TEXT_BYTES)) return false
    const { bytes, calls } = this.#kernel
    // The tags are the last of the members.
    const at = this.#textsAt + no * TEXT_BYTES
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code < 0x20 || code > 0x7e) return false
      bytes[at + i] = code
    }
    return calls.setMember(no, at, text.length) !== 0
  }
}
