import { existsSync } from 'node:fs'
import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { BACKUP_DISK } from '../clickhouse/embedded/config.js'
import { openDatabase } from '../clickhouse/database.js'
import { schemaVersions } from '../clickhouse/migrate.js'
import type { Config } from '../config.js'
import { openDataDir, RESTORE_MARKER } from '../coordination/data-dir.js'
import { refuseOtherOwner } from '../coordination/owner.js'
import type { Log } from '../telemetry/log.js'
import { QUARANTINE_FOLDER, type CommandOptions } from './backup.js'
import { allowMerges, readTotals, restoreBackup } from './clickhouse-backup.js'
import { emptyOut, isFree, syncTree } from './file-tree.js'
import { checkFiles, readManifest, type Manifest } from './manifest.js'

export interface RestoreOptions extends CommandOptions {
  readonly log: Log
}

/**
 * Creates a data directory from a backup.
 *
 * @throws Error saying what would help; the data directory is empty again
 */
export async function restore(options: RestoreOptions): Promise<void> {
  const { config, dir, print } = options
  const manifest = await readManifest(dir)
  refuseUnfit(manifest, config)
  if (!(await isFree(config.dataDir)))
    throw new Error(`DATA_DIR ${config.dataDir} is not empty; restore into an empty one`)
  const help = 'restore as that user, who is the one of the service'
  refuseOtherOwner({ dataDir: config.dataDir, path: config.dataDir, help })
  print('checking the backup')
  await checkFiles(dir, manifest)
  const dataDir = openDataDir(config.dataDir, { isRestoring: true })
  try {
    print('restoring the database')
    await restoreDatabase(options, manifest)
    await restoreFiles(dir, config.dataDir)
    await syncTree(config.dataDir)
  } catch (error) {
    await emptyOut(config.dataDir)
    throw error
  }
  await rm(join(config.dataDir, RESTORE_MARKER))
  dataDir.release()
  print(
    `${config.dataDir}: ${manifest.totals['events']} events as of ${manifest.taken_at}; DATA_DIR=${config.dataDir} npm start serves them`,
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
  if (clickhouse.kind === 'disk' && clickhouse.disk === BACKUP_DISK) {
    if (config.s3Url === null)
      throw new Error('the tables of the backup are on S3: set S3_URL and its keys as they were')
  } else if (clickhouse.kind === 'disk' && config.clickhouseUrl === null)
    throw new Error(
      `the backup is on disk ${clickhouse.disk} of a ClickHouse server; set CLICKHOUSE_URL`,
    )
}

async function restoreDatabase(
  { config, dir, log }: RestoreOptions,
  { clickhouse, totals }: Manifest,
): Promise<void> {
  const database = await openDatabase(config, { backupsDir: dir, log })
  const tables = Object.keys(totals)
  const restoration = { place: clickhouse, database: config.clickhouseDatabase, tables }
  try {
    await restoreBackup(database.server, restoration)
    await database.prepare()
    const found = await readTotals(database.store)
    const different = tables.filter((name) => totals[name] !== found[name])
    if (different.length > 0)
      throw new Error(`tables differ from the backup: ${different.join(', ')}`)
    await allowMerges(database.server, restoration)
  } finally {
    await database.close()
  }
}

async function restoreFiles(dir: string, dataDir: string): Promise<void> {
  await cp(join(dir, 'keys'), dataDir, { recursive: true })
  if (!existsSync(join(dir, QUARANTINE_FOLDER))) return
  await cp(join(dir, QUARANTINE_FOLDER), join(dataDir, 'wal'), { recursive: true })
}
