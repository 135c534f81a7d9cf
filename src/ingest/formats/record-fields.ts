import { comparedName } from './aliases.js'
import { isRequest } from './composed.js'
import { isEventType, MAX_CHARS } from './draft.js'
import { type FieldCandidate, FieldCandidates, NamePlace } from './field-candidates.js'
import { readFieldText } from './file-text.js'
import { isRecord, type JsonRecord, plainValue } from './json-value.js'
import { parseTimestamp } from './timestamp.js'
import type { Clock } from './zone.js'
import type { Severity } from '../../model/event.js'
import { guessScale, parseSeverity, severityOfNumber } from '../../model/severity.js'
import { isUnstated } from './canonical.js'

/** Smaller numbers (before March 1973) are durations that are called `time`. */
const LEAST_EPOCH = 1e8

export type FoundTime =
  | { readonly kind: 'none' }
  | { readonly kind: 'unreadable' }
  | { readonly kind: 'time'; readonly timestampMs: number }

/** Finds the first readable time. A time under a name without other meanings must be readable. */
export function findTime(candidates: FieldCandidates, clock: Clock): FoundTime {
  let unreadable = false
  const timestampMs = candidates.first('timestamp', (candidate) => {
    if (isNoTime(candidate)) return null
    const ms = readTime(candidate, clock)
    if (ms === null && !candidate.alias.weak) unreadable = true
    return ms
  })
  if (timestampMs !== null) return { kind: 'time', timestampMs }
  return { kind: unreadable ? 'unreadable' : 'none' }
}

/** Whether a value is a time that is read under the name `timestamp`. */
export const isTime = (value: unknown, clock: Clock): boolean =>
  findTime(new FieldCandidates({ timestamp: value }, new NamePlace()), clock).kind === 'time'

function isNoTime({ alias, value }: FieldCandidate): boolean {
  if (alias.unit === 'ns' && Number(value) === 0) return true
  const guessed = alias.unit === 'auto' && alias.name !== 'timestamp'
  if (!guessed) return false
  // Six digits may be an hour and eight a day: 092819, 20261121.
  const isBare = typeof value === 'string' && /^-?(?:\d{1,5}|\d{7}|\d{1,7}\.\d{1,12})$/.test(value)
  return isBare || (typeof value === 'number' && Math.abs(value) < LEAST_EPOCH)
}

function readTime({ alias, owner, value }: FieldCandidate, clock: Clock): number | null {
  if (typeof value === 'string') {
    return isHour(value) ? readHour(value, owner, clock) : parseTimestamp(value, clock, alias.unit)
  }
  if (typeof value === 'number') return parseTimestamp(value, clock, alias.unit)
  return isRecord(value) ? readTimeObject(value, clock) : null
}

const isHour = (text: string): boolean => /^(?:\d{1,2}:\d\d|\d{6}$)/.test(text)

/** Reads an hour whose day is in other members: date, or month and day under any names. */
function readHour(hour: string, owner: JsonRecord, clock: Clock): number | null {
  const parts = new Map<string, string>()
  for (const [key, value] of Object.entries(owner)) {
    const name = comparedName(key)
    if (!DAY_NAMES.has(name) || parts.has(name)) continue
    if (typeof value === 'string' || typeof value === 'number') parts.set(name, String(value))
  }
  const [month, date, day] = ['month', 'date', 'day'].map((name) => parts.get(name))
  for (const words of [[date], [month, date], [month, day], [date, day]]) {
    const text = [...words, hour].join(' ')
    const ms = words.includes(undefined) || text.length > 64 ? null : parseTimestamp(text, clock)
    if (ms !== null) return ms
  }
  return null
}

const DAY_NAMES: ReadonlySet<string> = new Set(['month', 'date', 'day'])

/** Reads `{epochSecond, nanoOfSecond}` of log4j, `{seconds, nanos}` of protobuf and `{$date}` of MongoDB. */
function readTimeObject(value: JsonRecord, clock: Clock): number | null {
  const seconds = value['epochSecond'] ?? value['seconds']
  if (seconds !== undefined) {
    const nanos = Number(value['nanoOfSecond'] ?? value['nanos'] ?? 0)
    const ms = Number(seconds) * 1000 + Math.floor(nanos / 1e6)
    return Number.isInteger(ms) ? ms : null
  }
  const date = value['$date']
  const inner = isRecord(date) ? date['$numberLong'] : date
  return typeof inner === 'string' || typeof inner === 'number'
    ? parseTimestamp(inner, clock, typeof date === 'string' ? 'auto' : 'ms')
    : null
}

export interface FoundLevel {
  readonly severity: Severity | null
  /** The producer's own word, '' when the record names no level. */
  readonly text: string
}

/**
 * Finds the level. A failed request is at least a warning, because access logs of JSON loggers call all requests information.
 */
export function findLevel(candidates: FieldCandidates): FoundLevel {
  const stated = statedLevel(candidates)
  const { severity, text } = stated
  if (severity === null)
    return { severity: httpLevel(candidates) ?? outcomeLevel(candidates), text }
  const isLow = severity === 'INFO' || severity === 'DEBUG'
  if (!isLow || !isRequest(candidates)) return stated
  const byStatus = httpLevel(candidates)
  return byStatus === null || byStatus === 'INFO' ? stated : { severity: byStatus, text }
}

/** Finds the first readable level. An unknown level is INFO, with its word as a tag. */
function statedLevel(candidates: FieldCandidates): FoundLevel {
  let unknown: FieldCandidate | null = null
  const known = candidates.first('severity', (candidate) => {
    const severity = readLevel(candidate, candidates)
    const text = typeof candidate.value === 'string' ? candidate.value.slice(0, 64) : ''
    if (severity !== null) return { severity, text }
    if (!candidate.alias.weak && unknown === null && isLevelValue(candidate.value))
      unknown = candidate
    return null
  })
  if (known !== null) return known
  return unknown === null ? { severity: null, text: '' } : keepWord(unknown, candidates)
}

function keepWord(unknown: FieldCandidate, candidates: FieldCandidates): FoundLevel {
  candidates.take(unknown)
  return { severity: 'INFO', text: String(unknown.value).trim().slice(0, 64) }
}

const isLevelValue = (value: unknown): boolean =>
  typeof value === 'number' ? value !== 0 : typeof value === 'string' && !isUnstated(value)

/** Recognises records of Python's `logging`. */
export const isOfPython = (candidates: FieldCandidates): boolean =>
  candidates.hasMember('levelname') || candidates.hasMember('levelno')

/** Recognises records of Python and Windows, whose numbers of levels have other meanings elsewhere. */
function recordScale(candidates: FieldCandidates): 'python' | 'windows' | null {
  if (isOfPython(candidates)) return 'python'
  return candidates.hasMember('eventid') || candidates.hasMember('winlog') ? 'windows' : null
}

function readLevel({ alias, value }: FieldCandidate, candidates: FieldCandidates): Severity | null {
  if (alias.name === 'type' && isEventType(value)) return null
  const word = typeof value === 'string' ? parseSeverity(value) : null
  const number = word === null ? levelNumber(value) : null
  if (number === null || alias.scale === 'none') return word
  if (alias.scale === 'auto') {
    return severityOfNumber(number, recordScale(candidates) ?? guessScale(number))
  }
  // OpenTelemetry's 0 is an unspecified level.
  return alias.scale === 'otel' && number === 0 ? null : severityOfNumber(number, alias.scale)
}

function levelNumber(value: unknown): number | null {
  if (typeof value === 'number') return value
  const isDigits = typeof value === 'string' && value.length <= 16 && /^\s*\d{1,5}\s*$/.test(value)
  return isDigits ? Number(value) : null
}

/** Derives a level from the HTTP status, because access logs have none. */
function httpLevel(candidates: FieldCandidates): Severity | null {
  for (const { value } of candidates.of('httpStatus')) {
    const severity = severityOfHttpStatus(value)
    if (severity !== null) return severity
  }
  return null
}

/** Derives a level from the error code of an operation, because audit logs have none. */
const outcomeLevel = (candidates: FieldCandidates): Severity | null =>
  candidates.of('operation').length > 0 && candidates.of('failure').length > 0 ? 'ERROR' : null

/** @returns null for anything but a code from 100 to 599 */
export function severityOfHttpStatus(value: unknown): Severity | null {
  const status = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN
  if (!(status >= 100 && status <= 599)) return null
  if (status >= 500) return 'ERROR'
  return status >= 400 ? 'WARNING' : 'INFO'
}

/** Finds the first text of 1 to `maxChars` characters; a longer one stays a tag. */
export function findText(
  candidates: FieldCandidates,
  field: 'host' | 'environment' | 'summary' | 'dedupKey' | 'template',
): string {
  const maxChars = MAX_CHARS[field === 'dedupKey' ? 'dedup_key' : field]
  const fits = ({ value }: FieldCandidate) =>
    typeof value === 'string' && value.length <= maxChars ? value : null
  return candidates.first(field, fits) ?? ''
}

/** Finds a trace or span id, unchanged but for `traceparent` and Google's resource names, of which the id is a part. */
export function findId(candidates: FieldCandidates, field: 'traceId' | 'spanId'): string {
  return (
    candidates.first(field, (candidate) => readId(candidate, field === 'traceId' ? 1 : 2)) ?? ''
  )
}

function readId({ alias, value }: FieldCandidate, part: 1 | 2): string | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null
  let id = String(value)
  if (alias.name === 'traceparent') id = traceparentPart(id, part)
  if (alias.name === 'logginggoogleapiscom/trace') id = id.slice(id.lastIndexOf('/') + 1)
  // Other loggers call a stack or a level `trace`.
  if (alias.name === 'trace')
    id = /(?:^|\/traces\/)([\da-f]{16,32})$/i.exec(id.slice(-200))?.[1] ?? ''
  // Tracers write zeros for a missing id.
  return id.length > MAX_CHARS.trace_id || /^[0-]*$/.test(id) ? null : id
}

const traceparentPart = (text: string, part: 1 | 2): string =>
  text.length > 128 ? '' : (/^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-/.exec(text)?.[part] ?? '')

/**
 * Finds the name of the logger, often that of a class. Python has it under the name that other loggers have for the service.
 */
export function findLogger(candidates: FieldCandidates): string {
  const isPython = isOfPython(candidates)
  const fits = ({ alias, value }: FieldCandidate) =>
    typeof value === 'string' && (alias.name !== 'name' || isPython) ? value : null
  return candidates.first('logger', fits) ?? ''
}

/** Finds the path of the file that the record was read from. */
export function findPath(candidates: FieldCandidates): string {
  const isShipped = candidates.hasMember('sourcetype')
  const fits = ({ alias, value }: FieldCandidate) => {
    if (typeof value !== 'string' || value.length > 4096) return null
    if (alias.name === 'logfilepath') return value
    // A name without a folder is that of a source file.
    const isAbsolute = /^(?:\/|[A-Za-z]:[\\/])/.test(value)
    return isAbsolute && (isShipped || /\.log(?:\.|$)|[\\/]logs?[\\/]/.test(value)) ? value : null
  }
  return candidates.first('path', fits) ?? ''
}

export interface FoundMessage {
  readonly message: string
  readonly candidate: FieldCandidate
}

/**
 * Finds the first text, byte list of journald, or argument list of log4js.
 *
 * @param from `own` leaves out the names that are tried last, `last` tries only them
 */
export function findMessage(
  candidates: FieldCandidates,
  from: 'own' | 'last',
): FoundMessage | null {
  return candidates.first('message', (candidate) => {
    if (candidate.alias.isLast !== (from === 'last')) return null
    const message = readMessage(candidate, candidates)
    return message === null || message === '' ? null : { message, candidate }
  })
}

function readMessage(
  { alias, owner, value }: FieldCandidate,
  candidates: FieldCandidates,
): string | null {
  if (typeof value === 'string') {
    if (alias.name === 'request') return accessLine(value, candidates)
    const isDocker = alias.name === 'log' && typeof owner['stream'] === 'string'
    return isDocker ? value.replace(/\r?\n$/, '') : value
  }
  const isNumber = typeof value === 'number' || typeof value === 'boolean'
  if (isNumber) return ['message', 'msg'].includes(alias.name) ? String(value) : null
  if (Array.isArray(value)) return alias.name === 'data' ? firstText(value) : bytesToText(value)
  return alias.name === 'body' ? jsonText(plainValue(value)) : null
}

/** Writes a request as web servers do: `"GET / HTTP/1.1" 200`. */
function accessLine(request: string, candidates: FieldCandidates): string {
  const status = candidates.of('httpStatus')[0]?.value
  return `"${request}"${severityOfHttpStatus(status) === null ? '' : ` ${String(status)}`}`
}

const firstText = (list: readonly unknown[]): string | null =>
  typeof list[0] === 'string' ? list[0] : null

function bytesToText(list: readonly unknown[]): string | null {
  const isByte = (item: unknown): item is number =>
    typeof item === 'number' && Number.isInteger(item) && item >= 0 && item <= 255
  return list.length > 0 && list.every(isByte) ? readFieldText(Buffer.from(list)) : null
}

function jsonText(value: unknown): string | null {
  try {
    return isRecord(value) ? JSON.stringify(value) : null
  } catch {
    return null
  }
}
