import { readFileSync } from 'node:fs'

/** What `assembly/index.ts` exports; addresses and lengths are in bytes. */
interface Exports {
  readonly memory: WasmMemory
  readonly wordCount: { readonly value: number }
  /** Signature of the message scanned last. */
  readonly signatureLo: { readonly value: number }
  readonly signatureHi: { readonly value: number }
  setHashSecrets(a: bigint, b: bigint): void
  ignoreTag(at: number, length: number): void
  keepRepeats(): void
  bodyAt(length: number): number
  scratchAt(length: number): number
  beginBlock(forget: number): void
  // oxlint-disable-next-line max-params -- numbers are all that crosses
  beginBody(
    now: number,
    max: number,
    environment: number,
    source: number,
    empty: number,
    high: number,
    utc: number,
  ): void
  readLines(from: number, length: number, most: number): number
  setHead(from: number, length: number, no: number, source: number): void
  readHeaded(from: number, length: number, most: number): number
  setDefaultSource(source: number): void
  setMember(member: number, start: number, length: number): number
  readLogs(common: number, from: number, end: number, most: number): number
  readEntries(common: number, from: number, end: number, most: number): number
  prioritiesAt(): number
  readMessages(table: number, first: number, end: number): number
  acceptedLines(): number
  droppedLines(): number
  internAt(at: number, length: number): number
  wordBytes(): number
  areFlatTags(at: number, length: number): number
  // oxlint-disable-next-line max-params -- likewise
  addEvent(
    ms: number,
    source: number,
    host: number,
    environment: number,
    type: number,
    severity: number,
    at: number,
    sizes: number,
    mines: number,
  ): number
  setTemplate(row: number, no: number): void
  forgetSignatures(): void
  constantTextAt(length: number): number
  setSource(word: number, state: number, lo: number, hi: number): void
  setType(word: number, state: number): void
  setName(word: number, state: number): void
  setLevel(word: number, state: number, tags: number): void
  setAdmission(word: number, state: number): void
  wordStart(word: number): number
  wordLength(word: number): number
  scanTokens(at: number, length: number): number
  tokensAt(): number
  signatureOf(at: number, length: number, seedLo: number, seedHi: number): void
  rowCount(): number
  addressOf(what: number): number
  lengthOf(what: number): number
  textsAt(column: number): number
  textsLength(column: number): number
  indexesAt(column: number): number
  dictionaryAt(column: number): number
  dictionarySize(column: number): number
  openWindow(windowMs: number, maxEntries: number, lastSerial: number): void
  windowSize(): number
  windowBatch(): number
  windowAt(what: number): number
  reserveWindow(): void
  lookUpRows(rows: number): number
  settleRows(rows: number): void
  setWindowPriority(id: number, priority: number): void
  forgetOwner(owner: number): void
  clearWindow(): void
}

/** The functions that the module calls. Texts are passed as the numbers of words. */
export interface KernelImports {
  /** Returns 1 when the word may be a source, else 2. */
  checkSource(word: number): number
  /** @returns STORE_MESSAGES, DROP_MESSAGES or PARSE_MESSAGES of `layout.ts` */
  admitSource(word: number): number
  /** Returns 1 for a word that is no type of event, else 2 + the index into EVENT_TYPES. */
  checkType(word: number): number
  /** Returns 2 when a member of this name is always a tag, else 1. */
  checkName(word: number): number
  /** Returns 1 when the line must be parsed, 2 when the word names no level, else 3 + the index into SEVERITIES. */
  checkLevel(word: number): number
  /** Returns the index into SEVERITIES of the level that an ASCII message states at its head. */
  levelAtHead(at: number, length: number): number
  /** Returns 1 for bytes that are UTF-8, else 0. */
  isUtf8(at: number, length: number): number
  /** Returns the ms since 1970 of a time of syslog without a year, 0 for another text. */
  clockTime(at: number, length: number): number
  /** Returns the level of a log record of OTLP, as an index into SEVERITIES, or UNREAD_LEVEL of `layout.ts`. */
  logLevel(number: number, at: number, length: number): number
  /** Returns the number of the template that has this signature, 0 when unknown. */
  templateOf(lo: number, hi: number): number
  /** Called once per template and block. Returns 1 + the word that is its constant text, 0 = its messages are stored whole. */
  constantTextOf(template: number): number
}

const code = new WebAssembly.Module(readFileSync(new URL('./ingest.wasm', import.meta.url)))

const refuse = (): never => {
  throw new Error('bug: a module without imports called one')
}

/** The imports of a kernel whose rows are not used. */
export const NO_IMPORTS: KernelImports = {
  checkSource: refuse,
  admitSource: refuse,
  checkType: refuse,
  checkName: refuse,
  checkLevel: refuse,
  levelAtHead: refuse,
  isUtf8: refuse,
  clockTime: refuse,
  logLevel: refuse,
  templateOf: refuse,
  constantTextOf: refuse,
}

/**
 * One instance of the WebAssembly module with its memory. It reads lines into the rows of a block, scans messages, and
 * stores the dedup window. Views of the memory are valid until the next call that may grow it, so callers make them
 * where they use them. `layout.ts` describes the memory.
 */
export class Kernel {
  readonly calls: Exports
  #bytes: Uint8Array = new Uint8Array(0)
  #texts: string[] = []

  constructor(imports: KernelImports) {
    const env = {
      ...imports,
      abort: (): never => {
        throw new Error('bug: the WebAssembly module aborted')
      },
    }
    const instance = new WebAssembly.Instance(code, { env })
    this.calls = instance.exports as unknown as Exports // compiled from assembly/index.ts
  }

  /** The whole memory. */
  get bytes(): Uint8Array {
    const { buffer } = this.calls.memory
    if (this.#bytes.buffer !== buffer) this.#bytes = new Uint8Array(buffer)
    return this.#bytes
  }

  view(at: number, length: number): Uint8Array {
    return new Uint8Array(this.calls.memory.buffer, at, length)
  }

  words32(at: number, count: number): Uint32Array {
    return new Uint32Array(this.calls.memory.buffer, at, count)
  }

  text(at: number, length: number): string {
    return Buffer.from(this.calls.memory.buffer, at, length).toString()
  }

  word(no: number): string {
    return (this.#texts[no] ??= this.text(this.calls.wordStart(no), this.calls.wordLength(no)))
  }

  get wordCount(): number {
    return this.calls.wordCount.value
  }

  /** Drops all words; the next block numbers them again. */
  forgetWords(): void {
    this.#texts = []
    this.calls.beginBlock(1)
  }

  /** @returns the number of the word with these bytes */
  internBytes(text: Uint8Array): number {
    const at = this.calls.constantTextAt(text.length)
    this.bytes.set(text, at)
    return this.calls.internAt(at, text.length)
  }

  /** @returns the number of the word */
  intern(text: string): number {
    const most = text.length * 3
    const at = this.calls.scratchAt(most)
    const { written } = encoder.encodeInto(text, this.bytes.subarray(at, at + most))
    return this.calls.internAt(at, written)
  }
}

const encoder = new TextEncoder()
