import type { Reply } from '../../http/reply.js'
import { httpRoute } from '../../http/routes.js'
import { AppError, ERRORS } from '../../model/errors.js'
import type { DecodeContext, EventSink } from '../../model/event.js'
import { isBinary, readAnyText } from '../formats/file-text.js'
import type { JsonRecord } from '../formats/json-value.js'
import { isJsonBody } from '../formats/ndjson.js'
import { RecordDecoder } from '../formats/record.js'
import { ingestRoute } from './ingest-route.js'
import { decodeJsonRecords, withSource } from './json-records.js'
import { findKey } from './key.js'
import type { Protocol } from './protocol.js'

/** Parameters of a request that are defaults for its logs. */
const DEFAULTS = ['ddsource', 'ddtags', 'hostname', 'service'] as const

/**
 * Decodes the logs of Datadog's agent and libraries: JSON, or lines of text. The agent tests the
 * connection with an empty object.
 */
function decodeDatadog(bytes: Buffer, context: DecodeContext, sink: EventSink): void {
  const params = new URLSearchParams(context.params)
  const defaults: JsonRecord = {}
  for (const name of DEFAULTS) {
    const value = params.get(name)
    if (value !== null && value !== '') defaults[name] = value
  }
  const change = (record: JsonRecord): JsonRecord | null => {
    if (Object.keys(record).length === 0) return null
    const whole = { ...defaults, ...record }
    return withSource(whole, context.requestSource)
  }
  if (isJsonBody(bytes)) decodeJsonRecords(bytes, context, { sink, change, isTolerant: true })
  else decodeLines(bytes, new RecordDecoder(context, sink), change)
}

/** Decodes lines of text, each a message. @throws AppError `bad_request` for binary data */
function decodeLines(
  bytes: Buffer,
  decoder: RecordDecoder,
  change: (record: JsonRecord) => JsonRecord | null,
): void {
  const file = readAnyText(bytes)
  if (isBinary(file)) throw new AppError('bad_request', 'the body is neither JSON nor text')
  decoder.expect(countLines(file.text, decoder.left))
  for (const [message] of file.text.matchAll(LINE))
    if (message.trim() !== '')
      decoder.decode(decoder.received + 1, change({ message }), () => message)
}

const LINE = /[^\r\n]+/g

/** Counts lines that are not blank, at most one more than `most`. */
function countLines(text: string, most: number): number {
  // A line and its end take two characters.
  if (text.length / 2 < most) return 0
  let lines = 0
  for (const [line] of text.matchAll(LINE)) {
    if (line.trim() !== '') lines++
    if (lines > most) break
  }
  return lines
}

/** The agent sends a request again after any status but 400, 401, 403 and 413. */
function toErrorReply({ code, status, message, retryAfterS }: AppError): Reply {
  const isLater = ERRORS[code].retry
  const sent = isLater ? 503 : status === 422 || status === 415 ? 400 : status
  return {
    status: sent,
    headers: isLater ? { 'Retry-After': String(retryAfterS ?? 1) } : {},
    json: { errors: [{ status: String(sent), title: code, detail: message }] },
  }
}

const STORED: Reply = { status: 202, json: {} }
const PATHS = ['/api/v2/logs', '/v1/input', '/v1/input/{key}'] as const

/** The intake of Datadog's logs. */
export const datadog: Protocol = {
  name: 'datadog',
  parsers: { 'datadog/logs': decodeDatadog },
  routes: (services) => [
    ...PATHS.map((path) =>
      ingestRoute(
        {
          id: 'datadog_logs',
          path,
          protocol: 'datadog',
          format: 'datadog/logs',
          params: ({ queryText }) => queryText,
          toReply: () => STORED,
          toErrorReply,
        },
        services,
      ),
    ),
    // The agent validates its key with this request.
    httpRoute({
      id: 'datadog_validate',
      method: 'GET',
      path: '/api/v1/validate',
      bodyBytes: 0,
      toErrorReply,
      handle: (request) => {
        const valid = findKey(request, services.verifyKey).key !== null
        return { status: valid ? 200 : 403, json: { valid } }
      },
    }),
  ],
}
