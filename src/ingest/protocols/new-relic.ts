import type { Reply } from '../../http/reply.js'
import { isRecord } from '../formats/json-value.js'
import { ingestRoute, laterReply } from './ingest-route.js'
import type { Protocol } from './protocol.js'
import { recordsIn, unfolding } from './unfold.js'

/** New Relic: `[{common: {attributes}, logs: [{timestamp, message, attributes}]}]`, or logs alone. */
const decodeNewRelic = unfolding((record) => {
  if (!Array.isArray(record['logs'])) return [record]
  const { attributes, ...common } = isRecord(record['common']) ? record['common'] : {}
  const shared = isRecord(attributes) ? attributes : {}
  return recordsIn(record['logs']).map(({ attributes: own, ...log }) => ({
    ...common,
    ...shared,
    ...(isRecord(own) ? own : {}),
    ...log,
  }))
})

const STORED: Reply = { status: 202, json: { requestId: '0' } }

/** The log API of New Relic. */
export const newRelic: Protocol = {
  name: 'new_relic',
  parsers: { 'new-relic/logs': decodeNewRelic },
  routes: (services) => [
    ingestRoute(
      {
        id: 'new_relic_logs',
        path: '/log/v1',
        protocol: 'new_relic',
        format: 'new-relic/logs',
        toReply: () => STORED,
        toErrorReply: laterReply,
      },
      services,
    ),
  ],
}
