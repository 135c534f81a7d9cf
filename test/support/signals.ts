/**
 * Sends a signal to one process.
 *
 * Tests send signals by this function only: `process.kill(0)` ends the whole process group with the test runner, so
 * a missing process (null) must be an error.
 *
 * @returns false when the process has ended already
 * @throws Error for null
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
