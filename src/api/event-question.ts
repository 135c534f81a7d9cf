import { Type, type Static } from '@sinclair/typebox'

import { isPatternError } from '../clickhouse/failure.js'
import type { Events } from '../events/events.js'
import { EVENT_FIELDS } from '../events/export-columns.js'
import { isCounted, COUNTED_FIELDS, type FieldNames } from '../events/field-expression.js'
import { toFilter } from '../events/filter.js'
import type { EventQuestion } from '../events/occurrences.js'
import { toQuery } from '../events/parameters.js'
import { resolveNames } from '../events/resolve.js'
import { AppError } from '../model/errors.js'
import { EventTypeSchema, PrioritySchema, SeveritySchema } from '../model/schemas.js'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../model/time.js'
import { ofSources, type Field, type Query } from '../query/ast.js'
import type { QueryFault } from '../query/fault.js'
import { MAX_NAME, nameOf, readName } from '../query/fields.js'
import { findExcess, findLoneRegex, type Excess } from '../query/limits.js'
import { MAX_LINE, parseQuery, type Parsed } from '../query/parser.js'
import type { EventContext } from './event-context.js'
import { parseQueryTime } from './query-time.js'
import { ListParameter, QueryTime, hexId } from './schemas/page.js'

const DEFAULT_SPAN_MS = 30 * DAY_MS
const MAX_SEARCH = 1000
/** The longest time range of a query that must read every message. */
const MAX_SCAN_MS = HOUR_MS

/** The parameters that select events. */
export const EVENT_PARAMETERS = {
  severity: ListParameter(SeveritySchema),
  priority: ListParameter(PrioritySchema),
  type: ListParameter(EventTypeSchema),
  source: Type.Optional(Type.Array(Type.String({ maxLength: 120 }), { maxItems: 1000 })),
  application: Type.Optional(
    Type.String({
      maxLength: 300,
      description: 'only events of the sources that are linked to this application, by its name',
    }),
  ),
  environment: ListParameter(Type.String({ maxLength: 64 }), {
    description:
      'only these environments; `prod` also matches `production`, `staging` `stage`, `dev` `development`',
  }),
  template_id: ListParameter(hexId('the id of a template')),
  is_error_or_worse: Type.Optional(
    Type.Boolean({ description: '`true`: only ERROR and CRITICAL' }),
  ),
  search: Type.Optional(
    Type.String({
      maxLength: MAX_SEARCH,
      description:
        'Words in any case, each of which must be a whole word of message, host, trace_id or of an exception among the ' +
        'tags. What is written without blanks is one word: `10.0.0.9`, `web-1`. A trailing * searches a prefix; a "quoted ' +
        'phrase" is searched literally, in any case. Behind a minus beside other terms it must not occur: `payment -accepted`. ' +
        'At most 16 words, prefixes and phrases; at most 2 prefixes without a word, a phrase, or the value of a source, an application, a ' +
        'host, a template, a trace or an attribute beside them.',
    }),
  ),
  q: Type.Optional(
    Type.String({
      maxLength: MAX_LINE,
      description:
        'A line of the query language (`/docs/query-language`), which must match beside the other parameters. The limits ' +
        'of `search` are those of its words too. An error has `position`, `length` and `suggestion`.',
      examples: ['severity>=warning -host:web-1 "connection refused"'],
    }),
  ),
  start_time: QueryTime('inclusive; default 30 days ago'),
  end_time: QueryTime('inclusive; without it the range has no end'),
}

const EventParametersSchema = Type.Object(EVENT_PARAMETERS)
type Parameters = Static<typeof EventParametersSchema>

/**
 * @param sources those that the caller may read
 * @throws AppError validation_error, forbidden
 */
export function readEventQuestion(
  parameters: Parameters,
  context: Pick<EventContext, 'applications' | 'templateAliases' | 'redirects'>,
  sources: ReadableSources,
): EventQuestion {
  if (sources !== null) refuseBeyond(parameters.source ?? [], sources)
  const range = readRange(parameters)
  const line = readLine(parameters.q ?? '')
  const query = ofSources(toQuery(parameters, line.query), sources)
  const excess = findExcess(query) ?? (isOverAnHour(range) ? findLoneRegex(query) : null)
  if (excess !== null) throw tooMuch(excess, line)
  return { filter: toFilter(resolveNames(query, context), context.redirects()), ...range }
}

/** The sources that a caller may read; null for all. */
export type ReadableSources = readonly string[] | null

/** Whether a caller may read an event. */
export const mayRead = (
  { source }: { readonly source: string },
  sources: ReadableSources,
): boolean => sources === null || sources.includes(source)

/**
 * The sources that a request names, or all that the caller may read.
 *
 * @returns an empty list for a caller who may read all and names none
 * @throws AppError forbidden
 */
export function readSources(named: readonly string[], sources: ReadableSources): readonly string[] {
  if (sources === null) return named
  refuseBeyond(named, sources)
  return named.length === 0 ? sources : named
}

function refuseBeyond(named: readonly string[], sources: readonly string[]): void {
  const beyond = named.find((name) => !sources.includes(name))
  if (beyond === undefined) return
  throw new AppError('forbidden', 'the API token may not read this source', {
    details: { source: beyond },
  })
}

interface AskedLine {
  readonly q?: string | undefined
  readonly events: Pick<Events, 'refusedPattern'>
}

/**
 * Awaits the result of a query.
 *
 * @throws AppError validation_error for a regular expression that RE2 refuses
 */
export async function answered<T>(answer: Promise<T>, { q = '', events }: AskedLine): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (!isPatternError(error)) throw error
    const { query, faultOf } = readLine(q)
    const clause = await events.refusedPattern(query)
    const fault = clause === null ? null : faultOf(clause, REFUSED_PATTERN)
    throw invalid('q', fault ?? { message: REFUSED_PATTERN })
  }
}

export const REFUSED_PATTERN = 'RE2 does not know this regular expression, or it is too large'

/** @throws AppError validation_error */
export function readRange({
  start_time: start,
  end_time: end,
}: Pick<Parameters, 'start_time' | 'end_time'>) {
  const startMs = start === undefined ? null : parseQueryTime(start, 'start_time')
  const endMs = end === undefined ? null : parseQueryTime(end, 'end_time')
  if (startMs !== null && endMs !== null && endMs < startMs)
    throw invalid('end_time', { message: 'is before start_time' })
  // The default start is a whole second, so that requests of the same second share one query.
  const fromMs = startMs ?? Math.floor(Date.now() / 1000) * 1000 - DEFAULT_SPAN_MS
  // No event is older than 1970.
  return { fromMs: Math.max(0, fromMs), toMs: endMs === null ? null : endMs + 1 }
}

/** Whether a time range is too long for a query that must read every message. */
function isOverAnHour({ fromMs, toMs }: Pick<EventQuestion, 'fromMs' | 'toMs'>): boolean {
  const nowMs = Date.now()
  // A second more is allowed, because the end is included, and each `now` reads the clock again.
  return Math.min(toMs ?? nowMs, nowMs) - fromMs > MAX_SCAN_MS + SECOND_MS
}

type Line = Extract<Parsed, { readonly fault: null }>

/** @throws AppError validation_error */
function readLine(text: string): Line {
  const parsed = parseQuery(text)
  if (parsed.fault !== null) throw invalid('q', parsed.fault)
  return parsed
}

/** Words that are not in the query come from the parameter `search`. */
function tooMuch({ clause, message }: Excess, { faultOf }: Line): AppError {
  const fault = faultOf(clause, message)
  return invalid(fault === null ? 'search' : 'q', fault ?? { message })
}

/**
 * Reads the query of a live tail.
 *
 * @param isLong whether the query also reads more than an hour
 * @throws AppError validation_error
 */
export function readTailLine(text: string, isLong: boolean): Query {
  const line = readLine(text)
  const excess = findExcess(line.query) ?? (isLong ? findLoneRegex(line.query) : null)
  if (excess !== null) throw tooMuch(excess, line)
  return line.query
}

/** Resolves the names in a query each time it is run. */
export const meaningOf =
  (query: Query, context: Pick<EventContext, 'applications' | 'templateAliases' | 'redirects'>) =>
  () => ({ query: resolveNames(query, context), redirects: context.redirects() })

/** A parameter that names a field whose values are counted, or several such fields. */
export const FieldName = Type.String({ minLength: 1, maxLength: MAX_NAME })

/** @throws AppError validation_error for a field whose values are not counted */
export function readField(name: string, path: string): Field {
  const field = readName(name)
  if (field === null)
    throw invalid(path, {
      message: 'is the name of one field; quotes hold one with a comma: "a,b"',
    })
  if (isCounted(field)) return field
  const names = COUNTED_FIELDS.join(', ')
  throw invalid(path, { message: `must be an attribute or one of ${names}` })
}

/** The most attributes; each is read from the JSON of every event. */
const MAX_SHOWN_ATTRIBUTES = 32

/** The fields of events in the reply. @throws AppError validation_error for an unknown name */
export function readShown(names: readonly string[]): readonly string[] {
  const known: readonly string[] = EVENT_FIELDS
  const shown = names.map((name) => {
    if (known.includes(name)) return name
    const field = readName(name)
    if (field?.kind === 'attribute') return nameOf(field)
    throw invalid('fields', { message: `must be attributes or of ${known.join(', ')}` })
  })
  if (shown.filter((name) => !known.includes(name)).length > MAX_SHOWN_ATTRIBUTES)
    throw invalid('fields', { message: `must have at most ${MAX_SHOWN_ATTRIBUTES} attributes` })
  return [...new Set(shown)]
}

export const fieldNames = (
  context: Pick<EventContext, 'applications' | 'redirects'>,
): FieldNames => ({
  redirects: context.redirects(),
  applications: context.applications(),
})

/** A fault of a query parameter. */
export const invalid = (path: string, fault: QueryFault | Pick<QueryFault, 'message'>): AppError =>
  new AppError('validation_error', `invalid: ${path}`, {
    details: { errors: [{ in: 'query', path, ...fault }] },
  })
