import { readBlock } from '../clickhouse/native-reader.js'
import type { NumberedParts } from './amendment.js'

/** Events that rows of a batch repeat, and that neither begin in it nor are stored. */
export async function orphansOf(
  parts: readonly NumberedParts[],
  held: (ids: readonly number[]) => Promise<ReadonlySet<number>>,
): Promise<readonly number[]> {
  const begun = new Set<number>()
  const repeated = new Set<number>()
  for (const { landing } of parts) {
    const block = landing === null ? null : readBlock(landing)
    for (let row = 0; row < (block?.rows ?? 0); row++) {
      const id = block?.number('id', row) ?? 0
      if (block?.number('is_new', row) === 1) begun.add(id)
      else if (!begun.has(id)) repeated.add(id)
    }
  }
  if (repeated.size === 0) return []
  const stored = await held([...repeated])
  return [...repeated].filter((id) => !stored.has(id))
}
