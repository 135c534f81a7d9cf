import type { Migration } from '../migrate.js'
import { DAY_S } from '../../model/time.js'

/**
 * Where a cluster keeps the rows of a table, as the line `-- shard:` of its statement says.
 *
 * - `home`: on the first shard. Small tables whose rows replace each other by key. `home by <column>`: a
 *   query that names values of this text column asks that shard alone.
 * - `view`: where the row of `landing` went that they were made from. Nothing is inserted into them.
 * - an expression: on the shard that it picks for a row that is inserted.
 * - `none`: every server has its own.
 */
export interface ShardedTable {
  readonly name: string
  readonly shard: string
}

/** Lists the tables that the migrations create. @throws Error when one has no line `-- shard:` */
export function shardedTables(migrations: readonly Migration[]): readonly ShardedTable[] {
  const tables = new Map<string, string>()
  for (const sql of migrations.flatMap(({ statements }) => statements)) {
    const name = /^CREATE TABLE IF NOT EXISTS (\w+)/m.exec(sql)?.[1]
    const shard = /^-- shard: (.+)$/m.exec(sql)?.[1]
    if (name !== undefined && shard === undefined)
      throw new Error(`bug: a migration makes the table ${name} and has no line "-- shard:"`)
    if (name !== undefined && shard !== undefined) tables.set(name, shard)
    const dropped = /^DROP TABLE IF EXISTS (\w+)/m.exec(sql)?.[1]
    if (dropped !== undefined) tables.delete(dropped)
  }
  return Array.from(tables, ([name, shard]) => ({ name, shard }))
}

/** Names the table into which rows for `shards` shards are inserted. */
export const writeTable = (table: string, shards: number): string => `${table}_to_${shards}`

export interface Distribution {
  readonly cluster: string
  /** The database of the tables that hold the rows. */
  readonly local: string
  /** The database of the Distributed tables over them. */
  readonly front: string
  readonly shards: number
}

export interface DistributedTable {
  readonly name: string
  /** The table whose rows it shows, and whose columns it has. */
  readonly of: string
  readonly sql: string
  /** By this comment a later start sees whether the table is up to date. */
  readonly comment: string
}

/**
 * The Distributed tables over the tables of a cluster.
 *
 * Tables for reading have no sharding key, except `home` tables, whose key is always 0: after a shard was added,
 * older rows would not be where the key says. Tables for inserting spread rows over a fixed number of shards,
 * which is in their name: a batch that was begun on two shards is finished on two.
 *
 * @param columns a hash of the columns of each local table; a table whose columns changed is replaced
 */
export function distributedTables(
  tables: readonly ShardedTable[],
  to: Distribution,
  columns: ReadonlyMap<string, string>,
): readonly DistributedTable[] {
  const make = (name: string, of: string, key: string): DistributedTable => {
    const comment = `over ${of}, key ${key === '' ? 'none' : key}, columns ${columns.get(of) ?? '?'}`
    const engine = [`'${to.cluster}'`, `'${to.local}'`, `'${of}'`, ...(key === '' ? [] : [key])]
    const sql =
      `CREATE OR REPLACE TABLE ${to.front}.${name} AS ${to.local}.${of} ` +
      `ENGINE = Distributed(${engine.join(', ')}) COMMENT '${comment}'`
    return { name, of, sql, comment }
  }
  return tables.flatMap(({ name, shard }) => {
    if (shard === 'none') return []
    const home = /^home(?: by (\w+))?$/.exec(shard)
    if (home !== null)
      return [make(name, name, home[1] === undefined ? '0' : `0 * length(${home[1]})`)]
    if (shard === 'view') return [make(name, name, '')]
    const key = `(${shard}) % ${to.shards}`
    return [make(name, name, ''), make(writeTable(name, to.shards), name, key)]
  })
}

const OBJECT =
  /^((?:CREATE (?:OR REPLACE )?(?:TABLE|MATERIALIZED VIEW|DATABASE)|ALTER TABLE|DROP (?:TABLE|VIEW|DATABASE)|TRUNCATE TABLE|DELETE FROM|UPDATE)(?: IF (?:NOT )?EXISTS)?) ([\w.]+)/m

/** @throws Error on a statement that ClickHouse does not take ON CLUSTER */
export function onCluster(sql: string, cluster: string): string {
  if (!OBJECT.test(sql)) throw new Error(`bug: not a statement for a cluster: ${firstLine(sql)}`)
  return sql.replace(OBJECT, (_all, verb: string, name: string) => {
    return `${verb} ${name} ON CLUSTER '${cluster}'`
  })
}

const firstLine = (sql: string): string => /^(?!--).+$/m.exec(sql)?.[0] ?? ''

/** The longest time that a batch may wait before it is sent again. */
const DEDUPLICATION_S = 30 * DAY_S

/**
 * Gives a table a Replicated engine. The path is the same for all replicas of a shard, whichever way the table
 * is made; the macros `shard` and `replica` distinguish the servers. Replicated engines have other settings
 * for the deduplication log.
 */
export const replicated = (sql: string): string =>
  sql
    .replace(
      /^ENGINE = ((?:[A-Z][a-z]+)?MergeTree)(?:\(([a-z_, ]*)\))?/m,
      (_all, family: string, args = '') => {
        const place = `'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'`
        return `ENGINE = Replicated${family}(${place}${args === '' ? '' : `, ${args}`})`
      },
    )
    .replace(
      /non_replicated_deduplication_window = (\d+)/,
      (_all, rows: string) =>
        `replicated_deduplication_window = ${rows}, replicated_deduplication_window_seconds = ${DEDUPLICATION_S}`,
    )
