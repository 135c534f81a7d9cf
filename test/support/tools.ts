import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { MINUTE_MS } from '../../src/model/time.js'

const mustRun = process.env['REQUIRE_SERVERS'] === '1' || process.env['CI'] === 'true'

/** These have the servers and are not in every PATH. */
const FOLDERS = [
  ...(process.env['PATH'] ?? '').split(delimiter),
  '/usr/sbin',
  '/sbin',
  '/lib/systemd',
]

/** @returns the path of a program, null when it is not installed */
function findTool(name: string): string | null {
  for (const folder of FOLDERS) {
    const path = join(folder, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // The program may be in the next folder.
    }
  }
  return null
}

/**
 * For tap's `skip`: false when all are installed, else the reason.
 *
 * @throws Error instead of a reason when REQUIRE_SERVERS=1 or CI=true
 */
export function without(...names: readonly string[]): string | false {
  const missing = names.filter((name) => findTool(name) === null)
  if (missing.length === 0) return false
  const reason = `not installed: ${missing.join(', ')}`
  if (mustRun) throw new Error(reason)
  return reason
}

/** @throws Error when it is not installed */
export function toolPath(name: string): string {
  const path = findTool(name)
  if (path === null) throw new Error(`${name} is not installed`)
  return path
}

interface ToolRun {
  readonly code: number | null
  /** The standard output and the standard error. */
  readonly text: string
}

/** Runs a checker to its end. */
export function runTool(name: string, args: readonly string[]): ToolRun {
  const run = spawnSync(toolPath(name), args, { encoding: 'utf8', timeout: MINUTE_MS })
  return { code: run.status, text: `${run.stdout}${run.stderr}` }
}
