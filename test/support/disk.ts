import { open, type FileHandle } from 'node:fs/promises'
import type { Test } from 'tap'

/** Makes the writes of every file fail after eleven bytes, as on a full disk. */
export async function fillDisk(
  t: Test,
  how: 'for a while' | 'for good' = 'for a while',
): Promise<{ free: () => void }> {
  const probe = await open('/dev/null', 'r')
  const handles = Object.getPrototypeOf(probe) as Pick<FileHandle, 'writev' | 'truncate'> // of node itself
  await probe.close()
  const { writev, truncate } = handles
  const free = (): void => {
    Object.assign(handles, { writev, truncate })
  }
  handles.writev = async function (this: FileHandle, buffers, position) {
    const [first] = buffers
    if (first !== undefined)
      await this.write(Buffer.from(first.buffer, first.byteOffset, 11), 0, 11, position)
    throw Object.assign(new Error('ENOSPC: no space left on device, writev'), { code: 'ENOSPC' })
  }
  if (how === 'for good') handles.truncate = () => Promise.reject(new Error('EIO'))
  t.teardown(free)
  return { free }
}
