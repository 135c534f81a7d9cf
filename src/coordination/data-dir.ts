import { randomBytes, randomUUID } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'

import { schemaVersions, type SchemaVersions } from '../clickhouse/migrate.js'

class DataDirError extends Error {
  override readonly name = 'DataDirError'
}

export interface DataDir {
  readonly path: string
  /** The id of the instance that uses this directory, the same on every start. */
  readonly instanceId: string
  /** Gives a secret, which the first call creates in a file that only its owner can read. */
  secret(name: string): string
  /** Records that the database has this program's schema; batches in the WAL have that schema from then on. */
  migrated(): void
  release(): void
}

/** A file that exists from the beginning of a restore to its end. */
export const RESTORE_MARKER = 'restore-unfinished'
/** The file with the schema version of the batches in the WAL. */
const SCHEMA_FILE = 'schema-version'

interface OpenOptions {
  readonly isRestoring?: boolean
  readonly schema?: SchemaVersions
}

/**
 * Locks a data directory for this process.
 *
 * @throws DataDirError when another process holds it, it can't be written, it holds files of others, a restore into
 *   it did not finish, or it is of a newer or an unreleased version of the program
 */
export function openDataDir(
  path: string,
  { isRestoring = false, schema = schemaVersions() }: OpenOptions = {},
): DataDir {
  const lock = join(path, 'lock')
  const marker = join(path, RESTORE_MARKER)
  try {
    makeDirectory(path)
    refuseForeign(path)
    chmodSync(path, 0o700)
    if (isRestoring) writeFileSync(marker, '', { mode: 0o600, flush: true })
    else if (existsSync(marker))
      throw new DataDirError(
        `DATA_DIR ${path} holds a backup that was not restored to its end: empty it and restore again`,
      )
    takeLock(path, lock)
    try {
      checkSchema(path, schema)
    } catch (error) {
      rmSync(lock, { force: true })
      throw error
    }
    return toDataDir(path, lock, schema)
  } catch (error) {
    if (error instanceof DataDirError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new DataDirError(`DATA_DIR ${path} can't be used: ${reason}`)
  }
}

/**
 * Creates a directory and its parents. Node's recursive `mkdir` never returns where the system
 * creates none, such as in /proc.
 */
export function makeDirectory(path: string): void {
  if (existsSync(path)) return
  makeDirectory(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
}

/**
 * The files that a process may leave behind when its first start fails. An operator may provide the
 * secrets; a new disk has the last.
 */
const OWN_FIRST_FILES =
  /^(?:lock(?:\..+)?|(?:instance-id|schema-version|jwt-secret|data-key)(?:\.new)?|restore-unfinished|lost\+found)$/

/** Directories for which an operator may have mounted disks of their own. */
const OWN_DISKS: ReadonlySet<string> = new Set(['wal', 'clickhouse'])

const isEmpty = (path: string): boolean =>
  statSync(path).isDirectory() && readdirSync(path).every((name) => name === 'lost+found')

/** Refuses a directory with files of others, because the program changes its mode and writes into it. */
function refuseForeign(path: string): void {
  const names = readdirSync(path)
  if (names.includes('instance-id') || names.includes(SCHEMA_FILE)) return
  const foreign = names.filter(
    (name) => !OWN_FIRST_FILES.test(name) && !(OWN_DISKS.has(name) && isEmpty(join(path, name))),
  )
  if (foreign.length > 0)
    throw new DataDirError(
      `DATA_DIR ${path} holds other files and is no data directory of this program: ` +
        'set DATA_DIR to one that is empty or does not exist',
    )
}

/** Records the schema version of an unused directory, and checks that of a used one. */
function checkSchema(path: string, { first, newest }: SchemaVersions): void {
  const file = join(path, SCHEMA_FILE)
  const isUsed = existsSync(join(path, 'instance-id'))
  const version = Number(readIfThere(file))
  if (version === 0 && !isUsed) writeDurably(file, String(newest))
  else if (!(version >= first))
    throw new DataDirError(
      `DATA_DIR ${path} was made by an unreleased version of this program, which this one can't read: ` +
        'start the version that made it, or restore a backup into another directory',
    )
  else if (version > newest)
    throw new DataDirError(
      `DATA_DIR ${path} has schema version ${version}, and this program knows ${newest}: ` +
        'start the newer program again, or set DATA_DIR to another directory',
    )
}

function toDataDir(path: string, lock: string, { newest }: SchemaVersions): DataDir {
  return {
    path,
    instanceId: readOrMake(join(path, 'instance-id'), randomUUID),
    secret: (name) => readOrMake(join(path, name), () => randomBytes(36).toString('base64url')),
    migrated: () => writeDurably(join(path, SCHEMA_FILE), String(newest)),
    release: () => rmSync(lock, { force: true }),
  }
}

/** Processes that start at the same time may each find that the other was first. */
const TRIES = 20

function takeLock(path: string, lock: string): void {
  const mine = `${lock}.${process.pid}`
  try {
    writeFileSync(mine, identityOf(process.pid), { mode: 0o600, flush: true })
    for (let attempt = 0; attempt < TRIES; attempt++)
      if (tryLink(mine, lock) || takeOver(path, lock, mine)) return
    throw new DataDirError(`DATA_DIR ${path} is being taken by another process; try again`)
  } finally {
    rmSync(mine, { force: true })
  }
}

/**
 * Takes over the lock of a dead process. Removing it would be a race: two processes could each remove the lock
 * of the other. Instead a process links a claim whose name holds the dead process's identity, which only one
 * can create. The claim of a process that died too is succeeded in the same way. The claim then replaces the
 * lock in one rename, and only if the lock is still the dead one.
 *
 * @returns false when another process was faster
 */
function takeOver(path: string, lock: string, mine: string): boolean {
  const dead = readHolder(lock)
  let claim = ''
  for (let last = dead; ; last = readHolder(claim)) {
    if (last === null) return false
    if (isAlive(last))
      throw new DataDirError(
        `DATA_DIR ${path} is in use by process ${last.pid}; stop it or choose another DATA_DIR`,
      )
    claim = `${lock}.after-${last.identity.replaceAll(/[^\w-]+/g, '-')}`
    if (tryLink(mine, claim)) break
  }
  if (readHolder(lock)?.identity !== dead?.identity) {
    rmSync(claim, { force: true })
    return false
  }
  renameSync(claim, lock)
  removeDeadClaims(path, lock)
  return true
}

/** Removes the claims of processes that died while they took the lock. */
function removeDeadClaims(path: string, lock: string): void {
  for (const name of readdirSync(path).filter((one) => one.startsWith(`${basename(lock)}.`))) {
    const holder = readHolder(join(path, name))
    // An incomplete lock file may be one that is being written; a claim never changes after its creation.
    const isWhole = holder?.pid !== 0 || name.includes('.after-')
    if (holder !== null && isWhole && !isAlive(holder)) rmSync(join(path, name), { force: true })
  }
}

/** Creating a link is atomic: of two processes one succeeds. */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
}

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code

interface Holder {
  readonly pid: number
  readonly identity: string
}

/**
 * A lock is written before it gets its name, so only a power failure leaves one without a process id.
 *
 * @returns null when there is no lock
 */
function readHolder(lock: string): Holder | null {
  try {
    const identity = readFileSync(lock, 'latin1')
    const pid = Number.parseInt(identity, 10)
    return pid > 0 ? { pid, identity } : { pid: 0, identity: `broken ${statSync(lock).ino}` }
  } catch {
    return null
  }
}

const isAlive = (holder: Holder): boolean => {
  if (holder.pid === 0) return false
  try {
    process.kill(holder.pid, 0)
  } catch (error) {
    return hasCode(error, 'EPERM')
  }
  return identityOf(holder.pid) === holder.identity
}

/** Adds the process's start time and the boot id where the system gives them, since process ids are reused. */
function identityOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const startTime = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${pid} ${startTime} ${boot}`
  } catch {
    return `${pid}`
  }
}

function readOrMake(file: string, make: () => string): string {
  const known = readIfThere(file)
  if (known !== '') {
    // A copy may have been made with other permissions.
    chmodSync(file, 0o600)
    return known
  }
  const made = make()
  writeDurably(file, made)
  return made
}

/** Flushes a new file before it gets its name: a power failure must not leave an empty one. */
function writeDurably(file: string, text: string): void {
  const temporary = `${file}.new`
  writeFileSync(temporary, text, { mode: 0o600, flush: true })
  renameSync(temporary, file)
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return ''
    throw error
  }
}
