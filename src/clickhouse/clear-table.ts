import type { Store } from './client.js'

/** ClickHouse's error code when the user's profile does not let a statement change a setting. */
const SETTING_CONSTRAINT_VIOLATION = 452

/**
 * Empties a table of any size: by default servers refuse that above 50 GB (`max_table_size_to_drop`).
 */
export async function clearTable(store: Pick<Store, 'change'>, table: string): Promise<void> {
  const sql = `TRUNCATE TABLE ${table}`
  try {
    await store.change(sql, {}, { settings: { max_table_size_to_drop: '0' } })
  } catch (error) {
    if (!isConstraint(error)) throw error
    // The operator has set a limit, which the operator alone may raise.
    await store.change(sql)
  }
}

const isConstraint = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === SETTING_CONSTRAINT_VIOLATION
