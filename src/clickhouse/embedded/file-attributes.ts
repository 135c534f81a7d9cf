import { close, open } from 'node:fs'
import { promisify } from 'node:util'

/** The numbers are Linux's, the same on x64 and arm64. */
const FS_IOC_GETFLAGS = 0x80086601
const FS_IOC_SETFLAGS = 0x40086602
const FS_SYNC_FL = 8
const FS_TOPDIR_FL = 0x20000
const FLAGS_BYTES = 8

const openFile = promisify(open)
const closeFile = promisify(close)

/**
 * Makes writes synchronous, as `chattr +S` does: to these files, and to files that are created later in these
 * directories, by any process.
 *
 * @returns false if the file system has no such attribute
 */
export const makeSynchronous = (paths: readonly string[]): Promise<boolean> =>
  setFlag(paths, FS_SYNC_FL)

/**
 * Spreads subdirectories that are created later over the block groups of an ext4, as `chattr +T` does. Without it
 * they share the group of their parent.
 *
 * @returns false if the file system has no such attribute
 */
export const spreadSubdirectories = (paths: readonly string[]): Promise<boolean> =>
  setFlag(paths, FS_TOPDIR_FL)

async function setFlag(paths: readonly string[], flag: number): Promise<boolean> {
  if (process.platform !== 'linux') return false
  const ioctl = await loadIoctl()
  let areAll = true
  for (const path of paths) {
    const file = await openFile(path, 'r').catch(nullIfGone)
    if (file === null) continue
    try {
      areAll = addFlag(ioctl, file, flag) && areAll
    } finally {
      await closeFile(file)
    }
  }
  return areAll
}

function nullIfGone(error: unknown): null {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
  throw error
}

type Ioctl = (file: number, request: number, flags: Buffer) => number

async function loadIoctl(): Promise<Ioctl> {
  const { DataType, load, open: openLibrary } = await import('ffi-rs')
  openLibrary({ library: 'libc', path: 'libc.so.6' })
  const { I32, I64, U8Array } = DataType
  return (file, request, flags) =>
    load({
      library: 'libc',
      funcName: 'ioctl',
      retType: I32,
      paramsType: [I32, I64, U8Array],
      paramsValue: [file, request, flags],
    })
}

function addFlag(ioctl: Ioctl, file: number, flag: number): boolean {
  const flags = Buffer.alloc(FLAGS_BYTES)
  if (ioctl(file, FS_IOC_GETFLAGS, flags) !== 0) return false
  const before = flags.readUInt32LE()
  if ((before & flag) !== 0) return true
  flags.writeUInt32LE((before | flag) >>> 0)
  return ioctl(file, FS_IOC_SETFLAGS, flags) === 0
}
