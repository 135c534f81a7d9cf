import type { CanonicalEvent, DecodeContext, Severity } from '../../model/event.js'
import {
  guessScale,
  parseSeverity,
  saysMoreThanSeverity,
  severityOfNumber,
} from '../../model/severity.js'
import {
  type Decoded,
  invalid,
  isEventType,
  isProblem,
  MAX_CHARS,
  messageProblem,
  outOfRange,
  ownSource,
  type Problem,
  sourceProblem,
  unreadableTime,
  usableSource,
} from './draft.js'
import { exceptionInTags } from './exception.js'
import { isRecord, type JsonRecord } from './json-value.js'
import { areSmallTags, TagCollector } from './tags.js'
import { isAcceptedTime, parseTimestamp } from './timestamp.js'
import type { Clock } from './zone.js'

const CANONICAL_NAMES = [
  'timestamp',
  'source',
  'type',
  'severity',
  'message',
  'host',
  'environment',
  'trace_id',
  'span_id',
  'summary',
  'dedup_key',
  'tags',
  'schema_version',
] as const

const NAMES: ReadonlySet<string> = new Set(CANONICAL_NAMES)

/** Whether every member has a canonical name, so that aliases need not be tried. */
export function isCanonical(record: JsonRecord): boolean {
  for (const name in record) {
    if (!NAMES.has(name)) return false
  }
  return true
}

/** Whether the members with canonical names that must be texts are texts, and the type is one. */
export function hasCanonicalTypes(record: JsonRecord): boolean {
  const { type } = record
  const isText = (name: string) => typeof (record[name] ?? '') === 'string'
  const hasType = type === undefined || type === null || isEventType(type)
  return hasType && isText('source') && isText('message') && LIMITED.every(isText)
}

/**
 * Decodes a record that has canonical names only. This is the hot path of parsed records (bench/micro/decode.bench.ts).
 */
export function decodeCanonical(record: JsonRecord, context: DecodeContext): Decoded {
  const source = sourceOf(record, context)
  const { message, type } = record
  const problem = shapeProblem(source, message, type, context)
  if (problem !== null || typeof source !== 'string' || typeof message !== 'string') {
    return { ...(problem ?? invalid('source is not a string')), source: usableSource(source) }
  }
  const timestampMs = timeOf(record['timestamp'], context)
  if (timestampMs === null) return unreadableTime(source)
  if (!isAcceptedTime(timestampMs, context.nowMs)) return outOfRange(source)
  const level = levelOf(record['severity'])
  if (level === undefined) {
    return { ...invalid('severity is neither a string nor a number'), source }
  }
  const texts = textsOf(record, source)
  if (isProblem(texts)) return texts
  const tags = tagsOf(record['tags'])
  return {
    timestampMs,
    source,
    type: isEventType(type) ? type : 'log',
    severity: level,
    message,
    host: texts.host,
    environment: texts.environment === '' ? context.environment : texts.environment,
    traceId: texts.traceId,
    spanId: texts.spanId,
    summary: texts.summary,
    tags: withSeverityText(tags, record['severity']),
    dedupKey: texts.dedupKey,
    template: '',
    exception: tags === null ? '' : exceptionInTags(tags),
  }
}

function sourceOf(record: JsonRecord, context: DecodeContext): unknown {
  const source = context.source ?? record['source'] ?? ''
  return typeof source === 'string' ? ownSource(source, context) : source
}

function shapeProblem(
  source: unknown,
  message: unknown,
  type: unknown,
  context: DecodeContext,
): Omit<Problem, 'source'> | null {
  if (typeof (source ?? '') !== 'string') return invalid('source is not a string')
  if (typeof (message ?? '') !== 'string') return invalid('message is not a string')
  const bad =
    sourceProblem(typeof source === 'string' ? source : '') ??
    messageProblem(typeof message === 'string' ? message : '', context.maxMessageBytes)
  if (bad !== null) return bad
  return type === undefined || type === null || isEventType(type) ? null : badType()
}

export const badType = (): Omit<Problem, 'source'> =>
  invalid('type is not one of log, metric, trace, event')

type Texts = Pick<
  CanonicalEvent,
  'host' | 'environment' | 'traceId' | 'spanId' | 'summary' | 'dedupKey'
>

/** Reads each name on its own line, so that each has its own inline cache. */
function textsOf(record: JsonRecord, source: string): Texts | Problem {
  const host = textOf(record['host'], MAX_CHARS.host)
  const environment = textOf(record['environment'], MAX_CHARS.environment)
  const traceId = textOf(record['trace_id'], MAX_CHARS.trace_id)
  const spanId = textOf(record['span_id'], MAX_CHARS.span_id)
  const summary = textOf(record['summary'], MAX_CHARS.summary)
  const dedupKey = textOf(record['dedup_key'], MAX_CHARS.dedup_key)
  if (
    host === null ||
    environment === null ||
    traceId === null ||
    spanId === null ||
    summary === null ||
    dedupKey === null
  ) {
    return { ...textProblem(record), source }
  }
  return { host, environment, traceId, spanId, summary, dedupKey }
}

function textOf(value: unknown, maxChars: number): string | null {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' && value.length <= maxChars ? value : null
}

const LIMITED = ['host', 'environment', 'trace_id', 'span_id', 'summary', 'dedup_key'] as const

/** Finds the text field of a record that is not a text or too long. */
export function textProblem(record: JsonRecord): Omit<Problem, 'source'> {
  for (const name of LIMITED) {
    const value = record[name] ?? ''
    if (typeof value !== 'string') return invalid(`${name} is not a string`)
    if (value.length > MAX_CHARS[name]) {
      return invalid(`${name} is longer than ${MAX_CHARS[name]} characters`)
    }
  }
  throw new Error('bug: no text field of the record is at fault')
}

/** @returns null when the time cannot be read */
function timeOf(value: unknown, clock: Clock): number | null {
  if (value === undefined || value === null || value === '') return clock.nowMs
  return typeof value === 'string' || typeof value === 'number'
    ? parseTimestamp(value, clock)
    : null
}

/** @returns null when the record names no level, undefined when the value cannot be one */
export function levelOf(value: unknown): Severity | null | undefined {
  if (value === undefined || value === null || value === '') return null
  if (typeof value === 'string') {
    return parseSeverity(value) ?? (isUnstated(value) ? null : (numericLevel(value) ?? 'INFO'))
  }
  if (typeof value !== 'number') return undefined
  return severityOfNumber(value, guessScale(value)) ?? 'INFO'
}

/** Whether a word is a placeholder of tools for a missing level. */
export const isUnstated = (level: string): boolean =>
  ['', 'unknown', 'none', 'null', 'undefined', '-'].includes(
    level.slice(0, 32).trim().toLowerCase(),
  )

function numericLevel(text: string): Severity | null {
  if (!/^\s{0,8}\d{1,5}\s{0,8}$/.test(text)) return null
  return severityOfNumber(Number(text), guessScale(Number(text)))
}

function tagsOf(value: unknown): JsonRecord | null {
  if (value === undefined || value === null) return null
  if (isRecord(value) && areSmallTags(value)) return Object.keys(value).length > 0 ? value : null
  const tags = new TagCollector()
  if (isRecord(value)) tags.addAll(value)
  else tags.addField('tags', value)
  return tags.finish()
}

/** Adds a tag with the producer's own word where the five severities cannot express it. */
export function withSeverityText(tags: JsonRecord | null, level: unknown): JsonRecord | null {
  const ownWord = keptSeverityText(level)
  if (ownWord === null || (tags !== null && Object.hasOwn(tags, 'severity_text'))) return tags
  return { ...tags, severity_text: ownWord }
}

function keptSeverityText(level: unknown): string | null {
  if (typeof level === 'string') {
    if (level === '') return null
    if (!saysMoreThanSeverity(level) || isUnstated(level) || numericLevel(level) !== null) {
      return null
    }
    return level.trim().slice(0, 64)
  }
  const unknown = typeof level === 'number' && severityOfNumber(level, guessScale(level)) === null
  return unknown ? String(level) : null
}
