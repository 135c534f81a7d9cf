import { cpSync, mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

export interface ProgramCopy {
  readonly dir: string
  /** The path of its main file. */
  readonly main: string
}

/** Copies the built program, so that it can be changed. */
export function copyProgram(name: string): ProgramCopy {
  const dir = mkdtempSync(join(tmpdir(), `${name}-`))
  const whole = { recursive: true, dereference: true }
  for (const built of ['src', 'ui'])
    cpSync(join(ROOT, 'build', built), join(dir, 'build', built), whole)
  cpSync(join(ROOT, 'schema'), join(dir, 'schema'), whole)
  for (const linked of ['package.json', 'src', 'node_modules'])
    symlinkSync(join(ROOT, linked), join(dir, linked))
  return { dir, main: join(dir, 'build', 'src', 'main.js') }
}
