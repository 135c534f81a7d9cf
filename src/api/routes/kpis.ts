import type { WebSocketHub } from '../../http/websocket.js'
import { JsonText, route } from '../route.js'
import { KpiSnapshotSchema } from '../schemas/kpi.js'
import { createUserSockets, type SocketUser, type UserSocketDeps } from '../user-sockets.js'

export const kpiRoutes = [
  route({
    id: 'kpis',
    method: 'get',
    path: '/api/kpis',
    summary: 'The KPI snapshot',
    description:
      'Cached for 30 seconds, but corrections and deletions show at once. Totals cover everything stored; windows end ' +
      'now and are exact to the second.',
    role: 'viewer',
    reply: KpiSnapshotSchema,
    errors: ['dependency_unavailable'],
    handle: async (_, { kpis }) => new JsonText(await kpis.get()),
  }),
]

/** @param greet sends the first snapshot */
export const createKpiSockets = (
  deps: UserSocketDeps,
  greet: (client: { send(text: string): boolean }) => Promise<void>,
): WebSocketHub<SocketUser> => createUserSockets(deps, { path: '/ws/kpis', onOpen: greet })
