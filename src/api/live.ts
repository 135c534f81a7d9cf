import type { Instance } from '../coordination/instance.js'
import { createArrivalReader } from '../events/arrivals.js'
import type { KpiCache } from '../events/kpi-cache.js'
import { createKpiPush } from '../events/kpi-push.js'
import { createTail } from '../events/tail.js'
import type { Capacity } from '../http/capacity.js'
import type { Accounts } from './auth/accounts.js'
import { createOriginCheck } from './auth/origin.js'
import type { Session } from './auth/sessions.js'
import type { EventContext } from './event-context.js'
import { toEventItem } from './event-views.js'
import type { Questions } from './questions.js'
import { createKpiSockets } from './routes/kpis.js'
import { createTailSockets, toWatermark } from './routes/tail.js'
import { REVOKED, verifySocket, type UserSocketDeps } from './user-sockets.js'

interface LiveDeps extends Pick<Instance, 'config' | 'log' | 'store' | 'state' | 'replica'> {
  readonly capacity: Capacity
  readonly accounts: Accounts
  readonly kpis: KpiCache
  readonly questions: Questions
  readonly eventContext: EventContext
  /** Signs the watermarks of tails. */
  readonly cursorKey: Buffer
}

/** The WebSockets: what is pushed to them, and who may open one. */
export type Live = Awaited<ReturnType<typeof openLive>>

/** The close code of a WebSocket whose user may no longer read it. */
const POLICY_VIOLATION = 1008

/** Opens the KPI push and the live tail, and closes the WebSockets of sessions that end. */
export async function openLive(deps: LiveDeps) {
  const { state, accounts, eventContext: context, cursorKey, log } = deps
  const socketDeps = toSocketDeps(deps)
  const push = await createKpiPush({
    cache: deps.kpis,
    signals: state,
    onError: (error) => log.warn({ err: error }, 'no KPI snapshot could be pushed'),
    openSockets: (greet) => createKpiSockets(socketDeps, greet),
  })
  const tail = await createTail({
    arrivals: createArrivalReader(deps.store),
    signals: state,
    toItem: (event) => toEventItem(event, context),
    toWatermark: (position) => toWatermark(cursorKey, position),
    ask: (userId, work) => deps.questions('search', userId, work),
    onError: (error) => log.warn({ err: error }, 'the live tail is late'),
  })
  const hubs = [push.sockets, createTailSockets(socketDeps, { tail, context, cursorKey })]
  accounts.onSessionEnded((id) => {
    const isOver = (session: Session): boolean =>
      session.userId === id && !accounts.isAlive(session)
    for (const hub of hubs) {
      hub.closeWhere((user) => user.isToken && isOver(user), POLICY_VIOLATION, REVOKED)
      hub.closeWhere(isOver, POLICY_VIOLATION, 'the session has ended')
    }
  })
  return {
    routes: hubs.map(({ route }) => route),
    /** The number of open WebSockets. */
    get size(): number {
      return hubs.reduce((sum, { size }) => sum + size, 0)
    },
    /** Called when events were stored. */
    onWritten: (): void => {
      push.onWritten()
      tail.onStored()
    },
    /** Called when other data of the KPIs changed. */
    onChanged: (): Promise<void> => push.onChanged(),
    close: (): void => {
      tail.close()
      push.close()
    },
  }
}

function toSocketDeps(deps: LiveDeps): UserSocketDeps {
  const { config, state, replica, accounts } = deps
  const { limiter } = accounts
  return {
    verify: (token) => verifySocket(accounts, token),
    isAlive: async (user) => {
      if (state.kind === 'redis') await replica.refresh()
      return accounts.isAlive(user)
    },
    consume: async (address, user) => {
      await limiter.consume('ws_limiter', { address })
      if (user?.isToken === true)
        await limiter.consume('api_token_limit', { address, userId: user.userId })
    },
    mayUseCookies: createOriginCheck(config.corsOrigins),
    mayUseQuery: config.wsTokenInQuery,
    maxOpen: deps.capacity.webSockets,
    maxOpenPerAddress: config.wsMaxOpen,
  }
}
