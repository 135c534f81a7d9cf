import type { DecodeContext, EventSink } from '../../../model/event.js'
import type { Reply } from '../../../http/reply.js'
import type { JsonRecord } from '../../formats/json-value.js'
import { ingestRoute, laterReply } from '../ingest-route.js'
import { decodeJsonRecords } from '../json-records.js'
import type { Protocol } from '../protocol.js'
import { decodeGelfBatch, dropEmptyMembers } from './batch.js'

const NUL = 0
const NEWLINE = 10

/** Decodes messages of the Graylog Extended Log Format: JSON objects, also with a NUL after each, as on TCP. */
function decodeGelf(bytes: Buffer, context: DecodeContext, sink: EventSink): void {
  const lines = bytes.includes(NUL)
    ? Buffer.from(bytes.map((byte) => (byte === NUL ? NEWLINE : byte)))
    : bytes
  const { requestSource } = context
  const change = (message: JsonRecord): JsonRecord => {
    dropEmptyMembers(message)
    return requestSource === '' ? message : { ...message, source: requestSource }
  }
  decodeJsonRecords(lines, context, { sink, change })
}

const STORED: Reply = { status: 202, body: '' }

/** The Graylog Extended Log Format: over HTTP here, over TCP and UDP on a port of its own. */
export const gelf: Protocol = {
  name: 'gelf',
  parsers: { 'gelf/messages': decodeGelf, 'gelf/batch': decodeGelfBatch },
  routes: (services) => [
    ingestRoute(
      {
        id: 'gelf_http',
        path: '/gelf',
        protocol: 'gelf',
        format: 'gelf/messages',
        toReply: () => STORED,
        toErrorReply: laterReply,
        // Clients close the connection without waiting for the reply, and do not retry.
        isOneWay: true,
      },
      services,
    ),
  ],
}
