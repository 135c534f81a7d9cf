import type { Reply } from '../../../http/reply.js'
import type { RequestHead } from '../../../http/request.js'
import { ERRORS, type AppError } from '../../../model/errors.js'
import type { BodyResult } from '../../block.js'
import type { JsonRecord } from '../../formats/json-value.js'
import { rawText } from '../../formats/json-text.js'
import { RecordDecoder } from '../../formats/record.js'
import { ingestRoute } from '../ingest-route.js'
import type { BodyParser, Protocol } from '../protocol.js'
import { LOG_RECORD, METRIC, SPAN } from './forms.js'
import { toLog } from './log-record.js'
import { toPoints } from './metric.js'
import { commonOf, perOrigin, type Common } from './origin.js'
import { readRequest } from './request.js'
import { toSpan } from './span.js'

const LOGS = {
  item: LOG_RECORD,
  resources: 'resourceLogs',
  scopes: 'scopeLogs',
  items: 'logRecords',
  rejected: 'rejectedLogRecords',
}
const TRACES = {
  item: SPAN,
  resources: 'resourceSpans',
  scopes: 'scopeSpans',
  items: 'spans',
  rejected: 'rejectedSpans',
}
const METRICS = {
  item: METRIC,
  resources: 'resourceMetrics',
  scopes: 'scopeMetrics',
  items: 'metrics',
  rejected: 'rejectedDataPoints',
}

/** Reads a request of one signal: each item becomes records of `/ingest`, which are decoded like those. */
const parser =
  (
    signal: typeof LOGS,
    toRecords: (item: JsonRecord, common: Common) => Iterable<JsonRecord>,
  ): BodyParser =>
  (bytes, context, sink) => {
    const decoder = new RecordDecoder(context, sink)
    const commonAt = perOrigin((origin) => commonOf(origin, context))
    readRequest(bytes, signal, (item, origin) => {
      for (const record of toRecords(item, commonAt(origin)))
        decoder.decode(decoder.received + 1, record, () => rawText(record))
    })
  }

const isJson = ({ headers }: RequestHead): boolean =>
  /\bjson\b/i.test(headers.first('content-type') ?? '')

/** The reply has the form of the request. */
const inForm = (head: RequestHead, status: number, json: object, protobuf: Uint8Array): Reply =>
  isJson(head)
    ? { status, json }
    : { status, headers: { 'Content-Type': 'application/x-protobuf' }, body: protobuf }

const toReply =
  (signal: typeof LOGS) =>
  ({ rejected, errors }: BodyResult, head: RequestHead): Reply => {
    if (rejected === 0) return inForm(head, 200, {}, Buffer.alloc(0))
    const message = `${rejected} rejected, the first: ${errors[0]?.message ?? ''}`
    const json = { partialSuccess: { [signal.rejected]: String(rejected), errorMessage: message } }
    // ExportPartialSuccess{rejected = 1, error_message = 2} in field 1 of the response.
    const partial = Buffer.concat([Buffer.from([0x08]), varint(rejected), textField(2, message)])
    return inForm(head, 200, json, bytesField(1, partial))
  }

/** Codes of google.rpc.Status, in which errors are sent. */
const RPC_CODES: Readonly<Record<number, number>> = {
  400: 3,
  401: 16,
  403: 7,
  408: 4,
  413: 3,
  415: 3,
  422: 3,
  429: 14,
  500: 13,
  503: 14,
}

/** Clients come again after 503 with Retry-After; one that gets 500 or 400 gives up. */
function toErrorReply(error: AppError, head: RequestHead): Reply {
  const isLater = ERRORS[error.code].retry
  const status = isLater ? 503 : error.status === 422 ? 400 : error.status
  const code = RPC_CODES[status] ?? 2
  const { message } = error
  const rpcStatus = Buffer.concat([Buffer.from([0x08]), varint(code), textField(2, message)])
  const reply = inForm(head, status, { code, message }, rpcStatus)
  const retry = { 'Retry-After': String(error.retryAfterS ?? 1) }
  return isLater ? { ...reply, headers: { ...reply.headers, ...retry } } : reply
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return Buffer.from([...bytes, rest])
}

const bytesField = (no: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([no * 8 + 2]), varint(bytes.length), bytes])

const textField = (no: number, text: string): Buffer => bytesField(no, Buffer.from(text))

const ROUTES = [
  { part: 'logs', signal: LOGS },
  { part: 'traces', signal: TRACES },
  { part: 'metrics', signal: METRICS },
] as const

/**
 * OTLP, the protocol of OpenTelemetry: logs, traces and metrics in protobuf or JSON. Requests in gRPC have the same bodies.
 * Loki and others take it under `/otlp` too.
 */
export const otlp: Protocol = {
  name: 'otlp',
  parsers: {
    'otlp/logs': parser(LOGS, (item, common) => [toLog(item, common)]),
    'otlp/traces': parser(TRACES, (item, common) => [toSpan(item, common)]),
    'otlp/metrics': parser(METRICS, toPoints),
  },
  routes: (services) =>
    ROUTES.flatMap(({ part, signal }) =>
      ['', '/{prefix}'].map((prefix) =>
        ingestRoute(
          {
            id: `otlp_${part}`,
            path: `${prefix}/v1/${part}`,
            protocol: 'otlp',
            format: `otlp/${part}`,
            toReply: toReply(signal),
            toErrorReply,
          },
          services,
        ),
      ),
    ),
}
