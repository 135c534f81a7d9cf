import { isEmptyBody } from '../../http/body.js'
import type { Reply } from '../../http/reply.js'
import type { HttpRequest, RequestHead } from '../../http/request.js'
import { httpRoute, type HttpRoute } from '../../http/routes.js'
import { AppError, ERRORS } from '../../model/errors.js'
import type { CanonicalEvent, DecodeContext, EventSink } from '../../model/event.js'
import type { BodyResult, ProtocolFormat } from '../block.js'
import { isStream, MAX_CHARS, usableSource } from '../formats/draft.js'
import { isAcceptedTime, parseTimestamp } from '../formats/timestamp.js'
import { rawText } from '../formats/json-text.js'
import { isRecord, type JsonRecord } from '../formats/json-value.js'
import { decodeTextLines } from '../formats/upload.js'
import { ingestRoute, withKey, type IngestServices } from './ingest-route.js'
import { decodeJsonRecords, Refused, withSource } from './json-records.js'
import { findKey } from './key.js'
import type { Protocol } from './protocol.js'

/** Parameters of a request that are defaults for its events. */
const DEFAULTS = ['host', 'source', 'sourcetype', 'index', 'time'] as const

/**
 * Decodes the events of the HTTP Event Collector: JSON objects one after another, each with its `event`, a text or an object.
 * The parameters of the request are the defaults of its events.
 */
function decodeEvents(bytes: Buffer, context: DecodeContext, sink: EventSink): void {
  const params = new URLSearchParams(context.params)
  const defaults: JsonRecord = {}
  for (const name of DEFAULTS) {
    const value = params.get(name)
    if (value !== null && value !== '') defaults[name] = value
  }
  const change = (record: JsonRecord): JsonRecord | Refused => {
    const { event } = record
    if (event === undefined || event === null) return NO_EVENT
    if (event === '') return BLANK_EVENT
    const whole = { ...defaults, ...record, event: unwrapped(event) }
    return named(withSource(whole, context.requestSource))
  }
  decodeJsonRecords(bytes, context, { sink, change })
}

/**
 * Extracts the record from the event of a library: Splunk's for JavaScript has it in `message`,
 * beside the severity; its transport for winston in `meta` there, beside the text; Docker's driver
 * has a JSON line in `line`.
 */
function unwrapped(event: unknown): unknown {
  if (typeof event === 'string') return event
  if (!isRecord(event)) return rawText(event)
  const { line, ...around } = event
  if (isRecord(line) && isStream(event['source'])) return { ...around, ...line }
  const { message, ...rest } = event
  const inner = isRecord(message) ? { ...message, ...rest } : event
  const { meta, msg, ...others } = inner
  const isWhole = isRecord(meta) && msg !== undefined && meta['message'] === msg
  return isWhole ? { ...meta, ...others } : inner
}

const refused = (message: string): Refused =>
  new Refused({ reason: 'missing_message', message, source: '' })

const NO_EVENT = refused('Event field is required')
const BLANK_EVENT = refused('Event field cannot be blank')

/** An event without a source has its type as the source. */
function named(record: JsonRecord): JsonRecord {
  const { source, sourcetype } = record
  if (usableSource(source) !== '' || usableSource(sourcetype) === '') return record
  return { ...record, sourcetype: undefined, source: sourcetype }
}

/**
 * Decodes raw text, whose lines are events with the source, host, type and index of the request,
 * and with its time unless they have one.
 */
function decodeRaw(bytes: Buffer, context: DecodeContext, sink: EventSink): void {
  const params = new URLSearchParams(context.params)
  const source = context.requestSource || usableSource(params.get('sourcetype') ?? '')
  const host = (params.get('host') ?? '').slice(0, MAX_CHARS.host)
  const defaultSource = source === '' ? context.defaultSource : source
  const others = ['sourcetype', 'index'].flatMap((name) => {
    const value = params.get(name) ?? ''
    return value === '' || value === source ? [] : [[name, value] as const]
  })
  const timeMs = requestTime(params, context)
  const complete = (event: CanonicalEvent): CanonicalEvent => ({
    ...event,
    // A line without a time got that of its arrival, which is replaced by that of the request.
    timestampMs: event.timestampMs === context.nowMs ? timeMs : event.timestampMs,
    host: event.host === '' ? host : event.host,
    tags: others.length === 0 ? event.tags : { ...Object.fromEntries(others), ...event.tags },
  })
  decodeTextLines(
    bytes,
    { ...context, defaultSource },
    {
      event: (line, event) => sink.event(line, complete(event)),
      reject: (line, rejection) => sink.reject(line, rejection),
    },
  )
}

/** @throws AppError `validation_error` for a time that cannot be read */
function requestTime(params: URLSearchParams, context: DecodeContext): number {
  const text = params.get('time') ?? ''
  const timeMs = text === '' ? context.nowMs : parseTimestamp(text, context)
  if (timeMs !== null && isAcceptedTime(timeMs, context.nowMs)) return timeMs
  throw new AppError(
    'validation_error',
    `time=${text} can't be read, is before 1970, or more than a day ahead`,
  )
}

const say = (status: number, code: number, text: string, more: object = {}): Reply => ({
  status,
  json: { text, code, ...more },
})

const NO_DATA = say(400, 5, 'No data')
const NO_CHANNEL = say(400, 10, 'Data channel is missing')

/** Clients interpret the code of an error, some of them only the code. */
function toErrorReply(error: AppError, head: RequestHead): Reply {
  const { code, status } = error
  if (code === 'unauthorized') return refusal(head)
  if (isEmptyBody(error)) return NO_DATA
  if (ERRORS[code].retry) {
    const reply = say(503, 9, 'Server is busy')
    return { ...reply, headers: { 'Retry-After': String(error.retryAfterS ?? 1) } }
  }
  if (status === 403) return say(403, 7, `Incorrect index: ${error.message}`)
  if (status === 413) return say(413, 27, error.message)
  if (status === 500) return say(500, 8, 'Internal server error')
  return say(status === 422 ? 400 : status, 6, `Invalid data format: ${error.message}`)
}

function refusal(head: RequestHead): Reply {
  const hasHeader = head.headers.first('authorization') !== undefined
  if (findKey(head, () => null).word !== '') return say(403, 4, 'Invalid token')
  return hasHeader ? say(401, 3, 'Invalid authorization') : say(401, 2, 'Token is required')
}

/**
 * Answers requests for acknowledgement. An id is given out only for durable events, so every id
 * that is queried is acknowledged, including those that another instance gave out, or this one
 * before a restart. Otherwise their client would send the events again.
 */
function createReplies() {
  let ackId = 0
  return {
    toReply: (result: BodyResult, head: RequestHead): Reply => {
      const { received, accepted, dropped, rejected, errors } = result
      if (received === 0) return NO_DATA
      if (accepted + dropped === 0 && rejected > 0) return invalid(errors)
      const isAsked = channelOf(head) !== ''
      return say(200, 0, 'Success', isAsked ? { ackId: ackId++ } : {})
    },
    acks: (request: HttpRequest): Reply => {
      if (channelOf(request) === '') return NO_CHANNEL
      const ids = idsIn(request.body)
      if (ids === null) return say(400, 6, 'Invalid data format')
      return { status: 200, json: { acks: Object.fromEntries(ids.map((id) => [id, true])) } }
    },
  }
}

/** Answers a request none of whose events were accepted, so that its first event is invalid. */
function invalid([first]: BodyResult['errors']): Reply {
  const number = { 'invalid-event-number': 0 }
  const text = first?.message ?? ''
  if (text === NO_EVENT.problem.message) return say(400, 12, text, number)
  if (text === BLANK_EVENT.problem.message) return say(400, 13, text, number)
  return say(400, 6, `Invalid data format: ${text}`, number)
}

const channelOf = ({ headers, queryText, query }: RequestHead): string =>
  headers.first('x-splunk-request-channel') ??
  (queryText === '' ? '' : (query.get('channel') ?? ''))

function idsIn(body: Uint8Array): readonly number[] | null {
  try {
    const asked: unknown = JSON.parse(Buffer.from(body).toString('utf8'))
    const { acks } = Object(asked) as { acks?: unknown }
    const isId = (id: unknown): id is number => Number.isSafeInteger(id) && Number(id) >= 0
    return Array.isArray(acks) && acks.every(isId) ? acks : null
  } catch {
    return null
  }
}

const BASE = '/services/collector'
const EVENT_PATHS = [BASE, `${BASE}/event`, `${BASE}/event/1.0`]
const RAW_PATHS = [`${BASE}/raw`, `${BASE}/raw/1.0`]
const HEALTH_PATHS = [`${BASE}/health`, `${BASE}/health/1.0`]
/** The most bytes of a request for acknowledgements. */
const ACK_BYTES = 65_536

const paramsOf = ({ queryText }: RequestHead): string => queryText

function routes(services: IngestServices): HttpRoute[] {
  const { toReply, acks } = createReplies()
  const taking = (paths: readonly string[], format: ProtocolFormat): HttpRoute[] =>
    paths.map((path) =>
      ingestRoute(
        {
          id: 'splunk_hec',
          path,
          protocol: 'splunk',
          format,
          params: paramsOf,
          answer: ({ body }) => (body.length === 0 ? NO_DATA : null),
          toReply,
          toErrorReply,
        },
        services,
      ),
    )
  const probe = (method: 'GET' | 'OPTIONS', path: string, handle: () => Reply): HttpRoute =>
    httpRoute({ id: 'splunk_probe', method, path, bodyBytes: 0, toErrorReply, handle })
  const health = (): Reply =>
    services.isReady()
      ? say(200, 17, 'HEC is healthy')
      : say(503, 18, 'HEC is unhealthy, queues are full')
  return [
    ...taking(EVENT_PATHS, 'splunk/event'),
    ...taking(RAW_PATHS, 'splunk/raw'),
    ...HEALTH_PATHS.map((path) => probe('GET', path, health)),
    ...[`${BASE}/ack`, `${BASE}/ack/1.0`].map((path) =>
      httpRoute({
        id: 'splunk_ack',
        method: 'POST',
        path,
        bodyBytes: ACK_BYTES,
        toErrorReply,
        beforeBody: (head) => withKey(head, services, () => null),
        handle: acks,
      }),
    ),
    // Docker starts no container before this request is answered.
    ...[...EVENT_PATHS, ...RAW_PATHS].map((path) =>
      probe('OPTIONS', path, () => ({
        status: 200,
        headers: { Allow: 'POST, OPTIONS' },
        body: '',
      })),
    ),
  ]
}

/** The HTTP Event Collector of Splunk: events, raw text, acknowledgements. */
export const splunk: Protocol = {
  name: 'splunk',
  parsers: { 'splunk/event': decodeEvents, 'splunk/raw': decodeRaw },
  routes,
}
