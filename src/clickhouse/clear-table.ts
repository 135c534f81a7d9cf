import type { QueryParams, Store } from './client.js'

/** ClickHouse's error code when the user's profile does not let a statement change a setting. */
const SETTING_CONSTRAINT_VIOLATION = 452

type Changing = Pick<Store, 'change'>

/** Empties a table of any size: by default servers refuse that above 50 GB (`max_table_size_to_drop`). */
export const clearTable = (store: Changing, table: string): Promise<void> =>
  unlimited(store, `TRUNCATE TABLE ${table}`, { setting: 'max_table_size_to_drop' })

/** Drops a partition of any size, by its id; does nothing where there is none. */
export const dropPartition = (store: Changing, table: string, partition: string): Promise<void> =>
  unlimited(store, `ALTER TABLE ${table} DROP PARTITION ID {partition:String}`, {
    setting: 'max_partition_size_to_drop',
    params: { partition },
  })

async function unlimited(
  store: Changing,
  sql: string,
  { setting, params = {} }: { readonly setting: string; readonly params?: QueryParams },
): Promise<void> {
  try {
    await store.change(sql, params, { settings: { [setting]: '0' } })
  } catch (error) {
    if (!isConstraint(error)) throw error
    // Only the operator may raise a limit that the operator has set.
    await store.change(sql, params)
  }
}

const isConstraint = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === SETTING_CONSTRAINT_VIOLATION
