import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'

const workplace = new URL('../../../bench/lib/workplace.js', import.meta.url).href

/** Makes a folder and starts a process that ignores what asks it to end; then prints both and waits, or ends. */
const script = (end: string): string => `
  import { spawn } from 'node:child_process'
  import { mkdtempSync, writeFileSync } from 'node:fs'
  import { tmpdir } from 'node:os'
  import { openWorkplace } from '${workplace}'
  openWorkplace()
  const folder = mkdtempSync(tmpdir() + '/data-')
  writeFileSync(folder + '/part', 'x')
  const stubborn = 'process.on("SIGTERM", () => {}); process.on("SIGINT", () => {}); setInterval(() => {}, 1000); console.log("up")'
  const child = spawn(process.execPath, ['-e', stubborn], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  child.stdout.once('data', () => {
    console.log(JSON.stringify({ folder, pid: child.pid }))
    ${end}
  })
`

interface Left {
  readonly folder: string
  readonly pid: number
}

t.test('nothing of a bench is left behind, however it ends', async (t) => {
  for (const [signal, end, code] of [
    ['SIGINT', '', 130],
    ['SIGTERM', '', 143],
    [null, "throw new Error('a scenario failed')", 1],
    [null, 'process.exit(0)', 0],
  ] as const) {
    const argv = ['--input-type=module', '-e', script(end)]
    const bench = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'ignore'] })
    const ended = once(bench, 'exit')
    const [line] = await once(bench.stdout, 'data')
    const left: Left = JSON.parse(String(line))
    if (signal !== null) bench.kill(signal)
    t.same(await ended, [code, null], signal ?? end)
    t.notOk(existsSync(left.folder), 'its folder is gone')
    t.notOk(await livesLong(left.pid), 'its process is gone')
  }
})

/** One that nobody has asked for yet after its end (Z) is no more than a number. */
async function livesLong(pid: number): Promise<boolean> {
  for (let i = 0; i < 200; i++) {
    if (!existsSync(`/proc/${pid}`)) return false
    if (/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))) return false
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return true
}
