import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { childrenOf } from './processes.js'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const GONE_MAX_MS = 5_000
const STEP_MS = 10

/**
 * Creates one folder for all temporary files. When this process ends, normally, by an error or by a signal, it removes
 * that folder and kills all processes it has started. A folder given by `--data` is then in the state of a power
 * failure, from which the service and the bench can continue.
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

/** Parents come before their children, so that no killed process is restarted. */
const descendantsOf = (pid: number): number[] =>
  childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)])

function endAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // The process has ended.
    }
  }
  const sleeping = new Int32Array(new SharedArrayBuffer(4))
  for (let waitedMs = 0; waitedMs < GONE_MAX_MS && pids.some(isAlive); waitedMs += STEP_MS)
    Atomics.wait(sleeping, 0, 0, STEP_MS)
}

/** A zombie (state Z) has closed all of its files. */
function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}
