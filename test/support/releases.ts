import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/*
 * What a released version left behind: `NAME.json` with the hash of each migration file and what was stored, and `NAME.tar.gz` with a
 * data directory whose write-ahead log still holds events. `npm run test:release` makes both, before a release.
 */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const DIR = join(ROOT, 'test', 'fixtures', 'releases')
const MIGRATIONS = join(ROOT, 'schema', 'migrations')

export interface Release {
  readonly name: string
  /** SHA-256 by the file of a migration. */
  readonly migrations: Readonly<Record<string, string>>
  /** Occurrences by source, those in the write-ahead log too. */
  readonly counts: Readonly<Record<string, number>>
  /** The source whose events wait in the write-ahead log. */
  readonly waiting: string
  /** An event whose priority was corrected to P1. */
  readonly correctedId: number
  readonly rule: string
}

const nameOf = (file: string): string => file.replace(/\.json$/, '')

export const readReleases = (): readonly Release[] =>
  readdirSync(DIR)
    .filter((file) => file.endsWith('.json'))
    .toSorted()
    .map((file) => {
      const facts = JSON.parse(readFileSync(join(DIR, file), 'utf8')) as Omit<Release, 'name'> // written below
      return { name: nameOf(file), ...facts }
    })

export const migrationHashes = (): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(MIGRATIONS)
      .toSorted()
      .map((file) => [
        file,
        createHash('sha256')
          .update(readFileSync(join(MIGRATIONS, file)))
          .digest('hex'),
      ]),
  )

const archiveOf = (name: string): string => join(DIR, `${name}.tar.gz`)

/** Unpacks the data directory of a release. */
export function unpackRelease({ name }: Release, dataDir: string): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  execFileSync('tar', ['-xzf', archiveOf(name), '-C', dataDir])
}

export function writeRelease({ name, ...facts }: Release, dataDir: string): void {
  mkdirSync(DIR, { recursive: true })
  const archive = archiveOf(name)
  if (existsSync(archive)) rmSync(archive)
  execFileSync('tar', [
    '--sort=name',
    '--mtime=@0',
    '--owner=0',
    '--group=0',
    '--exclude=./lock',
    '--exclude=./control.sock',
    // Random bytes, which the next start makes anew.
    '--exclude=./wal/reserve',
    '-czf',
    archive,
    '-C',
    dataDir,
    '.',
  ])
  writeFileSync(join(DIR, `${name}.json`), `${JSON.stringify(facts, null, 2)}\n`)
}
