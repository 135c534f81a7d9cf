import type { Reply } from '../../http/reply.js'
import { decodeIngest } from '../formats/ndjson.js'
import { ingestRoute, laterReply } from './ingest-route.js'
import { decodeMsgpack, isMsgpack } from './msgpack/msgpack.js'
import type { BodyParser, Protocol } from './protocol.js'

/** Decodes the records of Better Stack's libraries: MessagePack or JSON. */
const decodeBetterStack: BodyParser = (bytes, context, sink) => {
  if (isMsgpack(bytes)) decodeMsgpack(bytes, context, sink)
  else decodeIngest(bytes, context, sink)
}

const STORED: Reply = { status: 202, body: '' }

/** The intake of Better Stack (Logtail), whose libraries know a host but no path. */
export const betterStack: Protocol = {
  name: 'better_stack',
  parsers: { 'better-stack/logs': decodeBetterStack },
  routes: (services) => {
    const route = ingestRoute(
      {
        id: 'better_stack',
        path: '/',
        protocol: 'better_stack',
        format: 'better-stack/logs',
        toReply: () => STORED,
        toErrorReply: laterReply,
      },
      services,
    )
    // Under other prefixes the route would also accept requests to mistyped paths.
    return [{ ...route, isJoined: false }]
  },
}
