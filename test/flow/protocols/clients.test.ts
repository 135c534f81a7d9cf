import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { createRequire } from 'node:module'
import { connect as connectTcp } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { client as datadog, v2 } from '@datadog/datadog-api-client'
import { BaseServerConfiguration } from '@datadog/datadog-api-client/dist/packages/datadog-api-client-common/servers.js'
import { credentials, Metadata } from '@grpc/grpc-js'
import { Client as Elasticsearch } from '@elastic/elasticsearch'
import { Logtail } from '@logtail/node'
import { Client as OpenSearch } from '@opensearch-project/opensearch'
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api'
import { SeverityNumber } from '@opentelemetry/api-logs'
import { OTLPLogExporter as LogsInGrpc } from '@opentelemetry/exporter-logs-otlp-grpc'
import { OTLPLogExporter as LogsInJson } from '@opentelemetry/exporter-logs-otlp-http'
import { OTLPLogExporter as LogsInProtobuf } from '@opentelemetry/exporter-logs-otlp-proto'
import { OTLPMetricExporter as MetricsInGrpc } from '@opentelemetry/exporter-metrics-otlp-grpc'
import { OTLPMetricExporter as MetricsInJson } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPMetricExporter as MetricsInProtobuf } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter as TracesInGrpc } from '@opentelemetry/exporter-trace-otlp-grpc'
import { OTLPTraceExporter as TracesInJson } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as TracesInProtobuf } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchLogRecordProcessor,
  LoggerProvider,
  type LogRecordExporter,
} from '@opentelemetry/sdk-logs'
import {
  MeterProvider,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base'
import pino from 'pino'
import { pinoLoki } from 'pino-loki'
import { test, type Test } from 'tap'
import winston from 'winston'
import { ElasticsearchTransport } from 'winston-elasticsearch'
import LokiTransport from 'winston-loki'

import { callGrpc } from '../../support/grpc.js'
import { startLiveService, type LiveService } from '../../support/live-service.js'
import { protobufLogs } from '../../support/protobuf.js'
import { INGEST_KEY, tempDataDir } from '../../support/service.js'
import { certificateIn } from '../../support/certificate.js'

const RECORDS = 1000
/** With it a connection of HTTP/2 begins. */
const HTTP2_PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const LEVELS = ['debug', 'info', 'info', 'warn', 'info', 'error'] as const
const SEVERITIES = { debug: 'DEBUG', info: 'INFO', warn: 'WARNING', error: 'ERROR' } as const
/** All records are of the last minutes. */
const START_MS = Date.now() - 100_000

interface Sample {
  readonly level: keyof typeof SEVERITIES
  readonly message: string
  readonly timeMs: number
  readonly traceId: string
  readonly spanId: string
  readonly attributes: { readonly seq: number; readonly route: string; readonly ok: boolean }
}

/** The records of a client. Some have line ends, characters beyond ASCII, control characters, or four kilobytes. */
function samples(run: string): readonly Sample[] {
  return Array.from({ length: RECORDS }, (_, i) => ({
    level: LEVELS[i % LEVELS.length] ?? 'info',
    message: `${run} took ${(i * 37) % 900} ms${EXTRAS[i % 50] ?? ''}`,
    timeMs: START_MS + i,
    traceId: (i + 1).toString(16).padStart(32, 'a'),
    spanId: (i + 1).toString(16).padStart(16, 'b'),
    attributes: { seq: i, route: `/items/${i % 50}`, ok: i % 3 !== 0 },
  }))
}

const EXTRAS: Readonly<Record<number, string>> = {
  7: '\nError: boom\n    at f (/app/x.js:1:2)',
  13: ' 日本語 é "quoted" back\\slash 🚀',
  21: ` ${'x'.repeat(4000)}`,
  33: ' tab\there \u001b[31mred\u001b[0m',
}

interface Stored {
  readonly message: string
  readonly timestamp: string
  readonly severity: string
  readonly source: string
  readonly host: string
  readonly environment: string
  readonly type: string
  readonly trace_id: string
  readonly occurrence_count: number
  readonly tags: Readonly<Record<string, unknown>>
}

/** Reads what is stored of a client, as soon as it is all there. */
async function storedOf(service: LiveService, query: string, count: number): Promise<Stored[]> {
  for (const deadline = Date.now() + 20_000; ; await sleep(200)) {
    const found: Stored[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const after: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const { body } = await service.call(`GET /api/logs?limit=200&${query}${after}`)
      found.push(...(body.items as Stored[]))
      cursor = body.next_cursor
    }
    if (found.length >= count || Date.now() > deadline) return found
  }
}

interface Wanted {
  readonly source: string
  readonly host?: string
  readonly environment?: string
  /** Whether the client sends times, traces and attributes of its own. */
  readonly hasTime?: boolean
  readonly hasTrace?: boolean
  readonly seqOf?: (event: Stored) => unknown
}

async function checkStored(
  t: Test,
  service: LiveService,
  run: string,
  wanted: Wanted,
): Promise<void> {
  const found = await storedOf(service, `search=${run}`, RECORDS)
  const seqOf = wanted.seqOf ?? ((event: Stored) => event.tags['seq'])
  const bySeq = new Map(found.map((event) => [Number(seqOf(event)), event]))
  t.equal(found.length, RECORDS, `${run}: every record is stored once`)
  t.ok(found.every(({ occurrence_count: count }) => count === 1))
  const wrong = samples(run).flatMap((sample) => {
    const event = bySeq.get(sample.attributes.seq)
    return event === undefined ? ['missing'] : differences(event, sample, wanted)
  })
  t.same(wrong.slice(0, 3), [], `${run}: with its fields`)
}

function differences(event: Stored, sample: Sample, wanted: Wanted): readonly unknown[] {
  const { hasTime = true, hasTrace = true, source, host = '', environment } = wanted
  const facts: Record<string, readonly [got: unknown, want: unknown]> = {
    message: [event.message, sample.message],
    severity: [event.severity, SEVERITIES[sample.level]],
    source: [event.source, source],
    host: [event.host, host],
    route: [event.tags['route'], sample.attributes.route],
    ok: [event.tags['ok'], sample.attributes.ok],
    ...(hasTime ? { time: [Date.parse(event.timestamp), sample.timeMs] } : {}),
    ...(hasTrace ? { trace: [event.trace_id, sample.traceId] } : {}),
    ...(environment === undefined ? {} : { environment: [event.environment, environment] }),
  }
  return Object.entries(facts).filter(([, [got, want]]) => got !== want)
}

const RESOURCE = resourceFromAttributes({
  'service.name': 'checkout',
  'service.version': '1.2.3',
  'host.name': 'web-1',
  'deployment.environment.name': 'test',
})
const OTEL_LEVELS = {
  debug: SeverityNumber.DEBUG,
  info: SeverityNumber.INFO,
  warn: SeverityNumber.WARN,
  error: SeverityNumber.ERROR,
}
const headers = { Authorization: `Bearer ${INGEST_KEY}` }

async function sendOtelLogs(exporter: LogRecordExporter, run: string): Promise<void> {
  const processor = new BatchLogRecordProcessor({
    exporter,
    maxExportBatchSize: 256,
    maxQueueSize: 5000,
  })
  const provider = new LoggerProvider({ resource: RESOURCE, processors: [processor] })
  const logger = provider.getLogger('flow')
  for (const { level, message, timeMs, traceId, spanId, attributes } of samples(run)) {
    const context = trace.setSpanContext(ROOT_CONTEXT, {
      traceId,
      spanId,
      traceFlags: TraceFlags.SAMPLED,
    })
    const severity = { severityNumber: OTEL_LEVELS[level], severityText: level.toUpperCase() }
    logger.emit({ ...severity, body: message, attributes, timestamp: timeMs, context })
  }
  await provider.forceFlush()
  await provider.shutdown()
}

async function sendSpans(exporter: SpanExporter, run: string): Promise<void> {
  const processor = new BatchSpanProcessor(exporter, {
    maxQueueSize: 5000,
    maxExportBatchSize: 256,
  })
  const provider = new BasicTracerProvider({ resource: RESOURCE, spanProcessors: [processor] })
  const tracer = provider.getTracer('flow')
  for (const { message, timeMs, attributes } of samples(run)) {
    const span = tracer.startSpan(message, { startTime: timeMs, kind: SpanKind.SERVER, attributes })
    if (attributes.seq % 10 === 0) span.setStatus({ code: SpanStatusCode.ERROR, message: 'boom' })
    span.end(timeMs + 5)
  }
  await provider.forceFlush()
  await provider.shutdown()
}

async function sendMetrics(exporter: PushMetricExporter, run: string): Promise<void> {
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 60_000 })
  const provider = new MeterProvider({ resource: RESOURCE, readers: [reader] })
  const counter = provider.getMeter('flow').createCounter(`${run}_requests`)
  for (let i = 0; i < RECORDS; i++) counter.add(1, { route: `/items/${i % 5}` })
  await provider.shutdown()
}

async function sendElastic(collector: string, run: string): Promise<void> {
  const client = new Elasticsearch({ node: collector, auth: { apiKey: INGEST_KEY } })
  await client.info()
  const datasource = samples(run).map(({ level, message, timeMs, traceId, attributes }) => ({
    '@timestamp': new Date(timeMs).toISOString(),
    message,
    log: { level },
    host: { name: 'web-1' },
    trace: { id: traceId },
    ...attributes,
  }))
  const onDocument = () => ({ create: { _index: 'shop-2026.11.21' } })
  const { successful } = await client.helpers.bulk({ datasource, onDocument, flushBytes: 50_000 })
  if (successful !== RECORDS) throw new Error(`${successful} of ${RECORDS}`)
  await client.close()
}

/** Sends all documents twice under the same ids. */
async function sendOpenSearch(collector: string, run: string): Promise<void> {
  const client = new OpenSearch({
    node: collector,
    auth: { username: 'any', password: INGEST_KEY },
  })
  const datasource = samples(run).map(({ level, message, timeMs, traceId, attributes }) => ({
    '@timestamp': new Date(timeMs).toISOString(),
    message,
    level,
    host: 'web-1',
    trace_id: traceId,
    ...attributes,
  }))
  const index = 'carts'
  const { body: exists } = await client.indices.exists({ index })
  if (!exists) await client.indices.create({ index, body: { settings: { index: {} } } })
  for (const flushBytes of [50_000, 70_000]) {
    const { successful } = await client.helpers.bulk<(typeof datasource)[number]>({
      datasource,
      onDocument: ({ seq }) => ({ index: { _index: index, _id: `${run}-${seq}` } }),
      flushBytes,
    })
    if (successful !== RECORDS) throw new Error(`${successful} of ${RECORDS}`)
  }
  await client.close()
}

async function sendPinoLoki(collector: string, run: string): Promise<void> {
  const stream = pinoLoki({
    host: collector,
    basicAuth: { username: 'tenant', password: INGEST_KEY },
    labels: { app: 'checkout', env: 'test' },
    batching: { interval: 1, maxBufferSize: 5000 },
    silenceErrors: false,
  })
  const logger = pino({ level: 'trace', base: { hostname: 'web-1' }, timestamp: false }, stream)
  for (const { level, message, timeMs, traceId, attributes } of samples(run))
    logger[level]({ time: timeMs, trace_id: traceId, ...attributes }, message)
  const closed = new Promise((resolve) => stream.on('close', resolve))
  stream.end()
  await closed
}

const WINSTON = { levels: { error: 1, warn: 2, info: 3, debug: 4 }, level: 'debug' }

async function sendWinstonLoki(collector: string, run: string, json: boolean): Promise<void> {
  const failures: unknown[] = []
  const transport = new LokiTransport({
    host: collector,
    headers,
    json,
    interval: 1,
    labels: { job: 'checkout', host: 'web-1' },
    gracefulShutdown: false,
    replaceTimestamp: false,
    onConnectionError: (error) => failures.push(error),
  })
  const logger = winston.createLogger({ ...WINSTON, transports: [transport] })
  for (const { level, message, timeMs, attributes } of samples(run))
    logger.log({ level, message, timestamp: timeMs, ...attributes })
  await sleep(200)
  await transport.flush()
  if (failures.length > 0) throw new Error(String(failures[0]))
}

async function sendWinstonElasticsearch(collector: string, run: string): Promise<void> {
  const transport = new ElasticsearchTransport({
    level: 'debug',
    index: 'winston',
    clientOpts: { node: collector, auth: { apiKey: INGEST_KEY } },
    flushInterval: 200,
    source: 'checkout',
  })
  const logger = winston.createLogger({ ...WINSTON, transports: [transport] })
  for (const { level, message, traceId, attributes } of samples(run))
    logger.log({ level, message, trace_id: traceId, ...attributes })
  await sleep(1000)
  await transport.flush()
  logger.close()
}

/** Splunk's library, which has no types. */
interface SplunkLogger {
  error: (error: Error) => void
  send(context: object): void
  flush(
    done: (error: Error | null, response: unknown, body: { readonly code: number }) => void,
  ): void
}
const splunk = createRequire(import.meta.url)('splunk-logging') as {
  readonly Logger: new (config: object) => SplunkLogger
}

async function sendSplunk(collector: string, run: string): Promise<void> {
  const batch = new splunk.Logger({ token: INGEST_KEY, url: collector, maxBatchCount: RECORDS + 1 })
  for (const { level, message, timeMs, traceId, attributes } of samples(run))
    batch.send({
      message: { msg: message, trace_id: traceId, ...attributes },
      severity: level,
      metadata: { time: timeMs / 1000, host: 'web-1', source: 'checkout', sourcetype: '_json' },
    })
  const code = await new Promise((resolve, reject) => {
    batch.flush((error, _, body) => (error === null ? resolve(body.code) : reject(error)))
  })
  if (code !== 0) throw new Error(`code ${String(code)}`)
}

async function sendDatadog(collector: string, run: string): Promise<void> {
  const api = new v2.LogsApi(
    datadog.createConfiguration({
      authMethods: { apiKeyAuth: INGEST_KEY },
      baseServer: new BaseServerConfiguration(collector, {}),
    }),
  )
  const body = samples(run).map(({ level, message, timeMs, traceId, attributes }) => ({
    ddsource: 'nodejs',
    ddtags: 'env:test,version:1',
    hostname: 'web-1',
    service: 'checkout',
    message,
    additionalProperties: {
      status: level,
      timestamp: String(timeMs),
      trace_id: traceId,
      ...attributes,
    } as never,
  }))
  await api.submitLog({ body, contentEncoding: 'gzip' })
}

async function sendLogtail(collector: string, run: string): Promise<void> {
  const logtail = new Logtail(INGEST_KEY, {
    endpoint: collector,
    throwExceptions: true,
    retryCount: 0,
  })
  const all = samples(run).map(({ level, message, timeMs, traceId, attributes }) =>
    logtail.log(message, level, {
      dt: new Date(timeMs),
      service: 'checkout',
      host: 'web-1',
      trace_id: traceId,
      ...attributes,
    } as never),
  )
  await Promise.all(all)
  await logtail.flush()
}

void test('what real clients send is stored once, with all its fields', async (t) => {
  const { cert, key } = certificateIn(tempDataDir(t))
  const service = await startLiveService(t, {
    OTLP_GRPC_PORT: '0',
    TLS_CERT_FILE: cert,
    TLS_KEY_FILE: key,
  })
  const grpc = `127.0.0.1:${service.portOf('OTLP/gRPC')}`
  const metadata = new Metadata()
  metadata.set('authorization', headers.Authorization)
  // Some of the clients have timers that nobody can end.
  t.teardown(() => void setTimeout(() => process.exit(), 2000).unref())
  const { collector } = service
  const OTEL = { source: 'checkout', host: 'web-1', environment: 'test' }
  const NAMED = { source: 'checkout', host: 'web-1' }
  const clients: Record<string, readonly [send: (run: string) => Promise<void>, wanted: Wanted]> = {
    oteljson: [
      (run) => sendOtelLogs(new LogsInJson({ url: `${collector}/v1/logs`, headers }), run),
      OTEL,
    ],
    otelproto: [
      (run) =>
        sendOtelLogs(
          new LogsInProtobuf({
            url: `${collector}/otlp/v1/logs`,
            headers,
            compression: 'gzip' as never,
          }),
          run,
        ),
      OTEL,
    ],
    otelgrpc: [
      (run) => sendOtelLogs(new LogsInGrpc({ url: `http://${grpc}`, metadata }), run),
      OTEL,
    ],
    otelgrpctls: [
      (run) =>
        sendOtelLogs(
          new LogsInGrpc({
            url: `https://${grpc}`,
            metadata,
            compression: 'gzip' as never,
            credentials: credentials.createSsl(readFileSync(cert)),
          }),
          run,
        ),
      OTEL,
    ],
    elastic: [(run) => sendElastic(collector, run), { source: 'shop', host: 'web-1' }],
    opensearch: [(run) => sendOpenSearch(collector, run), { source: 'carts', host: 'web-1' }],
    pinoloki: [(run) => sendPinoLoki(collector, run), { ...NAMED, environment: 'test' }],
    winstonlokiproto: [
      (run) => sendWinstonLoki(collector, run, false),
      { ...NAMED, hasTrace: false },
    ],
    winstonlokijson: [
      (run) => sendWinstonLoki(collector, run, true),
      { ...NAMED, hasTrace: false },
    ],
    winstones: [
      (run) => sendWinstonElasticsearch(collector, run),
      { source: 'checkout', hasTime: false },
    ],
    splunk: [(run) => sendSplunk(collector, run), NAMED],
    datadog: [(run) => sendDatadog(collector, run), { ...NAMED, environment: 'test' }],
    logtail: [(run) => sendLogtail(collector, run), NAMED],
  }
  for (const [name, [send, wanted]] of Object.entries(clients))
    await t.test(name, async (t) => {
      const run = `run${name}${Date.now().toString(36)}`
      await send(run)
      await checkStored(t, service, run, wanted)
    })

  await t.test('spans', async (t) => {
    const url = `${collector}/v1/traces`
    for (const [name, exporter] of Object.entries({
      json: new TracesInJson({ url, headers }),
      protobuf: new TracesInProtobuf({ url, headers }),
      grpc: new TracesInGrpc({ url: `http://${grpc}`, metadata }),
    })) {
      const run = `spans${name}${Date.now().toString(36)}`
      await sendSpans(exporter, run)
      const found = await storedOf(service, `search=${run}&type=trace`, RECORDS)
      t.equal(found.length, RECORDS, name)
      const failed = found.filter(({ severity }) => severity === 'ERROR')
      t.equal(failed.length, RECORDS / 10)
      t.ok(failed.every(({ tags }) => tags['status_message'] === 'boom'))
      t.ok(found.every(({ tags, trace_id: id }) => tags['duration_ms'] === 5 && id.length === 32))
    }
  })

  await t.test('metrics', async (t) => {
    const url = `${collector}/v1/metrics`
    for (const [name, exporter] of Object.entries({
      json: new MetricsInJson({ url, headers }),
      protobuf: new MetricsInProtobuf({ url, headers }),
      grpc: new MetricsInGrpc({ url: `http://${grpc}`, metadata }),
    })) {
      const run = `metrics${name}${Date.now().toString(36)}`
      await sendMetrics(exporter, run)
      const found = (await storedOf(service, `type=metric&search=${run}*`, 5)).filter(
        ({ message }) => message.startsWith(run),
      )
      t.same(
        found.map(({ tags }) => tags['value']),
        Array(5).fill(RECORDS / 5),
        name,
      )
      t.match(found[0], {
        message: `${run}_requests`,
        source: 'checkout',
        tags: { temporality: 'cumulative' },
      })
    }
  })

  await t.test('gRPC answers errors with a status', async (t) => {
    const key = { authorization: headers.Authorization }
    t.match(await callGrpc(grpc, protobufLogs()), { code: 16 }, 'without a key')
    const wrong = { headers: { authorization: 'Bearer ik_none' } }
    t.match(await callGrpc(grpc, protobufLogs(), wrong), { code: 16 })
    t.match(await callGrpc(grpc, Buffer.from('hello'), { headers: key }), { code: 3 }, 'no OTLP')
    t.match(await callGrpc(grpc, Buffer.alloc(0), { headers: key, path: '/a.B/C' }), { code: 12 })
    const large = await callGrpc(grpc, Buffer.alloc(17 * 1024 * 1024), { headers: key })
    t.match(large, { code: 3, message: /exceeds/ })
    t.match(await callGrpc(grpc, Buffer.alloc(0), { headers: key }), { code: 0 }, 'nothing')
  })

  await t.test('a client of gRPC that leaves, or sends half of it, harms nobody', async (t) => {
    const path = '/opentelemetry.proto.collector.logs.v1.LogsService/Export'
    const half = connect(`http://${grpc}`)
    half.on('error', () => undefined)
    // Its end comes before anybody listens for it.
    const nothing = half.request({ ':method': 'POST', ':path': path, ...headers })
    nothing.end()
    const [answer] = await once(nothing, 'response')
    t.equal(answer['grpc-status'], '3', 'a request without a message is answered at once')
    const crumbs = half.request({ ':method': 'POST', ':path': path, ...headers })
    crumbs.on('error', () => undefined)
    crumbs.write(Buffer.from([0, 0, 0, 255, 255]))
    const refused = once(crumbs, 'response')
    for (let i = 0, isOver = false; i < 3000 && !isOver; i++) {
      const written = new Promise<boolean>((resolve) =>
        crumbs.write(Buffer.of(0), () => resolve(false)),
      )
      isOver = await Promise.race([written, refused.then(() => true)])
    }
    const [crumb] = await refused
    t.match(crumb['grpc-message'], /fewer%20than%2016%20bytes|fewer than 16 bytes/)
    for (let i = 0; i < 20; i++) {
      const stream = half.request({ ':method': 'POST', ':path': path, ...headers })
      stream.on('error', () => undefined)
      stream.write(Buffer.from([0, 0, 0, 1, 0, 1]))
    }
    for (const bytes of [
      'hello\n',
      'GET / HTTP/1.1\r\n\r\n',
      '\u0016'.repeat(20_000),
      '\u0000'.repeat(20_000),
      `${HTTP2_PREFACE}${'\u00ff'.repeat(100)}`,
      HTTP2_PREFACE,
    ]) {
      const socket = connectTcp(service.portOf('OTLP/gRPC'), '127.0.0.1')
      socket.on('error', () => undefined)
      socket.write(bytes, 'latin1')
    }
    await sleep(100)
    half.destroy()
    const key = { authorization: headers.Authorization }
    t.match(await callGrpc(grpc, Buffer.alloc(0), { headers: key }), { code: 0 })
  })

  await t.test('paths are joined to the path of a URL, and Splunk hears its codes', async (t) => {
    const ask = async (method: string, path: string, body?: string, keyed = true) => {
      const sent = keyed ? headers : {}
      const init = body === undefined ? {} : { body }
      const reply = await fetch(collector + path, { method, headers: sent, ...init })
      return { status: reply.status, text: await reply.text() }
    }
    const event = '{"event":"a prefix","source":"prefixed"}'
    for (const path of ['/services/collector', '/a/b/services/collector/event/1.0/'])
      t.match(await ask('POST', path, event), { status: 200, text: /"code":0/ }, path)
    for (const path of ['/a/ingest', '/a/log/v1', '/a/b/v1/input', '/a/v1/logs', '//gelf'])
      t.match(await ask('POST', path, '{"message":"a prefix"}'), { status: /^20[02]$/ }, path)
    // Better Stack's path is `/`, which would stand behind every mistaken one.
    for (const path of ['/ingets', '/ingets/', '/v1/lgos/', '/a/b/'])
      t.match(await ask('POST', path, '{"message":"nowhere"}'), { status: 404 }, path)
    t.match(await ask('GET', '/search/'), { status: 200, text: /You Know, for Search/ })
    t.match(await ask('GET', '/a/_cluster/health'), { status: 200 })
    t.match(await ask('GET', '/a/services/collector/health'), { text: /"code":17/ })
    t.match(await ask('OPTIONS', '/a/services/collector/event/1.0'), { status: 200 }, 'Docker')
    const body = new ReadableStream({ start: (stream) => stream.close() })
    const chunked = { method: 'POST', headers, body, duplex: 'half' } as const
    const empty = await fetch(`${collector}/services/collector`, chunked)
    t.match([empty.status, await empty.text()], [400, /"code":5/], 'AWS Firehose asks so')
    const ack = '/services/collector/ack?channel=c'
    const given = await ask('POST', '/services/collector?channel=c', event)
    t.match(given.text, /"ackId":0/)
    // The second id is of an earlier run, or of another instance.
    t.match(await ask('POST', ack, '{"acks":[0,987654]}'), {
      status: 200,
      text: '{"acks":{"0":true,"987654":true}}',
    })
    t.match(await ask('POST', ack, '{"acks":[-1]}'), { status: 400, text: /"code":6/ })
    t.match(await ask('POST', ack, '{"acks":[0]}', false), { status: 401, text: /"code":2/ })
  })

  await t.test('nothing was rejected', async (t) => {
    const { body } = await service.call('GET /api/monitoring/dead-letters')
    t.same(body.items, [])
  })
})
