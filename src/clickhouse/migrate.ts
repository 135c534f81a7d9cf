import type { RequestOptions, Store } from './client.js'
import type { LogAt } from '../telemetry/log.js'
import { listSchema, readSchema, statement } from './statement.js'

/**
 * Brings a database to this program's schema.
 *
 * The files of `schema/migrations/` are applied in the order of their numbers, each once. A migration is recorded in
 * `schema_migrations` after all its statements have succeeded, and every statement may be repeated, so the next start
 * continues an interrupted one, and several instances may migrate at once. Where a table is missing all the
 * same (a server came back with an empty disk), all migrations are applied again. The table that batches are inserted into
 * is created last, so that no row arrives before the views exist (`schema/README.md`).
 *
 * A database that has a migration this program does not know, or one of an unreleased version, is refused.
 */
export const migrate = (store: Store, options: MigrateOptions): Promise<void> =>
  migrateTarget(
    {
      database: store.database,
      createDatabase: () => store.createDatabase(),
      command: (sql) => store.command(sql, {}, MIGRATION_REQUEST),
      history: store,
      tables: async () => {
        const rows = await store.query(tablesSql, { database: store.database })
        return rows.map(({ name }) => name)
      },
    },
    options,
  )

export const MIGRATION_REQUEST: RequestOptions = {
  // Some statements wait until ClickHouse has gone through every part, behind the merges that are waiting.
  timeoutMs: 500_000,
  // The views are made before `landing`, which they read.
  settings: { allow_materialized_view_with_bad_select: 1 },
}

/** The numbers a migration may name as `{{…}}`. Raising a TTL keeps data longer, on more disk. */
export interface SchemaNumbers {
  /** How many days from the month of arrival short rollups are kept. */
  readonly rollup_days: number
}

export interface MigrateOptions {
  readonly numbers: SchemaNumbers
  readonly log: LogAt<'debug' | 'info' | 'warn'>
  /** The migrations to apply. Absent: those of `schema/migrations/`. */
  readonly migrations?: readonly Migration[]
}

/** The target of a migration: one server, or all servers of a cluster at once. */
export interface MigrationTarget {
  readonly database: string
  createDatabase(): Promise<void>
  command(sql: string): Promise<void>
  /** The history of applied migrations; used only after its tables were created. */
  readonly history: Pick<Store, 'query' | 'insertRows'>
  /** Names the tables and views that every server has. */
  tables(): Promise<readonly string[]>
}

export interface Migration {
  readonly version: number
  readonly name: string
  readonly statements: readonly string[]
}

/** The error of a database that does not fit this program; the message says what would help. */
class MigrationError extends Error {
  override readonly name = 'MigrationError'
}

const appliedSql = statement<Record<string, never>, { readonly version: number }>(
  'applied_migrations',
)
const tablesSql = statement<{ readonly database: string }, { readonly name: string }>('tables_of')
const settingsSql = statement<
  Record<string, never>,
  { readonly name: string; readonly value: string }
>('applied_settings')

/** @throws MigrationError when the database is of a newer or an unreleased version */
export async function migrateTarget(
  target: MigrationTarget,
  { migrations = readMigrations(), numbers, log }: MigrateOptions,
): Promise<void> {
  const { database } = target
  const apply = async ({ version, name, statements }: Migration): Promise<void> => {
    for (const sql of statements) await target.command(renderMigration(sql, numbers))
    log.debug({ version, name }, 'migration applied')
  }
  await target.createDatabase()
  const [bookkeeping] = migrations
  if (bookkeeping !== undefined) await apply(bookkeeping)
  // Read before the history: another instance that migrates at the same time records the
  // bookkeeping before it creates any other table.
  const there = new Set(await target.tables())
  const rows = await target.history.query(appliedSql, {})
  const recorded = new Set(rows.map(({ version }) => version))
  refuseUnfit(migrations, { database, recorded, there })
  const isWhole = tablesMadeBy(migrations.filter(({ version }) => recorded.has(version))).every(
    (name) => there.has(name),
  )
  const pending = migrations.filter(({ version }) => !isWhole || !recorded.has(version))
  for (const migration of pending) {
    const { version, name } = migration
    if (migration !== bookkeeping) await apply(migration)
    if (!recorded.has(version))
      await target.history.insertRows('schema_migrations', [{ version, name }])
  }
  if (pending.length > 0)
    log.info({ applied: pending.length, database }, 'the schema is up to date')
  await renewTtls(target, { migrations, numbers, log, isNew: recorded.size === 0 })
}

/** @throws Error when two files have one number or a name is not `NNNN_words.sql` */
export function readMigrations(): readonly Migration[] {
  const seen = new Set<number>()
  return listSchema('migrations').map((file) => {
    const match = /^(\d{4})_([a-z0-9_]+)\.sql$/.exec(file)
    const version = Number(match?.[1])
    if (match?.[2] === undefined || seen.has(version)) {
      throw new Error(
        `bug: schema/migrations/${file} is not NNNN_words.sql with a number of its own`,
      )
    }
    seen.add(version)
    return { version, name: match[2], statements: toStatements(readSchema(`migrations/${file}`)) }
  })
}

/** The statements of a file, each ended by a `;` at the end of a line, with the comments before them. */
export const toStatements = (text: string): readonly string[] =>
  text
    .split(/;\s*(?:\n|$)/)
    .map((sql) => sql.trim())
    .filter((sql) => sql !== '')

/** The first and the newest migration of a program, which together name the schemas that it can read. */
export interface SchemaVersions {
  readonly first: number
  readonly newest: number
}

export function schemaVersions(migrations = readMigrations()): SchemaVersions {
  const versions = migrations.map(({ version }) => version)
  return { first: Math.min(...versions), newest: Math.max(...versions) }
}

function refuseUnfit(
  migrations: readonly Migration[],
  {
    database,
    recorded,
    there,
  }: {
    readonly database: string
    readonly recorded: ReadonlySet<number>
    readonly there: ReadonlySet<string>
  },
): void {
  const { first, newest } = schemaVersions(migrations)
  const isUnrecorded =
    recorded.size === 0 && tablesMadeBy(migrations.slice(1)).some((name) => there.has(name))
  if (isUnrecorded || Math.min(...recorded) < first)
    throw new MigrationError(
      `database ${database} was made by an unreleased version of this program, which this one can't read: ` +
        'set CLICKHOUSE_DATABASE (embedded: DATA_DIR) to another one, or remove what is there',
    )
  const unknown = Math.max(0, ...recorded)
  if (unknown > newest)
    throw new MigrationError(
      `database ${database} has schema version ${unknown}, and this program knows ${newest}: ` +
        'start the newer program again, or set CLICKHOUSE_DATABASE (embedded: DATA_DIR) to another one',
    )
}

/** The names of the tables and views that migrations create, without those that later ones drop. */
export function tablesMadeBy(migrations: readonly Migration[]): readonly string[] {
  const made = new Set<string>()
  for (const sql of migrations.flatMap(({ statements }) => statements)) {
    const created = /^CREATE (?:TABLE|MATERIALIZED VIEW) IF NOT EXISTS (\w+)/m.exec(sql)?.[1]
    const dropped = /^DROP (?:TABLE|VIEW) IF EXISTS (\w+)/m.exec(sql)?.[1]
    if (created !== undefined) made.add(created)
    if (dropped !== undefined) made.delete(dropped)
  }
  return [...made]
}

/**
 * Fills in the tokens of a statement. What a cluster needs on top of it is in `cluster/sql.ts`.
 *
 * @throws Error on a token that is neither a number of `numbers` nor an engine of MergeTree's family
 */
export function renderMigration(sql: string, numbers: SchemaNumbers): string {
  return sql.replaceAll(/\{\{([^{}]*)\}\}/g, (_token, inner: string) => {
    const engine = /^engine:((?:[A-Z][a-z]+)?MergeTree(?:\([a-z_, ]*\))?)$/.exec(inner)
    if (engine?.[1] !== undefined) return engine[1]
    if (inner === 'rollup_days') return wholeNumber(numbers[inner])
    throw new Error(`bug: a migration has the unknown token {{${inner}}}`)
  })
}

function wholeNumber(value: number): string {
  if (Number.isInteger(value) && value >= 1 && value <= 100_000) return String(value)
  throw new RangeError(`bug: ${value} is not a number of days in 1..100000`)
}

interface RenewOptions extends Required<MigrateOptions> {
  /** Whether the tables have just been created with these numbers. */
  readonly isNew: boolean
}

/** Changes the TTL of tables that were created under other numbers. */
async function renewTtls(
  target: MigrationTarget,
  { migrations, numbers, log, isNew }: RenewOptions,
): Promise<void> {
  const rows = await target.history.query(settingsSql, {})
  const current = new Map(rows.map((row) => [row.name, row.value]))
  const changed: { readonly name: string; readonly value: string }[] = []
  const ttls = findTtls(migrations)
  for (const [table, ttl] of ttls) {
    const name = `ttl:${table}`
    const value = renderMigration(ttl, numbers)
    if (current.get(name) === value) continue
    if (!isNew) {
      await target.command(`ALTER TABLE ${table} MODIFY TTL ${value}`)
      log.info({ table, ttl: value }, 'retention applied')
    }
    changed.push({ name, value })
  }
  for (const [name, value] of current) {
    const table = /^ttl:(\w+)$/.exec(name)?.[1]
    if (table === undefined || value === '' || ttls.has(table)) continue
    // The table's retention is no longer a TTL. REMOVE fails when there is none, after a start that was interrupted here.
    await target.command(`ALTER TABLE ${table} MODIFY TTL ${value}`)
    await target.command(`ALTER TABLE ${table} REMOVE TTL`)
    changed.push({ name, value: '' })
  }
  await target.history.insertRows('applied_settings', changed)
}

/** The TTL of each table whose migration makes it depend on a number; the last migration counts. */
export function findTtls(migrations: readonly Migration[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const sql of migrations.flatMap(({ statements }) => statements)) {
    const table = /^(?:CREATE TABLE IF NOT EXISTS|ALTER TABLE) (\w+)/m.exec(sql)?.[1]
    const ttl = /^(?:MODIFY )?TTL (.*\{\{\w+\}\}.*)$/m.exec(sql)?.[1]
    if (table !== undefined && ttl !== undefined) found.set(table, ttl)
  }
  return found
}
