import { readFileSync } from 'node:fs'
import * as ffi from 'ffi-rs'
import { test } from 'tap'
import { dropCodePages } from '../../../../src/clickhouse/embedded/code-pages.js'

/** KiB of this program's code that are in memory. */
function codeInMemory(): number {
  const mappings = readFileSync('/proc/self/smaps', 'latin1').split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)
  const own = mappings.filter((text) => /^\S+ r-xp /.test(text) && text.includes(process.execPath))
  return own.reduce((sum, text) => sum + Number(/^Rss: +(\d+)/m.exec(text)?.[1]), 0)
}

void test(
  'pages of code that are not needed leave the memory of a process that goes on',
  { skip: process.platform === 'linux' ? false : 'only Linux has /proc' },
  (t) => {
    ffi.open({ library: 'libc', path: 'libc.so.6' })
    const before = codeInMemory()
    dropCodePages(ffi, [process.execPath])
    t.ok(codeInMemory() < before)
    t.equal(JSON.stringify({ still: ['alive'] }), '{"still":["alive"]}')
    t.end()
  },
)
