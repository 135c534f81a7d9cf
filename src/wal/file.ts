import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'

/** Writes a file beside the log, which leaves it alone; it is on disk when this resolves. */
export async function keepBeside(
  dir: string,
  name: string,
  parts: readonly Uint8Array[],
): Promise<void> {
  const file = await open(join(dir, name), 'w', 0o600)
  try {
    await writeAll(file, parts, 0)
    await file.sync()
  } finally {
    await file.close()
  }
  await syncDir(dir)
}

/** A new file is only there after a power cut when its directory is on disk too. */
export async function syncDir(path: string): Promise<void> {
  const dir = await open(path, 'r')
  try {
    await dir.sync()
  } finally {
    await dir.close()
  }
}

export async function writeAll(
  file: FileHandle,
  buffers: readonly Uint8Array[],
  at: number,
): Promise<void> {
  let position = at
  // IOV_MAX is 1024 on Linux
  for (let first = 0; first < buffers.length; first += 1000) {
    let group = buffers.slice(first, first + 1000)
    while (group.length > 0) {
      const { bytesWritten } = await file.writev(group, position)
      position += bytesWritten
      group = afterBytes(group, bytesWritten)
    }
  }
}

/** What a short write left over. */
function afterBytes(buffers: readonly Uint8Array[], written: number): Uint8Array[] {
  let skip = written
  const rest: Uint8Array[] = []
  for (const buffer of buffers) {
    if (skip < buffer.length) rest.push(buffer.subarray(skip))
    skip = Math.max(0, skip - buffer.length)
  }
  return rest
}
