import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Instance } from '../coordination/instance.js'
import { BACKUP_DISK } from '../clickhouse/embedded/config.js'
import type { Config } from '../config.js'
import { makeDirectory } from '../coordination/data-dir.js'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../model/time.js'
import { s3Of } from '../settings/cold.js'
import type { Writer } from '../writer/writer.js'
import {
  applyPatches,
  beginBackup,
  readSchemaVersion,
  readTotals,
  type BackupPlace,
  type DatabaseBackup,
  type MakeBackup,
} from './clickhouse-backup.js'
import { openBucket } from '../clickhouse/bucket.js'
import { requestBackup } from './control.js'
import { emptyOut, isFree, moveTree } from './file-tree.js'
import { writeManifest } from './manifest.js'

/**
 * A backup is made while the service runs, and holds everything acknowledged before it.
 *
 * 1. The command (`backup`) reaches the running service over a local socket (`control.ts`).
 * 2. The service writes its WAL to ClickHouse, and applies the corrections that BACKUP would leave out.
 * 3. Between two batches, so that events and rollups agree, it counts the tables and begins BACKUP DATABASE. The
 *    writer waits only until ClickHouse has listed the parts (milliseconds), then continues while they are copied.
 * 4. The command moves the copied files into its directory, adds the keys and the quarantined rows that are not
 *    in the database, and writes a manifest last: the version of the program and of the schema, the counts, and
 *    a checksum of every file.
 *
 * A restore (`restore.ts`) checks the manifest and every file, restores the tables into an empty data directory,
 * brings them to the program's schema, and compares the counts.
 */

interface BackupDeps extends Pick<Instance, 'config' | 'store' | 'isEmbedded' | 'dataDir'> {
  readonly pipeline: {
    /** Resolves when everything acknowledged is in ClickHouse. */
    settle(): Promise<void>
  }
  readonly writer: Writer
}

/** ClickHouse rewrites the corrected columns of the parts that hold corrected events. */
const APPLY_MS = HOUR_MS
/** If the current batch is not written in this time, ClickHouse is down and cannot make a backup. */
const WAIT_MS = MINUTE_MS
/** A check takes 5 s at most, so a backup fails about a minute after S3 stops answering. */
const CHECK_EVERY_MS = 10 * SECOND_MS
const MOST_FAILURES = 4

/** The folder of the embedded engine's backups in a data directory. */
const backupsDir = (dataDir: string): string => join(dataDir, 'clickhouse', 'backups')

/** @returns a function that makes a backup of the database and reports its progress */
export function createBackups(deps: BackupDeps): MakeBackup {
  let isBusy = false
  return async (isOnS3, report) => {
    if (isBusy) throw new Error('another backup is being made')
    isBusy = true
    try {
      return await backUpDatabase(deps, isOnS3, report)
    } finally {
      isBusy = false
    }
  }
}

async function backUpDatabase(
  { config, store, isEmbedded, pipeline, writer, dataDir }: BackupDeps,
  isOnS3: boolean,
  report: (progress: string) => void,
): Promise<DatabaseBackup> {
  const place = placeOf(config, isEmbedded, isOnS3)
  const folder = place.kind === 'file' ? join(backupsDir(dataDir.path), place.name) : null
  if (isEmbedded) {
    // An interrupted command leaves its files behind.
    await rm(backupsDir(dataDir.path), { recursive: true, force: true })
    await mkdir(backupsDir(dataDir.path), { recursive: true, mode: 0o700 })
  }
  report('writing what is acknowledged')
  await pipeline.settle()
  await applyPatches(store, { timeoutMs: APPLY_MS })
  const { totals, schema, takenAt, done } = await writer.between(async () => {
    // Only patches that were added since are left to apply, so the writer waits briefly.
    await applyPatches(store, { timeoutMs: APPLY_MS })
    const facts = { totals: await readTotals(store), schema: await readSchemaVersion(store) }
    const begun = await beginBackup(store, place)
    return { ...facts, ...begun, takenAt: new Date().toISOString() }
  }, AbortSignal.timeout(WAIT_MS))
  report('copying')
  const s3 = isOnS3 ? s3Of(config) : null
  const bytes = await (s3 === null ? done : whileAnswering(done, openBucket(s3).check))
  return { place, folder, database: store.database, schema, takenAt, totals, bytes }
}

/**
 * Waits for a backup while S3 answers, because ClickHouse itself retries a silent S3 for hours.
 *
 * @throws Error with S3's answer when several checks in a row fail
 */
async function whileAnswering<T>(done: Promise<T>, check: () => Promise<void>): Promise<T> {
  const ended = new AbortController()
  const watch = async (): Promise<never> => {
    for (let failures = 0; ;) {
      await sleep(CHECK_EVERY_MS, undefined, { signal: ended.signal })
      failures = await check().then(
        () => 0,
        (error: unknown) => {
          if (failures + 1 === MOST_FAILURES) throw error
          return failures + 1
        },
      )
    }
  }
  try {
    return await Promise.race([done, watch()])
  } finally {
    ended.abort()
  }
}

/** @throws Error when no place is configured where ClickHouse can write a backup */
function placeOf(config: Config, isEmbedded: boolean, isOnS3: boolean): BackupPlace {
  const name = `backup-${randomBytes(8).toString('hex')}`
  if (isOnS3) {
    if (config.s3Url === null) throw new Error('the service runs without S3_URL')
    return { kind: 'disk', disk: BACKUP_DISK, name }
  }
  if (isEmbedded) return { kind: 'file', name }
  if (config.clickhouseCluster !== '')
    throw new Error('a cluster is backed up with BACKUP … ON CLUSTER; see the guide on operations')
  if (config.clickhouseBackupDisk === '')
    throw new Error(
      'CLICKHOUSE_BACKUP_DISK names no disk of the ClickHouse server; see the guide on operations',
    )
  return { kind: 'disk', disk: config.clickhouseBackupDisk, name }
}

/** The options of an operator's command. */
export interface CommandOptions {
  readonly config: Config
  /** The directory of the backup. */
  readonly dir: string
  /** The name of the backup that the operator gave. Default: `dir`. */
  readonly title?: string
  /** Whether ClickHouse writes the tables to S3. */
  readonly isOnS3?: boolean
  readonly program: string
  readonly version: string
  /** Prints a line for the operator. */
  readonly print: (text: string) => void
}

/** Files of the data directory that belong to the database. */
const KEYS = ['jwt-secret', 'data-key']
const QUARANTINED = /^refused-[\w-]+\.native$/
/** The folder of a backup that holds the database. */
const DATABASE_FOLDER = 'clickhouse'
/** The folder of a backup that holds quarantined rows. */
export const QUARANTINE_FOLDER = 'refused'

/**
 * Has the running service back up its database, and completes the backup in an empty directory.
 *
 * @throws Error saying what would help; the directory is empty again
 */
export async function backup(options: CommandOptions): Promise<void> {
  const { config, dir, title = dir, isOnS3 = false, program, version, print } = options
  if (!relative(config.dataDir, dir).startsWith('..'))
    throw new Error(`${dir} is in DATA_DIR ${config.dataDir}, which a backup has to outlast`)
  if (!(await isFree(dir))) throw new Error(`${dir} is not empty`)
  makeDirectory(dir)
  await chmod(dir, 0o700)
  try {
    const made = await requestBackup(config.dataDir, isOnS3, print)
    await collect(made.folder, config.dataDir, dir)
    print('checking and summing up')
    const { place, database, schema, takenAt, totals } = made
    const clickhouse = place.kind === 'file' ? { ...place, name: DATABASE_FOLDER } : place
    const head = { program, version, schema, database, taken_at: takenAt, clickhouse, totals }
    const manifest = await writeManifest(dir, head)
    const own = manifest.files.reduce((sum, file) => sum + file.bytes, 0)
    const bytes = made.folder === null ? own + made.bytes : own
    print(
      `${title}: ${totals['events']} events as of ${takenAt}, ${manifest.files.length} files, ${bytes} bytes`,
    )
  } catch (error) {
    await emptyOut(dir)
    throw error
  }
}

async function collect(folder: string | null, dataDir: string, dir: string): Promise<void> {
  if (folder !== null) await moveTree(folder, join(dir, DATABASE_FOLDER))
  await mkdir(join(dir, 'keys'), { mode: 0o700 })
  for (const name of KEYS)
    if (existsSync(join(dataDir, name))) await cp(join(dataDir, name), join(dir, 'keys', name))
  const wal = join(dataDir, 'wal')
  for (const name of await readdir(wal))
    if (QUARANTINED.test(name)) await cp(join(wal, name), join(dir, QUARANTINE_FOLDER, name))
}
