import type { Reply } from '../../http/reply.js'
import type { JsonRecord } from '../formats/json-value.js'
import { isRecord } from '../formats/json-value.js'
import { ingestRoute, laterReply } from './ingest-route.js'
import type { Protocol } from './protocol.js'
import { recordsIn, unfolding } from './unfold.js'

/** Serilog's compact format, which `/ingest` reads too, or `{"Events":[…]}`, as Seq's library for JavaScript sends it. */
const decodeSeq = unfolding((record) =>
  Array.isArray(record['Events']) ? recordsIn(record['Events']).map(toCompact) : [record],
)

/** The members of an event and their names in the compact format. */
const NAMES = {
  Timestamp: '@t',
  Level: '@l',
  MessageTemplate: '@mt',
  RenderedMessage: '@m',
  Exception: '@x',
  EventType: '@i',
  TraceId: '@tr',
  SpanId: '@sp',
} as const

function toCompact({ Properties: properties, ...event }: JsonRecord): JsonRecord {
  const compact: JsonRecord = {}
  for (const [name, value] of Object.entries(isRecord(properties) ? properties : {}))
    compact[name.replace(/^@/, '@@')] = value
  for (const [name, short] of Object.entries(NAMES))
    if (event[name] !== undefined && event[name] !== null) compact[short] = event[name]
  return compact
}

const STORED: Reply = { status: 201, json: { MinimumLevelAccepted: null } }

/** The intake of Seq. */
export const seq: Protocol = {
  name: 'seq',
  parsers: { 'seq/clef': decodeSeq },
  routes: (services) =>
    ['/api/events/raw', '/ingest/clef'].map((path) =>
      ingestRoute(
        {
          id: 'seq_clef',
          path,
          protocol: 'seq',
          format: 'seq/clef',
          toReply: () => STORED,
          toErrorReply: laterReply,
        },
        services,
      ),
    ),
}
