import { randomBytes, randomUUID } from 'node:crypto'
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

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

/**
 * Takes a data directory for this process.
 *
 * @throws DataDirError when another process holds it or it can't be written
 */
export function openDataDir(path: string): DataDir {
  const lock = join(path, 'lock')
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    chmodSync(path, 0o700)
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

function takeLock(path: string, lock: string): void {
  const mine = `${lock}.${process.pid}`
  writeFileSync(mine, identityOf(process.pid), { mode: 0o600 })
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      if (tryLink(mine, lock)) return
      const holder = readHolder(lock)
      if (holder !== null && isAlive(holder))
        throw new DataDirError(
          `DATA_DIR ${path} is in use by process ${holder.pid}; stop it or choose another DATA_DIR`,
        )
      rmSync(lock, { force: true })
    }
    throw new DataDirError(`DATA_DIR ${path} is being taken by another process; try again`)
  } finally {
    rmSync(mine, { force: true })
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

function readHolder(lock: string): Holder | null {
  try {
    const identity = readFileSync(lock, 'utf8')
    return { pid: Number.parseInt(identity, 10), identity }
  } catch {
    return null
  }
}

const isAlive = (holder: Holder): boolean => {
  try {
    process.kill(holder.pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
  return identityOf(holder.pid) === holder.identity
}

/** The process id with its start time where the system tells it: ids are used again. */
function identityOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const startTime = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
    return `${pid} ${startTime}`
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
