import { ByteBuffer } from '../lib/byte-buffer.js'
import { EVENT_TYPES, PRIORITIES, SEVERITIES } from '../model/event.js'
import { DictColumn, FixedColumn, toNativeBlock } from '../clickhouse/native-writer.js'

/** The event whose counts move, and what it is counted under. */
export interface CorrectedEvent {
  readonly id: number
  readonly receivedAtMs: number
  readonly source: string
  readonly type: (typeof EVENT_TYPES)[number]
  readonly severity: (typeof SEVERITIES)[number]
  /** 16 hex digits */
  readonly templateId: string
  readonly counted: readonly {
    readonly tsMs: number
    readonly priority: (typeof PRIORITIES)[number]
    readonly n: number
  }[]
}

/**
 * The landing rows that move an event's occurrences to another priority in every rollup: for each moment
 * so many fewer under the old priority and as many more under the new one. They carry the event's own
 * arrival, so that retention drops them together with what they correct.
 *
 * @returns null when everything is counted under `priority` already
 */
export function encodeCorrection(
  event: CorrectedEvent,
  priority: (typeof PRIORITIES)[number],
): { readonly bytes: Uint8Array; readonly rows: number } | null {
  const moves = event.counted.filter((c) => c.priority !== priority && c.n !== 0)
  if (moves.length === 0) return null
  const columns = {
    id: new FixedColumn('id', 'UInt64', 8),
    isNew: new FixedColumn('is_new', 'UInt8', 1),
    n: new FixedColumn('n', 'Int32', 4),
    receivedAt: new FixedColumn('received_at', "DateTime64(3, 'UTC')", 8),
    ts: new FixedColumn('ts', "DateTime64(3, 'UTC')", 8),
    source: new DictColumn('source'),
    type: new FixedColumn('type', 'Int8', 1),
    severity: new FixedColumn('severity', 'Int8', 1),
    priority: new FixedColumn('priority', 'Int8', 1),
    templateId: new FixedColumn('template_id', 'UInt64', 8),
  }
  const add = (tsMs: number, n: number, under: (typeof PRIORITIES)[number]): void => {
    columns.id.data.u64(event.id)
    columns.isNew.data.u8(0)
    columns.n.data.u32(n)
    columns.receivedAt.data.u64(event.receivedAtMs)
    columns.ts.data.u64(tsMs)
    columns.source.push(event.source)
    columns.type.data.u8(EVENT_TYPES.indexOf(event.type))
    columns.severity.data.u8(SEVERITIES.indexOf(event.severity))
    columns.priority.data.u8(PRIORITIES.indexOf(under))
    columns.templateId.data.u32(Number.parseInt(event.templateId.slice(8), 16))
    columns.templateId.data.u32(Number.parseInt(event.templateId.slice(0, 8), 16))
  }
  for (const { tsMs, n, priority: old } of moves) {
    add(tsMs, -n, old)
    add(tsMs, n, priority)
  }
  const rows = moves.length * 2
  return { bytes: toNativeBlock(Object.values(columns), rows, new ByteBuffer()).bytes, rows }
}
