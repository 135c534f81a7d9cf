import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The text of a file under `schema/`; found from `src/` and from `build/` alike. */
export const readSchema = (path: string): string =>
  readFileSync(new URL(import.meta.resolve(`#schema/${path}`)), 'utf8')

/** The `.sql` files of a folder under `schema/`, in the order of their names. */
export function listSchema(folder: 'migrations' | 'queries'): readonly string[] {
  // Resolving needs a file's name, present or not.
  const directory = fileURLToPath(new URL('.', import.meta.resolve(`#schema/${folder}/any.sql`)))
  return readdirSync(directory)
    .filter((name) => name.endsWith('.sql'))
    .sort()
}
