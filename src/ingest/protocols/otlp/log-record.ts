import { parseSeverity, saysMoreThanSeverity, severityOfNumber } from '../../../model/severity.js'
import { comparedName } from '../../formats/aliases.js'
import { isUnstated } from '../../formats/canonical.js'
import { isRecord, type JsonRecord } from '../../formats/json-value.js'
import { rawText } from '../../formats/json-text.js'
import type { Common } from './origin.js'
import { attributesOf } from './request.js'

/** Attributes in which shippers send what the record has no field for, in compared form. `wasm/assembly/otlp.ts` has the ids too. */
const LEVEL_NAMES: ReadonlySet<string> = new Set(
  'level severity severitytext loglevel lvl levelname'.split(' '),
)
const TRACE_NAMES: ReadonlySet<string> = new Set('traceid oteltraceid ddtraceid'.split(' '))
const SPAN_NAMES: ReadonlySet<string> = new Set('spanid otelspanid ddspanid'.split(' '))

/** Maps a log record to a record of `/ingest`. */
export function toLog(item: JsonRecord, { fields, tags: common }: Common): JsonRecord {
  const attributes = attributesOf(item)
  const level = levelOf(item, attributes)
  const traceId = idOf(item['traceId']) || named(item, attributes, TRACE_NAMES)
  const spanId = idOf(item['spanId']) || named(item, attributes, SPAN_NAMES)
  const tags: JsonRecord = { ...attributes, ...common }
  const name = item['eventName']
  if (typeof name === 'string' && name !== '') tags['event_name'] ??= name
  if (level.kept !== '') tags['severity_text'] ??= level.kept
  return {
    ...fields,
    timestamp: timeOf(item),
    severity: level.severity,
    message: messageOf(item, tags),
    trace_id: traceId,
    span_id: spanId,
    tags,
  }
}

/** The time of the record, else when it was observed, else that of arrival. */
function timeOf(item: JsonRecord): number | undefined {
  for (const name of ['timeUnixNano', 'observedTimeUnixNano']) {
    const ms = item[name]
    if (typeof ms === 'number' && ms > 0) return Math.floor(ms)
  }
  return undefined
}

/**
 * A structured body is written as JSON. The message of a record without a body is its event name,
 * its exception or its attributes.
 */
function messageOf(item: JsonRecord, tags: JsonRecord): string {
  const { body, eventName } = item
  if (typeof body === 'string' && body !== '') return body
  if (body !== undefined && body !== null && body !== '') return rawText(body)
  if (typeof eventName === 'string' && eventName !== '') return eventName
  const parts = [tags['exception.type'], tags['exception.message']]
  const exception = parts.filter((part) => typeof part === 'string' && part !== '')
  return exception.length > 0 ? exception.join(': ') : textOf(tags)
}

const textOf = (tags: JsonRecord): string => (Object.keys(tags).length === 0 ? '' : rawText(tags))

/** Reads the level. The number decides, and the sender's own word is kept when it is more precise. */
export function levelOf(
  item: JsonRecord,
  attributes: JsonRecord,
): { severity: string; kept: string } {
  const { severityNumber: number, severityText: text } = item
  const word = typeof text === 'string' ? text : ''
  const found = typeof number === 'number' && number > 0 ? severityOfNumber(number, 'otel') : null
  if (found === null) return { severity: word || named(item, attributes, LEVEL_NAMES), kept: '' }
  const isKept =
    word !== '' &&
    !isUnstated(word) &&
    (saysMoreThanSeverity(word) || parseSeverity(word) !== found)
  return { severity: found, kept: isKept ? word.slice(0, 64) : '' }
}

/**
 * The value of the first attribute that has one of the names; else of the first such member of a structured body. The attribute is
 * removed from `attributes`.
 *
 * @returns '' when there is none
 */
function named({ body }: JsonRecord, attributes: JsonRecord, names: ReadonlySet<string>): string {
  const found = wordIn(attributes, names)
  if (found === null) return isRecord(body) ? (wordIn(body, names)?.word ?? '') : ''
  delete attributes[found.name]
  return found.word
}

function wordIn(
  members: JsonRecord,
  names: ReadonlySet<string>,
): { readonly name: string; readonly word: string } | null {
  for (const [name, value] of Object.entries(members)) {
    const isWord = typeof value === 'string' || (names === LEVEL_NAMES && isLevel(value))
    if (!isWord || value === '' || !names.has(comparedName(name))) continue
    const word = String(value)
    if (word.length <= 64) return { name, word }
  }
  return null
}

/** Levels of loggers are numbers from pino's 10 to logback's 50000; a smaller one may have any meaning. */
const isLevel = (value: unknown): value is number =>
  typeof value === 'number' && value >= 10 && value <= 50_000 && value % 10 === 0

/** An id of zeros means that there is none. */
export const idOf = (value: unknown): string =>
  typeof value === 'string' && value.length <= 256 && !/^0*$/.test(value) ? value : ''

/** Removes members without a value from tags. */
export function filled(tags: JsonRecord): JsonRecord {
  for (const [name, value] of Object.entries(tags)) if (!isFilled(value)) delete tags[name]
  return tags
}

const isFilled = (value: unknown): boolean =>
  isRecord(value) ? Object.keys(value).length > 0 : value !== undefined && value !== ''
