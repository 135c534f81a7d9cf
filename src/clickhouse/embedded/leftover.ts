import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface LeftoverOptions {
  readonly clickhouseDir: string
  /** Whether the caller owns the directory. An engine that still runs there has lost its service and is killed. */
  readonly isOurs: boolean
  /** How long an engine may take to end. */
  readonly waitMs: number
}

const STEP_MS = 50

/**
 * Waits for the end of an engine that an earlier run left behind. It ends as soon as it notices that its service
 * is gone; an engine that hangs never notices.
 *
 * @returns false if one still runs
 */
export async function endLeftover(options: LeftoverOptions): Promise<boolean> {
  const { clickhouseDir, isOurs, waitMs } = options
  for (const untilMs = performance.now() + waitMs; ; await sleep(STEP_MS)) {
    const pid = await readPid(clickhouseDir)
    if (pid === null || !(await isEngine(pid, clickhouseDir))) return true
    if (isOurs) kill(pid)
    if (performance.now() >= untilMs) return false
  }
}

/** ClickHouse's lock file names the process that holds it. */
async function readPid(clickhouseDir: string): Promise<number | null> {
  const text = await readFile(join(clickhouseDir, 'status'), 'utf8').catch(() => '')
  const pid = Number(/^PID: (\d+)$/m.exec(text)?.[1] ?? 0)
  return pid > 0 && pid !== process.pid ? pid : null
}

/** Process ids are reused, so this checks that the process was started on this directory. Linux only. */
async function isEngine(pid: number, clickhouseDir: string): Promise<boolean> {
  const commandLine = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')
  return commandLine.split('\0').includes(Buffer.from(clickhouseDir).toString('latin1'))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has ended meanwhile.
  }
}
