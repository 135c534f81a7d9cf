import { statement } from './statement.js'
import type { Store } from './client.js'
import { StoreError } from './failure.js'

/** The disk for cold events, on an embedded or remote server. It is a volume in the storage policy of the events' tables. */
export const COLD_DISK = 'cold'

const probeSql = statement<{ readonly table: string; readonly partition: string }, never>(
  'cold_probe',
)

/** The client ends silent connections after ten minutes; the server continues the move. */
const MOVE_MS = 540_000
const PROBE_MS = 20_000

/** Error codes of a partition that was dropped meanwhile or is being moved. */
const HARMLESS: ReadonlySet<number> = new Set([
  232, // NO_SUCH_DATA_PART
  384, // PART_IS_TEMPORARILY_LOCKED
])
/** UNKNOWN_DISK: there is no disk of this name, or the disk has the whole partition already. */
const NO_DISK = 479

/** @throws AppError dependency_unavailable, StoreError when the server has no such disk for the table */
export async function moveToCold(
  store: Pick<Store, 'change'>,
  table: string,
  partition: string,
): Promise<void> {
  try {
    await store.change(
      `ALTER TABLE ${table} MOVE PARTITION ID {partition:String} TO DISK '${COLD_DISK}'`,
      { partition },
      { timeoutMs: MOVE_MS },
    )
  } catch (error) {
    const code = error instanceof StoreError ? error.code : 0
    const isThere = code === NO_DISK && String(error).includes('already on disk')
    if (!isThere && !HARMLESS.has(code)) throw error
  }
}

/**
 * Reads a row of a partition to check that cold storage answers.
 *
 * @throws AppError dependency_unavailable
 */
export async function probeCold(
  store: Pick<Store, 'query'>,
  table: string,
  partition: string,
): Promise<void> {
  await store.query(probeSql, { table, partition }, { timeoutMs: PROBE_MS })
}
