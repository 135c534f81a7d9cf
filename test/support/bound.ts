import { spawnSync } from 'node:child_process'

const BINDER = ['setpriv', '--pdeathsig', 'KILL', '--']
const hasBinder = spawnSync('setpriv', ['--pdeathsig', 'KILL', '--', 'true']).status === 0

/**
 * The command that runs a program which ends with this process, even when this one is killed: a test that is cut leaves
 * nothing behind. The kernel of Linux does it; elsewhere the program runs as it is.
 */
export const bound = (command: string, args: readonly string[] = []): [string, string[]] => {
  const [first = command, ...rest] = hasBinder ? [...BINDER, command, ...args] : [command, ...args]
  return [first, rest]
}
