import { test } from 'tap'

import type { ProtocolFormat } from '../../../../src/ingest/block.js'
import { decodeIngest } from '../../../../src/ingest/formats/ndjson.js'
import { parserOf } from '../../../../src/ingest/protocols/table.js'
import { AT, collect, ingestContext } from '../formats/collect.js'

/** Bodies as programs write them that the tests of clients can't run, from their documentation and sources. */
interface Body {
  readonly of: string
  readonly format: ProtocolFormat | 'ingest'
  readonly body: string
  readonly want: readonly Readonly<Record<string, unknown>>[]
}

const KUBERNETES =
  '"kubernetes":{"pod_name":"shop-1","namespace_name":"web","labels":{"app":"shop"},"host":"node-1","container_name":"shop"}'

const BODIES: readonly Body[] = [
  {
    of: 'Filebeat 8: create, a document of the Elastic Common Schema',
    format: 'elasticsearch/bulk',
    body:
      '{"create":{"_index":"filebeat-8.15.0"}}\n' +
      '{"@timestamp":"2026-11-21T09:28:19.000Z","log":{"offset":1024,"file":{"path":"/var/log/shop.log"}},"message":"order 17 failed",' +
      '"input":{"type":"filestream"},"ecs":{"version":"8.0.0"},"host":{"name":"web-1"},"agent":{"type":"filebeat","version":"8.15.0","name":"web-1"}}\n',
    want: [{ timestampMs: AT, message: 'order 17 failed', source: 'shop.log', host: 'web-1' }],
  },
  {
    of: 'Filebeat 6: an action with a type and an id',
    format: 'elasticsearch/bulk',
    body:
      '{"create":{"_index":"filebeat-6.8.0-2026.11.21","_type":"doc","_id":"a1"}}\n' +
      '{"@timestamp":"2026-11-21T09:28:19.000Z","source":"/var/log/shop.log","message":"order 17 failed","beat":{"hostname":"web-1","name":"web-1"}}\n',
    want: [{ timestampMs: AT, message: 'order 17 failed', host: 'web-1' }],
  },
  {
    of: 'Fluent Bit es: a type, the log of a container',
    format: 'elasticsearch/bulk',
    body:
      '{"create":{"_index":"fluent-bit","_type":"_doc"}}\n' +
      `{"@timestamp":"2026-11-21T09:28:19.000Z","time":"2026-11-21T09:28:19.000000000Z","stream":"stderr","_p":"F","log":"order 17 failed",${KUBERNETES}}\n`,
    want: [
      { timestampMs: AT, message: 'order 17 failed', source: 'shop', tags: { stream: 'stderr' } },
    ],
  },
  {
    of: 'Vector elasticsearch: index, a type, the members of its file source',
    format: 'elasticsearch/bulk',
    body:
      '{"index":{"_index":"vector-2026.11.21","_type":"_doc"}}\n' +
      '{"file":"/var/log/shop.log","host":"web-1","message":"order 17 failed","source_type":"file","timestamp":"2026-11-21T09:28:19.000Z"}\n',
    want: [{ timestampMs: AT, message: 'order 17 failed', source: 'shop.log', host: 'web-1' }],
  },
  {
    of: 'Fluentd elasticsearch: the record with its time and tag',
    format: 'elasticsearch/bulk',
    body:
      '{"index":{"_index":"logstash-2026.11.21"}}\n' +
      '{"message":"order 17 failed","level":"error","host":"web-1","@timestamp":"2026-11-21T09:28:19.000000000+00:00","tag":"shop.web"}\n',
    want: [
      {
        timestampMs: AT,
        message: 'order 17 failed',
        source: 'shop.web',
        host: 'web-1',
        severity: 'ERROR',
      },
    ],
  },
  {
    of: 'Fluent Bit splunk: objects without a separator',
    format: 'splunk/event',
    body:
      `{"time":${AT / 1000}.0,"event":{"log":"order 17 failed","stream":"stderr",${KUBERNETES}}}` +
      `{"time":${AT / 1000}.5,"event":{"log":"order 18 failed"}}`,
    want: [
      { timestampMs: AT, message: 'order 17 failed', source: 'shop' },
      { timestampMs: AT + 500, message: 'order 18 failed' },
    ],
  },
  {
    of: 'Vector splunk_hec_logs: JSON and text events, fields, without a separator',
    format: 'splunk/event',
    body:
      `{"event":{"file":"/var/log/shop.log","message":"order 17 failed","source_type":"file"},"fields":{"zone":"a"},"time":${AT / 1000}.0,"host":"web-1","source":"shop"}` +
      `{"event":"order 18 failed","fields":{},"time":${AT / 1000}.0,"host":"web-1","sourcetype":"shop"}`,
    want: [
      {
        timestampMs: AT,
        message: 'order 17 failed',
        source: 'shop',
        host: 'web-1',
        tags: { zone: 'a' },
      },
      { timestampMs: AT, message: 'order 18 failed', source: 'shop', host: 'web-1' },
    ],
  },
  {
    of: 'OpenTelemetry Collector splunk_hec: fields with dots',
    format: 'splunk/event',
    body: `{"time":${AT / 1000},"host":"web-1","source":"shop","sourcetype":"otel","event":"order 17 failed","fields":{"otel.log.severity.text":"ERROR","service.version":"1"}}`,
    want: [{ timestampMs: AT, message: 'order 17 failed', source: 'shop', host: 'web-1' }],
  },
  {
    of: 'winston-splunk-httplogger: the whole record in meta',
    format: 'splunk/event',
    body: `{"time":${AT / 1000},"host":"web-1","source":"shop","event":{"message":{"msg":"order 17 failed","meta":{"level":"error","message":"order 17 failed","order":17,"trace_id":"a1"}},"severity":"error"}}`,
    want: [
      {
        timestampMs: AT,
        message: 'order 17 failed',
        severity: 'ERROR',
        traceId: 'a1',
        tags: { order: 17 },
      },
    ],
  },
  {
    of: 'seq-logging: a list of events',
    format: 'seq/clef',
    body: `{"Events":[{"Timestamp":"2026-11-21T09:28:19.000Z","Level":"Error","TraceId":"a1","MessageTemplate":"order {Order} failed","Exception":"Error: boom\\n    at f","Properties":{"Order":17,"Application":"shop","@t":"x"}},{"Timestamp":"2026-11-21T09:28:19.000Z","MessageTemplate":"order 18 failed"}]}`,
    want: [
      {
        timestampMs: AT,
        message: 'order 17 failed',
        source: 'shop',
        severity: 'ERROR',
        traceId: 'a1',
        tags: { Order: 17, '@t': 'x' },
      },
      { timestampMs: AT, message: 'order 18 failed', severity: 'INFO' },
    ],
  },
  {
    of: 'Monolog: attributes in context',
    format: 'ingest',
    body: '{"message":"order 17 failed","context":{"order":17,"trace_id":"a1"},"level":400,"level_name":"ERROR","channel":"shop","datetime":"2026-11-21T09:28:19.000000+00:00","extra":{}}',
    want: [
      {
        timestampMs: AT,
        message: 'order 17 failed',
        severity: 'ERROR',
        traceId: 'a1',
        tags: { order: 17 },
      },
    ],
  },
  {
    of: "Elastic's formatter for pino: names with dots",
    format: 'ingest',
    body: '{"log.level":"error","@timestamp":"2026-11-21T09:28:19.000Z","host.hostname":"web-1","service.name":"shop","message":"order 17 failed"}',
    want: [
      {
        timestampMs: AT,
        message: 'order 17 failed',
        source: 'shop',
        host: 'web-1',
        severity: 'ERROR',
      },
    ],
  },
  {
    of: 'Fluent Bit loki: a line of JSON',
    format: 'loki/push',
    body: `{"streams":[{"stream":{"job":"fluent-bit"},"values":[["${AT}000000","{\\"log\\":\\"order 17 failed\\",\\"level\\":\\"error\\"}"]]}]}`,
    want: [
      { timestampMs: AT, message: 'order 17 failed', source: 'fluent-bit', severity: 'ERROR' },
    ],
  },
  {
    of: 'OpenTelemetry Collector otlphttp in JSON: of its filelog receiver',
    format: 'otlp/logs',
    body:
      '{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}},{"key":"host.name","value":{"stringValue":"web-1"}}]},' +
      `"scopeLogs":[{"scope":{},"logRecords":[{"timeUnixNano":"${AT}000000","observedTimeUnixNano":"${AT}123456","severityNumber":17,"severityText":"ERROR",` +
      '"body":{"stringValue":"order 17 failed"},"attributes":[{"key":"log.file.name","value":{"stringValue":"shop.log"}}],"traceId":"","spanId":""}]}]}]}',
    want: [
      {
        timestampMs: AT,
        message: 'order 17 failed',
        source: 'shop',
        host: 'web-1',
        severity: 'ERROR',
        traceId: '',
        tags: { 'log.file.name': 'shop.log' },
      },
    ],
  },
  {
    of: 'Fluent Bit http with format json: an array with times of seconds',
    format: 'ingest',
    body: `[{"date":${AT / 1000}.000000,"log":"order 17 failed",${KUBERNETES}},{"date":${AT / 1000}.5,"message":"order 18 failed"}]`,
    want: [
      { timestampMs: AT, message: 'order 17 failed', source: 'shop' },
      { timestampMs: AT + 500, message: 'order 18 failed' },
    ],
  },
  {
    of: 'Fluentd http: lines',
    format: 'ingest',
    body: '{"message":"order 17 failed","level":"error"}\n{"log":"order 18 failed"}\n',
    want: [{ message: 'order 17 failed', severity: 'ERROR' }, { message: 'order 18 failed' }],
  },
  {
    of: 'Vector http: lines of its file source',
    format: 'ingest',
    body: '{"file":"/var/log/shop.log","host":"web-1","message":"order 17 failed","source_type":"file","timestamp":"2026-11-21T09:28:19.000Z"}\n',
    want: [{ timestampMs: AT, message: 'order 17 failed', host: 'web-1', source: 'shop.log' }],
  },
  {
    of: 'Vector http: an array of its events',
    format: 'ingest',
    body: '[{"host":"web-1","message":"order 17 failed","path":"/","source_type":"http_server","timestamp":"2026-11-21T09:28:19.000Z"}]',
    want: [{ timestampMs: AT, message: 'order 17 failed', host: 'web-1', source: 'nameless' }],
  },
]

void test('what other shippers send is understood', async (t) => {
  for (const { of, format, body, want } of BODIES) {
    const got = collect()
    const bytes = Buffer.from(body)
    if (format === 'ingest') decodeIngest(bytes, ingestContext, got)
    else parserOf(format)(bytes, ingestContext, got)
    t.match(got.events, want, of)
    t.equal(got.events.length, want.length, of)
    t.same(got.rejects, [], of)
  }
})
