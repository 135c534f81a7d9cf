/**
 * Sends a signal to one process.
 *
 * Only this way in tests: `process.kill(0)` is the whole process group, the runner of the tests and whoever started
 * it among them, so a process that isn't there (null) has to be an error.
 *
 * @returns false when the process has ended already
 * @throws Error when there is no process to name
 */
export function signal(pid: number | null | undefined, name: NodeJS.Signals | 0): boolean {
  if (pid === null || pid === undefined || !(pid > 1) || pid === process.pid)
    throw new Error(`no process to send ${name} to: ${pid}`)
  try {
    return process.kill(pid, name)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false
    throw error
  }
}
