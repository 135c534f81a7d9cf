import * as fc from 'fast-check'

// oxlint-disable typescript/no-explicit-any -- a JSON Schema, read as a client of the API reads it
type Schema = any

/** What has broken services before, for any place. */
export const HOSTILE_TEXTS: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\r\nX-Injected: 1',
  '\ud800',
  '\u{1f600}'.repeat(50),
  '%00',
  '%zz',
  '../../etc/passwd',
  '..%2f..%2f',
  "' OR '1'='1",
  "'; DROP TABLE events; --",
  '{x:String}',
  '\\',
  '"',
  '`',
  '${7*7}',
  '<script>alert(1)</script>',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'true',
  '-1',
  '0',
  '1e309',
  'NaN',
  '9007199254740993',
  '18446744073709551616',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
  '2026-02-30T25:61:61Z',
  '1970-01-01T00:00:00Z',
  '-271821-04-20T00:00:00Z',
  'x'.repeat(5_000),
  'a,b,c,,,',
  '*',
  '"unclosed',
  'time*out',
  '(((((((((((((((((((((',
  '[[:alpha:]]{1000}',
  'ﬀ İ ß',
]

const HOSTILE_VALUES: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e300,
  9_007_199_254_740_991,
  [],
  {},
  [[[[[[[[]]]]]]]],
  { __proto__: null },
  { $ne: null },
  Array.from({ length: 2000 }, () => 1),
  ...HOSTILE_TEXTS,
]

/** Any value, whatever is asked for. */
export const hostile: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(...HOSTILE_VALUES),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.jsonValue({ maxDepth: 3 }),
)

export interface Pool {
  /** ids, names and cursors that replies have shown */
  readonly known: string[]
}

/** Values of a schema mostly, with something else in any place now and then. */
export function fromSchema(schema: Schema, components: Schema, pool: Pool): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 12, arbitrary: proper(schema ?? {}, components, pool) },
    { weight: 1, arbitrary: hostile },
  )
}

function proper(schema: Schema, components: Schema, pool: Pool): fc.Arbitrary<unknown> {
  if (typeof schema.$ref === 'string') {
    const name = schema.$ref.split('/').at(-1)
    return proper(components.schemas[name], components, pool)
  }
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum)
  const choices = schema.anyOf ?? schema.oneOf
  if (Array.isArray(choices))
    return fc.oneof(...choices.map((choice) => proper(choice, components, pool)))
  if (Array.isArray(schema.allOf)) return proper(schema.allOf[0], components, pool)
  return BY_TYPE[String(schema.type)]?.(schema, components, pool) ?? hostile
}

const BY_TYPE: Readonly<
  Record<string, (schema: Schema, components: Schema, pool: Pool) => fc.Arbitrary<unknown>>
> = {
  object: ({ properties = {}, required = [] }, components, pool) =>
    fc.record(
      Object.fromEntries(
        Object.entries<Schema>(properties).map(([name, property]) => [
          name,
          fromSchema(property, components, pool),
        ]),
      ),
      { requiredKeys: required },
    ),
  array: ({ items, maxItems = 5 }, components, pool) =>
    fc.array(fromSchema(items ?? {}, components, pool), { maxLength: Math.min(5, maxItems) }),
  string: textOf,
  integer: ({ minimum = -5, maximum = 1000 }) =>
    fc.oneof(fc.integer({ min: minimum, max: maximum }), fc.constantFrom(minimum, maximum)),
  number: () => fc.double({ noNaN: true }),
  boolean: () => fc.boolean(),
  null: () => fc.constant(null),
}

function textOf({ format, pattern, maxLength = 40 }: Schema, _: Schema, pool: Pool) {
  const known = fc.nat().map((at) => pool.known[at % Math.max(1, pool.known.length)] ?? 'none')
  const made: fc.Arbitrary<string> =
    format === 'uuid'
      ? fc.uuid()
      : format === 'date-time'
        ? fc.date({ noInvalidDate: true }).map((at) => at.toISOString())
        : typeof pattern === 'string'
          ? fc.constantFrom('abc', '0123456789abcdef', '2026-11-21', 'P1')
          : fc.string({ maxLength: Math.min(maxLength, 60) })
  return fc.oneof({ weight: 3, arbitrary: known }, { weight: 3, arbitrary: made })
}
