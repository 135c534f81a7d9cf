import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { childOf, KNOWN, tempDataDir } from '../support/service.js'
import { signal } from '../support/signals.js'

const canBind = spawnSync('setpriv', ['--pdeathsig', 'KILL', '--', 'true']).status === 0

void test(
  'a test that is killed leaves no service and no engine behind',
  { skip: canBind ? false : 'needs setpriv of Linux' },
  async (t) => {
    const support = new URL('../support/service.js', import.meta.url).href
    const env = { DATA_DIR: tempDataDir(t), ...KNOWN }
    const program = `
      const { startService } = await import(${JSON.stringify(support)})
      const { pid } = await startService({ teardown() {} }, ${JSON.stringify(env)})
      process.stdout.write(String(pid))`
    const cut = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    t.teardown(() => cut.kill('SIGKILL'))
    const [pid] = (await once(cut.stdout.setEncoding('utf8'), 'data')).map(Number)
    const engine = childOf(pid ?? 0)
    t.ok(signal(pid, 0) && signal(engine, 0), 'both run')
    cut.kill('SIGKILL')
    while (signal(pid, 0) || signal(engine, 0)) await sleep(20)
    t.pass('both have ended')
  },
)
