import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'

const repeatsKnownSql = statement<
  { readonly from_ms: number; readonly to_ms: number },
  { readonly repeats: number }
>('alert_repeats_known')

/**
 * Returns a function that tells whether any event was repeated in a range of arrival times. Only its first call asks ClickHouse.
 * It saves the query that counts repeats, which costs much even when it finds none.
 */
export function createRepeatsKnown(
  store: Pick<Store, 'query'>,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  options: RequestOptions,
): () => Promise<boolean> {
  const ask = async (): Promise<boolean> => {
    const [row] = await store.query(repeatsKnownSql, { from_ms: fromMs, to_ms: toMs }, options)
    return (row?.repeats ?? 0) > 0
  }
  let known: Promise<boolean> | null = null
  return () => (known ??= ask())
}
