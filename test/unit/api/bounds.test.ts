import { Type, type TSchema } from '@sinclair/typebox'
import { test } from 'tap'
import { sizeFaults } from '../../../src/api/bounds.js'
import { isMultipart } from '../../../src/api/route.js'
import { allRoutes } from '../../../src/api/routes.js'
import { createValidator, type FieldError } from '../../../src/api/validation.js'

const schemasOf = (route: (typeof allRoutes)[number]): readonly [string, TSchema][] => {
  const { body } = route
  const fields = body === null ? null : isMultipart(body) ? body.fields : body
  return [
    ['query', route.query],
    ...(route.params === null ? [] : [['path', route.params] as [string, TSchema]]),
    ...(fields === null ? [] : [['body', fields] as [string, TSchema]]),
  ]
}

/** The lists and texts of a schema without an upper bound. */
function unbounded(schema: TSchema, path: string): readonly string[] {
  const inner = [
    ...Object.entries((schema['properties'] ?? {}) as Record<string, TSchema>),
    ...((schema['anyOf'] ?? schema['allOf'] ?? []) as TSchema[]).map((one) => ['', one] as const),
    ...(schema['items'] === undefined ? [] : [['[]', schema['items'] as TSchema] as const]),
  ].flatMap(([name, one]) => unbounded(one, `${path}.${name}`))
  if (schema['type'] === 'array' && schema['maxItems'] === undefined) return [...inner, path]
  if (schema['type'] !== 'string') return inner
  const isBounded =
    schema['maxLength'] !== undefined ||
    schema['const'] !== undefined ||
    schema['format'] === 'uuid' ||
    // The length of such a pattern is fixed.
    /^\^\[[^\]]+\]\{\d+\}\$$/.test(String(schema['pattern'] ?? ''))
  return isBounded ? inner : [...inner, path]
}

test('every list and every text that a request may hold has an upper bound', async (t) => {
  t.ok(allRoutes.length > 50)
  for (const route of allRoutes)
    for (const [place, schema] of schemasOf(route))
      t.strictSame(unbounded(schema, place), [], `${route.id} ${place}`)
})

test('wrong values without number have few errors, in every query', async (t) => {
  const validator = createValidator()
  for (const route of allRoutes) {
    const names = Object.keys(route.query.properties)
    if (names.length === 0) continue
    for (const text of ['x,'.repeat(2500), 'x'.repeat(100_000), ',x'.repeat(100)]) {
      const errors: FieldError[] = []
      validator.texts('query', route.query)({ getAll: () => [text] }, errors)
      t.ok(errors.length <= 100 * names.length, `${route.id}: ${errors.length} errors`)
    }
  }
})

test('sizes are compared with the schema before anything else is', async (t) => {
  const schema = Type.Object({
    list: Type.Array(Type.String({ maxLength: 3 }), { maxItems: 2 }),
    name: Type.Union([Type.String({ maxLength: 3 }), Type.Null()]),
    inner: Type.Optional(Type.Object({ ids: Type.Array(Type.Integer(), { maxItems: 1 }) })),
  })
  for (const [value, paths] of [
    [{ list: ['a', 'b'], name: 'abc' }, []],
    [{ list: ['a', 'b', 'c'], name: 'abc' }, ['list']],
    [{ list: ['a', 'long'], name: 'long' }, ['list.1', 'name']],
    [{ list: 5, name: null, inner: { ids: [1, 2] } }, ['inner.ids']],
    [{ name: '\u{1f600}\u{1f600}\u{1f600}' }, []],
    [{ name: '\u{1f600}'.repeat(4) }, ['name']],
    [Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`k${i}`, 1])), ['']],
    [null, []],
    [[1, 2, 3], []],
  ] as const)
    t.strictSame(
      sizeFaults(schema, value).map(({ path }) => path),
      paths,
    )
  const many = { list: Array.from({ length: 2 }, () => 'long'), name: 'x'.repeat(1e6) }
  t.equal(sizeFaults(schema, many).length, 3)
  const wide = Type.Array(Type.String({ maxLength: 1 }), { maxItems: 1000 })
  t.ok(
    sizeFaults(
      wide,
      Array.from({ length: 1000 }, () => 'xx'),
    ).length <= 20,
  )
})

test('a value that is nested without end has one fault, wherever it stands', async (t) => {
  const nested = (levels: number, open: string, close: string): unknown =>
    JSON.parse(`${open.repeat(levels)}1${close.repeat(levels)}`)
  const validator = createValidator()
  for (const schema of [
    Type.String({ maxLength: 9 }),
    Type.Array(Type.Integer(), { maxItems: 9 }),
    Type.Unknown(),
  ])
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const check = validator.json(Type.Object({ email: schema }))
      const errorsOf = (levels: number): readonly FieldError[] => {
        const errors: FieldError[] = []
        check({ email: nested(levels, open, close) }, errors)
        return errors
      }
      t.match(errorsOf(100_000), [{ path: '', message: /nested deeper than 32 levels/ }])
      t.match(errorsOf(32), [{ message: /nested deeper/ }], 'with the object around it')
      t.notOk(errorsOf(31).some(({ message }) => message.includes('nested')))
    }
})
