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
import { basename, join } from 'node:path'

/** The data directory can't be used; the message says why and what would help. */
class DataDirError extends Error {
  override readonly name = 'DataDirError'
}

export interface DataDir {
  readonly path: string
  /** who works on this directory, the same from start to start */
  readonly instanceId: string
  /** A secret made on the first call and kept in a file only its owner can read. */
  secret(name: string): string
  /** Gives the directory up. */
  release(): void
}

/** The file that says that a restoration has begun and not ended. */
export const RESTORE_MARK = 'restore-unfinished'

/**
 * Takes a data directory for this process.
 *
 * @throws DataDirError when another process holds it, it can't be written, or a backup was not restored
 *   to its end there
 */
export function openDataDir(path: string, { isRestoring = false } = {}): DataDir {
  const lock = join(path, 'lock')
  const mark = join(path, RESTORE_MARK)
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    chmodSync(path, 0o700)
    if (isRestoring) writeFileSync(mark, '', { mode: 0o600, flush: true })
    else if (existsSync(mark))
      throw new DataDirError(
        `DATA_DIR ${path} holds a backup that was not restored to its end: empty it and restore again`,
      )
    takeLock(path, lock)
    return toDataDir(path, lock)
  } catch (error) {
    if (error instanceof DataDirError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new DataDirError(`DATA_DIR ${path} can't be used: ${reason}`)
  }
}

function toDataDir(path: string, lock: string): DataDir {
  return {
    path,
    instanceId: readOrMake(join(path, 'instance-id'), randomUUID),
    secret: (name) => readOrMake(join(path, name), () => randomBytes(36).toString('base64url')),
    release: () => rmSync(lock, { force: true }),
  }
}

/** those who start at the same moment may each find that the other was first */
const TRIES = 20

function takeLock(path: string, lock: string): void {
  const mine = `${lock}.${process.pid}`
  writeFileSync(mine, identityOf(process.pid), { mode: 0o600, flush: true })
  try {
    for (let attempt = 0; attempt < TRIES; attempt++)
      if (tryLink(mine, lock) || takeOver(path, lock, mine)) return
    throw new DataDirError(`DATA_DIR ${path} is being taken by another process; try again`)
  } finally {
    rmSync(mine, { force: true })
  }
}

/**
 * Takes the lock of a dead process. Nobody removes it: two who did could each remove the other's. Instead
 * each claims to come after the dead one, under a name that only one can get; a claim of one who died as
 * well is followed the same way. The claim then takes the place of the lock in one step, and counts only
 * if the lock is still the one that was found dead.
 *
 * @returns false when somebody else was faster
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

/** What those left behind who died while they took the lock. */
function removeDeadClaims(path: string, lock: string): void {
  for (const name of readdirSync(path).filter((one) => one.startsWith(`${basename(lock)}.`))) {
    const holder = readHolder(join(path, name))
    // a file that somebody is about to write looks broken too; nobody writes to a claim
    const isWhole = holder?.pid !== 0 || name.includes('.after-')
    if (holder !== null && isWhole && !isAlive(holder)) rmSync(join(path, name), { force: true })
  }
}

/** Making a link is atomic: of two processes one succeeds. */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

interface Holder {
  readonly pid: number
  readonly identity: string
}

/**
 * A lock is whole before it gets its name: one without a process is what a power cut has left of it.
 *
 * @returns null when there is none
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
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
  return identityOf(holder.pid) === holder.identity
}

/** The process id with its start time and the machine's where the system tells them: ids are used again. */
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

/** On disk before it is used: a power cut must not leave an empty file. */
function readOrMake(file: string, make: () => string): string {
  const known = readIfThere(file)
  if (known !== '') {
    // it may come from a copy that was made with other rights
    chmodSync(file, 0o600)
    return known
  }
  const made = make()
  const fresh = `${file}.new`
  writeFileSync(fresh, made, { mode: 0o600, flush: true })
  renameSync(fresh, file)
  return made
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}
