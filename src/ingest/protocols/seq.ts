import type { Reply } from '../../http/reply.js'
import { decodeIngest } from '../formats/ndjson.js'
import { ingestRoute, laterReply } from './ingest-route.js'
import type { Protocol } from './protocol.js'

const STORED: Reply = { status: 201, json: { MinimumLevelAccepted: null } }

/** Seq takes Serilog's compact format, which `/ingest` reads too. */
export const seq: Protocol = {
  name: 'seq',
  parsers: {
    'seq/clef': (bytes, context, sink) => {
      decodeIngest(bytes, context, sink)
    },
  },
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
