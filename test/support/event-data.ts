/** Random events of logs, and how they are stored. */
import * as fc from 'fast-check'
import { cutMessage } from '../../bench/data/cut-message.js'
import { toConstantText } from '../../src/model/stored-message.js'
import { HOUR_MS, MINUTE_MS } from '../../src/model/time.js'
import { toWords } from '../../src/model/words.js'
import { tagColumns } from './landing.js'
import type { ModelEvent } from './query-model.js'

export const END_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
export const FROM_MS = END_MS - 5 * HOUR_MS

export const one = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)

export const WORDS = [
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
  'ΣΦΆΛΜΑ',
  'σφάλμα',
  'ΛΌΓΟΣ',
  'Ошибка',
  'შეცდომა',
  'ᲨᲔᲪᲓᲝᲛᲐ',
  'İstanbul',
  'hatası',
  'fe80::1',
] as const
export const HOSTS = ['web-1', 'web-9', 'db.local', 'Grüße-1', ''] as const
export const TRACES = ['4bf92f35', '4BF92F35', 'ab-12', '10.0.0.9', '日本', ''] as const
export const SOURCES = ['web', 'cart', 'ship', 'rare'] as const
export const ENVIRONMENTS = ['prod', 'production', 'dev', 'qa', ''] as const
export const TEMPLATES = [
  '00000000000000aa',
  '00000000000000bb',
  '00000000000000cc',
  'ffffffffffffff01',
]
/** The frames make a stack longer than an indexed value may be. */
const STACKS = [
  'Error: refused at 10.0.0.9\n\tat web.Pay-9 (C:\\new)',
  'java.lang.Timeout: 日本語 "quoted"',
  `ΛΌΓΟΣ: Ошибка\n${'\tat shop.Cart (cart.ts:42)\n'.repeat(60)}caused by 1.2.3`,
] as const

interface Thrown {
  readonly tags: object
  /** The texts of the exception. */
  readonly texts: readonly string[]
}

/** The tags in which loggers keep an exception. */
const FORMS: readonly ((a: string, b: string) => Thrown)[] = [
  (a) => ({ tags: { err: { stack: a } }, texts: [a] }),
  (a, b) => ({ tags: { 'exception.message': b, 'exception.stacktrace': a }, texts: [a, b] }),
  (a, b) => ({ tags: { error: { message: b, code: 7, stack_trace: a } }, texts: [a, b] }),
  (a, b) => ({
    tags: { thrown: { name: b, extendedStackTrace: [{ class: a, line: 9 }] } },
    texts: [a, b],
  }),
  (a, b) => ({ tags: { Stack_Trace: [a, b, null, 5] }, texts: [a, b] }),
]

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
  -0.25,
  26e19,
  '12.50',
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
      severity: tagValue,
      'tag.count': tagValue,
      note: one<string>(...STACKS, ...WORDS),
      request: fc.record({ error: one<string>(...STACKS, ...WORDS) }),
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
    thrown: fc.option(
      fc
        .tuple(one(...FORMS), one<string>(...STACKS), one<string>(...WORDS))
        .map(([form, stack, text]) => form(stack, text)),
      { freq: 1 },
    ),
    count: one(1, 1, 1, 2, 3, 8),
    cut: fc.tuple(fc.nat(9), fc.nat(9)),
  })
  .map(({ cut: [a, b], thrown, ...made }) => {
    const [from, to] = [Math.min(a, b), Math.max(a, b)].map((tenths) =>
      Math.floor((made.message.length * tenths) / 9),
    )
    const literals = [made.message.slice(0, from), made.message.slice(to)]
    const own = { ...made.tags, ...thrown?.tags }
    return { ...made, literals, tags: own, exceptions: thrown?.texts ?? [] }
  })

/** The row of `landing` of an event's first occurrence. */
export const firstRow = ({ literals, ...event }: MadeEvent, id: number) => {
  const constantText = toConstantText(literals)
  const variables = cutMessage(constantText, event.message)
  const thrown = new Set(toWords(event.exceptions.join('\n')))
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
    search_words: event.exceptions.length === 0 ? own : `${own}\n${[...thrown].join(' ')}`,
    ...tagColumns(event.tags),
  }
}

/** Events, each template of which begins at a time of its own. */
export const makeEvents = (seed: number, count: number): readonly MadeEvent[] =>
  fc.sample(anyEvent, { seed, numRuns: count }).map((one) => {
    const startMs = FROM_MS + TEMPLATES.indexOf(one.templateId) * 75 * MINUTE_MS
    return one.tsMs < startMs ? { ...one, templateId: TEMPLATES[0] ?? '' } : one
  })
