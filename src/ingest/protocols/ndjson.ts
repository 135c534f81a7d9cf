import type { Reply } from '../../http/reply.js'
import type { RequestHead } from '../../http/request.js'
import type { HttpRoute } from '../../http/routes.js'
import type { BodyFormat, BodyResult } from '../block.js'
import { ingestRoute, type IngestServices } from './ingest-route.js'
import type { Protocol } from './protocol.js'

const formatOf = ({ headers }: RequestHead): BodyFormat =>
  /^\s*text\/plain\b/i.test(headers.first('content-type') ?? '') ? 'text' : 'ingest'

function toReply({ received, accepted, rejected, dropped, errors }: BodyResult): Reply {
  if (accepted === 1 && received === 1) return ONE_ACCEPTED
  return { status: 202, json: { received, accepted, rejected, dropped, errors } }
}

/** The reply to a request with one event. */
const ONE_ACCEPTED: Reply = {
  status: 202,
  jsonText: JSON.stringify({ received: 1, accepted: 1, rejected: 0, dropped: 0, errors: [] }),
}

const healthRoute = ({ isReady, version }: IngestServices): HttpRoute => ({
  id: 'collectorHealth',
  method: 'GET',
  path: '/health',
  // No client uses this path with a prefix, and the API has a health check of its own.
  isJoined: false,
  bodyBytes: 0,
  admit: () => ({
    kind: 'admitted',
    handle: () => {
      const ready = isReady()
      return { status: ready ? 200 : 503, json: { status: ready ? 'ok' : 'down', version } }
    },
  }),
})

/** The collector's own protocol: `POST /ingest` takes NDJSON, a JSON array, JSON objects, or text lines. */
export const ndjson: Protocol = {
  name: 'ingest',
  parsers: {},
  routes: (services) => [
    ingestRoute(
      { id: 'ingest', path: '/ingest', protocol: 'ingest', format: formatOf, toReply },
      services,
    ),
    healthRoute(services),
  ],
}
