import type { ExtraOperation } from './openapi.js'

/** A way in for what shippers speak. Their own documentation has the schemas of the bodies. */
interface Described {
  /** The id of the operation; further paths and methods have a number after it. */
  readonly id: string
  readonly summary: string
  readonly paths: readonly string[]
  readonly methods?: readonly ('post' | 'put')[]
  readonly types: readonly string[]
  /** The status of a reply to what was stored, and what its body is. */
  readonly stored: readonly [status: number, body: string]
  /** The form of errors, and the statuses that it has. */
  readonly errors: readonly [form: string, ...statuses: number[]]
}

const JSON_TYPE = 'application/json'
const NDJSON = 'application/x-ndjson'
const PROTOBUF = 'application/x-protobuf'
const NO_BODY = 'an empty body'
/** A key that is missing or wrong, a body that is wrong or too large, and one for which there is no room. */
const USUAL = [400, 401, 403, 413, 415, 422, 503] as const
const OWN = ['as those of `/ingest`, but 503 instead of 429', ...USUAL] as const

const otlp = (signal: string, item: string): Described => ({
  id: `otlp${signal}`,
  summary: `Takes OTLP ${signal.toLowerCase()}`,
  paths: [`/v1/${signal.toLowerCase()}`],
  types: [PROTOBUF, JSON_TYPE],
  stored: [
    200,
    `\`partialSuccess\` with the number of rejected ${item}, if any, in the form of the request`,
  ],
  errors: ['google.rpc.Status in the form of the request', 400, 401, 403, 413, 415, 503],
})

const ELASTIC_ERRORS = ['`{"error": {"type", "reason"}, "status"}`', ...USUAL] as const

const DESCRIBED: readonly Described[] = [
  otlp('Logs', 'log records'),
  otlp('Traces', 'spans'),
  otlp('Metrics', 'data points'),
  {
    id: 'elasticsearchBulk',
    summary: 'Takes a bulk request of Elasticsearch or OpenSearch',
    paths: ['/_bulk', '/{index}/_bulk', '/{index}/_doc/_bulk'],
    methods: ['post', 'put'],
    types: [NDJSON, JSON_TYPE],
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
    types: [JSON_TYPE],
    stored: [201, 'the result of the document'],
    errors: ELASTIC_ERRORS,
  },
  {
    id: 'lokiPush',
    summary: 'Takes a push of Loki',
    paths: ['/loki/api/v1/push', '/api/prom/push'],
    types: [PROTOBUF, JSON_TYPE],
    stored: [204, NO_BODY],
    errors: OWN,
  },
  {
    id: 'splunkEvents',
    summary: 'Takes events of Splunk HEC',
    paths: [
      '/services/collector',
      '/services/collector/event',
      '/services/collector/event/1.0',
      '/services/collector/raw',
      '/services/collector/raw/1.0',
    ],
    types: [JSON_TYPE, 'text/plain'],
    stored: [
      200,
      '`{"text": "Success", "code": 0}`, with `ackId` when the request names a channel',
    ],
    errors: ['`{"text", "code"}` with the codes of Splunk', 400, 401, 403, 413, 415, 503],
  },
  {
    id: 'datadogLogs',
    summary: 'Takes logs of Datadog',
    paths: ['/api/v2/logs', '/v1/input', '/v1/input/{key}'],
    types: [JSON_TYPE],
    stored: [202, '`{}`'],
    errors: ['`{"errors": [{"status", "title", "detail"}]}`', 400, 401, 403, 413, 503],
  },
  {
    id: 'betterStackLogs',
    summary: 'Takes logs of Better Stack',
    paths: ['/'],
    types: ['application/msgpack', JSON_TYPE],
    stored: [202, NO_BODY],
    errors: OWN,
  },
  {
    id: 'journalUpload',
    summary: 'Takes what systemd-journal-upload sends',
    paths: ['/upload'],
    types: ['application/vnd.fdo.journal'],
    stored: [202, '`OK.`'],
    errors: OWN,
  },
  {
    id: 'gelfMessages',
    summary: 'Takes GELF over HTTP',
    paths: ['/gelf'],
    types: [JSON_TYPE],
    stored: [202, NO_BODY],
    errors: OWN,
  },
  {
    id: 'newRelicLogs',
    summary: 'Takes logs of New Relic',
    paths: ['/log/v1'],
    types: [JSON_TYPE],
    stored: [202, '`{"requestId"}`'],
    errors: OWN,
  },
  {
    id: 'logScaleEvents',
    summary: 'Takes events of LogScale',
    paths: ['/api/v1/ingest/humio-structured', '/api/v1/ingest/humio-unstructured'],
    types: [JSON_TYPE],
    stored: [200, '`{}`'],
    errors: OWN,
  },
  {
    id: 'openObserveRecords',
    summary: 'Takes records of OpenObserve',
    paths: ['/api/{organization}/{stream}/_json', '/api/{organization}/{stream}/_multi'],
    types: [JSON_TYPE],
    stored: [200, '`{"code": 200, "status"}` with the counts of the stream'],
    errors: OWN,
  },
  {
    id: 'seqEvents',
    summary: 'Takes events of Seq in CLEF',
    paths: ['/api/events/raw', '/ingest/clef'],
    types: ['application/vnd.serilog.clef', NDJSON],
    stored: [201, '`{"MinimumLevelAccepted": null}`'],
    errors: OWN,
  },
]

const pathParameters = (path: string): readonly object[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))

const SOURCE = {
  name: 'source',
  in: 'query',
  required: false,
  description: 'the source of records without one; also as the header `X-Source`',
  schema: { type: 'string', maxLength: 120 },
}

function operationsOf(described: Described, servers: readonly object[]): ExtraOperation[] {
  const { id, summary, paths, methods = ['post'], types, stored, errors } = described
  const [form, ...statuses] = errors
  const text = { schema: { type: 'string' } }
  const responses = Object.fromEntries([
    [stored[0], { description: `The accepted records are durable: ${stored[1]}` }],
    ...statuses.map((status) => [
      status,
      {
        description: status === 503 ? `Come again after Retry-After: ${form}` : `An error: ${form}`,
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
          'At most 16 MiB, also compressed with gzip, deflate, zstd or snappy. An ingest key is taken where clients of this ' +
          'protocol send theirs. The guide [Sending logs](/docs/sending-logs) says what the fields become.',
        tags: ['collector'],
        'x-no-try': true,
        servers,
        security: [{ ingestKey: [] }, { bearer: [] }],
        parameters: [...pathParameters(path), SOURCE],
        requestBody: {
          required: true,
          content: Object.fromEntries(types.map((type) => [type, text])),
        },
        responses,
      },
    }))
}

/** What the collector takes in the protocols of shippers. Most paths are served under a prefix too. */
export const protocolOperations = (servers: readonly object[]): readonly ExtraOperation[] =>
  DESCRIBED.flatMap((described) => operationsOf(described, servers))
