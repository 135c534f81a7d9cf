import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const PROGRAM = fileURLToPath(new URL('../../support/end-loading-threads.js', import.meta.url))

void test('a process outlives threads that are ended while they load', async (t) => {
  // threads refuse this flag
  const args = ['--max-old-space-size=1000', PROGRAM]
  const { stdout, stderr, status, signal } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  t.same({ stdout, status, signal }, { stdout: 'all ended\n', status: 0, signal: null }, stderr)
})
