import type { Store } from './client.js'

/** of ClickHouse: the user's profile does not let a statement change this setting */
const SETTING_CONSTRAINT_VIOLATION = 452

/**
 * Empties a table of any size: without a word of their own servers refuse that above 50 GB
 * (`max_table_size_to_drop`), and would for ever.
 */
export async function clearTable(store: Pick<Store, 'change'>, table: string): Promise<void> {
  const sql = `TRUNCATE TABLE ${table}`
  try {
    await store.change(sql, {}, { settings: { max_table_size_to_drop: '0' } })
  } catch (error) {
    if (!isConstraint(error)) throw error
    // the limit that the operator has set is the operator's to raise
    await store.change(sql)
  }
}

const isConstraint = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === SETTING_CONSTRAINT_VIOLATION
