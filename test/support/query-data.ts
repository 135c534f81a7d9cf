/** Random events, and random queries that tell them apart. */
import * as fc from 'fast-check'
import { cutMessage } from '../../bench/data/cut-message.js'
import { toConstantText } from '../../src/model/stored-message.js'
import { HOUR_MS, MINUTE_MS } from '../../src/model/time.js'
import { toWords } from '../../src/model/words.js'
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
import { tagColumns } from './landing.js'
import type { Model, ModelEvent } from './query-model.js'

export const END_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
export const FROM_MS = END_MS - 5 * HOUR_MS

const one = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)

const WORDS = [
  'timeout',
  'Timeout',
  'pay',
  'payment',
  '10.0.0.9',
  '10.0.0.5',
  '10.0.0.95',
  '1.10.0.0.9',
  'web',
  'web-1',
  '9',
  'user=bob',
  'Grüße',
  'grüßen',
  '日本語',
  '東京エラー',
  'エラーcode42発生',
  'code42',
  'ภาษาไทย',
  'v1.2.3',
  '1.2',
  '"quoted"',
  String.raw`C:\new`,
  'x_y',
  '→bob',
  '(bob)',
  'हिन्दी',
] as const
const HOSTS = ['web-1', 'web-9', 'db.local', 'Grüße-1', ''] as const
const TRACES = ['4bf92f35', '4BF92F35', 'ab-12', '10.0.0.9', '日本', ''] as const
const SOURCES = ['web', 'cart', 'ship', 'rare'] as const
const ENVIRONMENTS = ['prod', 'production', 'dev', 'qa', ''] as const
const TEMPLATES = ['00000000000000aa', '00000000000000bb', '00000000000000cc', 'ffffffffffffff01']
const EXCEPTIONS = [
  '',
  '',
  '',
  'Error: refused at 10.0.0.9\n\tat web.Pay-9 (C:\\new)',
  'java.lang.Timeout: 日本語 "quoted"',
] as const

const message = fc
  .array(fc.tuple(one(...WORDS), one(' ', ' ', ', ', ': ', '/', '.', '', '-', ' → ')), {
    minLength: 1,
    maxLength: 4,
  })
  .map((parts) => parts.map(([word, separator]) => word + separator).join(''))

/** Its JSON is as long as that of an indexed value may be. */
const LONG = 'é'.repeat(511)
const MANY = Object.fromEntries(
  Array.from({ length: 300 }, (_, i) => [i === 299 ? 'none' : `many${i}`, i === 250 ? [1, 5] : i]),
)

const tagValue = one<unknown>(
  1,
  5,
  42,
  -1.5,
  500,
  '500',
  '500.0',
  '5e2',
  '-0',
  '007',
  'eu-west',
  'eu"west\\/1',
  'eu',
  '',
  null,
  true,
  [1, 'a'],
  [['eu'], { id: 42, deep: [{ x: 'bob' }] }, null],
  [],
  LONG,
  `${LONG}x`,
)
const tags = fc.oneof(
  fc.constant({}),
  fc.record(
    {
      region: tagValue,
      status: tagValue,
      user: fc.oneof(
        tagValue,
        fc.record(
          { id: tagValue, 'a.b': tagValue, name: one('bob', '日本') },
          { requiredKeys: [] },
        ),
        fc.record({ x: fc.record({ y: tagValue }) }),
        fc.constant({ x: { y: null } }),
      ),
      'user.id': tagValue,
      'user.x.y': tagValue,
      host: tagValue,
      'wé"ird': tagValue,
      ['n'.repeat(129)]: tagValue,
      '': tagValue,
    },
    { requiredKeys: [] },
  ),
  fc.constant(MANY),
)

/** An event that a generator made; its message is cut into constant text and variable. */
export type MadeEvent = Omit<ModelEvent, 'id'> & { readonly literals: readonly string[] }

const anyEvent: fc.Arbitrary<MadeEvent> = fc
  .record({
    tsMs: fc.integer({ min: 0, max: 5 * 3600 - 1 }).map((s) => FROM_MS + s * 1000),
    source: one(...SOURCES),
    type: one('log', 'log', 'event'),
    severity: one('DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'),
    priority: one('P1', 'P2', 'P3', 'P4'),
    environment: one(...ENVIRONMENTS),
    host: one(...HOSTS),
    message,
    traceId: one(...TRACES),
    spanId: one('0a', '0B', ''),
    templateId: one(...TEMPLATES),
    tags,
    exception: one(...EXCEPTIONS),
    count: one(1, 1, 1, 2, 3, 8),
    cut: fc.tuple(fc.nat(9), fc.nat(9)),
  })
  .map(({ cut: [a, b], ...made }) => {
    const [from, to] = [Math.min(a, b), Math.max(a, b)].map((tenths) =>
      Math.floor((made.message.length * tenths) / 9),
    )
    const literals = [made.message.slice(0, from), made.message.slice(to)]
    return made.exception === ''
      ? { ...made, literals }
      : { ...made, literals, tags: { err: { stack: made.exception } } }
  })

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
  ).map((text) => ({ kind: 'word', text }) as const),
  one('tim', 'PAY', 'web-', '10.0.', 'gr', '日', 'エラーc', 'code', '1', 'abs', 'jav').map(
    (text) => ({ kind: 'prefix', text }) as const,
  ),
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
  ).map((text) => ({ kind: 'phrase', text }) as const),
  regex('time.ut', '^pay', '\\d+\\.\\d+', '日', '(?i)TIMEOUT', '^$', 'o.t$', '\\bweb\\b'),
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
          equal('1', '5.0', '42', '500', '007', '7', 'eu', 'true', '', 'bob', 'a', '日本'),
          equal('5e2', '0', 'eu"west\\/1'),
          prefix('e', '5', '日', 'éé'),
          regex('^eu', 'Pay'),
          range('-2', '5', '500', '1e3'),
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
      value: one('-1.5', '1', '5', '499.5', '1e2'),
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

/** The row of `landing` of an event's first occurrence. */
export const firstRow = ({ literals, ...event }: MadeEvent, id: number) => {
  const constantText = toConstantText(literals)
  const variables = cutMessage(constantText, event.message)
  const isAscii = /^\p{ASCII}*$/u.test(event.message + event.host + event.traceId)
  const own = isAscii ? '' : toWords(`${event.message} ${event.host} ${event.traceId}`).join(' ')
  return {
    id,
    is_new: 1,
    n: 1,
    received_at: new Date(END_MS).toISOString(),
    ts: new Date(event.tsMs).toISOString(),
    source: event.source,
    type: event.type,
    severity: event.severity,
    priority: event.priority,
    environment: event.environment,
    host: event.host,
    trace_id: event.traceId,
    span_id: event.spanId,
    template_id: BigInt(`0x${event.templateId}`).toString(),
    constant_text: variables === null ? '' : constantText,
    variables: variables ?? event.message,
    search_words:
      event.exception === '' ? own : `${own}\n${[...new Set(toWords(event.exception))].join(' ')}`,
    ...tagColumns(event.tags),
  }
}

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

/** Events, each template of which begins at a time of its own. */
export const makeEvents = (seed: number, count: number): readonly MadeEvent[] =>
  fc.sample(anyEvent, { seed, numRuns: count }).map((one) => {
    const startMs = FROM_MS + TEMPLATES.indexOf(one.templateId) * 75 * MINUTE_MS
    return one.tsMs < startMs ? { ...one, templateId: TEMPLATES[0] ?? '' } : one
  })

export function modelOf(events: readonly ModelEvent[]): Model {
  const firstSeenMs = new Map<string, number>()
  for (const { templateId, tsMs } of events) {
    const root = REDIRECTS[templateId as keyof typeof REDIRECTS] ?? templateId
    firstSeenMs.set(root, Math.min(tsMs, firstSeenMs.get(root) ?? Infinity))
  }
  return { applications: APPLICATIONS, redirects: REDIRECTS, firstSeenMs, endMs: END_MS }
}
