import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { cp, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'

export interface HashedFile {
  /** Relative to the directory, with `/`. */
  readonly path: string
  readonly bytes: number
  /** Hex. */
  readonly sha256: string
}

/** Lists every file below a directory, in the order of their paths. */
export async function listFiles(dir: string): Promise<readonly string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
    .toSorted()
}

export async function hashFile(dir: string, path: string): Promise<HashedFile> {
  const hash = createHash('sha256')
  let bytes = 0
  const chunks: AsyncIterable<Buffer> = createReadStream(join(dir, path), {
    highWaterMark: 1024 * 1024,
  })
  for await (const chunk of chunks) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { path, bytes, sha256: hash.digest('hex') }
}

/** Flushes every file and directory below `dir` to the disk. */
export async function syncTree(dir: string): Promise<void> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
  for (const path of [...paths, dir]) {
    const file = await open(path, 'r')
    try {
      await file.sync()
    } finally {
      await file.close()
    }
  }
}

/** Moves a directory, also to another file system. */
export async function moveTree(from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EXDEV')) throw error
    await cp(from, to, { recursive: true })
    await rm(from, { recursive: true })
  }
}

/** Whether a path does not exist, or is an empty directory. */
export async function isFree(dir: string): Promise<boolean> {
  const found = await stat(dir).catch(() => null)
  if (found === null) return true
  return found.isDirectory() && (await readdir(dir)).length === 0
}

/** Deletes everything in a directory, but not the directory itself. */
export async function emptyOut(dir: string): Promise<void> {
  for (const name of await readdir(dir).catch(() => []))
    await rm(join(dir, name), { recursive: true, force: true })
}
