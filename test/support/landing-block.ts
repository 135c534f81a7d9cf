import { ByteBuffer } from '../../src/lib/byte-buffer.js'
import {
  DictColumn,
  FixedColumn,
  StringColumn,
  toNativeBlock,
} from '../../src/clickhouse/native-writer.js'
import { HOUR_MS } from '../../src/model/time.js'

export interface LandingBlockOptions {
  /** The total of all blocks; a third are repeats. */
  readonly rows: number
  readonly firstId: number
  readonly blocks: number
  readonly sources?: number
}

/** Landing rows of this hour as Native blocks; every third row repeats the event before it. */
export function landingBlock(random: () => number, options: LandingBlockOptions): Uint8Array[] {
  const { rows, firstId, blocks, sources = 30 } = options
  const size = rows / blocks
  const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  let event = { id: firstId, source: '', tsMs: hour }
  return Array.from({ length: blocks }, (_, block) => {
    const columns = {
      id: new FixedColumn('id', 'UInt64', 8),
      isNew: new FixedColumn('is_new', 'UInt8', 1),
      n: new FixedColumn('n', 'Int32', 4),
      receivedAt: new FixedColumn('received_at', "DateTime64(3, 'UTC')", 8),
      ts: new FixedColumn('ts', "DateTime64(3, 'UTC')", 8),
      source: new DictColumn('source'),
      templateId: new FixedColumn('template_id', 'UInt64', 8),
      message: new StringColumn('variables'),
    }
    for (let row = 0; row < size; row++) {
      const at = block * size + row
      const isNew = at % 3 !== 2
      if (isNew)
        event = {
          id: firstId + at,
          source: `source-${Math.floor(random() * sources)}`,
          tsMs: hour + Math.floor(random() * 3_000_000),
        }
      columns.id.data.u64(event.id)
      columns.isNew.data.u8(isNew ? 1 : 0)
      columns.n.data.u32(1)
      columns.receivedAt.data.u64(hour)
      columns.ts.data.u64(event.tsMs)
      columns.source.push(event.source)
      columns.templateId.data.u64(1 + (event.id % 50))
      columns.message.push(`message ${event.id}`)
    }
    return toNativeBlock(Object.values(columns), size, new ByteBuffer()).bytes
  })
}
