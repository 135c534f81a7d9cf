import { isUtf8 } from 'node:buffer'

import { Kernel } from '../wasm/kernel.js'
import * as layout from '../wasm/layout.js'
import { hashBytes, hashText } from '../lib/hash.js'
import type { BlockSlice } from '../wal/block-pool.js'
import { EVENT_TYPES, SEVERITIES, type CanonicalEvent } from '../model/event.js'
import { toStoredTags, type StoredTags } from '../model/stored-tags.js'
import { toWords } from '../model/words.js'
import type { RowBlock } from './block.js'
import { isTagName, maySourceBe, readLevelWord, typeIndex } from './formats/line-words.js'
import { createLevelOfMessage } from './message-level.js'
import { MissList } from './miss-list.js'
import { writeLanding, type WideRow } from './landing-block.js'
import { type LinesRead, ProtobufRecords, type SyslogMessages, TEXTS_BYTES } from './record-rows.js'

/** Looks up the known templates. */
export interface KnownTemplates {
  /** @returns 0 when unknown */
  templateNo(lo: number, hi: number): number
  /** Changes when templates are renumbered, which happens only between two blocks. */
  templateGeneration(): number
  /** See `model/stored-message.ts`. @returns no bytes when the template's messages are stored whole */
  constantText(templateNo: number): Uint8Array
}

/** How messages are compared for deduplication. */
export interface Identity {
  /** Four random numbers, the same for all threads, so that senders cannot construct collisions. */
  readonly seed: readonly number[]
  /** Paths of attributes (`req.id`) that deduplication ignores; at most 64. */
  readonly ignoredTags: readonly string[]
  /** False when every message is an event of its own. */
  readonly isDeduplicated: boolean
}

/** What is done with the messages of a source in a body. */
export type Admission = 'store' | 'drop' | 'parse'
const ADMISSION = {
  store: layout.STORE_MESSAGES,
  drop: layout.DROP_MESSAGES,
  parse: layout.PARSE_MESSAGES,
} as const

/** The most distinct sources, hosts, levels and so on that a thread caches across blocks. */
const MAX_WORDS = 65_536
/** The most bytes of the cached texts: the paths of attributes are long. */
const MAX_WORD_BYTES = 16 * 1024 * 1024

/** The environment and the source of lines that name none, and the numbers of these texts and of the empty text as words. */
interface Defaults {
  readonly environment: string
  readonly defaultSource: string
  readonly word: number
  readonly source: number
  readonly empty: number
}

/**
 * Encodes messages as one block of landing rows. Equal messages of the same millisecond are one row with a count; the
 * side arrays are for the sequencer. The rows are built in WebAssembly's memory (bench/micro/encode.bench.ts). There is
 * one encoder per thread.
 */
export class BlockEncoder {
  readonly #kernel: Kernel
  /** Adds the records of a body of protobuf messages. */
  readonly protobuf: ProtobufRecords
  /** Finds the level in a message, for a record that has no level of its own. */
  readonly levelOf = createLevelOfMessage()
  readonly #templates: KnownTemplates
  readonly #misses = new MissList()
  readonly #ignoredTags: ReadonlySet<string>
  /** Search words of decoded messages with characters beyond ASCII. */
  #wide: WideRow[] = []
  readonly #wordOf = new Map<string, number>()
  /** By template: its last constant text, and 1 + the number of that text in the word table. */
  #constantTexts: ({ readonly text: Uint8Array; readonly word: number } | undefined)[] = []
  #templateGeneration = 0
  readonly #seed = new Int32Array(2)
  #admit: (source: string) => Admission = () => 'parse'
  #readTime: SyslogMessages['readTime'] = () => null
  #receivedAtMs = 0
  #modelVersion = ''
  #bodyBytes = 0
  #attributesLeftOut = 0
  /** The defaults of the last body as numbers in the word table; null after the table was renumbered. */
  #defaults: Defaults | null = null

  constructor(templates: KnownTemplates, { seed, ignoredTags, isDeduplicated }: Identity) {
    const kernel: Kernel = new Kernel({
      checkSource: (word) => this.#checkSource(word),
      admitSource: (word) => {
        const admission: number = ADMISSION[this.#admit(kernel.word(word))]
        kernel.calls.setAdmission(word, admission)
        return admission
      },
      checkType: (word) => {
        const state = typeIndex(kernel.word(word)) + 2
        kernel.calls.setType(word, state)
        return state
      },
      checkName: (word) => {
        const state = isTagName(kernel.word(word)) ? 2 : 1
        kernel.calls.setName(word, state)
        return state
      },
      checkLevel: (word) => this.#checkLevel(word),
      levelAtHead: (at, length) =>
        SEVERITIES.indexOf(this.levelOf(kernel.view(at, length)) ?? 'INFO'),
      isUtf8: (at, length) => (isUtf8(kernel.view(at, length)) ? 1 : 0),
      clockTime: (at, length) => this.#readTime(kernel.text(at, length)) ?? 0,
      logLevel: (number, at, length) => this.protobuf.levelOf(number, kernel.text(at, length)),
      templateOf: (lo, hi) => templates.templateNo(lo | 0, hi | 0),
      constantTextOf: (no) => this.#constantTextOf(templates.constantText(no), no),
    })
    this.#kernel = kernel
    this.protobuf = new ProtobufRecords(kernel)
    this.#templates = templates
    const [a, b] = new BigUint64Array(Int32Array.from(seed).buffer)
    kernel.calls.setHashSecrets(a ?? 0n, b ?? 0n)
    if (!isDeduplicated) kernel.calls.keepRepeats()
    this.#ignoredTags = new Set(ignoredTags)
    for (const path of ignoredTags) {
      const { at, messageBytes } = this.#placeTexts([path])
      kernel.calls.ignoreTag(at, messageBytes)
    }
  }

  begin(receivedAtMs: number, modelVersion: string): void {
    const kernel = this.#kernel
    this.#wordOf.clear()
    if (kernel.wordCount > MAX_WORDS || kernel.calls.wordBytes() > MAX_WORD_BYTES) {
      kernel.forgetWords()
      this.#constantTexts = []
      this.#defaults = null
    } else kernel.calls.beginBlock(0)
    const generation = this.#templates.templateGeneration()
    if (generation !== this.#templateGeneration) {
      kernel.calls.forgetSignatures()
      this.#constantTexts = []
    }
    this.#templateGeneration = generation
    this.#misses.clear()
    this.#wide = []
    this.#attributesLeftOut = 0
    this.#receivedAtMs = receivedAtMs
    this.#modelVersion = modelVersion
  }

  /**
   * Copies a body into the memory of WebAssembly, whose functions read records from it.
   *
   * @param admit is called once for each source of a line that needs no parsing
   */
  beginBody(
    bytes: Uint8Array,
    context: {
      readonly nowMs: number
      readonly environment: string
      readonly defaultSource: string
      readonly maxMessageBytes: number
      readonly isUtf8: boolean
      /** Whether times without a zone are in UTC. */
      readonly isUtc: boolean
    },
    admit: (source: string) => Admission,
  ): void {
    const kernel = this.#kernel
    this.#admit = admit
    this.#bodyBytes = bytes.length
    const { word, source, empty } = this.#defaultsOf(context)
    const at = kernel.calls.bodyAt(bytes.length + TEXTS_BYTES)
    kernel.bytes.set(bytes, at)
    this.protobuf.begin(at, bytes.length)
    const { nowMs, maxMessageBytes, isUtc } = context
    kernel.calls.beginBody(
      nowMs,
      maxMessageBytes,
      word,
      source,
      empty,
      context.isUtf8 ? 1 : 0,
      isUtc ? 1 : 0,
    )
  }

  /** Adds the lines of the body from an offset on, up to the first that must be parsed. */
  readLines(from: number, most: number): LinesRead {
    const { calls } = this.#kernel
    const next = calls.readLines(from, this.#bodyBytes, Math.min(most, 0x7fff_ffff))
    return { next, accepted: calls.acceptedLines(), dropped: calls.droppedLines() }
  }

  /**
   * Adds documents of a bulk request whose action lines have been seen before, up to the first that
   * must be parsed.
   *
   * @returns also the numbers of their action lines; they are overwritten by the next call
   */
  readHeaded(from: number, most: number): LinesRead & { readonly heads: Uint32Array } {
    const { calls } = this.#kernel
    const next = calls.readHeaded(from, this.#bodyBytes, Math.min(most, 0x7fff_ffff))
    const [accepted, dropped] = [calls.acceptedLines(), calls.droppedLines()]
    const at = calls.addressOf(layout.PASSED_HEADS)
    return { next, accepted, dropped, heads: this.#kernel.words32(at, accepted + dropped) }
  }

  /**
   * Adds messages of a batch of syslog, those with the numbers from `from` to before `to`, up to the first that must be parsed,
   * whose number is `next`.
   */
  readMessages(
    { table, priorities, readTime }: SyslogMessages,
    from: number,
    to: number,
  ): LinesRead {
    const kernel = this.#kernel
    this.#readTime = readTime
    kernel.bytes.set(priorities, kernel.calls.prioritiesAt())
    const next = kernel.calls.readMessages(table, from, to)
    return { next, accepted: kernel.calls.acceptedLines(), dropped: kernel.calls.droppedLines() }
  }

  /**
   * Sets a line of the body as the head of the next records.
   *
   * @param source the source of records that name none
   */
  setHead(from: number, to: number, no: number, source: string): void {
    this.#kernel.calls.setHead(from, to - from, no, this.#word(source))
  }

  /** Sets the source of the next lines that name none. */
  setDefaultSource(source: string): void {
    this.#kernel.calls.setDefaultSource(this.#word(source))
  }

  /** Adds a decoded message. @param severity index into SEVERITIES */
  add(event: CanonicalEvent, severity: number): void {
    const kernel = this.#kernel
    const source = this.#word(event.source)
    const host = this.#word(event.host)
    const environment = this.#word(event.environment)
    this.#checkSource(source)
    const tags = event.tags === null ? '' : JSON.stringify(event.tags)
    const stored = event.tags === null ? NO_TAGS : toStoredTags(event.tags, tags)
    this.#attributesLeftOut += stored.leftOut
    const identity = this.#identityOf(event, tags)
    const { message, traceId, spanId, summary, dedupKey } = event
    const { names, values, text } = stored
    const texts = [message, traceId, spanId, summary, dedupKey, text, values, names, tags, identity]
    const { at, sizes, messageBytes } = this.#placeTexts(texts)
    const row = kernel.calls.addEvent(
      event.timestampMs,
      source,
      host,
      environment,
      EVENT_TYPES.indexOf(event.type),
      severity,
      at,
      sizes,
      event.template === '' ? 1 : 0,
    )
    if (row < 0) return
    const words = searchWords(event, messageBytes)
    if (words !== '') this.#wide.push({ row, words })
    if (event.template !== '') this.#readyMade(event.template, source, row)
  }

  /**
   * The block; null when nothing was added.
   *
   * @param slice memory for the block, used if it is large enough
   */
  finish(slice: BlockSlice | null = null): RowBlock | null {
    const kernel = this.#kernel
    const rows = kernel.calls.rowCount()
    if (rows === 0) return null
    const wide = [...this.#wide, ...this.#wideLines()].toSorted((a, b) => a.row - b.row)
    this.#takeMisses()
    return writeLanding(kernel, {
      rows,
      receivedAtMs: this.#receivedAtMs,
      modelVersion: this.#modelVersion,
      wide,
      misses: this.#misses.finish(),
      attributesLeftOut: this.#attributesLeftOut,
      slice,
    })
  }

  #defaultsOf({
    environment,
    defaultSource,
  }: Pick<Defaults, 'environment' | 'defaultSource'>): Defaults {
    const known = this.#defaults
    if (known?.environment === environment && known.defaultSource === defaultSource) return known
    const kernel = this.#kernel
    this.#defaults = {
      environment,
      defaultSource,
      word: kernel.intern(environment),
      source: kernel.intern(defaultSource),
      empty: kernel.intern(''),
    }
    return this.#defaults
  }

  #word(text: string): number {
    const known = this.#wordOf.get(text)
    if (known !== undefined) return known
    const word = this.#kernel.intern(text)
    this.#wordOf.set(text, word)
    return word
  }

  #constantTextOf(text: Uint8Array, no: number): number {
    if (text.length === 0) return 0
    const known = this.#constantTexts[no]
    if (known?.text === text) return known.word
    const word = 1 + this.#kernel.internBytes(text)
    this.#constantTexts[no] = { text, word }
    return word
  }

  #checkSource(word: number): number {
    const name = this.#kernel.word(word)
    const state = maySourceBe(name) ? 1 : 2
    hashText(name, this.#seed)
    this.#kernel.calls.setSource(word, state, this.#seed[0] ?? 0, this.#seed[1] ?? 0)
    return state
  }

  #checkLevel(word: number): number {
    const { severity, tags } = readLevelWord(this.#kernel.word(word))
    const state = severity === null ? 2 : 3 + severity
    const tagsWord = tags === '' ? 0 : 1 + this.#kernel.intern(tags)
    this.#kernel.calls.setLevel(word, state, tagsWord)
    return state
  }

  /** Whether WebAssembly can hash these tags independently of their order. */
  #areFlat(tags: object, text: string): boolean {
    if (Object.values(tags).some(isObject)) return false
    const { at, messageBytes } = this.#placeTexts([text])
    return this.#kernel.calls.areFlatTags(at, messageBytes) !== 0
  }

  /**
   * The text that identifies an event in place of its tags, so that their order does not matter; ''
   * when the tags can be used as they are.
   */
  #identityOf({ dedupKey, tags }: CanonicalEvent, text: string): string {
    if (tags === null || dedupKey !== '') return ''
    return this.#areFlat(tags, text) ? '' : sortedJson(tags, this.#ignoredTags)
  }

  /** Writes the texts of a message one after the other, as `addEvent` reads them. */
  #placeTexts(texts: readonly string[]): {
    readonly at: number
    readonly sizes: number
    readonly messageBytes: number
  } {
    const kernel = this.#kernel
    const most = texts.reduce((sum, text) => sum + text.length * 3, SIZES_BYTES)
    const sizes = kernel.calls.scratchAt(most)
    const lengths = kernel.words32(sizes, texts.length)
    let end = sizes + SIZES_BYTES
    texts.forEach((text, i) => {
      const length = text === '' ? 0 : encoder.encodeInto(text, kernel.bytes.subarray(end)).written
      lengths[i] = length
      end += length
    })
    return { at: sizes + SIZES_BYTES, sizes, messageBytes: lengths[0] ?? 0 }
  }

  #readyMade(template: string, source: number, row: number): void {
    const signature = this.#seed
    hashText(this.#kernel.word(source), signature)
    signature[0] = (signature[0] ?? 0) ^ READY_MADE
    const text = encoder.encode(template)
    hashBytes(text, 0, text.length, signature)
    const [lo = 0, hi = 0] = signature
    const no = this.#templates.templateNo(lo, hi)
    if (no !== 0) this.#kernel.calls.setTemplate(row, no)
    else {
      const sources = this.#kernel.words32(
        this.#kernel.calls.indexesAt(layout.SOURCE_WORDS),
        row + 1,
      )
      this.#misses.add(lo, hi, text, { sourceIndex: sources[row] ?? 0, readyMade: true, row })
    }
  }

  /** Returns the search words of lines that were read without parsing. */
  #wideLines(): WideRow[] {
    const kernel = this.#kernel
    const { calls } = kernel
    const records = kernel.words32(
      calls.addressOf(layout.WIDE_ROWS),
      calls.lengthOf(layout.WIDE_ROWS) / 4,
    )
    const messages = calls.addressOf(layout.WIDE_MESSAGES)
    const traces = calls.textsAt(layout.TRACE_TEXTS)
    const found: WideRow[] = []
    for (let i = 0; i < records.length; i += layout.WIDE_INTS) {
      const [row = 0, offset = 0, length = 0, traceAt = 0, traceLength = 0, host = 0] =
        records.subarray(i, i + layout.WIDE_INTS)
      const message = kernel.text(messages + offset, length)
      const trace = kernel.text(traces + traceAt, traceLength)
      found.push({
        row,
        words: toWords(`${message} ${kernel.word(host)} ${trace}`).join(' '),
      })
    }
    return found
  }

  #takeMisses(): void {
    const kernel = this.#kernel
    const { calls } = kernel
    const records = kernel.words32(
      calls.addressOf(layout.MISSES),
      calls.lengthOf(layout.MISSES) / 4,
    )
    const messages = calls.addressOf(layout.MESSAGES)
    const sources = kernel.words32(calls.indexesAt(layout.SOURCE_WORDS), calls.rowCount())
    for (let i = 0; i < records.length; i += layout.MISS_INTS) {
      const [row = 0, lo = 0, hi = 0, offset = 0, length = 0] = records.subarray(
        i,
        i + layout.MISS_INTS,
      )
      const at = { sourceIndex: sources[row] ?? 0, readyMade: false, row }
      this.#misses.add(lo | 0, hi | 0, kernel.view(messages + offset, length), at)
    }
  }
}

const encoder = new TextEncoder()
/** Bytes of the lengths of the message and the texts of its record. */
const SIZES_BYTES = 4 * (1 + layout.RECORD_TEXTS)
const NO_TAGS: StoredTags = { names: '', values: '', text: '', leftOut: 0 }
const READY_MADE = 0x5bd1e995

/**
 * The search words of a record: its words if it has characters beyond ASCII, and after a newline
 * those of its exception. '' for most records.
 */
function searchWords(event: CanonicalEvent, messageBytes: number): string {
  const own = wideWords(event, messageBytes)
  if (event.exception === '') return own
  // The newline shows a search that the tags have an exception.
  return `${own}\n${[...new Set(toWords(event.exception))].join(' ')}`
}

function wideWords(event: CanonicalEvent, messageBytes: number): string {
  // A text that is longer in UTF-8 than in UTF-16 has characters beyond ASCII.
  const ascii =
    messageBytes === event.message.length && isAscii(event.host) && isAscii(event.traceId)
  if (ascii) return ''
  return toWords(`${event.message} ${event.host} ${event.traceId}`).join(' ')
}

const isAscii = (text: string): boolean => !/[^\p{ASCII}]/u.test(text)

/** JSON with sorted names, so that equal tags have equal texts, without the members of ignored paths. */
function sortedJson(value: unknown, ignored: ReadonlySet<string>, prefix = ''): string {
  if (typeof value === 'string') return quoted(value)
  if (!isObject(value)) return typeof value === 'number' ? String(value) : JSON.stringify(value)
  if (Array.isArray(value))
    return `[${value.map((item) => sortedJson(item, ignored, prefix)).join()}]`
  let members = ''
  for (const name of Object.keys(value).toSorted()) {
    const path = ignored.size === 0 ? '' : prefix + name
    if (ignored.has(path)) continue
    const comma = members === '' ? '' : ','
    members += `${comma}${quoted(name)}:${sortedJson(Reflect.get(value, name), ignored, `${path}.`)}`
  }
  return `{${members}}`
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

const quoted = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- what JSON escapes
  /["\\\u0000-\u001f\ud800-\udfff]/.test(text) ? JSON.stringify(text) : `"${text}"`
