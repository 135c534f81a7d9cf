import { nameOf } from '../query/fields.js'
import type { BuiltinField, Field } from '../query/ast.js'
import { attributeText } from './attribute-condition.js'
import { bound, type Condition } from './bind.js'
import type { Redirects } from './filter.js'
import { mapped } from './row-condition.js'

/** What the values of some fields stand for. */
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
 * A key of a field in a row of `events`. Keys are grouped as they are stored, which is several times faster than to make texts
 * of all of them.
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

/** SQL by which rows with equal keys of a field are grouped together with their bucket: of texts it is a hash of 128 bits. */
export const groupOf = (field: Field | null, key: string): string =>
  field === null || (field.kind === 'builtin' && NUMBERED.includes(field.name))
    ? key
    : `sipHash128(${key})`

interface TextOf {
  /** SQL of the key. */
  readonly key: string
  /** Of the parameters' names. */
  readonly prefix: string
  readonly names: FieldNames
}

/** The text that a key of a field stands for, '' for none. Different keys may have the same text. */
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
