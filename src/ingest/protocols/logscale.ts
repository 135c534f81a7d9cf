import type { Reply } from '../../http/reply.js'
import { isRecord } from '../formats/json-value.js'
import { ingestRoute, laterReply } from './ingest-route.js'
import type { Protocol } from './protocol.js'
import { recordsIn, unfolding } from './unfold.js'

/** LogScale: `[{tags, events: [{timestamp, attributes, rawstring}]}]` and `[{fields, tags, messages: […]}]`. */
const decodeLogScale = unfolding(({ tags, fields, events, messages }) => {
  const common = { ...(isRecord(tags) ? tags : {}), ...(isRecord(fields) ? fields : {}) }
  const structured = recordsIn(events).map(({ attributes, ...event }) => ({
    ...common,
    ...(isRecord(attributes) ? attributes : {}),
    ...event,
  }))
  const lines = Array.isArray(messages) ? messages.filter((text) => typeof text === 'string') : []
  return [...structured, ...lines.map((rawstring) => ({ ...common, rawstring }))]
})

const STORED: Reply = { status: 200, json: {} }

/** The ingest API of LogScale (Humio). */
export const logScale: Protocol = {
  name: 'logscale',
  parsers: { 'logscale/events': decodeLogScale },
  routes: (services) =>
    ['structured', 'unstructured'].map((kind) =>
      ingestRoute(
        {
          id: 'logscale_events',
          path: `/api/v1/ingest/humio-${kind}`,
          protocol: 'logscale',
          format: 'logscale/events',
          toReply: () => STORED,
          toErrorReply: laterReply,
        },
        services,
      ),
    ),
}
