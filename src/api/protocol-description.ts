import { CONTENT_CODINGS } from '../http/decompress.js'
import type { ExtraOperation } from './openapi.js'

/** An operation of a shipper's protocol. The bodies are specified in the shipper's own documentation. */
interface Described {
  /** The id of the operation; further paths and methods have a number after it. */
  readonly id: string
  readonly summary: string
  readonly paths: readonly string[]
  readonly methods?: readonly ('post' | 'put')[]
  /** An example of each content type; null where it is no text. */
  readonly examples: Readonly<Record<string, unknown>>
  /** The status and the body of a reply to a stored request. */
  readonly stored: readonly [status: number, body: string]
  /** The form of errors, and their statuses. */
  readonly errors: readonly [form: string, ...statuses: number[]]
}

const JSON_TYPE = 'application/json'
const NDJSON = 'application/x-ndjson'
const PROTOBUF = 'application/x-protobuf'
const NO_BODY = 'an empty body'
const MESSAGE = 'disk sda1 is 93% full'
const RECORD = { severity: 'ERROR', message: MESSAGE }
const DATADOG = [{ service: 'shop', status: 'error', message: MESSAGE }]
const lines = (...records: readonly object[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('')
const CLEF = lines({ '@t': '2026-11-21T09:28:19Z', '@l': 'Error', '@mt': MESSAGE })
/** The usual errors: a missing or wrong key, a wrong or too large body, and no memory for the body. */
const USUAL = [400, 401, 403, 413, 415, 422, 503] as const
const OWN = ['as those of `/ingest`, but 503 instead of 429', ...USUAL] as const

const otlp = (signal: string, item: string, example: object): Described => ({
  id: `otlp${signal}`,
  summary: `Takes OTLP ${signal.toLowerCase()}`,
  paths: [`/v1/${signal.toLowerCase()}`],
  examples: { [PROTOBUF]: null, [JSON_TYPE]: example },
  stored: [
    200,
    `\`partialSuccess\` with the number of rejected ${item}, if any, in the form of the request`,
  ],
  errors: ['google.rpc.Status in the form of the request', 400, 401, 403, 413, 415, 503],
})

const NANOS = '1795253299000000000'
const OTLP_RESOURCE = { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }

const ELASTIC_ERRORS = ['`{"error": {"type", "reason"}, "status"}`', ...USUAL] as const

const SPLUNK = {
  stored: [200, '`{"text": "Success", "code": 0}`, with `ackId` when the request names a channel'],
  errors: ['`{"text", "code"}` with the codes of Splunk', 400, 401, 403, 413, 415, 503],
} as const
const BULK = lines({ create: { _index: 'shop' } }, RECORD)

const DESCRIBED: readonly Described[] = [
  otlp('Logs', 'log records', {
    resourceLogs: [
      {
        resource: OTLP_RESOURCE,
        scopeLogs: [
          {
            logRecords: [
              { timeUnixNano: NANOS, severityText: 'ERROR', body: { stringValue: MESSAGE } },
            ],
          },
        ],
      },
    ],
  }),
  otlp('Traces', 'spans', {
    resourceSpans: [
      {
        resource: OTLP_RESOURCE,
        scopeSpans: [
          {
            spans: [
              {
                traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
                spanId: '00f067aa0ba902b7',
                name: 'GET /cart',
                startTimeUnixNano: NANOS,
                endTimeUnixNano: NANOS,
              },
            ],
          },
        ],
      },
    ],
  }),
  otlp('Metrics', 'data points', {
    resourceMetrics: [
      {
        resource: OTLP_RESOURCE,
        scopeMetrics: [
          {
            metrics: [
              {
                name: 'disk.used',
                gauge: { dataPoints: [{ timeUnixNano: NANOS, asDouble: 0.93 }] },
              },
            ],
          },
        ],
      },
    ],
  }),
  {
    id: 'elasticsearchBulk',
    summary: 'Takes a bulk request of Elasticsearch or OpenSearch',
    paths: ['/_bulk', '/{index}/_bulk', '/{index}/_doc/_bulk'],
    methods: ['post', 'put'],
    examples: { [NDJSON]: BULK, [JSON_TYPE]: BULK },
    stored: [
      200,
      'an item for each action with its status: 201, 400, 403, or 429 to send it again',
    ],
    errors: ELASTIC_ERRORS,
  },
  {
    id: 'elasticsearchDocument',
    summary: 'Takes a document of Elasticsearch or OpenSearch',
    paths: ['/{index}/_doc', '/{index}/_doc/{id}', '/{index}/_create/{id}'],
    methods: ['post', 'put'],
    examples: { [JSON_TYPE]: RECORD },
    stored: [201, 'the result of the document'],
    errors: ELASTIC_ERRORS,
  },
  {
    id: 'lokiPush',
    summary: 'Takes a push of Loki',
    paths: ['/loki/api/v1/push', '/api/prom/push'],
    examples: {
      [PROTOBUF]: null,
      [JSON_TYPE]: {
        streams: [{ stream: { app: 'shop', level: 'error' }, values: [[NANOS, MESSAGE]] }],
      },
    },
    stored: [204, NO_BODY],
    errors: OWN,
  },
  {
    id: 'splunkEvents',
    summary: 'Takes events of Splunk HEC',
    paths: ['/services/collector', '/services/collector/event', '/services/collector/event/1.0'],
    examples: { [JSON_TYPE]: { source: 'shop', event: `ERROR ${MESSAGE}` } },
    ...SPLUNK,
  },
  {
    id: 'splunkRaw',
    summary: 'Takes lines of text of Splunk HEC',
    paths: ['/services/collector/raw', '/services/collector/raw/1.0'],
    examples: { 'text/plain': `ERROR ${MESSAGE}` },
    ...SPLUNK,
  },
  {
    id: 'datadogLogs',
    summary: 'Takes logs of Datadog',
    paths: ['/api/v2/logs', '/v1/input', '/v1/input/{key}'],
    examples: { [JSON_TYPE]: DATADOG },
    stored: [202, '`{}`'],
    errors: ['`{"errors": [{"status", "title", "detail"}]}`', 400, 401, 403, 413, 503],
  },
  {
    id: 'betterStackLogs',
    summary: 'Takes logs of Better Stack',
    paths: ['/'],
    examples: { 'application/msgpack': null, [JSON_TYPE]: [RECORD] },
    stored: [202, NO_BODY],
    errors: OWN,
  },
  {
    id: 'journalUpload',
    summary: 'Takes what systemd-journal-upload sends',
    paths: ['/upload'],
    examples: {
      'application/vnd.fdo.journal': `__REALTIME_TIMESTAMP=1795253299000000\n_HOSTNAME=web-1\nPRIORITY=3\nMESSAGE=${MESSAGE}\n\n`,
    },
    stored: [202, '`OK.`'],
    errors: OWN,
  },
  {
    id: 'gelfMessages',
    summary: 'Takes GELF over HTTP',
    paths: ['/gelf'],
    examples: {
      [JSON_TYPE]: { version: '1.1', host: 'web-1', level: 3, short_message: MESSAGE },
    },
    stored: [202, NO_BODY],
    errors: OWN,
  },
  {
    id: 'newRelicLogs',
    summary: 'Takes logs of New Relic',
    paths: ['/log/v1'],
    examples: {
      [JSON_TYPE]: [{ common: { attributes: { service: 'shop' } }, logs: [RECORD] }],
    },
    stored: [202, '`{"requestId"}`'],
    errors: OWN,
  },
  {
    id: 'logScaleEvents',
    summary: 'Takes events of LogScale',
    paths: ['/api/v1/ingest/humio-structured'],
    examples: {
      [JSON_TYPE]: [
        {
          tags: { source: 'shop' },
          events: [{ timestamp: '2026-11-21T09:28:19Z', attributes: RECORD }],
        },
      ],
    },
    stored: [200, '`{}`'],
    errors: OWN,
  },
  {
    id: 'logScaleLines',
    summary: 'Takes lines of text of LogScale',
    paths: ['/api/v1/ingest/humio-unstructured'],
    examples: { [JSON_TYPE]: [{ fields: { source: 'shop' }, messages: [`ERROR ${MESSAGE}`] }] },
    stored: [200, '`{}`'],
    errors: OWN,
  },
  {
    id: 'openObserveRecords',
    summary: 'Takes records of OpenObserve',
    paths: ['/api/{organization}/{stream}/_json', '/api/{organization}/{stream}/_multi'],
    examples: { [JSON_TYPE]: [RECORD] },
    stored: [200, '`{"code": 200, "status"}` with the counts of the stream'],
    errors: OWN,
  },
  {
    id: 'seqEvents',
    summary: 'Takes events of Seq in CLEF',
    paths: ['/api/events/raw', '/ingest/clef'],
    examples: { 'application/vnd.serilog.clef': CLEF, [NDJSON]: CLEF },
    stored: [201, '`{"MinimumLevelAccepted": null}`'],
    errors: OWN,
  },
]

const IN_PATH: Readonly<Record<string, string>> = {
  index: 'the source of documents without one; a date at its end is left out',
  id: '`_id` of the document, which is counted once within 300 seconds',
  key: 'an ingest key',
  organization: 'any name',
  stream: 'the source of records without one',
}

const pathParameters = (path: string): readonly object[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: IN_PATH[name],
    schema: { type: 'string' },
  }))

const SOURCE = {
  name: 'source',
  in: 'query',
  required: false,
  description: 'the source of records without one; also as the header `X-Source`',
  schema: { type: 'string', maxLength: 120 },
}

const toMedia = ([type, example]: readonly [string, unknown]) => [
  type,
  {
    schema: typeof example === 'object' && example !== null ? {} : { type: 'string' },
    ...(example === null ? {} : { example }),
  },
]

function operationsOf(described: Described, servers: readonly object[]): ExtraOperation[] {
  const { id, summary, paths, methods = ['post'], examples, stored, errors } = described
  const [form, ...statuses] = errors
  const responses = Object.fromEntries([
    [stored[0], { description: `The accepted records are durable: ${stored[1]}` }],
    ...statuses.map((status) => [
      status,
      {
        description:
          status === 503 ? `Retry after the time in Retry-After: ${form}` : `An error: ${form}`,
      },
    ]),
  ])
  const ways = paths.flatMap((path) => methods.map((method) => ({ path, method })))
  return ways
    .filter(({ path, method }) => !(path.endsWith('/_doc') && method === 'put'))
    .map(({ path, method }, i) => ({
      path,
      method,
      operation: {
        operationId: i === 0 ? id : `${id}${i + 1}`,
        summary,
        description:
          `At most 16 MiB, also compressed with ${CONTENT_CODINGS}. The ingest key stands where clients of this protocol ` +
          'send theirs. The guide [Sending logs](/docs/sending-logs) says what the fields become.',
        tags: ['collector'],
        'x-no-try': true,
        servers,
        security: [{ ingestKey: [] }, { bearer: [] }],
        parameters: [...pathParameters(path), SOURCE],
        requestBody: {
          required: true,
          content: Object.fromEntries(Object.entries(examples).map(toMedia)),
        },
        responses,
      },
    }))
}

/** The collector's operations in the protocols of shippers. Most paths also exist under a prefix. */
export const protocolOperations = (servers: readonly object[]): readonly ExtraOperation[] =>
  DESCRIBED.flatMap((described) => operationsOf(described, servers))
