import { ByteBuffer } from '../../src/lib/byte-buffer.js'
import {
  DictColumn,
  FixedColumn,
  StringColumn,
  toNativeBlock,
} from '../../src/clickhouse/native-writer.js'
import { SEVERITIES } from '../../src/model/event.js'
import type { LogRecord } from '../../src/wal/record.js'
import { HOUR_MS } from '../../src/model/time.js'

export interface RefusableRow {
  readonly id: number
  readonly isNew: boolean
  readonly n: number
  readonly tsMs: number
  readonly source: string
  readonly message: string
  /** ClickHouse converts the names of the Enum and refuses a row with another name. */
  readonly severity: (typeof SEVERITIES)[number] | 'BOGUS'
}

/** Landing rows whose severities are text, so that a single row can be refused. */
export function refusableBlock(rows: readonly RefusableRow[]): Uint8Array {
  const columns = {
    id: new FixedColumn('id', 'UInt64', 8),
    isNew: new FixedColumn('is_new', 'UInt8', 1),
    n: new FixedColumn('n', 'Int32', 4),
    receivedAt: new FixedColumn('received_at', "DateTime64(3, 'UTC')", 8),
    ts: new FixedColumn('ts', "DateTime64(3, 'UTC')", 8),
    source: new DictColumn('source'),
    severity: new StringColumn('severity'),
    priority: new FixedColumn('priority', 'Int8', 1),
    templateId: new FixedColumn('template_id', 'UInt64', 8),
    host: new DictColumn('host'),
    environment: new DictColumn('environment'),
    message: new StringColumn('variables'),
  }
  for (const row of rows) {
    columns.id.data.u64(row.id)
    columns.isNew.data.u8(row.isNew ? 1 : 0)
    columns.n.data.u32(row.n)
    columns.receivedAt.data.u64(Date.now())
    columns.ts.data.u64(row.tsMs)
    columns.source.push(row.source)
    columns.severity.push(row.severity)
    columns.priority.data.u8(row.id % 4)
    columns.templateId.data.u64(row.id % 5)
    columns.host.push('web-1')
    columns.environment.push('production')
    columns.message.push(row.message)
  }
  return toNativeBlock(Object.values(columns), rows.length, new ByteBuffer()).bytes
}

export const refusableEntry = (rows: readonly RefusableRow[]): LogRecord => ({
  landing: refusableBlock(rows),
  landingRows: rows.length,
  dead: null,
  templates: [],
  registrations: [],
  command: null,
})

/** Rows with ids from `firstId` on, about one in `oneIn` of which is refused. */
export function refusableRows(
  random: () => number,
  {
    rows,
    firstId,
    oneIn,
  }: { readonly rows: number; readonly firstId: number; readonly oneIn: number },
): readonly RefusableRow[] {
  return Array.from({ length: rows }, (_, i) => {
    const severity = SEVERITIES[Math.floor(random() * SEVERITIES.length)] ?? 'INFO'
    return {
      id: firstId + i,
      isNew: true,
      n: 1 + Math.floor(random() * 3),
      tsMs: Date.now() - Math.floor(random() * HOUR_MS),
      source: random() < 0.5 ? 'shop' : 'bank',
      message: `payment ${firstId + i} booked`,
      severity: random() < 1 / oneIn ? ('BOGUS' as const) : severity,
    }
  })
}
