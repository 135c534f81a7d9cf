/** Binds a value to a new parameter. @returns its placeholder */
export type Bind = (type: string, value: unknown) => string

export interface Condition {
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
}

/** Builds a condition whose parameters are named `prefix` and a number. */
export function bound(prefix: string, write: (bind: Bind) => string): Condition {
  const params: Record<string, unknown> = {}
  const sql = write((type, value) => {
    const name = `${prefix}${Object.keys(params).length}`
    params[name] = value
    return `{${name}:${type}}`
  })
  return { sql, params }
}

/** Renames all parameters of a fragment, so that it can be combined with another one in a statement. */
export const renamed = ({ sql, params }: Condition, prefix: string): Condition => ({
  sql: sql.replaceAll(/\{(\w+):/g, (_, name: string) => `{${prefix}${name}:`),
  params: Object.fromEntries(Object.entries(params).map(([name, value]) => [prefix + name, value])),
})
