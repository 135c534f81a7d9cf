import { dropPartition } from '../clickhouse/clear-table.js'
import type { PartitionRow, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { SEVERITIES, type Severity } from '../model/event.js'
import { DAY_MS } from '../model/time.js'

/** The tables that retention drops partitions of. */
export const KEPT_TABLES = ['events', 'event_occurrences', 'dead_letters'] as const
export type KeptTable = (typeof KEPT_TABLES)[number]

export interface Partition {
  readonly table: KeptTable
  readonly id: string
  /** The start of the day of arrival. */
  readonly dayMs: number
  /** The retention class of its rows; null where the table is partitioned by day alone. */
  readonly keptDays: number | null
  readonly rows: number
  readonly bytes: number
  /** The part of `bytes` that is in cold storage. */
  readonly coldBytes: number
}

/** Rows with the same retention. */
export interface Group {
  readonly source: string
  /** The severity; null in tables without it. */
  readonly severity: Severity | null
}

/** The columns that distinguish the groups of a table. */
const COLUMNS = {
  events: { day: 'toDate(received_at)', severity: 'toString(severity)' },
  event_occurrences: { day: 'arrival', severity: "''" },
  dead_letters: { day: 'toDate(received_at)', severity: "''" },
} as const satisfies Record<KeptTable, unknown>

interface GroupRow {
  readonly source: string
  readonly severity: string
}
const groupsSql = statement<
  { readonly table: KeptTable; readonly day: string; readonly kept_days: number },
  GroupRow
>('retention_groups')

/** The timeout for reading the groups of a day, which a large database needs. */
const READ_MS = 300_000

/** Deletes expired rows by day and class, and by group where a class has changed. */
export function createPartitions(store: Pick<Store, 'query' | 'change' | 'partitions'>) {
  return {
    list: async (): Promise<readonly Partition[]> =>
      (await store.partitions(KEPT_TABLES)).flatMap(toPartition),

    groups: async ({ table, dayMs, keptDays }: Partition): Promise<readonly Group[]> => {
      const { day, severity: severitySql } = COLUMNS[table]
      const sql = groupsSql.sql
        .replace('/*severity*/', severitySql)
        .replace('/*day*/', day)
        .replace('/*class*/', keptDays === null ? '0' : 'kept_days')
      const params = { table, day: toDay(dayMs), kept_days: keptDays ?? 0 }
      const rows = await store.query({ ...groupsSql, sql }, params, { timeoutMs: READ_MS })
      return rows.map(({ source, severity }) => ({
        source,
        severity: SEVERITIES.find((one) => one === severity) ?? null,
      }))
    },

    drop: ({ table, id }: Partition): Promise<void> => dropPartition(store, table, id),

    /** Deletes groups of a partition; ClickHouse rewrites the parts in the background. */
    deleteGroups: async ({ table, id }: Partition, groups: readonly Group[]): Promise<void> => {
      const { severity: severitySql } = COLUMNS[table]
      await store.change(
        `ALTER TABLE ${table} DELETE IN PARTITION ID {partition:String}
         WHERE concat(${severitySql}, ' ', source) IN {groups:Array(String)}`,
        {
          partition: id,
          groups: groups.map(({ source, severity }) => `${severity ?? ''} ${source}`),
        },
      )
    },
  }
}

export type Partitions = ReturnType<typeof createPartitions>

/** Reads the key `('2026-11-24',7)` or `2026-11-24`. */
function toPartition(row: PartitionRow): Partition[] {
  const table = KEPT_TABLES.find((name) => name === row.table_name)
  const found = /(\d{4}-\d\d-\d\d)(?:', ?(\d+))?/.exec(row.key)
  if (table === undefined || found === null) return []
  const keptDays = found[2] === undefined ? null : Number(found[2])
  const dayMs = Date.parse(`${found[1]}T00:00:00Z`)
  const { id, stored: rows, bytes, cold_bytes: coldBytes } = row
  return [{ table, id, dayMs, keptDays, rows, bytes, coldBytes }]
}

/** A day of UTC: 2026-11-24. */
export const toDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

/** The bytes of a partition on the local disk. */
export const localBytes = ({ bytes, coldBytes }: Partition): number => bytes - coldBytes

/** The end of the day of arrival. */
export const endOf = ({ dayMs }: Partition): number => dayMs + DAY_MS
