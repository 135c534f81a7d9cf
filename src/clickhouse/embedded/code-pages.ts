import { readFileSync, realpathSync } from 'node:fs'
import type * as Ffi from 'ffi-rs'

const MADV_DONTNEED = 4

/**
 * Takes the pages of these programs' code and constants out of this process's memory. Starting the engine touches
 * three times as many as serving does. A page that is needed again comes back from the kernel's cache of files in a
 * microsecond. Linux only. Needs the library `libc` to be open.
 */
export function dropCodePages(ffi: typeof Ffi, programs: readonly string[]): void {
  const { I32, I64 } = ffi.DataType
  const paths = new Set(programs.map((path) => realpathSync(path)))
  for (const line of readFileSync('/proc/self/maps', 'latin1').split('\n')) {
    const mapping = /^(\w+)-(\w+) r(-x|--)p (\w+) \S+ \d+ +(\S.*)$/.exec(line)
    const [, from = '', to = '', kind, offset = '', path = ''] = mapping ?? []
    // Read-only data at the start of the file are constants, which can be read again. Other read-only pages hold addresses that the
    // dynamic linker wrote when the library was loaded; they would be lost.
    if (!paths.has(path) || (kind === '--' && Number.parseInt(offset, 16) !== 0)) continue
    const start = Number.parseInt(from, 16)
    ffi.load({
      library: 'libc',
      funcName: 'madvise',
      retType: I32,
      paramsType: [I64, I64, I32],
      paramsValue: [start, Number.parseInt(to, 16) - start, MADV_DONTNEED],
    })
  }
}
