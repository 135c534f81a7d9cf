import { randomBytes } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { Config } from '../config.js'
import {
  applyCorrections,
  beginBackup,
  readSchemaVersion,
  readTotals,
  type BackupPlace,
  type Totals,
} from './backup.js'
import type { Store } from '../clickhouse/client.js'
import type { Embedded } from '../clickhouse/embedded/embedded.js'
import type { Writer } from '../writer/writer.js'
import { MINUTE_MS, HOUR_MS } from '../model/time.js'

/** What the database held at one moment, between two batches. */
export interface Snapshot {
  readonly place: BackupPlace
  /** where the files are; null on a remote server */
  readonly folder: string | null
  readonly database: string
  /** number of the newest migration */
  readonly schema: number
  readonly takenAt: string
  readonly totals: Totals
  readonly bytes: number
}

export interface SnapshotParts {
  readonly config: Config
  readonly store: Store
  readonly embedded: Embedded | null
  /** Resolves when everything acknowledged is in ClickHouse. */
  readonly settle: () => Promise<void>
  readonly writer: Writer
  readonly dataDir: string
}

/** parts that hold corrected events are written anew, the corrected columns only */
const APPLY_MS = HOUR_MS
/** for the batch in hand to be taken; else ClickHouse is away, and there is nothing to back up */
const WAIT_MS = MINUTE_MS

/** folder of the embedded engine's backups in a data directory */
const backupsDir = (dataDir: string): string => join(dataDir, 'clickhouse', 'backups')

/**
 * Takes a snapshot while the service goes on. Everything acknowledged before is in it. The writer waits
 * only while ClickHouse decides what belongs to it (milliseconds), so that events and rollups agree.
 */
export function createSnapshots(
  parts: SnapshotParts,
): (tell: (progress: string) => void) => Promise<Snapshot> {
  let isBusy = false
  return async (tell) => {
    if (isBusy) throw new Error('another backup is being made')
    isBusy = true
    try {
      return await takeSnapshot(parts, tell)
    } finally {
      isBusy = false
    }
  }
}

async function takeSnapshot(
  { config, store, embedded, settle, writer, dataDir }: SnapshotParts,
  tell: (progress: string) => void,
): Promise<Snapshot> {
  const place = placeOf(config, embedded !== null)
  const folder = embedded === null ? null : join(backupsDir(dataDir), place.name)
  if (embedded !== null) {
    // what a command left behind that was ended halfway
    await rm(backupsDir(dataDir), { recursive: true, force: true })
    await mkdir(backupsDir(dataDir), { recursive: true, mode: 0o700 })
  }
  tell('writing what is acknowledged')
  await settle()
  await applyCorrections(store, { timeoutMs: APPLY_MS })
  const { totals, schema, takenAt, done } = await writer.between(async () => {
    // those that came meanwhile
    await applyCorrections(store, { timeoutMs: APPLY_MS })
    const held = { totals: await readTotals(store), schema: await readSchemaVersion(store) }
    const begun = await beginBackup(store, place)
    return { ...held, ...begun, takenAt: new Date().toISOString() }
  }, AbortSignal.timeout(WAIT_MS))
  tell('copying')
  const bytes = await done
  return { place, folder, database: store.database, schema, takenAt, totals, bytes }
}

/** @throws Error when this program can't tell ClickHouse where to put it */
function placeOf(config: Config, isEmbedded: boolean): BackupPlace {
  const name = `backup-${randomBytes(8).toString('hex')}`
  if (isEmbedded) return { kind: 'file', name }
  if (config.clickhouseCluster !== '')
    throw new Error('a cluster is backed up with BACKUP … ON CLUSTER; see the guide to operations')
  if (config.clickhouseBackupDisk === '')
    throw new Error(
      'CLICKHOUSE_BACKUP_DISK names no disk of the ClickHouse server; see the guide to operations',
    )
  return { kind: 'disk', disk: config.clickhouseBackupDisk, name }
}
