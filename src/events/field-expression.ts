import { bound, type Condition } from './bind.js'
import { attributeText } from './attribute-condition.js'
import { mapped } from './row-condition.js'
import type { Redirects } from './filter.js'
import { nameOf } from '../query/fields.js'
import type { BuiltinField, Field } from '../query/ast.js'

/** What the values of some fields stand for. */
export interface FieldNames {
  readonly redirects: Redirects
  readonly applications: readonly {
    readonly name: string
    readonly sources: readonly string[]
  }[]
}

const COLUMNS: Partial<Readonly<Record<BuiltinField, string>>> = {
  severity: 'toString(severity)',
  priority: 'toString(priority)',
  type: 'toString(type)',
  source: 'toString(source)',
  environment: 'toString(environment)',
  host: 'toString(host)',
  trace: 'trace_id',
  span: 'span_id',
}

/** The built-in fields whose values can be counted. */
export const COUNTED_FIELDS = [
  'severity',
  'priority',
  'type',
  'source',
  'application',
  'environment',
  'host',
  'template',
  'trace',
  'span',
] as const satisfies readonly BuiltinField[]

export const isCounted = (field: Field): boolean =>
  field.kind === 'attribute' || COUNTED_FIELDS.some((name) => name === field.name)

/**
 * The text of a field in a row of `events`, '' where it has none.
 *
 * @param prefix of the parameters' names
 */
export function fieldText(field: Field, prefix: string, names: FieldNames): Condition {
  return bound(prefix, (bind) => {
    if (field.kind === 'attribute') return `ifNull(${attributeText(field.name, bind)}, '')`
    const column = COLUMNS[field.name]
    if (column !== undefined) return column
    if (field.name === 'template') {
      const root = mapped(names.redirects, bind)
      return `if(template_id = 0, '', leftPad(lower(hex(${root})), 16, '0'))`
    }
    if (field.name !== 'application') throw new Error(`bug: ${nameOf(field)} is not counted`)
    const pairs = names.applications.flatMap(({ name, sources }) =>
      sources.map((source) => [source, name] as const),
    )
    const sources = bind(
      'Array(String)',
      pairs.map(([source]) => source),
    )
    const applications = bind(
      'Array(String)',
      pairs.map(([, name]) => name),
    )
    return `transform(toString(source), ${sources}, ${applications}, '')`
  })
}
