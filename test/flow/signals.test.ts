import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { childOf, ingest, KNOWN, runBehind, startService, tempDataDir } from '../support/service.js'
import { signal } from '../support/signals.js'

const CONTAINER = ['--pid', '--fork', '--kill-child', '--mount-proc']
const BODY = JSON.stringify({ source: 'app', message: 'it runs' })

void test('SIGUSR1 opens no inspector, neither in the service nor in its engine', async (t) => {
  const service = await startService(t, { DATA_DIR: tempDataDir(t), ...KNOWN })
  const engine = childOf(service.pid)
  t.ok(engine, 'the engine is a process of its own')
  for (const pid of [service.pid, engine ?? 0]) signal(pid, 'SIGUSR1')
  t.equal((await ingest(service, BODY)).status, 202, 'both go on')
  t.notMatch(service.log(), /debugger|inspector/i)
  t.equal(await fetch('http://127.0.0.1:9229/json').catch(() => null), null, 'no port is open')
  t.match(await service.stop(), { code: 0 })
})

void test('SIGTERM while it starts ends it, also as the first process of a container', async (t) => {
  const canUnshare = spawnSync('unshare', [...CONTAINER, 'true']).status === 0
  if (!canUnshare) t.comment('no process namespace can be made here')
  const starts = canUnshare ? [[], ['unshare', ...CONTAINER]] : [[]]
  for (const before of starts) {
    const env = { DATA_DIR: tempDataDir(t), ...KNOWN }
    const { pid, hasBegun, ended, kill } = runBehind(before, env)
    t.teardown(kill)
    // The engine runs, and the migration is about to begin.
    while (!hasBegun()) await sleep(5)
    const own = before.length === 0 ? pid : childOf(pid)
    signal(own ?? pid, 'SIGTERM')
    t.match(await ended, { code: 0, signal: null, stdout: '' }, before[0] ?? 'alone')
    const service = await startService(t, env)
    t.equal((await ingest(service, BODY)).status, 202, 'the next start is as good')
    t.match(await service.stop(), { code: 0 })
  }
})
