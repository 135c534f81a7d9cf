import * as fc from 'fast-check'
import {
  BUILTIN_FIELDS,
  EVERYTHING,
  allOf,
  anyOf,
  type Comparison,
  type Field,
  type Query,
  type TextTest,
  type ValueTest,
} from '../../../src/query/ast.js'

/** Characters that the language gives a meaning, and others. */
const character = fc.constantFrom(
  ...Array.from('ab1Z_.-/\\*"():,<>=@ \t\n\u00a0éß日ー🔥x0'),
  'OR',
  '..',
  '\ud800',
)
const text = fc.string({ unit: character, maxLength: 6 })
const word = text.filter((one) => /[\p{L}\p{N}]/u.test(one))
const keyword = fc.constantFrom('OR', 'AND', 'NOT', '\\OR', '/a/', '-a', '1..2', 'tag.host')

/** Patterns as the parser gives them: a slash has no backslash, and all that is open is closed. */
const pattern = fc
  .array(
    fc.constantFrom('a', '\\d+', '/', '\\.', '[/"]', '(?:b|c)?', ' ', 'x{2,3}', '\\\\', 'é', ','),
    { minLength: 1, maxLength: 4 },
  )
  .map((parts) => parts.join(''))

const textTest: fc.Arbitrary<TextTest> = fc.oneof(
  fc.oneof(word, keyword).map((one) => ({ kind: 'word', text: one }) as const),
  fc.oneof(word, keyword).map((one) => ({ kind: 'prefix', text: one }) as const),
  fc
    .oneof(text, keyword)
    .filter((one) => one !== '')
    .map((one) => ({ kind: 'phrase', text: one }) as const),
  pattern.map((one) => ({ kind: 'regex', pattern: one }) as const),
)

const attribute: fc.Arbitrary<Field> = fc
  .oneof(
    fc.constantFrom('user.id', 'http.status', 'app.kubernetes.io/name', 'host', 'tag.host', 'OR'),
    text.filter((one) => one !== '' && !BUILTIN_FIELDS.some((name) => name === one)),
    fc.constantFrom(...BUILTIN_FIELDS),
  )
  .map((name) => ({ kind: 'attribute', name }))
const builtin = (...names: (typeof BUILTIN_FIELDS)[number][]): fc.Arbitrary<Field> =>
  fc.constantFrom(...names).map((name) => ({ kind: 'builtin', name }))

const equal = (one: string): ValueTest => ({ kind: 'equal', text: one })
const severity = fc.constantFrom('debug', 'info', 'warning', 'error', 'critical')
const integer = fc.nat().map(String)
const number = fc.oneof(integer, fc.constantFrom('-1', '0.5', '1e3', '-2.25E-4'))

const range = (ends: fc.Arbitrary<string>): fc.Arbitrary<ValueTest> =>
  fc.tuple(ends, ends).map(([from, to]) => ({ kind: 'range', from, to }))

const valueText: fc.Arbitrary<ValueTest> = fc.oneof(
  fc.oneof(text, keyword).map(equal),
  fc
    .oneof(text, keyword)
    .filter((one) => one !== '')
    .map((one) => ({ kind: 'prefix', text: one }) as const),
)
const valueRegex: fc.Arbitrary<ValueTest> = pattern.map((one) => ({ kind: 'regex', pattern: one }))

const fieldWith = (
  field: fc.Arbitrary<Field>,
  test: fc.Arbitrary<ValueTest>,
  maxLength = 3,
): fc.Arbitrary<Query> =>
  fc.record({
    kind: fc.constant('field' as const),
    field,
    tests: fc.array(test, { minLength: 1, maxLength }),
  })

const comparison = fc.constantFrom<Comparison>('>', '>=', '<', '<=')
const compare = (field: fc.Arbitrary<Field>, value: fc.Arbitrary<string>): fc.Arbitrary<Query> =>
  fc.record({ kind: fc.constant('compare' as const), field, operator: comparison, value })

const clause: fc.Arbitrary<Query> = fc.oneof(
  textTest.map((test) => ({ kind: 'text', test }) as const),
  fieldWith(builtin('message'), textTest),
  fieldWith(
    builtin('source', 'environment', 'host', 'trace', 'span'),
    fc.oneof(valueText, valueRegex),
  ),
  fieldWith(builtin('application'), valueText),
  fieldWith(attribute, fc.oneof(valueText, valueRegex, range(number))),
  fieldWith(builtin('severity'), fc.oneof(severity.map(equal), range(severity))),
  fieldWith(builtin('priority'), fc.constantFrom('P1', 'P4').map(equal)),
  fieldWith(builtin('type'), fc.constantFrom('log', 'event').map(equal)),
  fieldWith(builtin('id', 'count'), fc.oneof(integer.map(equal), range(integer))),
  fieldWith(builtin('template'), fc.constantFrom('e37d3b03b6a56cd1').map(equal)),
  fieldWith(builtin('new'), fc.constantFrom('1h', '90d').map(equal), 1),
  compare(builtin('severity'), severity),
  compare(builtin('id', 'count'), integer),
  compare(attribute, number),
  fc
    .oneof(builtin('severity', 'application', 'trace', 'count'), attribute)
    .map((field) => ({ kind: 'has', field }) as const),
)

/** Queries as the parser makes them. */
export const anyQuery: fc.Arbitrary<Query> = fc.letrec<{ query: Query }>((tie) => ({
  query: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    clause,
    fc.constant(EVERYTHING),
    tie('query').map((node) => ({ kind: 'not', node }) as const),
    fc.array(tie('query'), { minLength: 2, maxLength: 4 }).map(allOf),
    fc.array(tie('query'), { minLength: 2, maxLength: 4 }).map(anyOf),
  ),
})).query
