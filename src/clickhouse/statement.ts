import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

declare const paramsOf: unique symbol
declare const rowOf: unique symbol

/** A query of `schema/queries/`, with the types of its parameters and rows. */
export interface Statement<Params, Row> {
  readonly name: string
  readonly sql: string
  readonly [paramsOf]?: Params
  readonly [rowOf]?: Row
}

/**
 * Reads `schema/queries/<name>.sql`.
 *
 * The file's `params:` and `rows:` lines repeat the types; a test compares the former with the placeholders.
 *
 * @throws Error at the start of the program, when the file is missing
 */
export const statement = <Params, Row>(name: string): Statement<Params, Row> => ({
  name,
  sql: readSchema(`queries/${name}.sql`),
})

/** Reads a file under `schema/`, found from `src/` and from `build/` alike. */
export const readSchema = (path: string): string =>
  readFileSync(new URL(import.meta.resolve(`#schema/${path}`)), 'utf8')

/** Lists the `.sql` files of a folder under `schema/`, in the order of their names. */
export function listSchema(folder: 'migrations' | 'queries'): readonly string[] {
  // `import.meta.resolve` needs a file name, whether or not the file exists.
  const directory = fileURLToPath(new URL('.', import.meta.resolve(`#schema/${folder}/any.sql`)))
  return readdirSync(directory)
    .filter((name) => name.endsWith('.sql'))
    .sort()
}
