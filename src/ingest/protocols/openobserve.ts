import type { Reply } from '../../http/reply.js'
import type { RequestHead } from '../../http/request.js'
import type { DecodeContext, EventSink } from '../../model/event.js'
import type { BodyResult } from '../block.js'
import { decodeIngest } from '../formats/ndjson.js'
import { ingestRoute, laterReply } from './ingest-route.js'
import type { Protocol } from './protocol.js'

/** OpenObserve: JSON records, whose stream is their source. */
function decodeOpenObserve(bytes: Buffer, context: DecodeContext, sink: EventSink): void {
  const stream = new URLSearchParams(context.params).get('stream') ?? ''
  const { requestSource, defaultSource } = context
  const named = requestSource || stream || defaultSource
  decodeIngest(bytes, { ...context, defaultSource: named }, sink)
}

const paramsOf = ({ params }: RequestHead): string => new URLSearchParams(params).toString()

function toOpenObserveReply({ accepted, rejected }: BodyResult, { params }: RequestHead): Reply {
  const status = [{ name: params['stream'], successful: accepted, failed: rejected }]
  return { status: 200, json: { code: 200, status } }
}

/** The JSON ingestion of OpenObserve. */
export const openObserve: Protocol = {
  name: 'openobserve',
  parsers: { 'openobserve/json': decodeOpenObserve },
  routes: (services) =>
    ['_json', '_multi'].map((kind) =>
      ingestRoute(
        {
          id: 'openobserve_json',
          path: `/api/{organization}/{stream}/${kind}`,
          protocol: 'openobserve',
          format: 'openobserve/json',
          params: paramsOf,
          toReply: toOpenObserveReply,
          toErrorReply: laterReply,
        },
        services,
      ),
    ),
}
