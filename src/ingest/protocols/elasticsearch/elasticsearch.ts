import { readContentCoding } from '../../../http/decompress.js'
import { JSON_TYPE, type Reply } from '../../../http/reply.js'
import type { HttpRequest, RequestHead } from '../../../http/request.js'
import type { RouteMethod } from '../../../http/router.js'
import { httpRoute, type HttpRoute } from '../../../http/routes.js'
import { ERRORS, type AppError } from '../../../model/errors.js'
import type { BodyResult } from '../../block.js'
import { parseJson } from '../../formats/json-text.js'
import { isRecord } from '../../formats/json-value.js'
import { replyBytes } from '../../reply-text.js'
import { ingestRoute, type IngestServices } from '../ingest-route.js'
import type { Protocol } from '../protocol.js'
import { decodeBulk, decodeDocument, errorOf, writeBusyItems } from './bulk.js'

/** A header that Elastic's clients require of every reply; without it they stop with an error. */
const PRODUCT = { 'X-Elastic-Product': 'Elasticsearch' }
const JSON_PRODUCT = { 'Content-Type': JSON_TYPE, ...PRODUCT }
/** The version that the server claims, which clients of the versions 7 to 9 accept. */
const VERSION = '8.19.0'
const OPENSEARCH_VERSION = '2.19.0'

const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'security_exception',
  403: 'security_exception',
  413: 'content_too_long_exception',
  503: 'es_rejected_execution_exception',
}

/** Clients retry after 503; most drop the data after 429. */
function toErrorReply(error: AppError): Reply {
  const isLater = ERRORS[error.code].retry
  const status = isLater ? 503 : error.status
  const type = ERROR_TYPES[status] ?? 'illegal_argument_exception'
  const retry = isLater ? { 'Retry-After': String(error.retryAfterS ?? 1) } : {}
  const headers = { ...PRODUCT, ...retry }
  return { status, headers, json: errorOf(type, error.message, status) }
}

const toBulkReply = ({ reply }: BodyResult): Reply =>
  reply === null
    ? { status: 200, headers: PRODUCT, json: { took: 1, errors: false, items: [] } }
    : { status: 200, headers: JSON_PRODUCT, body: replyBytes(reply) }

/** A larger request is refused without being read, because there is no memory for it. */
const BUSY_BYTES = 1024 * 1024

/** Answers each action with 429, because most clients send only such actions again, and some do not wait after 503. */
function toBusyReply(request: HttpRequest): Reply | null {
  const { body, headers } = request
  if (body.length > BUSY_BYTES || readContentCoding(headers) !== 'identity') return null
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const jsonText = writeBusyItems(bytes, paramsOf(request), 'there is no room right now')
  return jsonText === null ? null : { status: 200, headers: PRODUCT, jsonText }
}

function toDocumentReply({ reply, errors }: BodyResult): Reply {
  if (reply !== null) return { status: 201, headers: JSON_PRODUCT, body: replyBytes(reply) }
  return failure(400, 'document_parsing_exception', errors[0]?.message ?? '')
}

const paramsOf = ({ params }: RequestHead): string => new URLSearchParams(params).toString()

/** The paths also exist under `/elasticsearch`, because no index has the name of a protocol. */
const BULK_PATHS = ['/_bulk', '/{index}/_bulk', '/{index}/_doc/_bulk'] as const
const DOCUMENT_PATHS = [
  ['POST', '/{index}/_doc'],
  ['POST', '/{index}/_doc/{id}'],
  ['PUT', '/{index}/_doc/{id}'],
  ['POST', '/{index}/_create/{id}'],
  ['PUT', '/{index}/_create/{id}'],
] as const

const PREFIXES = ['', '/elasticsearch', '/opensearch'] as const

function takingRoutes(services: IngestServices, prefix: string): HttpRoute[] {
  const route = { protocol: 'elasticsearch', params: paramsOf, toErrorReply, patienceMs: 1000 }
  const bulk = BULK_PATHS.flatMap((path) =>
    (['POST', 'PUT'] as const).map((method) =>
      ingestRoute(
        {
          ...route,
          id: 'elasticsearch_bulk',
          method,
          path: `${prefix}${path}`,
          format: 'elasticsearch/bulk',
          toReply: toBulkReply,
          deniesRecords: true,
          toBusyReply,
        },
        services,
      ),
    ),
  )
  const documents = DOCUMENT_PATHS.map(([method, path]) =>
    ingestRoute(
      {
        ...route,
        id: 'elasticsearch_document',
        method,
        path: `${prefix}${path}`,
        format: 'elasticsearch/document',
        toReply: toDocumentReply,
      },
      services,
    ),
  )
  return [...bulk, ...documents]
}

const ok = (json: unknown): Reply => ({ status: 200, headers: PRODUCT, json })

/** The description of the server. OpenSearch's clients check its distribution. */
function info({ path, headers }: RequestHead): Reply {
  const isOpenSearch =
    path.startsWith('/opensearch') || /^opensearch/i.test(headers.first('user-agent') ?? '')
  const version = isOpenSearch
    ? { distribution: 'opensearch', number: OPENSEARCH_VERSION }
    : { number: VERSION, build_flavor: 'default', build_type: 'tar' }
  return ok({
    name: 'collector',
    cluster_name: 'log-analytics-engine',
    cluster_uuid: 'bG9nLWFuYWx5dGljcy1lbg',
    version: {
      ...version,
      build_hash: '0',
      build_date: '2026-01-01T00:00:00.000Z',
      build_snapshot: false,
      lucene_version: '9.12.1',
      minimum_wire_compatibility_version: '7.17.0',
      minimum_index_compatibility_version: '7.0.0',
    },
    tagline: 'You Know, for Search',
  })
}

const LICENSE = {
  license: { status: 'active', uid: '0', type: 'basic', mode: 'basic' },
}

const HEALTH = {
  cluster_name: 'log-analytics-engine',
  status: 'green',
  timed_out: false,
  number_of_nodes: 1,
  number_of_data_nodes: 1,
  active_primary_shards: 1,
  active_shards: 1,
  active_shards_percent_as_number: 100,
}

const NODES = { _nodes: { total: 0, successful: 0, failed: 0 }, nodes: {} }
const SHARDS = { _shards: { total: 1, successful: 1, failed: 0 } }
const ACKNOWLEDGED = { acknowledged: true }

/**
 * The paths of objects that clients query or create before they send, such as index templates. None
 * is needed here: GET finds an empty object, and a creation is acknowledged.
 */
const SET_UP = [
  '/_index_template/{name}',
  '/_template/{name}',
  '/_component_template/{name}',
  '/_ilm/policy/{name}',
  '/_data_stream/{name}',
  '/_ingest/pipeline/{name}',
  '/{index}/_alias/{name}',
  '/_alias/{name}',
  '/_plugins/_ism/policies/{name}',
]

/**
 * A client creates every object that is reported as missing, so all objects are reported as
 * existing.
 */
const isThere = ({ method }: HttpRequest): Reply =>
  method === 'HEAD' ? { status: 404, headers: PRODUCT, body: '' } : ok({})

type Answer = (request: HttpRequest) => Reply

const failure = (status: number, type: string, reason: string): Reply => ({
  status,
  headers: PRODUCT,
  json: errorOf(type, reason, status),
})

const INDEX_PARTS: ReadonlySet<string> = new Set(['aliases', 'mappings', 'settings'])

/** An index needs no creation. Records that were sent to this path by mistake must not be acknowledged. */
const makeIndex: Answer = ({ params, body }) => {
  const { index = '' } = params
  if (index.startsWith('_'))
    return failure(400, 'invalid_index_name_exception', `invalid index name [${index}]`)
  const parts = body.length === 0 ? {} : parseJson(Buffer.from(body).toString('utf8'))
  if (isRecord(parts) && Object.keys(parts).every((name) => INDEX_PARTS.has(name)))
    return ok({ ...ACKNOWLEDGED, shards_acknowledged: true, index })
  const reason = 'an index is made of aliases, mappings and settings; documents go to /_bulk'
  return failure(400, 'parse_exception', reason)
}

const PROBES: readonly (readonly [RouteMethod, string, Answer])[] = [
  ['GET', '/', info],
  ['GET', '/_license', () => ok(LICENSE)],
  ['GET', '/_xpack', () => ok({ ...LICENSE, features: {} })],
  ['GET', '/_cluster/health', () => ok(HEALTH)],
  ['GET', '/_cat/health', () => ok([{ cluster: HEALTH.cluster_name, status: 'green' }])],
  ['GET', '/_nodes', () => ok(NODES)],
  ['GET', '/_nodes/http', () => ok(NODES)],
  ['GET', '/_nodes/{nodes}/http', () => ok(NODES)],
  ['GET', '/{index}/_refresh', () => ok(SHARDS)],
  ['POST', '/{index}/_refresh', () => ok(SHARDS)],
  ['GET', '/_refresh', () => ok(SHARDS)],
  ['POST', '/_refresh', () => ok(SHARDS)],
  ['PUT', '/{index}', makeIndex],
  ['PUT', '/{index}/_mapping', () => ok(ACKNOWLEDGED)],
  ['PUT', '/{index}/_settings', () => ok(ACKNOWLEDGED)],
  ...SET_UP.flatMap((path): [RouteMethod, string, Answer][] => [
    ['GET', path, isThere],
    ['PUT', path, () => ok(ACKNOWLEDGED)],
    ['POST', path, () => ok(ACKNOWLEDGED)],
  ]),
]

/** The most bytes of such a request; it is more than any template has. */
const SET_UP_BYTES = 1024 * 1024

const probeRoutes = (prefix: string): HttpRoute[] =>
  PROBES.map(([method, path, handle]) =>
    httpRoute({
      id: 'elasticsearch_probe',
      method,
      path: prefix !== '' && path === '/' ? prefix : `${prefix}${path}`,
      bodyBytes: method === 'GET' ? 0 : SET_UP_BYTES,
      toErrorReply,
      handle,
    }),
  )

/** The bulk API of Elasticsearch and OpenSearch, with the requests that its clients make before they send. */
export const elasticsearch: Protocol = {
  name: 'elasticsearch',
  parsers: { 'elasticsearch/bulk': decodeBulk, 'elasticsearch/document': decodeDocument },
  routes: (services) =>
    PREFIXES.flatMap((prefix) => [...takingRoutes(services, prefix), ...probeRoutes(prefix)]),
}
