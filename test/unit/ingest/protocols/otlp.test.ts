import { test } from 'tap'

import type { ProtocolFormat } from '../../../../src/ingest/block.js'
import { parserOf } from '../../../../src/ingest/protocols/table.js'
import type { DecodeContext } from '../../../../src/model/event.js'
import {
  OTLP_SPAN as SPAN,
  OTLP_TIME as NS,
  OTLP_TRACE as TRACE,
  protobufLogs,
} from '../../../support/protobuf.js'
import { AT, collect, ingestContext } from '../formats/collect.js'

function decode(
  format: ProtocolFormat,
  body: object | Uint8Array,
  context: Partial<DecodeContext> = {},
) {
  const got = collect()
  const bytes = body instanceof Uint8Array ? Buffer.from(body) : Buffer.from(JSON.stringify(body))
  parserOf(format)(bytes, { ...ingestContext, ...context }, got)
  return got
}

const text = (key: string, stringValue: string) => ({ key, value: { stringValue } })

const RESOURCE = {
  attributes: [
    text('service.name', 'checkout'),
    text('service.version', '1.2'),
    text('host.name', 'web-1'),
    text('k8s.node.name', 'node-1'),
    text('deployment.environment.name', 'test'),
  ],
}

const logs = (...logRecords: readonly object[]) => ({
  resourceLogs: [{ resource: RESOURCE, scopeLogs: [{ scope: { name: 'lib' }, logRecords }] }],
})

void test('a log record has its fields from record, resource and scope', async (t) => {
  const { events } = decode(
    'otlp/logs',
    logs({
      timeUnixNano: NS,
      severityNumber: 17,
      severityText: 'err',
      body: { stringValue: 'no money' },
      attributes: [
        text('order', 'o-1'),
        { key: 'n', value: { intValue: '9007199254740993' } },
        { key: 'ok', value: { boolValue: true } },
        { key: 'list', value: { arrayValue: { values: [{ doubleValue: 1.5 }] } } },
      ],
      traceId: TRACE,
      spanId: SPAN,
    }),
  )
  t.match(events, [
    {
      timestampMs: AT,
      source: 'checkout',
      type: 'log',
      severity: 'ERROR',
      message: 'no money',
      host: 'web-1',
      environment: 'test',
      traceId: TRACE,
      spanId: SPAN,
      tags: {
        order: 'o-1',
        n: '9007199254740993',
        ok: true,
        list: [1.5],
        'resource.service.version': '1.2',
        'resource.k8s.node.name': 'node-1',
        scope: 'lib',
      },
    },
  ])
  t.notOk(Object.hasOwn(events[0]?.tags ?? {}, 'resource.host.name'), 'it is the host')
})

void test('the severity number of a log record decides on its level', async (t) => {
  const levelOf = (record: object) => {
    const [event] = decode('otlp/logs', logs({ body: { stringValue: 'x' }, ...record })).events
    return [event?.severity, event?.tags?.['severity_text']]
  }
  t.same(levelOf({ severityNumber: 9, severityText: 'Information' }), ['INFO', undefined])
  t.same(levelOf({ severityNumber: 10, severityText: 'notice' }), ['INFO', 'notice'])
  t.same(levelOf({ severityNumber: 13, severityText: 'error' }), ['WARNING', 'error'], 'number')
  t.same(levelOf({ severityText: 'fatal' }), ['CRITICAL', 'fatal'])
  t.same(levelOf({ severityNumber: 0, attributes: [text('level', 'warn')] }), [
    'WARNING',
    undefined,
  ])
  t.same(levelOf({ body: { stringValue: 'ERROR in x' } }), [null, undefined], 'by the message')
})

void test('what shippers send as attributes becomes fields', async (t) => {
  const { events } = decode(
    'otlp/logs',
    logs({
      body: { kvlistValue: { values: [text('message', 'm')] } },
      attributes: [text('trace_id', TRACE), text('span_id', SPAN)],
      observedTimeUnixNano: Number(NS),
      traceId: '00000000000000000000000000000000',
    }),
  )
  t.match(events, [{ message: '{"message":"m"}', traceId: TRACE, spanId: SPAN, timestampMs: AT }])
  t.equal(decode('otlp/logs', logs({ eventName: 'paid' })).events[0]?.message, 'paid')
  const bodies = ['line é\n', '\u0001\u0002'].map((line) => {
    const bytesValue = Buffer.from(line).toString('base64')
    return decode('otlp/logs', logs({ body: { bytesValue } })).events[0]?.message
  })
  t.same(bodies, ['line é\n', 'AQI='], 'bytes are a text where they can be one')
  const attributes = [text('exception.type', 'IOError'), text('exception.message', 'no disk')]
  t.match(decode('otlp/logs', logs({ attributes })).events, [
    { message: 'IOError: no disk', tags: { 'exception.type': 'IOError' } },
  ])
  t.same(decode('otlp/logs', logs({})).rejects, [], 'an empty record is none')
})

void test('a record without level and ids has those of its attributes, else of its structured body', async (t) => {
  const int = (key: string, intValue: string) => ({ key, value: { intValue } })
  const of = (attributes: readonly object[], values: readonly object[] | null = null) => {
    const body = values === null ? { stringValue: 'm' } : { kvlistValue: { values } }
    const [event] = decode('otlp/logs', logs({ severityNumber: 0, attributes, body })).events
    return { severity: event?.severity, traceId: event?.traceId, level: event?.tags?.['level'] }
  }
  const none = { severity: null, traceId: '', level: undefined }
  t.same(of([text('level', 'warn')]), { ...none, severity: 'WARNING' })
  t.same(of([int('level', '50')]), { ...none, severity: 'ERROR' }, 'pino')
  t.same(of([int('level', '40000')]), { ...none, severity: 'ERROR' }, 'logback')
  t.same(of([int('level', '3')]), { ...none, level: 3 }, 'it may be anything')
  t.same(of([], [int('level', '60'), text('traceId', TRACE)]), {
    ...none,
    severity: 'CRITICAL',
    traceId: TRACE,
  })
  t.same(of([text('level', 'warn')], [text('level', 'error')]), { ...none, severity: 'WARNING' })
  t.same(of([text('trace_id', TRACE)], [text('', 'x')]), { ...none, traceId: TRACE })
  t.same(of([], [text('', 'x')]), none)
})

void test('the source of the request is before that of the service', async (t) => {
  const { events } = decode('otlp/logs', logs({ body: { stringValue: 'x' } }), {
    requestSource: 'asked',
    defaultSource: 'asked',
  })
  t.match(events, [{ source: 'asked', tags: { 'resource.service.name': 'checkout' } }])
  const nameless = {
    resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'x' } }] }] }],
  }
  t.equal(decode('otlp/logs', nameless).events[0]?.source, 'nameless')
})

void test('a span becomes a trace with its duration, parent, events and status', async (t) => {
  const span = (more: object) => ({
    resourceSpans: [
      {
        resource: RESOURCE,
        scopeSpans: [
          {
            spans: [
              {
                traceId: TRACE,
                spanId: SPAN,
                parentSpanId: '00f067aa0ba902b7',
                name: 'GET /cart',
                kind: 2,
                startTimeUnixNano: NS,
                endTimeUnixNano: `${AT + 12}623456`,
                ...more,
              },
            ],
          },
        ],
      },
    ],
  })
  const failed = span({
    status: { code: 2, message: 'timeout' },
    attributes: [text('http.method', 'GET'), text('parent_span_id', 'none')],
    events: [{ timeUnixNano: `${AT + 1}123456`, name: 'retry', attributes: [text('n', '1')] }],
    links: [{ traceId: SPAN + SPAN, spanId: SPAN }],
  })
  t.match(decode('otlp/traces', failed).events, [
    {
      type: 'trace',
      message: 'GET /cart',
      timestampMs: AT,
      severity: 'ERROR',
      traceId: TRACE,
      spanId: SPAN,
      dedupKey: TRACE + SPAN,
      tags: {
        duration_ms: 12.5,
        kind: 'server',
        parent_span_id: '00f067aa0ba902b7',
        status_message: 'timeout',
        'http.method': 'GET',
        events: [{ name: 'retry', offset_ms: 1, attributes: { n: '1' } }],
        links: [{ trace_id: SPAN + SPAN, span_id: SPAN }],
      },
    },
  ])
  const [fine] = decode('otlp/traces', span({ name: 'error page', parentSpanId: '' })).events
  t.match(fine, { severity: 'INFO', message: 'error page' }, 'a name is no level')
  t.notOk(Object.hasOwn(fine?.tags ?? {}, 'parent_span_id'))
})

void test('each point of a metric is a record, which the next does not repeat', async (t) => {
  const point = { timeUnixNano: NS, attributes: [text('route', '/')] }
  const body = {
    resourceMetrics: [
      {
        resource: RESOURCE,
        scopeMetrics: [
          {
            metrics: [
              { name: 'temp', unit: 'C', gauge: { dataPoints: [{ ...point, asDouble: 21.5 }] } },
              {
                name: 'requests',
                sum: {
                  aggregationTemporality: 2,
                  dataPoints: [
                    { ...point, asInt: '7' },
                    { ...point, timeUnixNano: `${AT + 1000}000000`, asInt: '7' },
                  ],
                },
              },
              {
                name: 'latency',
                histogram: {
                  aggregationTemporality: 1,
                  dataPoints: [
                    {
                      ...point,
                      count: '3',
                      sum: 4.5,
                      min: 1,
                      max: 2,
                      bucketCounts: ['1', '2'],
                      explicitBounds: [1],
                    },
                  ],
                },
              },
              {
                name: 'size',
                exponentialHistogram: {
                  dataPoints: [
                    {
                      ...point,
                      count: 2,
                      sum: 6,
                      scale: 0,
                      positive: { offset: 1, bucketCounts: [2] },
                    },
                  ],
                },
              },
              {
                name: 'q',
                summary: {
                  dataPoints: [
                    { ...point, count: 1, sum: 2, quantileValues: [{ quantile: 0.5, value: 2 }] },
                  ],
                },
              },
            ],
          },
        ],
      },
    ],
  }
  const { events } = decode('otlp/metrics', body)
  t.match(events, [
    {
      type: 'metric',
      message: 'temp',
      source: 'checkout',
      tags: { value: 21.5, unit: 'C', route: '/' },
    },
    { message: 'requests', tags: { value: 7, temporality: 'cumulative' } },
    { message: 'requests', timestampMs: AT + 1000 },
    {
      message: 'latency',
      tags: {
        count: 3,
        sum: 4.5,
        min: 1,
        max: 2,
        temporality: 'delta',
        buckets: [
          { le: 1, count: 1 },
          { le: '+Inf', count: 2 },
        ],
      },
    },
    { message: 'size', tags: { buckets: [{ le: 4, count: 2 }] } },
    { message: 'q', tags: { quantiles: [{ quantile: 0.5, value: 2 }] } },
  ])
  t.equal(new Set(events.map(({ dedupKey }) => dedupKey)).size, 6)
})

void test('values of JSON are counted before it is parsed, whatever is before the brace', async (t) => {
  // It is no JSON, so it would be refused as such if it was parsed first.
  const many = `{"a":[${'{},'.repeat(2_000_001)}]}`
  for (const before of ['', ' ', '\n', '\r\n', '\n\n'])
    t.throws(() => decode('otlp/logs', Buffer.from(before + many)), { code: 'body_too_large' })
})

void test('members of JSON may have the names of the fields', async (t) => {
  const record = { time_unix_nano: NS, severity_number: 17, body: { string_value: 'a' } }
  const scoped = { scope: { name: 'lib' }, log_records: [record] }
  const body = { resource_logs: [{ resource: RESOURCE, scope_logs: [scoped] }] }
  t.match(decode('otlp/logs', body).events, [
    {
      timestampMs: AT,
      source: 'checkout',
      severity: 'ERROR',
      message: 'a',
      tags: { scope: 'lib' },
    },
  ])
})

void test('protobuf means the same as JSON, and what is neither is refused', async (t) => {
  const bytes = protobufLogs()
  const { events } = decode('otlp/logs', bytes)
  const want = {
    source: 'checkout',
    message: 'no money',
    severity: 'ERROR',
    traceId: TRACE,
    spanId: SPAN,
    tags: { order: 'o-1', scope: 'lib' },
  }
  t.match(events, [want, want])
  t.ok(Math.abs((events[0]?.timestampMs ?? 0) - AT) <= 1)
  t.same(decode('otlp/logs', new Uint8Array(0)).events, [], 'an empty request')
  for (const broken of [
    bytes.slice(0, -1),
    bytes.slice(1),
    Buffer.from('{"resourceLogs"'),
    Buffer.from('hello'),
  ])
    t.throws(() => decode('otlp/logs', broken), { code: 'bad_request' })
})
