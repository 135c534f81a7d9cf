import type { DecodeContext, EventSink } from '../../../model/event.js'
import { type Problem, usableSource } from '../../formats/draft.js'
import { hasTooManyValues, TOO_MANY_VALUES } from '../../formats/json-size.js'
import { parseCounted } from '../../formats/json-text.js'
import { isRecord, type JsonRecord, toWellFormed } from '../../formats/json-value.js'
import { RecordDecoder } from '../../formats/record.js'
import type { LineError } from '../../block.js'
import type { RecordTaker } from '../../record-rows.js'
import type { ReplyText } from '../../reply-text.js'
import type { ReplyWriter } from '../protocol.js'
import { RecordFeed } from '../record-feed.js'

const NEWLINE = 10
const ASCII_BLANKS: ReadonlySet<number> = new Set([0x09, 0x0b, 0x0c, 0x0d, 0x20])

const OPERATIONS = ['index', 'create', 'update', 'delete'] as const
type Operation = (typeof OPERATIONS)[number]

/** An action of a bulk request. Its number among the actions is the line in its errors. */
interface Action {
  readonly operation: Operation
  readonly index: string
  /** The document's id; null when the sender leaves it to the server. */
  readonly id: string | null
}

/**
 * Reads the body of a bulk request: a line for each action, followed by the document. The documents
 * are decoded like records of `/ingest`; one without a source has that of its index. A document
 * with an id is stored once.
 *
 * @returns a writer of the reply, with an item for each action
 */
export function decodeBulk(
  bytes: Buffer,
  context: DecodeContext,
  sink: EventSink,
  taker: RecordTaker | null = null,
): ReplyWriter {
  const documents = new Documents(bytes, { context, sink, taker })
  const lines = new Lines(bytes)
  const actions: Action[] = []
  const known = new KnownActions(documents.defaultIndex)
  for (;;) {
    for (const no of documents.takeKnown(lines)) actions.push(known.at(no))
    if (!lines.skipToText()) break
    const { action, no } = known.read(lines)
    const line = actions.length + 1
    if (action === null) documents.reject(line, NO_ACTION, lines.text())
    else if (action.operation !== 'delete') {
      if (no !== -1) documents.know(no, action, lines)
      documents.put(line, action, lines)
    }
    actions.push(action ?? NO_OPERATION)
  }
  return (errors) => writeItems(actions, errors)
}

/** Reads a single document, the body of `PUT /{index}/_doc/{id}`. */
export function decodeDocument(
  bytes: Buffer,
  context: DecodeContext,
  sink: EventSink,
): ReplyWriter {
  const documents = new Documents(bytes, { context, sink, taker: null })
  const params = new URLSearchParams(context.params)
  const action = {
    operation: 'index',
    index: documents.defaultIndex,
    id: params.get('id'),
  } as const
  documents.put(1, action, new Lines(bytes, true))
  return (errors) => writeDocument(action, errors)
}

const NO_OPERATION: Action = { operation: 'index', index: '', id: null }

const NO_ACTION = {
  reason: 'invalid_json',
  message: 'an action line must be {"index" | "create" | "update" | "delete": {…}}',
  source: '',
} as const

/** The lines of a body as text. */
class Lines {
  readonly #bytes: Buffer
  #at = 0
  readonly #isWhole: boolean
  /** The offset of the current line. */
  from = 0
  to = 0

  constructor(bytes: Buffer, isWhole = false) {
    this.#bytes = bytes
    this.#isWhole = isWhole
  }

  get bytes(): Buffer {
    return this.#bytes
  }

  /** Returns the current line, or as much of it as a dead letter keeps, without blanks around it. */
  text(): string {
    const to = Math.min(this.to, this.from + RAW_BYTES)
    return this.#bytes.toString('utf8', this.from, to).trim()
  }

  /** Whether the current line is blank. */
  isBlank(): boolean {
    let at = this.from
    while (at < this.to && ASCII_BLANKS.has(this.#bytes[at] ?? 0)) at++
    if (at === this.to || (this.#bytes[at] ?? 0) < 0x80) return at === this.to
    return this.#bytes.toString('utf8', at, this.to).trim() === ''
  }

  /** Skips a line that was read elsewhere. */
  goTo(at: number): void {
    this.#at = at
  }

  /** The offset of the next line. */
  get at(): number {
    return this.#at
  }

  /**
   * Moves past blank lines, of which a body may have millions, to the next other line.
   *
   * @returns false after the last
   */
  skipToText(): boolean {
    while (this.skip()) if (!this.isBlank()) return true
    return false
  }

  /** Moves to the next line. @returns false after the last */
  skip(): boolean {
    if (this.#at >= this.#bytes.length) return false
    const newline = this.#isWhole ? -1 : this.#bytes.indexOf(NEWLINE, this.#at)
    this.from = this.#at
    this.to = newline === -1 ? this.#bytes.length : newline
    this.#at = this.to + 1
    return true
  }
}

/** The most distinct actions that are cached for a body. */
const MAX_ACTIONS = 256
const MAX_ACTION_BYTES = 256

/** A cache of the actions without an id of one body. Most of them are equal bytes. */
class KnownActions {
  readonly #defaultIndex: string
  readonly #known = new Map<string, number>()
  readonly #actions: Action[] = []

  constructor(defaultIndex: string) {
    this.#defaultIndex = defaultIndex
  }

  at(no: number): Action {
    return this.#actions[no] ?? NO_OPERATION
  }

  /** @returns the action, null for another line; and its number, -1 for one that is not cached */
  read(lines: Lines): { readonly action: Action | null; readonly no: number } {
    const text = lines.text()
    const known = this.#known.get(text)
    if (known !== undefined) return { action: this.at(known), no: known }
    const action = readAction(text, this.#defaultIndex)
    const isKept = action?.id === null && text.length <= MAX_ACTION_BYTES
    if (!isKept || this.#actions.length === MAX_ACTIONS) return { action, no: -1 }
    const no = this.#actions.push(action) - 1
    this.#known.set(text, no)
    return { action, no }
  }
}

/** The most characters of an action line. Elasticsearch allows 512 bytes for an id and 255 for an index. */
const LONGEST_ACTION = 16_384

function readAction(text: string, defaultIndex: string): Action | null {
  const line = text.length > LONGEST_ACTION ? undefined : parseCounted(text)
  if (!isRecord(line)) return null
  // Some clients add members of their own.
  const operation = OPERATIONS.find((name) => Object.hasOwn(line, name))
  const meta = operation === undefined ? null : line[operation]
  if (operation === undefined || !isRecord(meta)) return null
  const { _index: index, _id: id } = meta
  const isId = (typeof id === 'string' && id !== '') || typeof id === 'number'
  return {
    operation: meta['op_type'] === 'create' ? 'create' : operation,
    index: typeof index === 'string' && index !== '' ? index : defaultIndex,
    id: isId ? String(id) : null,
  }
}

interface Taking {
  readonly context: DecodeContext
  readonly sink: EventSink
  readonly taker: RecordTaker | null
}

/** Decodes the documents of one body. */
class Documents {
  readonly #context: DecodeContext
  readonly #sink: EventSink
  readonly #decoder: RecordDecoder
  readonly #feed: RecordFeed
  readonly #sources = new Map<string, string>()
  readonly defaultIndex: string

  constructor(bytes: Buffer, { context, sink, taker }: Taking) {
    this.#context = context
    this.#sink = sink
    this.#decoder = new RecordDecoder(context, sink)
    this.#feed = new RecordFeed(bytes, context, this.#decoder, taker)
    this.defaultIndex = new URLSearchParams(context.params).get('index') ?? ''
  }

  reject(no: number, problem: Problem, raw: string): void {
    this.#decoder.put(no, problem, () => raw)
  }

  put(no: number, { operation, index, id }: Action, lines: Lines): void {
    const source = this.#sourceOf(index)
    if (id !== null && lines.at < lines.bytes.length) {
      const isNew = this.#sink.identify?.(`${index} ${id}`) !== false
      if (!isNew) {
        lines.skip()
        this.#decoder.count(1)
        return
      }
    }
    if (operation !== 'update' && this.#take(source, lines)) return
    if (!lines.skip()) {
      this.reject(no, { ...NO_DOCUMENT, source }, '')
      return
    }
    const { bytes, from, to } = lines
    const raw = (): string => bytes.toString('utf8', from, Math.min(to, from + RAW_BYTES))
    if (hasTooManyValues(bytes, from, to)) {
      this.reject(no, TOO_MANY_VALUES, raw())
      return
    }
    const record = readDocument(bytes.toString('utf8', from, to), operation)
    this.#decoder.defaultSource = source
    if (record === undefined) this.#decoder.put(no, { ...NO_JSON, source }, raw)
    else this.#decoder.decode(no, record, raw)
  }

  /**
   * Takes documents from here on whose actions are cached and which need not be parsed.
   *
   * @returns the numbers of their actions
   */
  takeKnown(lines: Lines): Uint32Array {
    const { next, heads } = this.#feed.headed(lines.at)
    lines.goTo(next)
    return heads
  }

  /** Caches the action of the current line for following documents. */
  know(no: number, { operation, index }: Action, { from, to }: Lines): void {
    // The document of an update is nested in another object, so it is always parsed.
    if (operation !== 'update') this.#feed.setHead(from, to, no, this.#sourceOf(index))
  }

  /** Takes a document that need not be parsed. */
  #take(source: string, lines: Lines): boolean {
    const { at } = lines
    this.#feed.setDefaultSource(source)
    const next = this.#feed.line(at)
    if (next === at) return false
    lines.goTo(next)
    return true
  }

  #sourceOf(index: string): string {
    const known = this.#sources.get(index)
    if (known !== undefined) return known
    const { requestSource, defaultSource } = this.#context
    const named = requestSource === '' ? usableSource(withoutDate(index)) : requestSource
    const source = named === '' ? defaultSource : named
    if (this.#sources.size < MAX_INDEXES) this.#sources.set(index, source)
    return source
  }
}

const RAW_BYTES = 65_536
/** The most index names whose sources are cached for a body. */
const MAX_INDEXES = 1000

const NO_DOCUMENT = {
  reason: 'invalid_json',
  message: 'the action has no document',
  source: '',
} as const
const NO_JSON = { ...NO_DOCUMENT, message: 'the document is not JSON' } as const

/** @returns undefined when it is not JSON */
function readDocument(text: string, operation: Operation): unknown {
  // Templates of rsyslog do not escape control characters.
  const found = parseCounted(text) ?? parseCounted(withEscapes(text))
  const document = toWellFormed(found)
  if (operation !== 'update' || !isRecord(document)) return document
  return document['doc'] ?? document['upsert'] ?? document
}

const withEscapes = (text: string): string =>
  text.replace(
    // oxlint-disable-next-line no-control-regex -- what JSON does not allow in a text
    /[\u0000-\u001f]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** The name of an index without its hour, day, month or number: `app-2026.11.21.09`, `app-2026.11.21-000001`. */
const withoutDate = (index: string): string =>
  index.replace(/(?:[-_.](?:\d{4}[-.]\d{2}(?:[-.]\d{2}){0,2}|\d{8}))?(?:[-_.]\d{6})?$/, '')

const quoted = (text: string): string => JSON.stringify(text)

function itemOf(action: Action, error: LineError | undefined): string {
  const { operation } = action
  const head = headOf(action)
  if (error !== undefined) {
    const [status, type] = DENIALS.has(error.code) ? DENIED : UNREAD
    return `{"${operation}":{${head},${failure(status, type, error.message)}}}`
  }
  if (operation === 'delete') return `{"delete":{${head},"result":"not_found","status":404}}`
  return `{"${operation}":{${head},"status":201}}`
}

/** Reasons for rejecting a document that is valid, because the sender may not write it. */
const DENIALS: ReadonlySet<string> = new Set(['unknown_source', 'source_limit', 'key_source_limit'])
const DENIED = [403, 'security_exception'] as const
const UNREAD = [400, 'document_parsing_exception'] as const

const failure = (status: number, type: string, reason: string): string =>
  `"status":${status},"error":{"type":"${type}","reason":${quoted(reason)}}`

/**
 * The most actions that are answered one by one. It is more than clients send in one uncompressed
 * request; reading them takes about 10 ms of the event loop.
 */
const MAX_BUSY_ACTIONS = 2000

/**
 * Answers a bulk request that cannot be accepted right now with an item that says to retry for each
 * action.
 *
 * @param params as the parser gets them
 * @returns null for a request with more actions or blank lines than are answered one by one
 */
export function writeBusyItems(bytes: Buffer, params: string, reason: string): string | null {
  const index = new URLSearchParams(params).get('index') ?? ''
  const lines = new Lines(bytes)
  const items: string[] = []
  for (let read = 0; lines.skip(); read++) {
    if (read === MAX_BUSY_ACTIONS) return null
    if (lines.isBlank()) continue
    const action = readAction(lines.text(), index) ?? NO_OPERATION
    if (action.operation !== 'delete') lines.skip()
    const busy = failure(429, 'es_rejected_execution_exception', reason)
    items.push(`{"${action.operation}":{${headOf(action)},${busy}}}`)
  }
  return `{"took":0,"errors":${items.length > 0},"items":[${items.join(',')}]}`
}

const headOf = ({ index, id }: Action): string =>
  `"_index":${quoted(index)},"_id":${id === null ? 'null' : quoted(id)}`

function writeItems(actions: readonly Action[], errors: readonly LineError[]): ReplyText {
  const byAction = new Map(errors.map((error) => [error.line, error]))
  const pieces = [`{"took":1,"errors":${errors.length > 0},"items":[`]
  const order = new Uint32Array(actions.length + 2)
  const known = new Map<Action, number>()
  for (const [i, action] of actions.entries()) {
    const error = byAction.size === 0 ? undefined : byAction.get(i + 1)
    // Actions without an id get equal items; the first has no comma before it.
    const isAlike = i > 0 && error === undefined && action.id === null
    let no = isAlike ? known.get(action) : undefined
    if (no === undefined) {
      no = pieces.push(`${i === 0 ? '' : ','}${itemOf(action, error)}`) - 1
      if (isAlike) known.set(action, no)
    }
    order[i + 1] = no
  }
  order[actions.length + 1] = pieces.push(']}') - 1
  return { pieces, order }
}

function writeDocument({ index, id }: Action, errors: readonly LineError[]): ReplyText | null {
  if (errors.length > 0) return null
  const shards = '"_shards":{"total":1,"successful":1,"failed":0}'
  const text = `{"_index":${quoted(index)},"_id":${quoted(id ?? '')},"_version":1,"result":"created",${shards}}`
  return { pieces: [text], order: Uint32Array.of(0) }
}

/** The error of Elasticsearch as an object. */
export const errorOf = (type: string, reason: string, status: number): JsonRecord => ({
  error: { root_cause: [{ type, reason }], type, reason },
  status,
})
