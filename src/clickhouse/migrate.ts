import type { Store } from './client.js'
import { closedSql, closeLanding, madeClosed, openLanding } from './landing-gate.js'
import type { StoreLog } from './log.js'
import { listSchema, readSchema } from './schema.js'
import { statement } from './statement.js'
import { type CheckTurn, inTurn, type Turns, turnsOf } from './turn.js'

/** For one statement: some wait until ClickHouse has gone through every part, behind the merges that are waiting. */
export const MIGRATION_MS = 500_000

/** The numbers a migration may name as `{{…}}`. Raising a TTL keeps data longer, on more disk. */
export interface SchemaNumbers {
  /** days from arrival that events are kept; also the short rollups' least */
  readonly retention_days: number
  readonly rollup_days: number
}

export interface MigrateOptions {
  readonly numbers: SchemaNumbers
  readonly log: StoreLog
  /** absent: those of `schema/migrations/` */
  readonly migrations?: readonly Migration[]
}

/** What is to be migrated: one server, or all servers of a cluster at once. */
export interface MigrationTarget {
  readonly database: string
  createDatabase(): Promise<void>
  command(sql: string): Promise<void>
  /** where it is written what was applied; asked only after its tables were made */
  readonly books: Pick<Store, 'query' | 'insertRows'>
  /** names of the tables and views that are there, on every server */
  tables(): Promise<readonly string[]>
  /** @returns how many inserts of batches are under way */
  insertsRunning(): Promise<number>
  /** kept by ClickHouse: whoever else migrates this target waits, with or without a shared state */
  readonly turns: Turns
}

export interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
}

/** The database and this program do not fit; the message says what would help. */
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

/**
 * Brings the database to this program's schema: makes it when missing, applies the migrations it
 * has not had in the order of their numbers, and renews the retention of tables when it has changed.
 *
 * Safe to repeat after a failure at any point, and to run from several instances at once: every
 * statement is idempotent, and is recorded after it has succeeded. Where a table is missing all the
 * same (a server came back with an empty disk), all are applied again.
 *
 * @throws MigrationError when the database has had a migration this program does not know
 */
export const migrate = (store: Store, options: MigrateOptions): Promise<void> =>
  migrateTarget(
    {
      database: store.database,
      createDatabase: () => store.createDatabase(),
      command: (sql) => store.command(sql, {}, { timeoutMs: MIGRATION_MS }),
      books: store,
      tables: async () => {
        const rows = await store.query(tablesSql, { database: store.database })
        return rows.map(({ name }) => name)
      },
      insertsRunning: () => store.insertsRunning(0),
      turns: turnsOf(store),
    },
    options,
  )

/** As `migrate`, for a target of any kind. */
export async function migrateTarget(
  target: MigrationTarget,
  options: MigrateOptions,
): Promise<void> {
  const migrations = options.migrations ?? readMigrations()
  const { log } = options
  const render = (text: string): string => renderMigration(text, options.numbers)
  await target.createDatabase()
  for (const { version, text } of migrations.filter(isBookkeeping)) {
    await target.command(render(text))
    log.debug({ version }, 'bookkeeping table is there')
  }
  const found = await look(target, migrations)
  if (found.pending.length > 0)
    await inTurn(target.turns, `migration-of-${target.database}`, (check) =>
      applyPending({ ...target, ...checked(target, check) }, migrations, { render, log }),
    )
  await renewTtls(target, migrations, { render, log, isNew: found.recorded.size === 0 })
}

interface Found {
  /** versions */
  readonly recorded: ReadonlySet<number>
  readonly pending: readonly Migration[]
  readonly isClosed: boolean
}

/** @throws MigrationError when the database is newer than the program */
async function look(target: MigrationTarget, migrations: readonly Migration[]): Promise<Found> {
  const rows = await target.books.query(appliedSql, {})
  const recorded = new Set(rows.map((row) => row.version))
  refuseNewer(target.database, migrations, recorded)
  const [landing] = await target.books.query(closedSql, { database: target.database })
  const isClosed = (landing?.closed ?? 0) > 0
  const isWhole = !isClosed && (await isComplete(target, migrations, recorded))
  const pending = migrations.filter(({ version }) => !isWhole || !recorded.has(version))
  return { recorded, pending, isClosed }
}

/** What changes anything asks first whether it is still our turn. */
const checked = (
  { command, books }: MigrationTarget,
  check: CheckTurn,
): Pick<MigrationTarget, 'command' | 'books'> => ({
  command: async (sql) => {
    check()
    await command(sql)
  },
  books: {
    query: (...args) => books.query(...args),
    insertRows: async (...args) => {
      check()
      await books.insertRows(...args)
    },
  },
})

interface ApplyOptions {
  readonly render: (text: string) => string
  readonly log: StoreLog
}

/** Somebody else may have had the turn before: what is pending is looked up again. */
async function applyPending(
  target: MigrationTarget,
  migrations: readonly Migration[],
  { render, log }: ApplyOptions,
): Promise<void> {
  const { recorded, pending, isClosed } = await look(target, migrations)
  const apply = async (migration: Migration): Promise<void> => {
    const { version, name, text } = migration
    const sql = render(text)
    if (!isBookkeeping(migration))
      await target.command(makesLanding(migration) ? madeClosed(sql) : sql)
    log.debug({ version, name }, 'migration applied')
  }
  const record = async (applied: readonly Migration[]): Promise<void> => {
    const rows = applied.filter(({ version }) => !recorded.has(version))
    await target.books.insertRows(
      'schema_migrations',
      rows.map(({ version, name }) => ({ version, name })),
    )
  }
  if (pending.some((migration) => dropsView(migration) || makesLanding(migration))) {
    await applyClosed(target, pending, { apply, isClosed })
    const versions = new Set([...recorded, ...pending.map(({ version }) => version)])
    if (!(await isComplete(target, migrations, versions)))
      throw new Error('bug: a table or view is missing after the migrations')
    await openLanding(target)
    await record(pending)
  } else
    for (const migration of pending) {
      await apply(migration)
      await record([migration])
    }
  const added = pending.length
  if (added > 0) log.info({ added, database: target.database }, 'schema is up to date')
}

const dropsView = ({ text }: Migration): boolean => /^DROP VIEW/m.test(text)
const makesLanding = ({ text }: Migration): boolean =>
  /^CREATE TABLE IF NOT EXISTS landing$/m.test(text)

/**
 * Applies migrations while no batch is stored. Nothing of it is recorded before it is over: where it breaks off, no
 * row passes by a view that is missing, and the next start applies all of it.
 */
async function applyClosed(
  target: MigrationTarget,
  pending: readonly Migration[],
  options: {
    readonly apply: (one: Migration) => Promise<void>
    readonly isClosed: boolean
  },
): Promise<void> {
  // where it is missing it is made closed
  if ((await target.tables()).includes('landing')) await closeLanding(target, options.isClosed)
  for (const [i, migration] of pending.entries())
    if (!isUndone(migration, pending.slice(i + 1))) await options.apply(migration)
}

/** Whether a later migration drops the view that this one makes: no row comes in between. */
function isUndone({ text }: Migration, later: readonly Migration[]): boolean {
  const view = /^CREATE MATERIALIZED VIEW IF NOT EXISTS (\w+)/m.exec(text)?.[1]
  return view !== undefined && later.some((one) => droppedBy(one) === view)
}

/** These are made at every start: whether they were applied is written in them. */
const isBookkeeping = (migration: Migration): boolean => migration.version <= 2

/** Whether everything is there that the migrations of these versions made. */
async function isComplete(
  target: MigrationTarget,
  migrations: readonly Migration[],
  versions: ReadonlySet<number>,
): Promise<boolean> {
  const there = new Set(await target.tables())
  const had = migrations.filter(({ version }) => versions.has(version))
  return tablesMadeBy(had).every((name) => there.has(name))
}

const droppedBy = ({ text }: Pick<Migration, 'text'>): string | undefined =>
  /^DROP (?:TABLE|VIEW) IF EXISTS (\w+)/m.exec(text)?.[1]

/** Names of the tables and views that migrations make, without those that later ones drop. */
function tablesMadeBy(migrations: readonly Migration[]): readonly string[] {
  const made = new Set<string>()
  for (const { text } of migrations) {
    const created = /^CREATE (?:TABLE|MATERIALIZED VIEW) IF NOT EXISTS (\w+)/m.exec(text)?.[1]
    const dropped = droppedBy({ text })
    if (created !== undefined) made.add(created)
    if (dropped !== undefined) made.delete(dropped)
  }
  return [...made]
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
    return { version, name: match[2], text: readSchema(`migrations/${file}`) }
  })
}

function refuseNewer(
  database: string,
  migrations: readonly Migration[],
  applied: ReadonlySet<number>,
): void {
  const newest = Math.max(0, ...migrations.map(({ version }) => version))
  const unknown = Math.max(0, ...applied)
  if (unknown <= newest) return
  throw new MigrationError(
    `database ${database} has schema version ${unknown}, and this program knows ${newest}: ` +
      'start the newer program again, or set CLICKHOUSE_DATABASE (embedded: DATA_DIR) to another one',
  )
}

/**
 * Fills in the tokens of a migration. What a cluster needs on top of it is in `cluster-sql.ts`.
 *
 * @throws Error on a token that is neither a number of `numbers` nor an engine of MergeTree's family
 */
export function renderMigration(text: string, numbers: SchemaNumbers): string {
  return text.replaceAll(/\{\{([^{}]*)\}\}/g, (_token, inner: string) => {
    const engine = /^engine:((?:[A-Z][a-z]+)?MergeTree(?:\([a-z_, ]*\))?)$/.exec(inner)
    if (engine?.[1] !== undefined) return engine[1]
    if (inner === 'retention_days' || inner === 'rollup_days') return wholeNumber(numbers[inner])
    throw new Error(`bug: a migration has the unknown token {{${inner}}}`)
  })
}

function wholeNumber(value: number): string {
  if (Number.isInteger(value) && value >= 1 && value <= 100_000) return String(value)
  throw new RangeError(`bug: ${value} is not a number of days in 1..100000`)
}

interface RenewOptions {
  readonly render: (text: string) => string
  readonly log: StoreLog
  /** the tables were made a moment ago, with these numbers */
  readonly isNew: boolean
}

/** Tables made under other numbers get the TTL that they would be made with today. */
async function renewTtls(
  target: MigrationTarget,
  migrations: readonly Migration[],
  { render, log, isNew }: RenewOptions,
): Promise<void> {
  const rows = await target.books.query(settingsSql, {})
  const current = new Map(rows.map((row) => [row.name, row.value]))
  const changed: { readonly name: string; readonly value: string }[] = []
  for (const [table, ttl] of findTtls(migrations)) {
    const name = `ttl:${table}`
    const value = render(ttl)
    if (current.get(name) === value) continue
    if (!isNew) {
      await target.command(`ALTER TABLE ${table} MODIFY TTL ${value}`)
      log.info({ table, ttl: value }, 'retention applied')
    }
    changed.push({ name, value })
  }
  await target.books.insertRows('applied_settings', changed)
}

/** The TTL of each table whose migration makes it depend on a number; the last migration counts. */
export function findTtls(migrations: readonly Migration[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const { text } of migrations) {
    const table = /^(?:CREATE TABLE IF NOT EXISTS|ALTER TABLE) (\w+)/m.exec(text)?.[1]
    const ttl = /^(?:MODIFY )?TTL (.*\{\{\w+\}\}.*)$/m.exec(text)?.[1]
    if (table !== undefined && ttl !== undefined) found.set(table, ttl)
  }
  return found
}
