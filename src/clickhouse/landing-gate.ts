import { setTimeout as sleep } from 'node:timers/promises'

import { statement } from './statement.js'

/**
 * While a view is dropped and made again, a batch that another instance inserts would pass it by. So the table
 * `landing` refuses every row meanwhile: a column that no insert gives has a default that throws. Who inserts
 * tries again later with the same token. ClickHouse names what a view inserts by the view's name, so that
 * the new view knows what the one before it stored.
 */
const GATE = "closed UInt8 DEFAULT throwIf(NOT ignore(id), 'closed while views are made again')"
const CLOSE = `ALTER TABLE landing ADD COLUMN IF NOT EXISTS ${GATE}`
const OPEN = 'ALTER TABLE landing DROP COLUMN IF EXISTS closed'

/** longer than an insert may take */
const QUIET_WAIT_MS = 180_000
/** what somebody sent just before it died has run by then, or is not coming */
const LEFTOVER_WAIT_MS = 1_000

/** A start that broke off left it closed. */
export const closedSql = statement<{ readonly database: string }, { readonly closed: number }>(
  'landing_closed',
)

interface Server {
  command(sql: string): Promise<void>
  /** inserts of batches that are under way */
  insertsRunning(): Promise<number>
}

/** The table as it is made: a server that comes back with an empty disk has senders before it has views. */
export function madeClosed(create: string): string {
  const closed = create.replace(/\n\)\nENGINE = Null/, `,\n    ${GATE}\n)\nENGINE = Null`)
  if (closed === create) throw new Error('bug: landing is not made as it was')
  return closed
}

/**
 * Resolves when no insert is under way and none can begin.
 *
 * @param isClosed somebody closed it and is gone, and views may be missing
 */
export async function closeLanding(server: Server, isClosed: boolean): Promise<void> {
  if (isClosed) {
    await sleep(LEFTOVER_WAIT_MS)
    await untilQuiet(server)
    return
  }
  // a user who may not open it again must not close it
  await openLanding(server)
  await server.command(CLOSE)
  try {
    await untilQuiet(server)
  } catch (error) {
    await openLanding(server)
    throw error
  }
}

export const openLanding = (server: Pick<Server, 'command'>): Promise<void> => server.command(OPEN)

async function untilQuiet(server: Server): Promise<void> {
  const untilMs = performance.now() + QUIET_WAIT_MS
  while ((await server.insertsRunning()) > 0) {
    if (performance.now() > untilMs)
      throw new Error(
        `an insert has been running for ${QUIET_WAIT_MS / 1000} s, and views can't be made again meanwhile: start again`,
      )
    await sleep(20)
  }
}
