import { setTimeout as sleep } from 'node:timers/promises'

import { statement } from './statement.js'

/**
 * While a view is dropped and made again, a batch that another instance inserts would pass it by. So the table
 * `landing` refuses every row meanwhile: a column that no insert gives has a default that throws. Who inserts
 * tries again later with the same token. ClickHouse names what a view inserts by the view's name, so that
 * the new view knows what the one before it stored.
 */
const CLOSE =
  'ALTER TABLE landing ADD COLUMN IF NOT EXISTS closed UInt8 ' +
  "DEFAULT throwIf(NOT ignore(id), 'closed while views are made again')"
const OPEN = 'ALTER TABLE landing DROP COLUMN IF EXISTS closed'

/** longer than an insert may take */
const QUIET_WAIT_MS = 180_000

/** A start that broke off left it closed. */
export const closedSql = statement<{ readonly database: string }, { readonly closed: number }>(
  'landing_closed',
)

interface Server {
  command(sql: string): Promise<void>
  /** inserts of batches that are under way */
  insertsRunning(): Promise<number>
}

/**
 * Resolves when no insert is under way and none can begin.
 *
 * @param isNew nobody else knows the database: only what comes is kept out
 */
export async function closeLanding(server: Server, isNew: boolean): Promise<void> {
  if (isNew) {
    await server.command(CLOSE)
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
