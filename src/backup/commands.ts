import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { Config } from '../config.js'
import { openDataDir, RESTORE_MARKER } from '../coordination/data-dir.js'
import { isFree, moveTree, syncTree } from './file-tree.js'
import { allowMerges, readTotals, restoreBackup } from './backup.js'
import { schemaVersions } from '../clickhouse/migrate.js'
import type { Log } from '../telemetry/log.js'
import { checkFiles, readManifest, writeManifest, type Manifest } from './manifest.js'
import { askRunning } from './control.js'
import type { Snapshot } from './snapshots.js'
import { openDatabase } from '../clickhouse/database.js'

export interface CommandParts {
  readonly config: Config
  readonly dir: string
  readonly program: string
  readonly version: string
  readonly log: Log
  /** a line for the person who waits */
  readonly tell: (text: string) => void
}

/** files of the data directory that are needed beside the database */
const KEYS = ['jwt-secret']
const REFUSED = /^refused-[\w-]+\.native$/
const FOLDER = 'clickhouse'

/**
 * Has the running service make a backup, and puts it in an empty directory with a manifest of all files.
 *
 * @throws Error saying what would help; what was made so far is gone
 */
export async function backup(parts: CommandParts): Promise<void> {
  const { config, dir, tell } = parts
  if (!(await isFree(dir))) throw new Error(`${dir} is not empty`)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  await chmod(dir, 0o700)
  try {
    const snapshot = (await askRunning(config.dataDir, 'snapshot', tell)) as Snapshot // its handler's
    await collect(snapshot, config.dataDir, dir)
    tell('checking and summing up')
    const { place, database, schema, takenAt: taken_at, totals } = snapshot
    const clickhouse = place.kind === 'file' ? { ...place, name: FOLDER } : place
    const { program, version } = parts
    const head = { program, version, schema, database, taken_at, clickhouse, totals }
    const manifest = await writeManifest(dir, head)
    const bytes = manifest.files.reduce((sum, file) => sum + file.bytes, 0)
    tell(
      `${dir}: ${totals['events']} events as of ${taken_at}, ${manifest.files.length} files, ${bytes} bytes`,
    )
  } catch (error) {
    await emptyOut(dir)
    throw error
  }
}

async function collect({ folder }: Snapshot, dataDir: string, dir: string): Promise<void> {
  if (folder !== null) await moveTree(folder, join(dir, FOLDER))
  await mkdir(join(dir, 'keys'), { mode: 0o700 })
  for (const name of KEYS)
    if (existsSync(join(dataDir, name))) await cp(join(dataDir, name), join(dir, 'keys', name))
  const wal = join(dataDir, 'wal')
  for (const name of await readdir(wal))
    if (REFUSED.test(name)) await cp(join(wal, name), join(dir, 'refused', name))
}

/**
 * Makes a data directory from a backup.
 *
 * @throws Error saying what would help; the data directory is as empty as it was
 */
export async function restore(parts: CommandParts): Promise<void> {
  const { config, dir, tell } = parts
  const manifest = await readManifest(dir)
  refuseUnfit(manifest, config)
  if (!(await isFree(config.dataDir)))
    throw new Error(`DATA_DIR ${config.dataDir} is not empty; restore into an empty one`)
  tell('checking the backup')
  await checkFiles(dir, manifest)
  const dataDir = openDataDir(config.dataDir, { isRestoring: true })
  try {
    tell('restoring the database')
    await restoreDatabase(parts, manifest)
    await putBack(dir, config.dataDir)
    await syncTree(config.dataDir)
  } catch (error) {
    await emptyOut(config.dataDir)
    throw error
  }
  await rm(join(config.dataDir, RESTORE_MARKER))
  dataDir.release()
  tell(
    `${config.dataDir}: ${manifest.totals['events']} events as of ${manifest.taken_at}; npm start serves them`,
  )
}

function refuseUnfit({ schema, database, version, clickhouse }: Manifest, config: Config): void {
  const { first, newest } = schemaVersions()
  if (schema < first)
    throw new Error(
      `the backup was made by an unreleased version (schema ${schema}, here from ${first}), which this one can't read`,
    )
  if (schema > newest)
    throw new Error(
      `the backup was made by the newer version ${version} (schema ${schema}, here ${newest}); restore it with that one`,
    )
  if (database !== config.clickhouseDatabase)
    throw new Error(`the backup is of database ${database}; set CLICKHOUSE_DATABASE=${database}`)
  if (clickhouse.kind === 'file' && config.clickhouseUrl !== null)
    throw new Error('the backup is of an embedded ClickHouse; restore it without CLICKHOUSE_URL')
  if (clickhouse.kind === 'disk' && config.clickhouseUrl === null)
    throw new Error(
      `the backup is on disk ${clickhouse.disk} of a ClickHouse server; set CLICKHOUSE_URL`,
    )
}

async function restoreDatabase(
  { config, dir, log }: CommandParts,
  { clickhouse, totals }: Manifest,
): Promise<void> {
  const database = await openDatabase(config, { backupsDir: dir, log })
  const tables = Object.keys(totals)
  const restoration = { place: clickhouse, database: config.clickhouseDatabase, tables }
  try {
    await restoreBackup(database.server, restoration)
    await database.prepare()
    const found = await readTotals(database.store)
    const different = Object.keys(totals).filter((name) => totals[name] !== found[name])
    if (different.length > 0)
      throw new Error(`tables hold other than at the backup: ${different.join(', ')}`)
    await allowMerges(database.server, restoration)
  } finally {
    await database.close()
  }
}

async function putBack(dir: string, dataDir: string): Promise<void> {
  await cp(join(dir, 'keys'), dataDir, { recursive: true })
  if (!existsSync(join(dir, 'refused'))) return
  await cp(join(dir, 'refused'), join(dataDir, 'wal'), { recursive: true })
}

async function emptyOut(dir: string): Promise<void> {
  for (const name of await readdir(dir).catch(() => []))
    await rm(join(dir, name), { recursive: true, force: true })
}
