import type { Kernel } from '../wasm/kernel.js'
import * as layout from '../wasm/layout.js'
import { SEVERITIES, type Severity } from '../model/event.js'
import type { LineTaker } from './formats/ndjson.js'

/** The texts that several records may share. `tags` is the JSON of an object. */
const MEMBERS = {
  source: layout.MEMBER_SOURCE,
  severity: layout.MEMBER_SEVERITY,
  host: layout.MEMBER_HOST,
  environment: layout.MEMBER_ENVIRONMENT,
  tags: layout.MEMBER_TAGS,
} as const

export type Member = keyof typeof MEMBERS

/** Encodes records without creating objects. Results are those of the parsers. */
export interface RecordTaker extends LineTaker {
  /**
   * Encodes messages of a batch of syslog, those with the numbers from `from` to before `to`, up to the first that must be
   * parsed.
   *
   * @returns the number of the message behind them
   */
  takeMessages(messages: SyslogMessages, from: number, to: number): number
  /**
   * Sets a line of the body as a head: each later line with the same bytes is followed by a record.
   *
   * @param no the number that `takeHeaded` returns
   * @param source the source of records that name none
   */
  setHead(from: number, to: number, no: number, source: string): void
  /**
   * Encodes records with known heads, from an offset on, up to the first that must be parsed.
   *
   * @returns the offset after them, and the number of the head of each
   */
  takeHeaded(from: number, most: number): { readonly next: number; readonly heads: Uint32Array }
  /** Sets the source of the next records that name none. */
  setDefaultSource(source: string): void
  /** Sets a field, such as the host, for the protobuf records that follow, until the next call for the same field; '' clears it. */
  set(member: Member, text: string): void
  /**
   * Encodes log records of OTLP or entries of Loki: the fields of a message between two offsets of
   * the body, up to the first that must be parsed.
   *
   * @param most the most records
   */
  takeRecords(
    form: ProtobufForm,
    from: number,
    to: number,
    most: number,
  ): { readonly next: number; readonly taken: number }
}

/** Returns the level of a severity number beside this word; null when the record must be parsed. */
type ReadLevel = (number: number, word: string) => Severity | null

/** The records that a message of protobuf consists of. */
export type ProtobufForm =
  | { readonly kind: 'loki' }
  | { readonly kind: 'otlp'; readonly readLevel: ReadLevel }

/** The context of a batch of syslog messages. */
export interface SyslogMessages {
  /** The offset of the table of positions. */
  readonly table: number
  /** A table by PRI value of the severity and tags, in the layout of `wasm/layout.ts`. */
  readonly priorities: Uint8Array
  /** Reads a time without a year, as ms since 1970. @returns null for another text */
  readonly readTime: (text: string) => number | null
}

const TEXT_BYTES = 1024
const TAGS_BYTES = 8192
/** The memory for the texts, which follow a body. */
export const TEXTS_BYTES = 16 * TEXT_BYTES + TAGS_BYTES

/** The outcome of reading records without creating objects. */
export interface LinesRead {
  /** The offset of the first record that must be parsed, or the end. */
  readonly next: number
  readonly accepted: number
  readonly dropped: number
}

/** Adds records of one body to the block that the kernel builds. */
export class ProtobufRecords {
  readonly #kernel: Kernel
  #textsAt = 0
  /** A bit for each member that has a text in the kernel's memory. */
  #seen = 0
  /** A bit for each member whose text the kernel cannot use. */
  #unfit = 0
  #readLevel: ReadLevel = () => null

  constructor(kernel: Kernel) {
    this.#kernel = kernel
  }

  /** Begins a body, whose copy in the kernel's memory is at an address. */
  begin(bodyAt: number, bodyBytes: number): void {
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

  /** Adds the records among the fields of a message between two offsets, up to the first that must be parsed. */
  read(form: ProtobufForm, from: number, to: number, most: number): LinesRead {
    if (this.#unfit !== 0) return { next: from, accepted: 0, dropped: 0 }
    const { calls } = this.#kernel
    const records = Math.min(most, 0x7fff_ffff)
    if (form.kind === 'otlp') this.#readLevel = form.readLevel
    const next =
      form.kind === 'otlp'
        ? calls.readLogs(this.#seen, from, to, records)
        : calls.readEntries(this.#seen, from, to, records)
    return { next, accepted: calls.acceptedLines(), dropped: calls.droppedLines() }
  }

  /** @returns the index into SEVERITIES, or UNREAD_LEVEL */
  levelOf(number: number, word: string): number {
    const level = this.#readLevel(number, word)
    return level === null ? layout.UNREAD_LEVEL : SEVERITIES.indexOf(level)
  }

  /**
   * Writes a text after the body.
   *
   * @returns false for a text that is too long, or not printable ASCII
   */
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
