import { readFileSync } from 'node:fs'

/** What `assembly/index.ts` exports; addresses and lengths are in bytes. */
interface Exports {
  readonly memory: WasmMemory
  readonly wordCount: { readonly value: number }
  /** of the message scanned last */
  readonly shapeLo: { readonly value: number }
  readonly shapeHi: { readonly value: number }
  secrets(a: bigint, b: bigint): void
  bodyAt(length: number): number
  scratchAt(length: number): number
  beginBlock(forget: number): void
  // oxlint-disable-next-line max-params -- numbers are all that crosses
  beginBody(now: number, max: number, environment: number, empty: number, high: number): void
  readLines(from: number, length: number, most: number): number
  acceptedLines(): number
  droppedLines(): number
  internAt(at: number, length: number): number
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
  skeletonAt(length: number): number
  setSource(word: number, state: number, lo: number, hi: number): void
  setType(word: number, state: number): void
  setLevel(word: number, state: number, tags: number): void
  setAdmission(word: number, state: number): void
  wordStart(word: number): number
  wordLength(word: number): number
  scanTokens(at: number, length: number): number
  tokensAt(): number
  shapeOf(at: number, length: number, seedLo: number, seedHi: number): void
  rowCount(): number
  addressOf(what: number): number
  lengthOf(what: number): number
  textsAt(column: number): number
  textsLength(column: number): number
  indexesAt(column: number): number
  dictionaryAt(column: number): number
  dictionarySize(column: number): number
  openWindow(windowMs: number, maxEntries: number, maxTurns: number): void
  windowSize(): number
  windowBatch(): number
  windowAt(what: number): number
  windowRoom(): void
  lookUpRows(rows: number): number
  settleRows(rows: number): void
  setWindowPriority(id: number, priority: number): void
  forgetOwner(owner: number): void
  clearWindow(): void
}

/** What the hot path asks of those who know; words are told by number. */
export interface KernelQuestions {
  /** 1 = the word may be a source, 2 = it may not */
  judgeSource(word: number): number
  /** 1 = store the source's messages of this body, 2 = drop them, 3 = have each line parsed */
  admitSource(word: number): number
  /** 1 = no type of event, else 2 + index into EVENT_TYPES */
  judgeType(word: number): number
  /** 1 = have the line parsed, 2 = names no level, else 3 + index into SEVERITIES */
  judgeLevel(word: number): number
  /** index into SEVERITIES of the level that an ASCII message states at its head */
  levelAtHead(at: number, length: number): number
  /** number of the template that has this shape, 0 = unknown */
  templateOf(lo: number, hi: number): number
  /** 1 + the word that is the template's skeleton, 0 = its messages are stored whole; asked once a block */
  skeletonOf(template: number): number
}

/** What `addressOf` and `lengthOf` take. */
export const AT = {
  hashes: 0,
  times: 1,
  counts: 2,
  severities: 3,
  types: 4,
  templateNos: 5,
  messages: 6,
  misses: 7,
  wides: 8,
  wideMessages: 9,
  moments: 10,
} as const

const code = new WebAssembly.Module(readFileSync(new URL('./hot.wasm', import.meta.url)))

const refuse = (): never => {
  throw new Error('bug: the scanner alone has nothing to ask')
}

/** For a kernel that is only used to scan messages. */
export const NO_QUESTIONS: KernelQuestions = {
  judgeSource: refuse,
  admitSource: refuse,
  judgeType: refuse,
  judgeLevel: refuse,
  levelAtHead: refuse,
  templateOf: refuse,
  skeletonOf: refuse,
}

/**
 * One instance of the hot path with its memory. Views of the memory are good until the next call that may
 * grow it, so they are asked for where they are used.
 */
export class Kernel {
  readonly calls: Exports
  #bytes: Uint8Array = new Uint8Array(0)
  #texts: string[] = []

  constructor(questions: KernelQuestions) {
    const env = {
      ...questions,
      abort: (): never => {
        throw new Error('bug: the hot path gave up')
      },
    }
    const instance = new WebAssembly.Instance(code, { env })
    this.calls = instance.exports as unknown as Exports // compiled from assembly/index.ts
  }

  /** All of the memory. */
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

  /** The text of a word, read once. */
  word(no: number): string {
    return (this.#texts[no] ??= this.text(this.calls.wordStart(no), this.calls.wordLength(no)))
  }

  get wordCount(): number {
    return this.calls.wordCount.value
  }

  /** Forgets all words: their numbers are given anew. */
  forgetWords(): void {
    this.#texts = []
    this.calls.beginBlock(1)
  }

  /** Makes the bytes of a skeleton a word. */
  internSkeleton(skeleton: Uint8Array): number {
    const at = this.calls.skeletonAt(skeleton.length)
    this.bytes.set(skeleton, at)
    return this.calls.internAt(at, skeleton.length)
  }

  intern(text: string): number {
    const room = text.length * 3
    const at = this.calls.scratchAt(room)
    const { written } = encoder.encodeInto(text, this.bytes.subarray(at, at + room))
    return this.calls.internAt(at, written)
  }
}

const encoder = new TextEncoder()
