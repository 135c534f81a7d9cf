import { nameOf } from '../query/fields.js'
import type { BuiltinField, Field } from '../query/ast.js'
import { attributeText } from './attribute-condition.js'
import { bound, type Condition } from './bind.js'
import type { Redirects } from './filter.js'
import { mapped } from './row-condition.js'

/** The names behind the keys of some fields. */
export interface FieldNames {
  readonly redirects: Redirects
  readonly applications: readonly {
    readonly name: string
    readonly sources: readonly string[]
  }[]
}

/** The built-in fields whose values can be counted, by their columns. */
const COLUMNS: Partial<Readonly<Record<BuiltinField, string>>> = {
  severity: 'severity',
  priority: 'priority',
  type: 'type',
  source: 'source',
  application: 'source',
  environment: 'environment',
  host: 'host',
  template: 'template_id',
  trace: 'trace_id',
  span: 'span_id',
}

export const COUNTED_FIELDS: readonly string[] = Object.keys(COLUMNS)

export const isCounted = (field: Field): boolean =>
  field.kind === 'attribute' || COLUMNS[field.name] !== undefined

/**
 * The key of a field in a row of `events`. Rows are grouped by stored keys, which is several times
 * faster than to convert all of them to text.
 *
 * @param prefix of the parameters' names
 */
export function fieldKey(field: Field, prefix: string): Condition {
  if (field.kind === 'attribute')
    return bound(prefix, (bind) => `ifNull(${attributeText(field.name, bind)}, '')`)
  const column = COLUMNS[field.name]
  if (column === undefined) throw new Error(`bug: ${nameOf(field)} is not counted`)
  return { sql: column, params: {} }
}

/** The fields whose keys are numbers. */
const NUMBERED: readonly BuiltinField[] = ['severity', 'priority', 'type', 'template']

/** SQL that groups rows by the key of a field together with their bucket. Text keys are replaced by a hash of 128 bits. */
export const groupOf = (field: Field | null, key: string): string =>
  field === null || (field.kind === 'builtin' && NUMBERED.includes(field.name))
    ? key
    : `sipHash128(${key})`

interface TextOf {
  /** SQL of the key. */
  readonly key: string
  /** The prefix of the parameters' names. */
  readonly prefix: string
  readonly names: FieldNames
}

/** The text of a key of a field, '' for none. Different keys may have the same text. */
export function keyText(field: Field, { key, prefix, names }: TextOf): Condition {
  return bound(prefix, (bind) => {
    if (field.kind === 'attribute') return key
    if (field.name === 'template') {
      const root = mapped(key, names.redirects, bind)
      return `if(${key} = 0, '', leftPad(lower(hex(${root})), 16, '0'))`
    }
    if (field.name !== 'application') return `toString(${key})`
    const pairs = names.applications.flatMap(({ name, sources }) =>
      sources.map((source) => [source, name] as const),
    )
    const [sources, applications] = [0, 1].map((at) =>
      bind(
        'Array(String)',
        pairs.map((pair) => pair[at] ?? ''),
      ),
    )
    return `transform(toString(${key}), ${sources}, ${applications}, '')`
  })
}
