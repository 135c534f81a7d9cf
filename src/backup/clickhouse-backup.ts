import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'

/** Where ClickHouse writes a backup: to a folder of its `allowed_path`, or to a disk of its configuration. */
export type BackupPlace =
  | { readonly kind: 'file'; readonly name: string }
  | { readonly kind: 'disk'; readonly disk: string; readonly name: string }

/** Counts of the tables that are written together, by table. */
export type Totals = Readonly<Record<string, number>>

/** A backup that the service made: the parts of every table as they were between two batches. */
export interface DatabaseBackup {
  readonly place: BackupPlace
  /** The directory of the files; null on S3 and on a remote server. */
  readonly folder: string | null
  readonly database: string
  /** The version of the schema. */
  readonly schema: number
  readonly takenAt: string
  readonly totals: Totals
  readonly bytes: number
}

/** Makes a backup of the database, and reports its progress. */
export type MakeBackup = (
  isOnS3: boolean,
  report: (progress: string) => void,
) => Promise<DatabaseBackup>

type Row = {
  readonly status: string
  readonly error: string
  readonly num_entries: number
  readonly total_size: number
}

const statusSql = statement<{ readonly id: string }, Row>('backup_status')
const totalsSql = statement<
  Record<string, never>,
  { readonly name: string; readonly total: number }
>('backup_totals')
const patchesSql = statement<{ readonly database: string }, { readonly patches: number }>(
  'event_patches',
)
const versionSql = statement<Record<string, never>, { readonly version: number }>('schema_version')

/** The longest time until a backup has begun; no batch is written meanwhile. */
const BEGIN_MS = 10_000
const POLL_MS = 20
const SLOW_POLL_MS = 200
const FAILED = new Set(['BACKUP_FAILED', 'BACKUP_CANCELLED', 'RESTORE_FAILED', 'RESTORE_CANCELLED'])
const DONE = new Set(['BACKUP_CREATED', 'RESTORED'])

export async function readTotals(store: Store): Promise<Totals> {
  const rows = await store.query(totalsSql, {})
  return Object.fromEntries(rows.map(({ name, total }) => [name, total]))
}

export async function readSchemaVersion(store: Store): Promise<number> {
  const [row] = await store.query(versionSql, {})
  return row?.version ?? 0
}

/**
 * Applies the patch parts of `events`, which hold corrected priorities and deletions, because
 * BACKUP leaves patch parts out silently (ClickHouse issue 116677).
 */
export async function applyPatches(store: Store, request: RequestOptions = {}): Promise<void> {
  const [row] = await store.query(patchesSql, { database: store.database })
  if ((row?.patches ?? 0) === 0) return
  const settings = { ...request.settings, mutations_sync: '2' as const }
  await store.command('ALTER TABLE events APPLY PATCHES', {}, { ...request, settings })
}

/**
 * Begins a backup of the whole database, and resolves when ClickHouse has listed the parts that belong to it:
 * later inserts do not.
 *
 * @returns `done`, which resolves with the size of the backup when everything is copied
 * @throws Error after ten seconds
 */
export async function beginBackup(
  store: Store,
  place: BackupPlace,
): Promise<{ readonly done: Promise<number> }> {
  const sql = `BACKUP DATABASE ${word(store.database)} TO ${toSql(place)}`
  const untilMs = Date.now() + BEGIN_MS
  const request = { timeoutMs: BEGIN_MS }
  await store.command(`${sql} SETTINGS id = '${word(place.name)}', async = 1`, {}, request)
  while (Date.now() < untilMs) {
    const row = await statusOf(store, place, request)
    if (row.num_entries > 0 || DONE.has(row.status)) return { done: untilDone(store, place) }
    await sleep(POLL_MS)
  }
  throw new Error('ClickHouse did not begin the backup within ten seconds: does its place answer?')
}

export interface Restoration {
  readonly place: BackupPlace
  readonly database: string
  /** The tables with a retention. */
  readonly tables: readonly string[]
}

/**
 * Restores the tables of a backup, which must not exist yet. Their parts are not merged until `allowMerges` is
 * called or the server is restarted: a merge would drop rows past their retention before they are counted.
 *
 * @param server a connection without a database, which may not exist yet
 */
export async function restoreBackup(server: Store, restoration: Restoration): Promise<void> {
  const { place, database, tables } = restoration
  const sql = `RESTORE DATABASE ${word(database)} FROM ${toSql(place)}`
  const run = async (id: string, structureOnly: 0 | 1): Promise<void> => {
    const settings = `id = '${word(id)}', structure_only = ${structureOnly}, async = 1`
    await server.command(`${sql} SETTINGS ${settings}`)
    await untilDone(server, { ...place, name: id })
  }
  const attempt = randomBytes(4).toString('hex')
  await run(`${place.name}-structure-${attempt}`, 1)
  for (const table of tables)
    await server.command(`SYSTEM STOP MERGES ${word(database)}.${word(table)}`)
  await run(`${place.name}-data-${attempt}`, 0)
}

export async function allowMerges(
  server: Store,
  { database, tables }: Pick<Restoration, 'database' | 'tables'>,
): Promise<void> {
  for (const table of tables)
    await server.command(`SYSTEM START MERGES ${word(database)}.${word(table)}`)
}

async function untilDone(store: Store, place: BackupPlace): Promise<number> {
  for (;;) {
    const { status, total_size: bytes } = await statusOf(store, place)
    if (DONE.has(status)) return bytes
    await sleep(SLOW_POLL_MS)
  }
}

async function statusOf(
  store: Store,
  { name }: BackupPlace,
  request: RequestOptions = {},
): Promise<Row> {
  const [row] = await store.query(statusSql, { id: name }, request)
  if (row === undefined) throw new Error('ClickHouse does not know the backup: it was restarted')
  if (FAILED.has(row.status)) throw new Error(`clickhouse: ${row.status}: ${messageOf(row.error)}`)
  return row
}

/** The error message without the stack trace. */
const messageOf = (error: string): string =>
  error
    .slice(0, 300)
    .split(/,? Stack trace/, 1)[0]
    ?.trim() ?? ''

const toSql = (place: BackupPlace): string =>
  place.kind === 'file'
    ? `File('${word(place.name)}')`
    : `Disk('${word(place.disk)}', '${word(place.name)}')`

/** BACKUP takes no bound names, so only plain words are allowed. */
function word(name: string): string {
  if (/^[a-zA-Z_][a-zA-Z0-9_-]{0,99}$/.test(name)) return name
  throw new RangeError(`bug: ${JSON.stringify(name)} is not a plain name`)
}
