import { decodeSnappy } from '../../http/snappy.js'
import { AppError } from '../../model/errors.js'
import type { DecodeContext, EventSink } from '../../model/event.js'
import type { Reply } from '../../http/reply.js'
import { httpRoute } from '../../http/routes.js'
import { INGEST_BYTES } from '../block.js'
import { isStream, MAX_CHARS, usableSource } from '../formats/draft.js'
import { parseJson, rawText } from '../formats/json-text.js'
import { isRecord, type JsonRecord } from '../formats/json-value.js'
import { readLogfmt } from '../formats/logfmt.js'
import { RecordDecoder } from '../formats/record.js'
import type { RecordTaker } from '../record-rows.js'
import { ingestRoute, laterReply } from './ingest-route.js'
import { type MessageForm, MessageReader, readJsonForm } from './message-form.js'
import type { Protocol } from './protocol.js'
import { RecordFeed } from './record-feed.js'

/** PushRequest of Loki's push.proto: streams (1), each with labels (1) and entries (2). */
const PAIR: MessageForm = { 1: ['name', 'text'], 2: ['value', 'text'] }
const ENTRY: MessageForm = {
  1: ['timestamp', { 1: ['seconds', 'int'], 2: ['nanos', 'int'] }],
  2: ['line', 'text'],
  3: ['metadata', [PAIR]],
}

/** An entry of a stream. */
interface Entry {
  /** The time in ms since 1970; null when it is not readable. */
  readonly timestampMs: number | null
  readonly line: string
  readonly metadata: JsonRecord
}

/**
 * Reads a push request: JSON, or protobuf, which clients compress as one block of Snappy without
 * declaring it.
 *
 * @throws AppError `bad_request` when it is neither
 */
function decodeLoki(
  bytes: Buffer,
  context: DecodeContext,
  sink: EventSink,
  taker: RecordTaker | null = null,
): void {
  const decoder = new RecordDecoder(context, sink)
  const json = readJsonForm(bytes)
  if (json === null) readProtobuf(bytes, context, { decoder, taker })
  else readJson(json, context, decoder)
}

function readProtobuf(
  bytes: Buffer,
  context: DecodeContext,
  { decoder, taker }: { readonly decoder: RecordDecoder; readonly taker: RecordTaker | null },
): void {
  const plain = plainOf(bytes)
  const reader = new MessageReader(plain)
  const simple = new SimpleEntries(new RecordFeed(plain, context, decoder, taker))
  try {
    reader.each(plain.length, (no) => {
      if (no === 1) readStream(reader, { context, decoder, simple })
    })
  } catch (cause) {
    if (cause instanceof AppError) throw cause
    throw new AppError('bad_request', 'the body is neither protobuf nor JSON of Loki', { cause })
  }
}

/**
 * Distinguishes plain protobuf from Snappy. A request begins with its only field; a Snappy block
 * that begins with the same byte has ten bytes and no stream.
 */
function plainOf(bytes: Buffer): Uint8Array {
  if (bytes.length === 0 || (bytes[0] === 0x0a && bytes.length > 16)) return bytes
  try {
    const plain = decodeSnappy(bytes, INGEST_BYTES)
    if (plain !== null) return plain
  } catch {
    return bytes
  }
  const details = { limit_bytes: INGEST_BYTES }
  throw new AppError('body_too_large', `the decompressed body exceeds ${INGEST_BYTES} bytes`, {
    details,
  })
}

interface Streams {
  readonly context: DecodeContext
  readonly decoder: RecordDecoder
  readonly simple: SimpleEntries
}

/** Labels come before the entries. */
function readStream(reader: MessageReader, { context, decoder, simple }: Streams): void {
  const end = reader.fieldEnd()
  let stream = new Stream({}, context, decoder)
  reader.each(end, (no) => {
    if (no === 1) stream = new Stream(parseLabels(reader.text()), context, decoder)
    else if (no === 2) stream.put(toEntry(reader.message(ENTRY)))
    else return
    reader.skipTo((from) => simple.take(from, end, stream))
  })
}

/** Adds protobuf entries that `wasm/assembly/loki.ts` can read. */
class SimpleEntries {
  readonly #feed: RecordFeed
  #stream: Stream | null = null

  constructor(feed: RecordFeed) {
    this.#feed = feed
  }

  /** Takes fields of a stream between two offsets of the body. @returns the offset of the first that must be decoded */
  take(from: number, to: number, stream: Stream): number {
    if (stream !== this.#stream) this.#begin(stream)
    return this.#feed.records({ kind: 'loki' }, from, to)
  }

  #begin(stream: Stream): void {
    this.#stream = stream
    for (const name of FIELDS) this.#feed.set(name, stream.fields[name])
    const hasTags = Object.keys(stream.tags).length > 0
    this.#feed.set('tags', hasTags ? JSON.stringify(stream.tags) : '')
  }
}

const FIELDS = ['source', 'host', 'environment', 'severity'] as const

/** @returns null for a time that is not readable */
function toMs(seconds: number, nanos: number): number | null {
  const ms = seconds * 1000 + Math.floor(nanos / 1e6)
  return Number.isSafeInteger(ms) && ms > 0 ? ms : null
}

function toEntry({ timestamp, line, metadata }: JsonRecord): Entry {
  const { seconds, nanos } = isRecord(timestamp) ? timestamp : {}
  return {
    timestampMs: toMs(Number(seconds ?? 0), Number(nanos ?? 0)),
    line: typeof line === 'string' ? line : '',
    metadata: toMetadata(metadata),
  }
}

function toMetadata(pairs: unknown): JsonRecord {
  const metadata: JsonRecord = {}
  if (!Array.isArray(pairs)) return metadata
  for (const { name, value } of pairs as JsonRecord[])
    if (typeof name === 'string') metadata[name] = value
  return metadata
}

/** Reads `{app="shop", env="prod"}`. */
function parseLabels(text: string): JsonRecord {
  const labels: JsonRecord = {}
  const pair = /([A-Za-z_][\w.:]{0,255})\s{0,8}=\s{0,8}("(?:[^"\\]|\\.)*"|`[^`]*`)/y
  for (let at = text.indexOf('{') + 1; at < text.length && at > 0;) {
    while (/[\s,]/.test(text[at] ?? '')) at++
    pair.lastIndex = at
    const match = pair.exec(text)
    if (match === null) break
    const [, name = '', quoted = ''] = match
    const value = quoted.startsWith('"') ? parseJson(quoted) : quoted.slice(1, -1)
    labels[name] = typeof value === 'string' ? value : quoted.slice(1, -1)
    at = pair.lastIndex
  }
  return labels
}

function readJson(request: JsonRecord, context: DecodeContext, decoder: RecordDecoder): void {
  if (!Array.isArray(request['streams']))
    throw new AppError('bad_request', 'the body is not JSON with streams')
  for (const item of request['streams'].filter(isRecord)) {
    const labels = isRecord(item['stream']) ? item['stream'] : labelsOf(item['labels'])
    const stream = new Stream(labels, context, decoder)
    const values = Array.isArray(item['values']) ? item['values'] : []
    for (const value of values as unknown[]) stream.put(toJsonEntry(value))
    const entries = Array.isArray(item['entries']) ? item['entries'] : []
    for (const entry of entries as unknown[]) stream.put(toOldEntry(entry))
  }
}

const labelsOf = (text: unknown): JsonRecord => (typeof text === 'string' ? parseLabels(text) : {})

function toJsonEntry(value: unknown): Entry {
  const [time, line, metadata] = Array.isArray(value) ? (value as unknown[]) : []
  const digits = typeof time === 'number' ? String(time) : time
  const isTime = typeof digits === 'string' && /^\d{7,20}$/.test(digits)
  return {
    timestampMs: isTime ? Number(digits.slice(0, -6)) : null,
    line: typeof line === 'string' ? line : rawText(line ?? undefined),
    metadata: isRecord(metadata) ? metadata : {},
  }
}

/** Reads `{ts, line}`, the entry of clients before Loki 1.0. */
function toOldEntry(entry: unknown): Entry {
  const { ts, line } = isRecord(entry) ? entry : {}
  const timeMs = typeof ts === 'string' ? Date.parse(ts) : Number.NaN
  return {
    timestampMs: Number.isNaN(timeMs) ? null : timeMs,
    line: typeof line === 'string' ? line : rawText(line ?? undefined),
    metadata: {},
  }
}

const SOURCES = 'source service_name service app application job container_name container'.split(
  ' ',
)
const HOSTS = 'host hostname node_name node instance nodename'.split(' ')
const ENVIRONMENTS = 'environment env deployment_environment_name deployment_environment'.split(' ')
const LEVELS = 'level severity detected_level severity_text loglevel'.split(' ')

const textIn = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The entries of one stream, whose labels name source, host, environment and level; the others are tags. */
class Stream {
  readonly #decoder: RecordDecoder
  readonly fields: Readonly<Record<'source' | 'host' | 'environment' | 'severity', string>>
  readonly tags: JsonRecord

  constructor(labels: JsonRecord, { requestSource }: DecodeContext, decoder: RecordDecoder) {
    const left = { ...labels }
    const take = (names: readonly string[], maxChars: number): string => {
      for (const name of names) {
        const value = left[name]
        if (typeof value !== 'string' || value === '' || value.length > maxChars) continue
        delete left[name]
        return value
      }
      return ''
    }
    const names = usableSource(left['source']) === '' && requestSource !== '' ? [] : SOURCES
    const usable = names.filter((name) => usableSource(left[name]) !== '')
    this.fields = {
      source:
        take([...usable.filter((name) => !isStream(left[name])), ...usable], Infinity) ||
        requestSource,
      host: take(HOSTS, MAX_CHARS.host),
      environment: take(ENVIRONMENTS, MAX_CHARS.environment),
      severity: take(LEVELS, 64),
    }
    this.tags = left
    this.#decoder = decoder
  }

  put(entry: Entry): void {
    const nested = nestedIn(entry.line)
    const record = nested === null ? this.#plain(entry) : this.#nested(entry, nested)
    this.#decoder.decode(this.#decoder.received + 1, record, () => rawText(record))
  }

  #plain({ timestampMs, line, metadata }: Entry): JsonRecord {
    const tags = { ...metadata }
    const take = (names: readonly string[]): unknown => {
      const key = Object.keys(tags).find((one) => names.includes(one.toLowerCase()))
      const value = key === undefined ? undefined : tags[key]
      if (key !== undefined) delete tags[key]
      return value
    }
    const traceId = take(['trace_id', 'traceid'])
    const spanId = take(['span_id', 'spanid'])
    const level = this.fields.severity || LEVELS.map((name) => metadata[name]).find(Boolean)
    return {
      ...this.fields,
      timestamp: timestampMs,
      severity: textIn(level),
      message: line,
      trace_id: textIn(traceId),
      span_id: textIn(spanId),
      tags: { ...this.tags, ...tags },
    }
  }

  /** A line of JSON or logfmt is decoded as a record of its own. */
  #nested({ timestampMs, metadata }: Entry, line: string): JsonRecord {
    const { severity, ...fields } = this.fields
    const filled = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''))
    return {
      ...filled,
      ...(severity === '' ? {} : { detected_level: severity }),
      ...(timestampMs === null ? {} : { timestamp: timestampMs }),
      line,
      labels: this.tags,
      ...metadata,
    }
  }
}

/**
 * The fields of a line as JSON: the line itself, its logfmt pairs, or the JSON after a message
 * (winston-loki).
 *
 * @returns null for a plain line
 */
function nestedIn(line: string): string | null {
  const isObject = line.endsWith('}') || line.trimEnd().endsWith('}')
  if (line.startsWith('{')) return isObject ? line : null
  if (!isObject) {
    const pairs = readLogfmt(line)
    return pairs === null ? null : JSON.stringify(pairs)
  }
  const at = line.indexOf(' {"')
  const members = at > 0 ? parseJson(line.slice(at + 1)) : null
  return isRecord(members) ? JSON.stringify({ message: line.slice(0, at), ...members }) : null
}

const STORED: Reply = { status: 204, body: '' }
const READY: Reply = { status: 200, headers: { 'Content-Type': 'text/plain' }, body: 'ready\n' }

/** Loki's push interface. */
export const loki: Protocol = {
  name: 'loki',
  parsers: { 'loki/push': decodeLoki },
  routes: (services) => [
    ...['/loki/api/v1/push', '/api/prom/push'].map((path) =>
      ingestRoute(
        {
          id: 'loki_push',
          path,
          protocol: 'loki',
          format: 'loki/push',
          patienceMs: 1000,
          toReply: () => STORED,
          toErrorReply: laterReply,
        },
        services,
      ),
    ),
    ...['/ready', '/loki/ready'].map((path) =>
      httpRoute({
        id: 'loki_ready',
        method: 'GET',
        path,
        bodyBytes: 0,
        handle: () => (services.isReady() ? READY : { ...READY, status: 503, body: 'not ready\n' }),
      }),
    ),
  ],
}
