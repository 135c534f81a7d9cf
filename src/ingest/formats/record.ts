import { AppError } from '../../model/errors.js'
import type { DecodeContext, EventSink, EventType } from '../../model/event.js'
import {
  badType,
  decodeCanonical,
  hasCanonicalTypes,
  isCanonical,
  textProblem,
  withSeverityText,
} from './canonical.js'
import {
  type Decoded,
  type Draft,
  emptyDraft,
  finishDraft,
  isEventType,
  isProblem,
  isStream,
  MAX_CHARS,
  ownSource,
  type Problem,
  sourceProblem,
  unreadableTime,
  usableSource,
} from './draft.js'
import { type FieldCandidate, FieldCandidates, NamePlace } from './field-candidates.js'
import { parseJson, rawText } from './json-text.js'
import { isRecord, type JsonRecord, toWellFormed } from './json-value.js'
import { expandCompact, isCompact } from './compact.js'
import { composeMessage } from './composed.js'
import { isLoguru, expandLoguru } from './loguru.js'
import { findException, type FoundException } from './exception.js'
import { parseSeverity } from '../../model/severity.js'
import {
  findId,
  findLevel,
  findLogger,
  findMessage,
  findPath,
  findText,
  findTime,
  type FoundTime,
  isOfPython,
} from './record-fields.js'
import { TagCollector } from './tags.js'

/** Limit of log lines in JSON within each other (Docker, Splunk, CloudWatch). */
const MAX_WRAPPED = 2
/** Limit of tag holders within each other; a deeper one is a value. */
const MAX_HOLDERS = 4
/** Limit of arguments of a log4js call whose members become tags. */
const MAX_ARGUMENTS = 9

/**
 * Decodes the parsed records of one body to events. A record may use any of the names in `aliases.ts`; one with
 * canonical names only is decoded by `canonical.ts`. The engine alone sets priorities: a P1..P4 in a record is a tag.
 */
export class RecordDecoder {
  #context: DecodeContext
  readonly #sink: EventSink
  readonly #isTolerant: boolean
  readonly #names = new NamePlace()
  #received = 0
  #accepted = 0
  #readable = 0

  /**
   * @param isTolerant whether a canonical member of another type becomes a tag instead of a
   * rejection, for protocols whose replies cannot name the rejected record
   */
  constructor(context: DecodeContext, sink: EventSink, { isTolerant = false } = {}) {
    this.#context = context
    this.#sink = sink
    this.#isTolerant = isTolerant
  }

  /** The source of the next records that name none. */
  set defaultSource(defaultSource: string) {
    if (this.#context.defaultSource !== defaultSource)
      this.#context = { ...this.#context, defaultSource }
  }

  /** Number of records, including rejected ones. */
  get received(): number {
    return this.#received
  }

  /** Number of records up to the limit. */
  get left(): number {
    return this.#context.maxRows - this.#received
  }

  /** Number of JSON objects. */
  get readable(): number {
    return this.#readable
  }

  get accepted(): number {
    return this.#accepted
  }

  /**
   * @param record as JSON.parse gave it; may be changed
   * @param rawOf gives the text for a rejection
   */
  decode(line: number, record: unknown, rawOf: () => string): void {
    if (isRecord(record)) this.#readable += 1
    this.put(line, isRecord(record) ? this.#decodeRecord(record) : NO_OBJECT, rawOf)
  }

  /**
   * Counts a record and passes its event or rejection to the sink.
   *
   * @throws AppError `file_parse_error` for the first row above the limit
   */
  put(line: number, decoded: Decoded, rawOf: () => string): void {
    this.count(1)
    if (isProblem(decoded)) {
      const { reason, message, source } = decoded
      this.#sink.reject(line, { reason, message, raw: rawOf(), source })
      return
    }
    this.#accepted += 1
    this.#sink.event(line, decoded)
  }

  /**
   * Counts records that were decoded elsewhere.
   *
   * @throws AppError `file_parse_error` for the first row above the limit
   */
  count(records: number): void {
    this.#received += records
    if (this.#received > this.#context.maxRows) throw tooManyRows(this.#context.maxRows)
  }

  /**
   * Checks the number of records before the first is decoded.
   *
   * @throws AppError `file_parse_error` above the limit
   */
  expect(records: number): void {
    if (records > this.left) throw tooManyRows(this.#context.maxRows)
  }

  /** Reads a log line in JSON that is wrapped in another line. @returns null for other texts */
  readWrapped(text: string): Draft | null {
    const record = parseWrapped(text)
    const draft = record === null ? null : this.#map(record, 1)
    return draft === null || isProblem(draft) ? null : draft
  }

  #decodeRecord(received: JsonRecord): Decoded {
    const record = expanded(received)
    const { source } = record
    // In the Elastic Common Schema `source` is an object.
    const fits = this.#context.source === null ? !isRecord(source) : source === undefined
    const isOther = this.#isTolerant && !hasCanonicalTypes(record)
    if (fits && !isOther && isCanonical(record)) return decodeCanonical(record, this.#context)
    const bad = isOther ? null : this.#canonicalProblem(record)
    if (bad !== null) {
      const candidates = new FieldCandidates(record, this.#names)
      const named = this.#findSource(candidates, record, findPath(candidates))
      return { ...bad, source: usableSource(ownSource(named, this.#context)) }
    }
    const draft = this.#map(record, 0)
    return isProblem(draft) ? draft : finishDraft(draft, this.#context)
  }

  /** A member with a canonical name must have a valid value, even beside aliases; but loggers put whatever was logged into `message`. */
  #canonicalProblem(record: JsonRecord): Omit<Problem, 'source'> | null {
    const { message, source, type } = record
    if (hasLongText(record)) return textProblem(record)
    if (this.#context.source !== null || typeof source !== 'string') return null
    const isForeign = typeof type === 'string' && !isEventType(type) && parseSeverity(type) === null
    if (isForeign && message !== undefined) return badType()
    return source.trim() === '' ? null : sourceProblem(source)
  }

  #map(record: JsonRecord, depth: number): Draft | Problem {
    const candidates = new FieldCandidates(record, this.#names)
    const path = findPath(candidates)
    const source = this.#findSource(candidates, record, path)
    const timestampMs = timeOf(findTime(candidates, this.#context), depth)
    if (timestampMs === undefined) return unreadableTime(usableSource(source))
    const level = findLevel(candidates)
    const logger = findLogger(candidates)
    const found = findMessage(candidates, 'own')
    const exception = findException(candidates)
    const draft: Draft = {
      ...emptyDraft(),
      timestampMs,
      source,
      type: typeOf(record),
      severity: level.severity,
      ...findTexts(candidates),
      exception: exception?.text ?? '',
    }
    const other = found ?? otherMessage(candidates, exception)
    const named = { logger, 'log.file.path': path }
    const tags = leftTags(candidates, named, other?.candidate ?? null)
    draft.tags = withSeverityText(tags, level.text)
    draft.environment ||= environmentOfTags(record, tags)
    draft.message = other?.message ?? textOfRest(record, tags, depth)
    return found === null ? draft : this.#unwrap(draft, found.candidate, depth)
  }

  /** Finds the source. In an upload it is given, and a source in the record stays a tag. */
  #findSource(candidates: FieldCandidates, record: JsonRecord, path: string): string {
    if (this.#context.source !== null) return this.#context.source
    const own = record['source']
    const isNamed = typeof own === 'string' && own.trim() !== ''
    const hasOthers = isNamed && isStream(own) && candidates.of('source').length > 1
    if (isNamed && !hasOthers) return this.#takeSource(candidates, record, own)
    const isPython = isOfPython(candidates)
    const fits = ({ alias, key, value }: FieldCandidate) => {
      const name = typeof value === 'string' ? usableSource(value) : ''
      // Python's name is that of the logger; Vector's `source_type` is the way in which it got the record.
      const isOther = alias.name === 'name' ? isPython : key === 'source_type'
      if (name === '' || isOther || isStream(name)) return null
      // Docker's names begin with a slash.
      return alias.name === 'containername' ? usableSource(name.replace(/^\//, '')) || null : name
    }
    const found = candidates.first('source', fits)
    if (found === null && isNamed) return this.#takeSource(candidates, record, own)
    return found ?? usableSource(/[^\\/]*$/.exec(path)?.[0] ?? '')
  }

  #takeSource(candidates: FieldCandidates, record: JsonRecord, source: string): string {
    candidates.take(topCandidate(candidates, 'source', record))
    return source
  }

  /** Merges a log line in JSON with the record of the transport that wraps it. */
  #unwrap(outer: Draft, { alias, key }: FieldCandidate, depth: number): Draft {
    const isWrapper = depth < MAX_WRAPPED && (WRAPPERS.has(alias.name) || key === '@message')
    const inner = isWrapper ? parseWrapped(outer.message) : null
    if (inner === null) return outer
    const draft = this.#map(inner, depth + 1)
    return isProblem(draft) ? outer : mergeDrafts(outer, draft)
  }
}

/** @returns undefined for a time that can't be read; a wrapped line has that of its transport then */
function timeOf(time: FoundTime, depth: number): number | null | undefined {
  if (time.kind === 'time') return time.timestampMs
  return time.kind === 'unreadable' && depth === 0 ? undefined : null
}

export const tooManyRows = (maxRows: number): AppError =>
  new AppError('file_parse_error', `the file has more than ${maxRows} rows`)

/** Names of the members in which transports wrap a program's line. */
const WRAPPERS: ReadonlySet<string> = new Set(
  'log raw rawstring line event textpayload shortmessage'.split(' '),
)

const NO_OBJECT: Problem = {
  reason: 'invalid_event',
  message: 'a record must be a JSON object',
  source: '',
}

/** Merges a wrapped line with its transport's record: the text and level of the program, host and time of the transport. */
export function mergeDrafts(outer: Draft, inner: Draft): Draft {
  const tags = new TagCollector()
  if (inner.tags !== null) tags.addAll(inner.tags)
  if (outer.tags !== null) tags.addAll(outer.tags)
  return {
    timestampMs: finerTime(outer.timestampMs, inner.timestampMs),
    source: outer.source === '' ? inner.source : outer.source,
    type: outer.type,
    severity: inner.severity ?? outer.severity,
    message: inner.message === '' ? outer.message : inner.message,
    host: outer.host === '' ? inner.host : outer.host,
    environment: outer.environment === '' ? inner.environment : outer.environment,
    traceId: outer.traceId === '' ? inner.traceId : outer.traceId,
    spanId: outer.spanId === '' ? inner.spanId : outer.spanId,
    summary: outer.summary === '' ? inner.summary : outer.summary,
    dedupKey: outer.dedupKey,
    template: inner.template,
    exception: [inner.exception, outer.exception].filter((text) => text !== '').join('\n'),
    tags: tags.finish(),
  }
}

/** The time of the transport, or the program's time if it is in the same second and the transport's has whole seconds. */
function finerTime(outerMs: number | null, innerMs: number | null): number | null {
  if (outerMs === null || innerMs === null) return outerMs ?? innerMs
  return outerMs % 1000 === 0 && Math.floor(innerMs / 1000) * 1000 === outerMs ? innerMs : outerMs
}

export function parseWrapped(text: string): JsonRecord | null {
  if (!text.startsWith('{') || !text.trimEnd().endsWith('}')) return null
  const value = parseJson(text)
  return isRecord(value) ? expanded(toWellFormed(value) as JsonRecord) : null
}

/** Renames the members of formats with names of their own to the usual ones. */
function expanded(record: JsonRecord): JsonRecord {
  if (isCompact(record)) return expandCompact(record)
  return isLoguru(record) ? expandLoguru(record) : record
}

function hasLongText(record: JsonRecord): boolean {
  const isLong = (name: keyof typeof MAX_CHARS) => {
    const value = record[name]
    return typeof value === 'string' && value.length > MAX_CHARS[name]
  }
  return (
    isLong('host') ||
    isLong('environment') ||
    isLong('trace_id') ||
    isLong('span_id') ||
    isLong('summary') ||
    isLong('dedup_key')
  )
}

function topCandidate(candidates: FieldCandidates, key: string, owner: JsonRecord): FieldCandidate {
  const found = candidates.of('source').find((f) => f.owner === owner && f.key === key)
  if (found === undefined) throw new Error(`bug: no candidate for ${key}`)
  return found
}

const typeOf = ({ type }: JsonRecord): EventType => (isEventType(type) ? type : 'log')

/** Uses the object or list in place of a message if there is no text, else the rest of the record. */
function textOfRest({ message }: JsonRecord, tags: JsonRecord | null, depth: number): string {
  if (tags === null || depth > 0) return ''
  return rawText(typeof message === 'object' && message !== null ? message : tags)
}

const findTexts = (candidates: FieldCandidates) => ({
  // Docker's driver for Forward names the container, with a slash before it, and no host.
  host: findText(candidates, 'host').replace(/^\//, ''),
  environment: findText(candidates, 'environment'),
  traceId: findId(candidates, 'traceId'),
  spanId: findId(candidates, 'spanId'),
  summary: findText(candidates, 'summary'),
  dedupKey: findText(candidates, 'dedupKey'),
  template: findText(candidates, 'template'),
})

/** Datadog has the environment among its tags. */
function environmentOfTags(record: JsonRecord, tags: JsonRecord | null): string {
  const environment = record['ddtags'] === undefined ? undefined : tags?.['env']
  return typeof environment === 'string' ? environment.slice(0, MAX_CHARS.environment) : ''
}

/** The message of a record that has none under its usual names. */
function otherMessage(
  candidates: FieldCandidates,
  exception: FoundException | null,
): { readonly message: string; readonly candidate: FieldCandidate | null } | null {
  const composed = composeMessage(candidates) || (exception?.headline ?? '')
  const hasRequest = candidates.of('message').some(({ alias }) => alias.name === 'request')
  return composed !== '' && !hasRequest
    ? { message: composed, candidate: null }
    : findMessage(candidates, 'last')
}

/** Collects the other members of a record as tags, those of its own `tags` first. */
function leftTags(
  candidates: FieldCandidates,
  named: Readonly<Record<string, string>>,
  message: FieldCandidate | null,
): JsonRecord | null {
  const { record } = candidates
  const tags = new TagCollector()
  for (const [name, value] of Object.entries(named)) tags.add(name, value)
  if (isRecord(record['tags'])) tags.addAll(record['tags'])
  else if (record['tags'] !== undefined) tags.addField('tags', record['tags'])
  addMembers(record, candidates.names, { tags, candidates })
  if (message?.alias.name === 'data' && Array.isArray(message.value)) {
    for (const item of message.value.slice(1, MAX_ARGUMENTS)) {
      if (isRecord(item)) tags.addAll(item)
    }
  }
  return tags.finish()
}

interface Leftover {
  readonly tags: TagCollector
  readonly candidates: FieldCandidates
}

function addMembers(owner: JsonRecord, place: NamePlace, left: Leftover, depth = 0): void {
  const isTop = depth === 0
  // In GELF, custom fields begin with an underscore.
  const isGelf = isTop && owner['short_message'] !== undefined
  for (const key of Object.keys(owner)) {
    if (left.candidates.isTaken(owner, key)) continue
    if (isTop && (key === 'tags' || key === 'schema_version')) continue
    const value = owner[key]
    const name = isGelf && key.startsWith('_') ? key.slice(1) : key
    if (isRecord(value)) addObject(name, value, { place, left, depth })
    else left.tags.addField(name, value)
  }
}

interface At {
  readonly place: NamePlace
  readonly left: Leftover
  readonly depth: number
}

function addObject(key: string, value: JsonRecord, { place, left, depth }: At): void {
  const known = place.get(key)
  if (known.isHolder && depth < MAX_HOLDERS) addMembers(value, known.inner, left, depth + 1)
  else left.tags.add(key, left.candidates.rest(value))
}
