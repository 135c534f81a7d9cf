import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { childrenOf } from './processes.js'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const GONE_MAX_MS = 5_000
const STEP_MS = 10

/**
 * Gives all that is temporary one folder. When this process ends, by itself, by an error or by a signal, that folder is
 * removed and no process that was started is left. A folder that is kept (`--data`) is in the state of a power cut then,
 * which the service and the bench go on from.
 */
export function openWorkplace(): void {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  process.env['TMPDIR'] = folder
  process.once('exit', () => {
    endAll(descendantsOf(process.pid))
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  for (const signal of SIGNALS)
    process.once(signal, () => {
      process.stderr.write(`bench: ${signal}, everything is ended\n`)
      process.exit(128 + constants.signals[signal])
    })
}

/** Those that start others come before them, so that nothing is started anew. */
const descendantsOf = (pid: number): number[] =>
  childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)])

function endAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // ended meanwhile
    }
  }
  const sleeping = new Int32Array(new SharedArrayBuffer(4))
  for (let waitedMs = 0; waitedMs < GONE_MAX_MS && pids.some(isAlive); waitedMs += STEP_MS)
    Atomics.wait(sleeping, 0, 0, STEP_MS)
}

/** One that has ended and that nobody has asked for yet (Z) holds no file any more. */
function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}
