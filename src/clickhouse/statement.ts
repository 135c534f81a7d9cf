import { readSchema } from './schema.js'

declare const paramsOf: unique symbol
declare const rowOf: unique symbol

/** A query of `schema/queries/`, with what it takes and what its rows are. */
export interface Statement<Params, Row> {
  readonly name: string
  readonly sql: string
  readonly [paramsOf]?: Params
  readonly [rowOf]?: Row
}

/**
 * Reads `schema/queries/<name>.sql`.
 *
 * The types are claims that the file's `params:` and `rows:` lines repeat; a test compares the
 * former with the placeholders.
 *
 * @throws when the file is missing, which the start of the program shows
 */
export const statement = <Params, Row>(name: string): Statement<Params, Row> => ({
  name,
  sql: readSchema(`queries/${name}.sql`),
})
