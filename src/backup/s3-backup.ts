/*
 * A backup on S3 has two places there: ClickHouse writes the tables to `backups/`, under a name of its own, and the command puts
 * the manifest, the keys and quarantined rows to `manifests/NAME/`. The manifest names the tables' place and comes last, so that
 * an unfinished backup has none.
 */

import { rmSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { s3Of } from '../settings/cold.js'
import { backup, type CommandOptions } from './backup.js'
import { openBucket, type Bucket } from '../clickhouse/bucket.js'
import { listFiles } from './file-tree.js'
import { checkPath, MANIFEST, readManifest } from './manifest.js'
import { restore, type RestoreOptions } from './restore.js'

const PREFIX = 's3:'

/** The name of a backup on S3, as in `s3:monday`; null for the directory of another one. @throws Error for a bad name */
export function nameOnS3(given: string): string | null {
  if (!given.startsWith(PREFIX)) return null
  const name = given.slice(PREFIX.length)
  if (/^\w[\w.-]{0,99}$/.test(name)) return name
  throw new Error(`${given} is not the name of a backup on S3, such as s3:monday`)
}

export async function backupToS3(
  options: Omit<CommandOptions, 'dir'>,
  name: string,
): Promise<void> {
  const bucket = bucketOf(options)
  if (await bucket.has(`${name}/${MANIFEST}`)) throw new Error(`S3 has a backup ${name} already`)
  await inTemporary(async (dir) => {
    await backup({ ...options, dir, title: `${PREFIX}${name}`, isOnS3: true })
    const files = (await listFiles(dir)).filter((path) => path !== MANIFEST)
    for (const path of [...files, MANIFEST])
      await bucket.put(`${name}/${path}`, new Uint8Array(await readFile(join(dir, path))))
  })
}

/** @throws Error saying what would help; the data directory is empty again */
export async function restoreFromS3(
  options: Omit<RestoreOptions, 'dir'>,
  name: string,
): Promise<void> {
  const bucket = bucketOf(options)
  if (!(await bucket.has(`${name}/${MANIFEST}`)))
    throw new Error(`there is no backup ${name} in S3_URL ${options.config.s3Url}`)
  await inTemporary(async (dir) => {
    const fetchFile = async (path: string): Promise<void> => {
      await mkdir(dirname(join(dir, path)), { recursive: true, mode: 0o700 })
      await writeFile(join(dir, path), await bucket.get(`${name}/${path}`), { mode: 0o600 })
    }
    await fetchFile(MANIFEST)
    for (const { path } of (await readManifest(dir)).files) await fetchFile(checkPath(path))
    await restore({ ...options, dir })
  })
}

function bucketOf({ config }: Pick<CommandOptions, 'config'>): Bucket {
  const s3 = s3Of(config)
  if (s3 !== null) return openBucket(s3)
  throw new Error(
    config.clickhouseUrl === null
      ? 'a backup on S3 needs S3_URL and its keys, as the service has them'
      : 'S3_URL is of the embedded ClickHouse: with CLICKHOUSE_URL, CLICKHOUSE_BACKUP_DISK may name a disk on S3',
  )
}

/** The directory holds keys for a while, so it is also removed when the command is interrupted. */
async function inTemporary(work: (dir: string) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'log-engine-backup-'))
  const end = (signal: NodeJS.Signals): void => {
    rmSync(dir, { recursive: true, force: true })
    process.kill(process.pid, signal)
  }
  process.once('SIGINT', end).once('SIGTERM', end)
  try {
    await work(dir)
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end)
    await rm(dir, { recursive: true, force: true })
  }
}
