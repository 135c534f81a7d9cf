import { Type } from '@sinclair/typebox'

import { CONTENT_CODINGS } from '../http/decompress.js'
import { KINDS } from '../ingest/webhook/kinds.js'
import { SEVERITIES } from '../model/event.js'
import { EventTypeSchema } from '../model/schemas.js'
import { failuresOf, type ExtraOperation } from './openapi.js'
import { protocolOperations } from './protocol-description.js'

/** Host and port are variables, because the address under which clients reach the collector is not known here. */
const SERVERS = [
  {
    url: 'http://{host}:{port}',
    description: 'the collector',
    variables: { host: { default: '127.0.0.1' }, port: { default: '8080' } },
  },
]

const IngestEvent = Type.Object(
  {
    message: Type.String({ examples: ['disk sda1 is 93% full'] }),
    source: Type.Optional(
      Type.String({ maxLength: 120, description: 'what sends', examples: ['shop'] }),
    ),
    timestamp: Type.Optional(
      Type.String({
        description:
          'ISO 8601 with any offset, or seconds, milli-, micro- or nanoseconds since 1970; default: the time of arrival',
        examples: ['2026-11-21T09:28:19.000Z'],
      }),
    ),
    severity: Type.Optional(
      Type.String({
        description: `${SEVERITIES.join(', ')} in any common spelling or number; default: the level of a message in JSON, the first level word of another message, else INFO`,
        examples: ['ERROR'],
      }),
    ),
    host: Type.Optional(Type.String({ maxLength: 255, examples: ['web-1'] })),
    environment: Type.Optional(Type.String({ maxLength: 64, examples: ['production'] })),
    trace_id: Type.Optional(Type.String({ maxLength: 256 })),
    span_id: Type.Optional(Type.String({ maxLength: 256 })),
    type: Type.Optional(EventTypeSchema),
    summary: Type.Optional(Type.String({ maxLength: 16_384 })),
    tags: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    dedup_key: Type.Optional(
      Type.String({
        maxLength: 256,
        description: 'events are compared by it, not by their fields',
      }),
    ),
  },
  {
    title: 'IngestEvent',
    description: 'Other members become tags; the names of common loggers are understood.',
  },
)

const Count = Type.Integer({ minimum: 0 })
const IngestCounts = Type.Object(
  {
    received: Count,
    accepted: Count,
    rejected: Count,
    dropped: Count,
    errors: Type.Array(
      Type.Object({ line: Type.Integer(), code: Type.String(), message: Type.String() }),
      { maxItems: 20 },
    ),
  },
  { title: 'IngestCounts' },
)

const EXAMPLE = { source: 'shop', severity: 'ERROR', message: 'disk sda1 is 93% full' }

/** The operations on the collector's own port, which pages of the API's port may not call. */
export const COLLECTOR_OPERATIONS: readonly ExtraOperation[] = [
  ...protocolOperations(SERVERS),
  {
    path: '/ingest',
    method: 'post',
    operation: {
      operationId: 'ingest',
      summary: 'Takes events',
      description:
        'NDJSON, a JSON array, JSON objects, MessagePack, or text lines as an upload takes them: at most 16 MiB, also ' +
        `compressed with ${CONTENT_CODINGS}. The reply is sent when the accepted events are on disk. \`errors\` names the first ` +
        "20 rejected ones, which are dead letters. Listens on the collector's port, with an ingest key in `Authorization: " +
        'Bearer` or `X-Api-Key`.',
      tags: ['collector'],
      'x-no-try': true,
      servers: SERVERS,
      security: [{ ingestKey: [] }, { bearer: [] }],
      parameters: [
        {
          name: 'source',
          in: 'query',
          required: false,
          description: 'the source of records without one; also as the header `X-Source`',
          schema: { type: 'string', maxLength: 120 },
        },
      ],
      requestBody: {
        required: true,
        content: {
          'application/x-ndjson': { schema: IngestEvent, example: JSON.stringify(EXAMPLE) },
          'application/json': {
            schema: Type.Union([Type.Array(IngestEvent), IngestEvent]),
            example: [EXAMPLE],
          },
          'text/plain': {
            schema: { type: 'string' },
            example: '2026-11-21 09:28:19,123 ERROR [main] shop.Cart - disk sda1 is 93% full',
          },
        },
      },
      responses: {
        202: {
          description: 'The accepted events are durable',
          content: { 'application/json': { schema: IngestCounts } },
        },
        ...failuresOf([
          'bad_request',
          'unauthorized',
          'forbidden',
          'body_too_large',
          'unsupported_media_type',
          'validation_error',
          'overloaded',
          'dependency_unavailable',
        ]),
      },
    },
  },
  {
    path: '/webhooks/scm',
    method: 'post',
    operation: {
      operationId: 'scmWebhook',
      summary: 'Takes a webhook of a source-control platform',
      description:
        'The body is signed: `X-Scm-Token` is the HMAC-SHA256 of it in hex, by `WEBHOOK_SECRET`. A delivery that is ' +
        "repeated within 300 seconds is a duplicate, unless the first one was ignored or deleted. Listens on the collector's port.",
      tags: ['collector'],
      'x-no-try': true,
      servers: SERVERS,
      security: [{ webhookSignature: [] }],
      parameters: [],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              title: 'ScmDelivery',
              required: ['object_kind'],
              properties: {
                object_kind: {
                  type: 'string',
                  examples: Object.keys(KINDS),
                  description: `one of ${Object.keys(KINDS).join(', ')}; others are ignored`,
                },
              },
            },
            example: { object_kind: 'pipeline', object_attributes: { id: 31, status: 'failed' } },
          },
        },
      },
      responses: {
        202: {
          description: 'The events are durable',
          content: {
            'application/json': {
              schema: Type.Object({
                status: Type.Union(
                  ['accepted', 'duplicate', 'ignored'].map((status) => Type.Literal(status)),
                ),
                events: Count,
              }),
            },
          },
        },
        ...failuresOf([
          'invalid_payload',
          'invalid_signature',
          'body_too_large',
          'overloaded',
          'dependency_unavailable',
        ]),
      },
    },
  },
]
