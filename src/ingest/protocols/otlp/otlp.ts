import type { Reply } from '../../../http/reply.js'
import type { RequestHead } from '../../../http/request.js'
import { ERRORS, type AppError } from '../../../model/errors.js'
import type { BodyResult } from '../../block.js'
import type { JsonRecord } from '../../formats/json-value.js'
import { rawText } from '../../formats/json-text.js'
import { RecordDecoder } from '../../formats/record.js'
import { ingestRoute } from '../ingest-route.js'
import type { BodyParser, Protocol } from '../protocol.js'
import { RecordFeed } from '../record-feed.js'
import { LOG_RECORD, METRIC, SPAN } from './forms.js'
import { toLog } from './log-record.js'
import { toPoints } from './metric.js'
import { commonOf, perOrigin, type Common } from './origin.js'
import { readRequest } from './request.js'
import { exportResponse, messageOf, rpcCodeOf, rpcStatus } from './response.js'
import { SimpleLogs } from './simple-logs.js'
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

type Signal = typeof LOGS

/** Reads a request of one signal: each item becomes records of `/ingest`, which are decoded like those. */
const parser =
  (
    signal: Signal,
    toRecords: (item: JsonRecord, common: Common) => Iterable<JsonRecord>,
  ): BodyParser =>
  (bytes, context, sink, taker) => {
    const decoder = new RecordDecoder(context, sink)
    const commonAt = perOrigin((origin) => commonOf(origin, context))
    const simple =
      taker && signal === LOGS
        ? new SimpleLogs(new RecordFeed(bytes, context, decoder, taker))
        : null
    readRequest(bytes, signal, {
      take: (from, to, origin) => simple?.take(from, to, commonAt(origin)) ?? from,
      visit: (item, origin) => {
        for (const record of toRecords(item, commonAt(origin)))
          decoder.decode(decoder.received + 1, record, () => rawText(record))
      },
    })
  }

const isJson = ({ headers }: RequestHead): boolean =>
  /\bjson\b/i.test(headers.first('content-type') ?? '')

/** The reply has the same form (JSON or protobuf) as the request. */
const inForm = (head: RequestHead, status: number, json: object, protobuf: Uint8Array): Reply =>
  isJson(head)
    ? { status, json }
    : { status, headers: { 'Content-Type': 'application/x-protobuf' }, body: protobuf }

const toReply =
  (signal: Signal) =>
  (result: BodyResult, head: RequestHead): Reply =>
    inForm(head, 200, jsonResponse(signal, result), exportResponse(result))

function jsonResponse(signal: Signal, result: BodyResult): object {
  if (result.rejected === 0) return {}
  const partial = { [signal.rejected]: String(result.rejected), errorMessage: messageOf(result) }
  return { partialSuccess: partial }
}

/** Clients retry after 503 with Retry-After, and give up after 500 or 400. */
function toErrorReply(error: AppError, head: RequestHead): Reply {
  const isLater = ERRORS[error.code].retry
  const status = isLater ? 503 : error.status === 422 ? 400 : error.status
  const { message } = error
  const reply = inForm(head, status, { code: rpcCodeOf(error), message }, rpcStatus(error))
  const retry = { 'Retry-After': String(error.retryAfterS ?? 1) }
  return isLater ? { ...reply, headers: { ...reply.headers, ...retry } } : reply
}

const ROUTES = [
  { part: 'logs', signal: LOGS },
  { part: 'traces', signal: TRACES },
  { part: 'metrics', signal: METRICS },
] as const

/**
 * OTLP, the protocol of OpenTelemetry: logs, traces and metrics in protobuf or JSON. `grpc.ts`
 * frames the same bodies for gRPC. Loki and others use it under `/otlp` too.
 */
export const otlp: Protocol = {
  name: 'otlp',
  parsers: {
    'otlp/logs': parser(LOGS, (item, common) => [toLog(item, common)]),
    'otlp/traces': parser(TRACES, (item, common) => [toSpan(item, common)]),
    'otlp/metrics': parser(METRICS, toPoints),
  },
  routes: (services) =>
    ROUTES.map(({ part, signal }) =>
      ingestRoute(
        {
          id: `otlp_${part}`,
          path: `/v1/${part}`,
          protocol: 'otlp',
          format: `otlp/${part}`,
          deniesRecords: true,
          toReply: toReply(signal),
          toErrorReply,
        },
        services,
      ),
    ),
}
