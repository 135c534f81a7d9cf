import type { Store } from '../../src/clickhouse/client.js'

/** Resolves when ClickHouse has deleted the rows. */
export async function mutated(store: Pick<Store, 'query'>): Promise<void> {
  for (;;) {
    const rows = await store.query(
      {
        name: 'test',
        sql: 'SELECT count() AS n FROM system.mutations WHERE database = currentDatabase() AND NOT is_done',
      },
      {},
    )
    if (JSON.stringify(rows) === '[{"n":0}]') return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
