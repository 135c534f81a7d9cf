/** Random events, and random queries that tell them apart. */
import * as fc from 'fast-check'
import {
  EVERYTHING,
  allOf,
  anyOf,
  type BuiltinField,
  type Comparison,
  type Query,
  type TextTest,
  type ValueTest,
} from '../../src/query/ast.js'
import {
  END_MS,
  ENVIRONMENTS,
  HOSTS,
  SOURCES,
  TEMPLATES,
  TRACES,
  WORDS,
  one,
} from './event-data.js'
import type { Model, ModelEvent } from './query-model.js'

const builtin = (name: BuiltinField) => ({ kind: 'builtin', name }) as const
const field = (name: BuiltinField, test: fc.Arbitrary<ValueTest>): fc.Arbitrary<Query> =>
  fc
    .array(test, { minLength: 1, maxLength: 2 })
    .map((tests) => ({ kind: 'field', field: builtin(name), tests }))
const equal = (...texts: readonly string[]): fc.Arbitrary<ValueTest> =>
  one(...texts).map((text) => ({ kind: 'equal', text }))
const prefix = (...texts: readonly string[]): fc.Arbitrary<ValueTest> =>
  one(...texts).map((text) => ({ kind: 'prefix', text }))
const regex = (...patterns: readonly string[]): fc.Arbitrary<TextTest> =>
  one(...patterns).map((pattern) => ({ kind: 'regex', pattern }))
const range = (...texts: readonly string[]): fc.Arbitrary<ValueTest> =>
  fc.tuple(one(...texts), one(...texts)).map(([from, to]) => ({ kind: 'range', from, to }))
const comparison = one<Comparison>('>', '>=', '<', '<=')
const attribute = one(
  'region',
  'status',
  'user',
  'user.id',
  'user.a.b',
  'user.x.y',
  'user.x',
  'host',
  'wé"ird',
  'none',
  'region.id',
  'many254',
  'many255',
  'err.stack',
  'severity',
  'tag.count',
  'error.message',
  'request.error',
  'note',
).map((name) => ({ kind: 'attribute', name }) as const)

const textTest: fc.Arbitrary<TextTest> = fc.oneof(
  one(
    ...WORDS,
    'bob',
    '10',
    '0.0.9',
    '10.0.0',
    'TIMEOUT',
    'エラー',
    '本',
    'web.Pay-9',
    'Pay',
    'absent',
    '(web-1)',
    'ไทย',
    'λόγος',
    'ошибка',
    'ОШИБКА',
    'HATASI',
    'istanbul',
    '42',
    'cart.ts',
    'fe80::',
  ).map((text) => ({ kind: 'word', text }) as const),
  one(
    'tim',
    'PAY',
    'web-',
    '10.0.',
    'gr',
    '日',
    'エラーc',
    'code',
    '1',
    'abs',
    'jav',
    'σφάλ',
    'ОШ',
    'შეც',
    'İst',
    'cart.',
  ).map((text) => ({ kind: 'prefix', text }) as const),
  one(
    'imeo',
    't t',
    '0.0',
    'Grüße',
    '本語',
    '"quoted"',
    '→',
    String.raw`\new`,
    ' ',
    'refused at',
    'ΦΆΛΜ',
    'γος: ош',
    'ДОМ',
    'ᲪᲓᲝᲛ',
    'stanbul',
    'ATASI',
    'atası',
    'nat',
    'n\tat',
    'CART.TS:42)',
    'message',
    '"code":7',
    'Pay-9 (C:\\n',
  ).map((text) => ({ kind: 'phrase', text }) as const),
  regex(
    'time.ut',
    '^pay',
    '\\d+\\.\\d+',
    '日',
    '(?i)TIMEOUT',
    '^$',
    'o.t$',
    '\\bweb\\b',
    '^Error',
    'new\\)$',
    '\n\tat',
    'stack',
    '^1\\.2',
  ),
)

const clause: fc.Arbitrary<Query> = fc.oneof(
  { weight: 4, arbitrary: textTest.map((test) => ({ kind: 'text', test }) as const) },
  { weight: 2, arbitrary: field('message', textTest) },
  field('severity', fc.oneof(equal('debug', 'error'), range('info', 'error', 'critical'))),
  fc.record({
    kind: fc.constant('compare' as const),
    field: fc.constant(builtin('severity')),
    operator: comparison,
    value: one('debug', 'warning', 'error', 'critical'),
  }),
  field('priority', equal('P1', 'P2', 'P4')),
  field('type', equal('log', 'event', 'trace')),
  field('source', fc.oneof(equal(...SOURCES, 'none'), prefix('r', 'w'), regex('^[cw]'))),
  field('application', fc.oneof(equal('shop', 'empty', 'none'), prefix('sh'))),
  field('environment', fc.oneof(equal(...ENVIRONMENTS, 'staging'), prefix('pro'), regex('^$|a'))),
  field('host', fc.oneof(equal(...HOSTS), prefix('web', 'G'), regex('\\d$'))),
  field('trace', fc.oneof(equal(...TRACES, '4bF92f35', 'zz'), prefix('4BF', 'a'), regex('^4bf'))),
  field('span', fc.oneof(equal('0A', '0b', ''), prefix('0'))),
  field('template', equal(...TEMPLATES, '0000000000000001')),
  field('id', fc.oneof(equal('1', '7', '399', '5000'), range('1', '100', '300'))),
  field('count', fc.oneof(equal('1', '2', '8', '9'), range('1', '3', '9'))),
  fc.record({
    kind: fc.constant('compare' as const),
    field: one(builtin('count'), builtin('id')),
    operator: comparison,
    value: one('0', '1', '2', '3', '8', '200'),
  }),
  one('30m', '2h', '150m', '1d').map((text): Query => ({
    kind: 'field',
    field: builtin('new'),
    tests: [{ kind: 'equal', text }],
  })),
  one<BuiltinField>(
    'trace',
    'span',
    'host',
    'environment',
    'template',
    'application',
    'severity',
  ).map((name): Query => ({ kind: 'has', field: builtin(name) })),
  { weight: 2, arbitrary: attribute.map((name): Query => ({ kind: 'has', field: name })) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('field' as const),
      field: attribute,
      tests: fc.array(
        fc.oneof(
          equal('1', '5.0', '42', '500', '007', '7', 'eu', 'true', '', 'bob', 'a', '日本', 'ΛΌΓΟΣ'),
          equal('5e2', '0', 'eu"west\\/1'),
          prefix('e', '5', '日', 'éé'),
          regex('^eu', 'Pay'),
          range('-2', '5', '500', '1e3', '-0.25', '12.5'),
        ),
        { minLength: 1, maxLength: 2 },
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('compare' as const),
      field: attribute,
      operator: comparison,
      value: one('-1.5', '-0.25', '1', '5', '12.5', '499.5', '1e2'),
    }),
  },
)

/** Queries that tell these events apart. */
export const anyTellingQuery: fc.Arbitrary<Query> = fc.letrec<{ query: Query }>((tie) => ({
  query: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 3, arbitrary: clause },
    { weight: 1, arbitrary: fc.constant(EVERYTHING) },
    { weight: 2, arbitrary: tie('query').map((node) => ({ kind: 'not', node }) as const) },
    { weight: 5, arbitrary: fc.array(tie('query'), { minLength: 2, maxLength: 4 }).map(allOf) },
    { weight: 3, arbitrary: fc.array(tie('query'), { minLength: 2, maxLength: 3 }).map(anyOf) },
  ),
})).query

const APPLICATIONS = { shop: ['web', 'cart'], shipping: ['ship'], empty: [] }
/** The second template was merged into the first, which was seen long before. */
const REDIRECTS = { '00000000000000bb': '00000000000000aa' }

const redirects = Object.entries(REDIRECTS).map(([from, into]) => ({ from, into }))

/** What the names in the queries stand for. */
export const NAMES = {
  redirects,
  applications: Object.entries(APPLICATIONS).map(([name, sources]) => ({
    name,
    sources: [...sources],
  })),
  templateAliases: (id: string): readonly string[] => {
    const root = REDIRECTS[id as keyof typeof REDIRECTS] ?? id
    return [root, ...redirects.filter(({ into }) => into === root).map(({ from }) => from)]
  },
}

export function modelOf(events: readonly ModelEvent[]): Model {
  const firstSeenMs = new Map<string, number>()
  for (const { templateId, tsMs } of events) {
    const root = REDIRECTS[templateId as keyof typeof REDIRECTS] ?? templateId
    firstSeenMs.set(root, Math.min(tsMs, firstSeenMs.get(root) ?? Infinity))
  }
  return { applications: APPLICATIONS, redirects: REDIRECTS, firstSeenMs, endMs: END_MS }
}
