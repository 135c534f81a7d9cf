import { ByteBuffer } from '../lib/byte-buffer.js'
import {
  EVENT_TYPES,
  PRIORITIES,
  SEVERITIES,
  type EventRecord,
  type Priority,
} from '../model/event.js'
import { DictColumn, FixedColumn, toNativeBlock } from '../clickhouse/native-writer.js'

/** Landing rows in the Native format. */
export interface CorrectionRows {
  readonly bytes: Uint8Array
  readonly rows: number
}

type CorrectedEvent = Pick<
  EventRecord,
  'id' | 'receivedAtMs' | 'source' | 'type' | 'severity' | 'templateId'
> & {
  /** The retention class of the event. */
  readonly keptDays: number
  /** The counts of the event, by timestamp and priority. */
  readonly counted: readonly {
    readonly tsMs: number
    readonly priority: Priority
    readonly n: number
  }[]
}

/**
 * The landing rows that move an event's occurrences to another priority in every rollup: for each
 * timestamp a negative count under the old priority and the same count under the new one. They have
 * the event's time of arrival and its retention class, so that retention drops them together with
 * the rows that they correct.
 *
 * @returns null when everything is counted under `priority` already
 */
export function encodeCorrection(event: CorrectedEvent, priority: Priority): CorrectionRows | null {
  const moves = event.counted.filter((c) => c.priority !== priority && c.n !== 0)
  if (moves.length === 0) return null
  const columns = {
    id: new FixedColumn('id', 'UInt64', 8),
    keptDays: new FixedColumn('kept_days', 'UInt16', 2),
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
  const add = (tsMs: number, n: number, under: Priority): void => {
    columns.id.data.u64(event.id)
    columns.keptDays.data.u8(event.keptDays & 0xff)
    columns.keptDays.data.u8(event.keptDays >>> 8)
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
