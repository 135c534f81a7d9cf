import {
  type Arbitrary,
  array,
  assert,
  asyncProperty,
  constant,
  constantFrom,
  dictionary,
  integer,
  jsonValue,
  nat,
  oneof,
  option,
  string,
  tuple,
  uint8Array,
} from 'fast-check'
import { NO_VERDICTS, withFound } from '../../../src/ingest/verdicts.js'
import { isDeepStrictEqual } from 'node:util'
import { deflateSync } from 'node:zlib'
import { test } from 'tap'
import { decodeIngest } from '../../../src/ingest/formats/ndjson.js'
import { Zones } from '../../../src/ingest/formats/zone.js'
import { EXCEPTION_NAMES } from '../../../src/model/exceptions.js'
import type { CanonicalEvent, EventSink } from '../../../src/model/event.js'
import type { BlockResult, BodyTask, ProtocolFormat, RowBlock } from '../../../src/ingest/block.js'
import type { RecordTaker } from '../../../src/ingest/record-rows.js'
import { replyBytes, type ReplyText } from '../../../src/ingest/reply-text.js'
import { parserOf } from '../../../src/ingest/protocols/table.js'
import { PRIORITIES } from '../../../src/ingest/protocols/syslog/priority.js'
import { readBatch, RecordBatch } from '../../../src/ingest/record-batch.js'
import type { Identity } from '../../../src/ingest/block-encoder.js'
import { DELIMITER, wholeMessage } from '../../../src/model/stored-message.js'
import { cpuOfBoth } from '../../support/cpu.js'
import { lokiPush, protobufLogs } from '../../support/protobuf.js'
import { readNative } from '../../support/native.js'
import {
  bytesOf,
  CONSTANT_TEXTS,
  createBlock,
  createEncoder,
  createEncoders,
  encode,
  MAX_MESSAGE,
  readBothWays,
  shown,
} from './encode-bodies.js'
import { collect, ingestContext, NOW } from './formats/collect.js'

const ZONES = new Zones()

/** Decodes a body with the parser. */
function parsed(
  body: Uint8Array,
  zone: string,
): {
  readonly events: CanonicalEvent[]
  readonly rejected: number
} {
  const events: CanonicalEvent[] = []
  let rejected = 0
  decodeIngest(
    body,
    {
      nowMs: NOW,
      toUtc: ZONES.of(zone),
      environment: 'production',
      source: null,
      defaultSource: 'nameless',
      requestSource: '',
      params: '',
      maxMessageBytes: MAX_MESSAGE,
      maxRows: Number.POSITIVE_INFINITY,
    },
    { event: (_line, event) => events.push(event), reject: () => rejected++ },
  )
  return { events, rejected }
}

const textsOf = (block: RowBlock | null, column: string): readonly string[] =>
  block === null
    ? []
    : (readNative(block.bytes).columns.find(({ name }) => name === column)?.values ?? []).map(
        String,
      )

/** Whether constant texts and variables together are the messages of the events. */
function isWhole(block: RowBlock | null, events: readonly CanonicalEvent[]): boolean {
  const values = textsOf(block, 'variables')
  const stored = new Set(
    textsOf(block, 'constant_text').map((text, i) => wholeMessage(text, values[i] ?? '')),
  )
  return events.every(
    // Events with the same dedup key have the message of the first.
    ({ message, dedupKey }) => dedupKey !== '' || stored.has(Buffer.from(message).toString()),
  )
}

// Messages that match a constant text or differ from such a one by a character.
const value = constantFrom(
  '17',
  '',
  '10.0.0.1:80',
  'naïve 日本',
  ' closed',
  ' closed after ',
  'v'.repeat(31),
  'v'.repeat(33),
  'v'.repeat(390),
  DELIMITER,
)
const splittable = tuple(
  constantFrom(...CONSTANT_TEXTS),
  array(value, { minLength: 2, maxLength: 2 }),
  integer({ min: -60, max: 40 }),
  constantFrom('', 'x', ' ', DELIMITER),
).map(([constantText, values, at, other]) => {
  const message = wholeMessage(constantText, values.join(DELIMITER))
  return at < 0 ? message : message.slice(0, at) + other + message.slice(at + 1)
})

// Plain texts, texts with escapes, texts beyond ASCII, texts that resemble other members.
const text = oneof(
  constantFrom(
    'connection from 10.0.0.1 closed after 17 ms',
    'ERROR: disk /dev/sda1 is 97 % full',
    'say "hi" to C:\\temp\\x',
    'tab\there',
    'naïve Grüße 日本',
    '',
    ' ',
    'x'.repeat(MAX_MESSAGE),
    'y'.repeat(MAX_MESSAGE + 1),
    '\u001b[31mred\u001b[0m',
    'two\nlines',
  ),
  string({ unit: 'grapheme' }),
  string({ unit: 'binary' }),
)
// Times of the usual length, and texts that resemble times.
const nearTime = tuple(
  integer({ min: 0, max: 23 }),
  constantFrom(...'0 1 5 9 . : - T Z " \\ , + é'.split(' '), ' '),
).map(([at, other]) => {
  const usual = '2026-11-21T09:28:19.123Z'
  return usual.slice(0, at) + other + usual.slice(at + 1)
})
const time = oneof(
  nearTime,
  constantFrom(
    '2026-11-21T09:28:19.123Z',
    '2026-11-21T09:28:19Z',
    '2026-11-21 09:28:19.1',
    '2026-11-21T10:28:19.123456789+01:00',
    '2026-02-30T00:00:00Z',
    '2024-02-29T23:59:59.999Z',
    '2026-11-21T24:00:00Z',
    '2026-11-21T23:59:60Z',
    '1969-12-31T23:59:59Z',
    '2026-11-23T09:28:19Z',
    '2026-11-21T09:28:19,5Z',
    '2026-11-21T09:28:19.Z',
    'Nov 21 09:28:19',
    '',
    '1763717299',
  ),
  integer({ min: 0, max: 2_000_000_000 }),
  integer({ min: 1_700_000_000_000, max: 1_800_000_000_000 }),
  constantFrom(0, 1_763_717_299_123_456, 999_999_999_999_999, 1.5, -1, 1e20),
)
const tags = oneof(
  dictionary(
    oneof(constantFrom('region', 'pod', '__proto__', 'constructor', '1', 'a b'), string()),
    oneof(constantFrom('eu', 'web-1', true, false, 17, 0, -1, 1.5, null), text, jsonValue()),
  ),
  jsonValue(),
)
const MEMBERS = {
  timestamp: time,
  source: oneof(constantFrom('checkout', 'auth service', 'Zahlung-ü', '', ' '), text),
  severity: oneof(
    constantFrom('INFO', 'warn', 'ERROR', 'notice', 'fatal', 'unknown', '', 'weird', 3, 30, null),
    text,
  ),
  message: oneof(text, splittable),
  host: oneof(constantFrom('web-1', 'h'.repeat(255), 'h'.repeat(256)), text),
  environment: oneof(constantFrom('staging', ''), text),
  type: oneof(constantFrom('log', 'metric', 'trace', 'event', 'span', '', null)),
  trace_id: oneof(constantFrom('4bf92f3577b34da6a3ce929d0e0e4736', 't'.repeat(257)), text),
  span_id: text,
  summary: text,
  dedup_key: oneof(constantFrom('k1', 'k2', ''), text),
  tags,
  schema_version: constant('1.0'),
  msg: text,
} as const

/** The members of a line as texts, in any order, some of them twice. */
const line = array(
  oneof(
    ...Object.entries(MEMBERS).map(([name, value]) =>
      tuple(constant(name), value as Arbitrary<unknown>),
    ),
  ),
  { maxLength: 9 },
).chain((others) =>
  tuple(
    constantFrom('', ' '),
    constantFrom('', ' ', '\r', '  \t'),
    tuple(option(MEMBERS.source), MEMBERS.message, integer({ min: 0, max: others.length })),
  ).map(([blank, tail, [source, message, at]]) => {
    const members = [...others]
    members.splice(at, 0, ['message', message])
    if (source !== null) members.splice(at, 0, ['source', source])
    const texts = members.map(([name, value]) => `"${name}":${blank}${JSON.stringify(value)}`)
    return `{${texts.join(`,${blank}`)}}${tail}`
  }),
)
/** Lines as loggers write them: other names of the members, and members of their own. */
const foreignLine = array(
  oneof(
    tuple(constantFrom('@timestamp', 'time', 'timestamp'), time),
    tuple(
      constantFrom('level', 'severity'),
      constantFrom('info', 'WARN', 'notice', 'weird', 'unknown', '', 30, 50, '30', 0, 99_999, null),
    ),
    tuple(
      constantFrom('msg', 'message'),
      constantFrom('up 17', 'say "hi"', 'Grüße', '', '{"a":1}'),
    ),
    tuple(constantFrom('hostname', 'host'), constantFrom('web-1', '', 'h'.repeat(256), 7)),
    tuple(
      constantFrom('source', 'environment', 'service', 'type', 'trace_id'),
      constantFrom('a', ''),
    ),
    tuple(
      constantFrom(
        ...'caller user_id pid name status method url path v tags ddtags labels stream'.split(' '),
        ...'event_id EventID date day levelname schema_version _id @t a.b x-y __proto__ é 1'.split(
          ' ',
        ),
      ),
      oneof(
        constantFrom<unknown>(
          'x',
          '',
          17,
          -0,
          1.5,
          1e21,
          true,
          null,
          '5e2',
          '{',
          '{}',
          '{"a":1}',
          'a:b,c',
        ),
        dictionary(constantFrom('k', 'tags', 'ddtags', 'level'), constantFrom('v', '', '{}', 1), {
          maxKeys: 3,
        }),
        text,
      ),
    ),
  ),
  { minLength: 1, maxLength: 7 },
).chain((members) =>
  constantFrom('', ' ').map((blank) => {
    const named = members.some(([name]) => name === 'msg' || name === 'message')
    const all = named ? members : [...members, ['msg', 'up 17'] as const]
    const texts = all.map(([name, value]) => `"${name}":${blank}${JSON.stringify(value)}`)
    return `{${texts.join(`,${blank}`)}}`
  }),
)
const rawLine = oneof(
  { weight: 20, arbitrary: line },
  constantFrom(
    '',
    '{}',
    '7',
    'null',
    '{"source":"a","message":"b"',
    '"',
    '{"message":"\\x","source":"a"}',
  ),
  // Escapes with a code.
  constantFrom(
    String.raw`{"source":"a","message":"\u0041\u001b\u00e9"}`,
    String.raw`{"source":"a","message":"\ud83d\ude00 \ud83d"}`,
    String.raw`{"source":"a","message":"a\/b\b\f"}`,
    String.raw`{"source":"a","message":"cut\u00"}`,
  ),
)

const assertAll = <T>(values: Arbitrary<T>, check: (value: T) => Promise<boolean>): Promise<void> =>
  assert(asyncProperty(values, check), { numRuns: 400 })

const EXCEPTIONS = [
  ...EXCEPTION_NAMES,
  ...'Err e.r-r error.stack STACK_TRACE s_t-a.c@k exc_info exception.message'.split(' '),
]

/** Lines whose tags have exceptions, or names alike. */
function* exceptionLines(): Generator<string> {
  for (const name of [...EXCEPTIONS, 'status', 'er', 'errno', 'sta', 'e', 'ex', 's '])
    for (const value of ['"refused-7"', '17', 'true'])
      yield `{"source":"a","message":"up","tags":{"a":"b","${name}":${value}}}`
}

/** Lines of many tags whose names are alike, with and without one that is there twice, and lines of long values. */
function* wideLines(): Generator<string> {
  for (const prefix of ['t', 'request.header.', 'http.request.header.of_the_first_proxy.'])
    for (const count of [1, 2, 16, 17, 40, 128, 129, 257]) {
      const names = Array.from({ length: count }, (_, i) => `${prefix}${i}`)
      for (const all of [names, [...names, names[count >> 1]]]) {
        const tags = all.map((name, i) => `"${name}":${i % 3 === 0 ? i : `"v${i}"`}`).join(',')
        yield `{"source":"a","message":"up ${count}","tags":{${tags}}}`
        yield `{"source":"a","msg":"up ${count}",${tags}}`
      }
    }
  // The values may have 1,024 bytes each with their quotes, the tags 65,536 characters.
  for (const [count, length] of [
    [1, 1022],
    [1, 1023],
    [61, 1000],
    [63, 1000],
    [65, 1000],
    [70, 1000],
  ] as const) {
    const text = 'x'.repeat(length)
    const tags = Array.from({ length: count }, (_, i) => `"name${i}":"${text}"`).join(',')
    yield `{"source":"a","message":"up","tags":{${tags}}}`
    yield `{"source":"a","msg":"up",${tags}}`
  }
}

void test('lines that are not parsed give the same block as parsed ones', async (t) => {
  const encoder = createEncoder()
  const other = createEncoder()
  const seen = { bodies: 0, accepted: 0, rejected: 0, split: 0 }
  const compare = async (body: string | Uint8Array): Promise<boolean> => {
    const bytes = bytesOf(body)
    const timeZone = seen.bodies++ % 2 === 0 ? null : 'Europe/Vienna'
    const { events, rejected } = parsed(bytes, timeZone ?? 'UTC')
    const fast = await encode(encoder, [{ bytes, timeZone }])
    const slow = await encode(other, [{ format: 'events', events }])
    const [counts] = fast.bodies
    seen.accepted += counts?.accepted ?? 0
    seen.rejected += counts?.rejected ?? 0
    if (!isDeepStrictEqual(shown(fast.block), shown(slow.block))) return false
    if (!isWhole(fast.block, events)) return false
    seen.split += textsOf(fast.block, 'constant_text').filter((text) => text !== '').length
    return counts?.accepted === events.length && counts.rejected === rejected
  }
  // A body that begins with a bracket is an array, which is always parsed.
  const bodies = array(rawLine, { maxLength: 12 }).map((lines) => ['7', ...lines].join('\n'))
  await assertAll(bodies, compare)
  await assertAll(
    array(foreignLine, { maxLength: 12 }).map((lines) => ['7', ...lines].join('\n')),
    compare,
  )
  // Invalid UTF-8 between valid lines.
  const broken = tuple(bodies, uint8Array({ maxLength: 4 }), integer({ min: 1, max: 400 })).map(
    ([body, bytes, at]) => {
      const whole = Buffer.from(body)
      return Buffer.concat([whole.subarray(0, at), bytes, whole.subarray(at)])
    },
  )
  await assertAll(broken, compare)
  for (const line of [...wideLines(), ...exceptionLines()])
    t.ok(await compare(line), line.slice(0, 200))
  t.ok(seen.accepted > 500, `${seen.accepted} accepted`)
  t.ok(seen.rejected > 100, `${seen.rejected} rejected`)
  t.ok(seen.split > 20, `${seen.split} split by a constant text`)
})

void test('usual lines are not parsed', async (t) => {
  const lines = [
    '{"timestamp":"2026-11-21T09:28:19.123Z","source":"a","host":"h","severity":"INFO","message":"up 1","tags":{"status":"ok","error":0}}',
    '{"message":"say \\"hi\\" \\u001b[1m","source":"a","severity":"notice","trace_id":"t","span_id":"s"}\r',
    '{"timestamp": 1763717299123, "source": "b", "message": "Grüße", "severity": "error"}',
    '{"source":"b","type":"metric","message":"cpu","tags":{"core":"0","load":17,"busy":true},"dedup_key":"k"}',
    '{"source":"a","message":"WARN: low on memory","environment":"staging","summary":"s"}',
    `{"source":"a","message":"up","tags":{${Array.from({ length: 128 }, (_, i) => `"a${i}":${i}`).join(',')}}}`,
  ]
  const body = Buffer.from(lines.join('\n'))
  const block = createBlock()
  block.begin(NOW, 'v1')
  const context = {
    nowMs: NOW,
    environment: 'production',
    defaultSource: 'a',
    maxMessageBytes: 400,
    isUtf8: true,
    isUtc: true,
  }
  block.beginBody(body, context, (source) => (source === 'a' ? 'store' : 'drop'))
  const second = lines.slice(0, 2).join('\n').length + 1
  t.same(block.readLines(0, 2), { next: second, accepted: 2, dropped: 0 })
  t.same(block.readLines(second, 99), { next: body.length, accepted: 2, dropped: 2 })
  t.equal(block.finish()?.rows, 4)
})

void test('lines with the names of loggers are not parsed', async (t) => {
  const lines = [
    '{"level":30,"time":1763717299123,"pid":7,"hostname":"h","msg":"up 1"}',
    '{"@timestamp":"2026-11-21T09:28:19.123Z","message":"up 2","level":"warn","tags":{"a":"b"}}',
    '{"timestamp":"2026-11-21T09:28:19Z","severity":"info","message":"up 3","user_id":"u1","ok":true}',
  ]
  const body = Buffer.from(lines.join('\n'))
  const block = createBlock()
  block.begin(NOW, 'v1')
  const context = {
    nowMs: NOW,
    environment: 'production',
    defaultSource: 'a',
    maxMessageBytes: 400,
    isUtf8: true,
    isUtc: true,
  }
  block.beginBody(body, context, () => 'store')
  t.same(block.readLines(0, 99), { next: body.length, accepted: 3, dropped: 0 })
})

void test('a line of very many names is left to the parser, which counts them, at once', async (t) => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `"k${i}":1`).join()
  const line = (count: number) => `{"source":"a","message":"up",${names(count)}}\n`
  const encoder = createEncoder()
  for (const [count, want] of [
    [128, { accepted: 1, rejected: 0 }],
    [129, { accepted: 1, rejected: 0 }],
    [60_000, { accepted: 0, rejected: 1 }],
  ] as const)
    t.match((await encode(encoder, [{ bytes: bytesOf(line(count)) }])).bodies, [want])
  const block = createBlock()
  const body = Buffer.from(line(600_000))
  const context = {
    nowMs: NOW,
    environment: 'production',
    defaultSource: 'a',
    maxMessageBytes: 400,
    isUtf8: true,
    isUtc: true,
  }
  block.begin(NOW, 'v1')
  block.beginBody(body, context, () => 'store')
  const [ms] = await cpuOfBoth(
    async () => t.match(block.readLines(0, 1), { next: 0 }),
    async () => undefined,
  )
  // All names would take half a second.
  t.ok(ms < 200, `${ms} ms`)
})

/** Bodies of protocols that hand records on in parts, simple ones and others. */
const PART_BODIES: readonly (readonly [ProtocolFormat, Buffer])[] = [
  [
    'syslog/messages',
    batchOf([
      '<134>1 2026-11-21T09:28:19.123456Z web-1 checkout 12 ID7 - order 17 paid',
      '<134>1 2026-11-21T10:28:19+01:00 web-1 checkout - - - \uFEFFGrüße 日本',
      '<9>1 2026-11-21T09:28:20Z - - - - - two\nlines',
      '<13>Nov 21 09:28:21 web-2 cron[77]: job 5 done',
      '<14>2026-11-21T09:28:22.5+00:00 web-2 su: session opened',
      '<14>1 - web-2 app - - [a@1 b="c"] structured',
      '<14>1 - web-2 app 7 - [timeQuality tzKnown="1" n=""][meta sequenceId="12"] plain data',
      '<14>1 - web-2 app - - [a trace_id="t1"] of a trace',
      '<14>1 - web-2 app - - [a b="1"][c b="2"] twice',
      String.raw`<14>1 - web-2 app - - [a b="say \"hi\" ] x"] with an end inside`,
      '<14>1 2026-11-21T09:28:19Z web-2 app - - - {"msg":"inner","level":"error"}',
      '<14>python: without a time',
      '<13>Nov 21 09:28:21 web-2 app: \xff\u0001 control',
    ]),
  ],
  [
    'loki/push',
    Buffer.from(
      lokiPush('{app="shop", level="warn", zone="a"}', [
        { timeMs: NOW - 1, line: 'order 17 paid' },
        { timeMs: NOW - 2, line: 'Grüße 日本' },
        { timeMs: NOW - 3, line: 'order 18 paid', metadata: { trace_id: 'a1', zone: 'b', n: '1' } },
        { timeMs: NOW - 3, line: 'order 19 paid', metadata: { level: 'error', k: '' } },
        { timeMs: NOW - 3, line: 'order 20 paid' },
        { timeMs: NOW - 4, line: '{"msg":"nested","level":50}' },
        { timeMs: NOW - 5, line: 'a=b level=error msg="pairs"' },
        { timeMs: NOW - 6, line: 'a=b is no logfmt {}' },
        { timeMs: NOW - 7, line: 'text {"a":1} ' },
      ]),
    ),
  ],
  ['otlp/logs', Buffer.from(protobufLogs())],
  [
    'elasticsearch/bulk',
    Buffer.from(
      [
        '{"index":{"_index":"app-2026.11.21"}}\n{"@timestamp":"2026-11-21T09:28:19Z","message":"one","level":"warn","host":"h"}',
        '{"index":{"_index":"app-2026.11.21"}}\n{"message":"two","k":"v","n":5}',
        '{"create":{"_index":"other","_id":"1"}}\n{"message":"three"}',
        '{"create":{"_index":"other"}}\n{"message":"four","nested":{"a":1}}',
      ].join('\n'),
    ),
  ],
]

function batchOf(messages: readonly string[]): Buffer {
  const batch = new RecordBatch('10.0.0.7')
  for (const message of messages) {
    const bytes = Buffer.from(message)
    batch.record(bytes, 0, bytes.length, false)
  }
  return batch.take()
}

void test('records that are handed on in parts give the same block as decoded ones', async (t) => {
  for (const [format, body] of PART_BODIES) {
    const got = collect()
    parserOf(format)(body, { ...ingestContext, maxMessageBytes: MAX_MESSAGE }, got)
    t.ok(got.events.length > 0, format)
    const bytes = bytesOf(body)
    const parts = await encode(createEncoder(), [{ format, bytes }])
    const decoded = await encode(createEncoder(), [{ format: 'events', events: got.events }])
    t.same(shown(parts.block), shown(decoded.block), format)
    t.equal(parts.bodies[0]?.accepted, got.events.length, format)
  }
})

/** Parts of messages of syslog, most of them plain; `#` is the number of the message. */
const SYSLOG_PARTS = [
  ['<134>1 ', '<134>1 ', '<0>1 ', '<13>', '<7>', '<192>1 ', '1 '],
  ['2026-11-21T09:28:19.123456Z ', '2026-11-21T10:28:19+01:00 ', 'Nov  1 09:28:21 ', '- ', ''],
  ['web-1 ', 'web-1 ', '- ', 'h: ', 'wéb ', '[::1] '],
  ['app ', 'app ', 'app: ', 'cron[77]: ', '- ', 'CEF: ', '0a '],
  ['12 ID7 ', '- - ', '007 - ', ''],
  [
    '- ',
    '[a@1 b="c" d.e="5"] ',
    '[a PID="1"] ',
    '[a trace_id="t"][b c="2"] ',
    '[a b="1"][c b="2"] ',
    '',
  ],
  ['- ', '', '', '[a b=""] ', '[a] ', '[a b="c"]', '[a b="]"] '],
  [
    'order # paid',
    '\uFEFFGrüße #',
    ' blank',
    '{"msg":"#"}',
    'LEEF:1.0',
    '%SYS-3-CONFIG_I: #',
    'two\nlines',
    '\u0001',
    '',
  ],
  ['', '', '', ' 10.0.0.1 - - [21/Nov/2026:09:28:19 +0000] "GET / HTTP/1.1" 200 2'],
] as const

void test('messages of syslog mean the same whether they are parsed or not', async (t) => {
  const [encoder, other] = [createEncoder(), createEncoder()]
  const body = { format: 'syslog/messages', protocol: 'syslog' } as const
  let accepted = 0
  const whole = tuple(...SYSLOG_PARTS.map((parts) => constantFrom(...parts)))
  // A character at any place is another one.
  const mark = constantFrom(...' "[]\\:-=.1Aé\0'.split(''))
  const message = tuple(whole, option(tuple(nat(100), mark))).map(([parts, change]) => {
    const text = parts.join('')
    if (change === null) return text
    return text.slice(0, change[0]) + change[1] + text.slice(change[0] + 1)
  })
  await assertAll(array(message, { minLength: 1 }), async (all) => {
    const bytes = batchOf(all.map((text, i) => text.replace('#', String(i))))
    const got = collect()
    parserOf(body.format)(bytes, { ...ingestContext, maxMessageBytes: MAX_MESSAGE }, got)
    const parts = await encode(encoder, [{ ...body, bytes: bytesOf(bytes) }])
    const decoded = await encode(other, [{ format: 'events', events: got.events }])
    accepted += got.events.length
    return (
      isDeepStrictEqual(shown(parts.block), shown(decoded.block)) &&
      parts.bodies[0]?.accepted === got.events.length
    )
  })
  t.ok(accepted > 500, `${accepted} accepted`)
})

void test('plain messages of syslog are not parsed', (t) => {
  const body = batchOf([
    '<134>1 2026-11-21T09:28:19.123456Z web-1 checkout 12 ID7 - order 17 paid',
    '<9>1 - - - - - [a@1 b="c"][meta sequenceId="12"] \uFEFFGrüße',
    '<13>Nov 21 09:28:21 web-2 cron[77]: job 5 done',
    '<14>2026-11-21T09:28:22.5+00:00 web-2 su: session opened',
    '<14>python: without a time',
  ])
  const block = createBlock()
  block.begin(NOW, 'v1')
  const context = {
    nowMs: NOW,
    environment: 'production',
    defaultSource: 'a',
    maxMessageBytes: 400,
    isUtf8: true,
    isUtc: true,
  }
  block.beginBody(body, context, () => 'store')
  const { table, records } = readBatch(body)
  const messages = { table, priorities: PRIORITIES, readTime: () => NOW }
  t.same(block.readMessages(messages, 0, records), { next: 4, accepted: 4, dropped: 0 })
  t.end()
})

/** Lines of bulk requests; `#` is the number of the line. */
const BULK_LINES = [
  '{"index":{"_index":"app-2026.11.21"}}',
  '{"create":{"_index":"other"}}',
  ' {"create":{}}\r',
  '{"create":{"_index":"app-2026.11.21","_id":"#"}}',
  '{"update":{"_index":"app"}}',
  '{"delete":{"_index":"app"}}',
  `{"index":{"_index":"app"},"more":"${'x'.repeat(250)}"}`,
  '{"@timestamp":"2026-11-21T09:28:19Z","message":"order # paid","level":"warn","host":"h"}',
  '{"message":"the same","source":"own"}',
  '{"message":"Grüße #","k":"v","n":5}\r',
  '{"message":"nested","a":{"b":#}}',
  '{"doc":{"message":"of an update"}}',
  'no JSON',
  '',
]

void test('a bulk request means the same whether its documents are parsed or not', async (t) => {
  const [encoder, other] = [createEncoder(), createEncoder()]
  const body = { format: 'elasticsearch/bulk', protocol: 'elasticsearch' } as const
  let accepted = 0
  const pairs = array(tuple(constantFrom(...BULK_LINES.slice(0, 3)), constantFrom(...BULK_LINES)))
  const lines = oneof(
    array(constantFrom(...BULK_LINES)),
    pairs.map((all) => all.flat()),
  )
  await assertAll(lines, async (all) => {
    const bytes = bytesOf(all.map((line, i) => line.replace('#', String(i))).join('\n'))
    const got = collect()
    const context = { ...ingestContext, maxMessageBytes: MAX_MESSAGE }
    const reply = parserOf(body.format)(Buffer.from(bytes), context, got)
    const parts = await encode(encoder, [{ ...body, bytes }])
    const decoded = await encode(other, [{ format: 'events', events: got.events }])
    const rejects = got.rejects.map(({ line, reason, message }) => ({
      line,
      code: reason,
      message,
    }))
    accepted += got.events.length
    return (
      isDeepStrictEqual(shown(parts.block), shown(decoded.block)) &&
      isDeepStrictEqual(parts.bodies[0]?.reply, reply?.(rejects))
    )
  })
  t.ok(accepted > 500, `${accepted} accepted`)
})

void test('blank lines between the actions of a bulk request are passed over together', async (t) => {
  const pair = '{"create":{"_index":"a"}}\n{"message":"up"}\n'
  for (const blank of ['\n', '\r\n', ' \t\n', '\u00a0\n']) {
    let searches = 0
    const body = Buffer.from(`${pair}${blank.repeat(5000)}${pair}${blank.repeat(5000)}`)
    const read = (sink: EventSink, taker: RecordTaker | null): void => {
      const takeHeaded = taker?.takeHeaded.bind(taker)
      if (taker !== null && takeHeaded !== undefined)
        taker.takeHeaded = (from, most) => {
          searches++
          return takeHeaded(from, most)
        }
      const reply = parserOf('elasticsearch/bulk')(body, ingestContext, sink, taker)
      t.equal(JSON.parse(replyBytes(reply?.([]) as ReplyText).toString()).items.length, 2)
    }
    const [objects, taken] = readBothWays(createEncoders(), read)
    t.same(taken, objects)
    t.ok(searches > 0 && searches <= 4, `${searches} searches for documents`)
  }
})

void test('documents of known actions are not parsed', (t) => {
  const [one, two] = ['{"create":{"_index":"a"}}', '{"create":{"_index":"b"}}']
  const document = '{"message":"up"}'
  const lines = [one, document, two, document, one, document, '{"create":{}}', document]
  const body = Buffer.from(lines.join('\n'))
  const block = createBlock()
  block.begin(NOW, 'v1')
  const context = { nowMs: NOW, environment: '', defaultSource: '', maxMessageBytes: 400 }
  block.beginBody(body, { ...context, isUtf8: true, isUtc: true }, () => 'store')
  block.setHead(0, one.length, 7, 'a')
  const from = body.indexOf(two)
  block.setHead(from, from + two.length, 9, 'b')
  const { heads, ...read } = block.readHeaded(0, 99)
  t.same([...heads], [7, 9, 7])
  t.same(read, { next: body.indexOf('{"create":{}}'), accepted: 3, dropped: 0 })
  t.same(block.finish()?.sources, ['a', 'b'])
  t.end()
})

/** Whether the records are rows of their own, one after the other in every order, alone and with others. */
async function areDistinct(
  records: readonly object[],
  identity: Partial<Identity> = {},
): Promise<boolean> {
  const lines = records.map((record) => JSON.stringify({ source: 's', timestamp: NOW, ...record }))
  const blanks = lines.map((line) => line.replaceAll(',"', ' , "'))
  const found = new Set<number | undefined>()
  for (const body of [lines, lines.toReversed(), [...lines, ...blanks]]) {
    const { block } = await encode(createEncoder(identity), [{ bytes: bytesOf(body.join('\n')) }])
    found.add(block?.rows)
  }
  if (found.size !== 1) throw new Error(`rows: ${[...found].join()}`)
  const [rows] = found
  if (rows !== 1 && rows !== records.length) throw new Error(`${rows} rows`)
  return rows === records.length
}

void test('attributes distinguish events of every type, their order does not', async (t) => {
  for (const type of ['log', 'metric', 'trace', 'event']) {
    const events = (...tags: readonly unknown[]) =>
      tags.map((each) => ({ message: 'm', type, tags: each }))
    const same = [
      [
        { a: 1, ab: 'x' },
        { ab: 'x', a: 1 },
      ],
      [
        { a: 1, b: [{ c: 1, d: 2 }] },
        { b: [{ d: 2, c: 1 }], a: 1 },
      ],
      [{ res: { statusCode: 200, url: '/' } }, { res: { url: '/', statusCode: 200 } }],
      [{}, undefined],
    ]
    for (const tags of same) t.notOk(await areDistinct(events(...tags)), JSON.stringify(tags))
    const other = [
      [{ a: 1 }, { a: 2 }, { a: '1' }, { b: 1 }, {}, { a: 1, b: 1 }, { a: true }, { a: null }],
      [{ res: { statusCode: 200 } }, { res: { statusCode: 500 } }, { res: 200 }],
      [{ a: [1, 2] }, { a: [2, 1] }],
      [{ a: 'b', c: 'd' }, { a: 'd', c: 'b' }, { 'a.c': 'b' }],
    ]
    for (const tags of other) t.ok(await areDistinct(events(...tags)), JSON.stringify(tags))
  }
  // Members that a structured logger puts beside the message.
  t.ok(
    await areDistinct([
      { level: 30, msg: 'request completed', res: { statusCode: 200 } },
      { level: 30, msg: 'request completed', res: { statusCode: 500 } },
    ]),
  )
  t.notOk(
    await areDistinct([
      { message: 'm', tags: { a: 1 }, dedup_key: 'k' },
      { message: 'n', tags: { a: 2 }, dedup_key: 'k' },
    ]),
    'an event that brings a key is compared by it',
  )
})

void test('ignored attributes do not distinguish events, wherever they are', async (t) => {
  const identity = { ignoredTags: ['req.id', 'took', 'naïve'] }
  const events = (...tags: readonly unknown[]) => tags.map((each) => ({ message: 'm', tags: each }))
  for (const tags of [
    [{ took: 1 }, { took: 2 }, undefined],
    [{ took: 1, a: 1 }, { a: 1, took: 'x' }, { a: 1 }, { took: { ms: 5 }, a: 1 }],
    [{ req: { id: 1, url: '/' } }, { req: { id: 2, url: '/' } }, { req: { url: '/' } }],
    [{ 'req.id': 1 }, { 'req.id': 2 }, {}],
    [{ naïve: 1, a: 1 }, { a: 1 }],
  ])
    t.notOk(await areDistinct(events(...tags), identity), JSON.stringify(tags))
  for (const tags of [
    [{ tooks: 1 }, { tooks: 2 }],
    [{ id: 1 }, { id: 2 }],
    [{ req: { id: 1, url: '/a' } }, { req: { id: 1, url: '/b' } }],
    [{ a: { took: 1 } }, { a: { took: 2 } }],
  ])
    t.ok(await areDistinct(events(...tags), identity), JSON.stringify(tags))
})

void test('without a window every message is a row of its own', async (t) => {
  const line = '{"source":"s","message":"m","timestamp":1763717299123}'
  const parsedLine = '{"source":"s","msg":"m","time":1763717299123}'
  const bytes = bytesOf([line, line, parsedLine, parsedLine, line].join('\n'))
  const encoder = createEncoder({ isDeduplicated: false })
  for (const _ of [1, 2]) {
    const { block } = await encode(encoder, [{ bytes }, { bytes }])
    t.equal(block?.rows, 10)
    t.same(
      [...(block?.counts ?? [])],
      Array.from({ length: 10 }, () => 1),
    )
  }
})

void test('a source that the key may not write is refused whatever else is wrong with the record', async (t) => {
  const future = new Date(NOW + 365 * 86_400_000).toISOString()
  const faults: Readonly<Record<string, unknown>>[] = [
    { source: 'victim', message: 'm', timestamp: future },
    { source: 'victim', message: 'm', timestamp: 'yesterday or so' },
    { source: 'victim', message: 7 },
    { source: 'victim' },
    { source: 'victim', message: '' },
    { source: 'victim', message: 'm'.repeat(MAX_MESSAGE + 1) },
    { source: 'victim', message: 'm', type: 'nothing' },
    { source: 'victim', message: 'm', host: 'h'.repeat(256) },
    { source: 'victim', message: 'm', schema_version: 99 },
    { source: 'victim', message: 'm', severity: { a: 1 } },
    { service: 'victim', message: 7 },
    { service: { name: 'victim' }, msg: 'm', trace_id: 't'.repeat(300) },
    { 'service.name': 'victim', body: 'm', time: 'yesterday or so' },
    { attributes: { service: 'victim' }, level: 'error' },
  ]
  const own = JSON.stringify({ source: 'own', message: 'm' })
  for (const fault of faults) {
    const record = JSON.stringify(fault)
    for (const lines of [[record], [own, record], [record, own]]) {
      const { bodies, block, dead } = await encode(createEncoder(), [
        { bytes: bytesOf(lines.join('\n')), allowedSources: ['own'] },
      ])
      t.equal(bodies[0]?.refusal?.code, 'source_not_allowed', record.slice(0, 80))
      t.same([block, dead], [null, null], 'nothing of the body is stored')
    }
  }
  const nameless = ['{"message":7}', '{', '[]', '{"source":7,"message":"m"}']
  const { bodies } = await encode(createEncoder(), [
    {
      bytes: bytesOf([own, ...nameless].join('\n')),
      allowedSources: ['own'],
      defaultSource: 'own',
    },
  ])
  t.match(
    bodies[0],
    { accepted: 1, rejected: 4, refusal: null },
    'a record of no source is rejected alone',
  )
})

const NO_REPLY: ReplyText = { pieces: [], order: new Uint32Array() }

void test('a reply for each record says which ones the key may not write', async (t) => {
  const actions = ['own', 'victim', 'own'].map(
    (index, i) => `{"create":{"_index":"${index}"}}\n{"message":"m${i}"}\n`,
  )
  const { bodies, block } = await encode(createEncoder(), [
    {
      bytes: bytesOf(actions.join('')),
      format: 'elasticsearch/bulk',
      protocol: 'elasticsearch',
      allowedSources: ['own'],
      deniesRecords: true,
    },
  ])
  t.match(bodies[0], { accepted: 2, rejected: 1, refusal: null, sources: ['own'] })
  t.equal(block?.rows, 2)
  const items = JSON.parse(replyBytes(bodies[0]?.reply ?? NO_REPLY).toString()).items as readonly {
    create: { status: number }
  }[]
  t.same(
    items.map(({ create }) => create.status),
    [201, 403, 201],
  )
})

void test('a record of a source outside of the key is denied whatever else is wrong with it', async (t) => {
  const wrong = [
    '{"message":1,"type":"log"}',
    '{"timestamp":"2099-01-01T00:00:00Z","message":"a"}',
    'no json',
    '{}',
  ]
  for (const document of wrong) {
    const [victim, own] = await Promise.all(
      ['victim', 'own'].map(async (index) => {
        const { bodies } = await encode(createEncoder(), [
          {
            bytes: bytesOf(`{"create":{"_index":"${index}"}}\n${document}\n`),
            format: 'elasticsearch/bulk',
            protocol: 'elasticsearch',
            allowedSources: ['own'],
            deniesRecords: true,
          },
        ])
        return bodies[0]?.errors.map(({ code }) => code)
      }),
    )
    t.strictSame(victim, ['unknown_source'], document)
    t.equal(own?.includes('unknown_source'), false, document)
  }
})

void test('a body that only begins like the zlib format is read as it is', async (t) => {
  const accepted = async (format: BodyTask['format'], body: string | Uint8Array) => {
    const [got] = (await encode(createEncoder(), [{ format, bytes: bytesOf(body) }])).bodies
    return got?.accepted
  }
  for (const text of ['x is 5', 'x^2', 'x? yes', 'x} else', 'x\u0001 is a text'])
    for (const format of ['text', 'splunk/raw', 'datadog/logs'] as const)
      t.equal(await accepted(format, text), 1, `${format}: ${text}`)
  // A block of 120 bytes is a zlib header with a literal of 40 bytes or of 9.
  const pushOf = (chars: number) =>
    lokiPush('{app="x"}', [{ timeMs: NOW, line: 'y'.repeat(chars) }])
  const push = pushOf(50 + 120 - pushOf(50).length)
  t.equal(push.length, 120)
  const literals = [40, 60, 20].map((length, i, all) => {
    const from = all.slice(0, i).reduce((sum, one) => sum + one, 0)
    return Buffer.concat([Buffer.of((length - 1) << 2), push.slice(from, from + length)])
  })
  const block = Buffer.concat([Buffer.of(120), ...literals])
  t.same([...block.subarray(0, 2)], [0x78, 0x9c])
  t.equal(await accepted('loki/push', block), 1)
  for (const level of [1, 3, 6, 9])
    t.equal(await accepted('gelf/messages', deflateSync('{"short_message":"a"}', { level })), 1)
})

void test('a record that several bodies of a task have is stored once, with the first that is not refused', async (t) => {
  const bulk = (...ids: readonly string[]): Partial<BodyTask> => ({
    format: 'elasticsearch/bulk',
    bytes: bytesOf(ids.map((id) => `{"create":{"_id":"${id}"}}\n{"message":"${id}"}\n`).join('')),
  })
  const denied = { ...bulk('1', '2'), allowedSources: ['other'] }
  const got = await encode(createEncoder(), [
    denied,
    bulk('1', '2', '1'),
    bulk('2', '3'),
    bulk('3'),
  ])
  t.match(got.bodies, [
    { refusal: { code: 'source_not_allowed' }, ids: [] },
    { accepted: 2, dropped: 1 },
    { accepted: 1, dropped: 1 },
    { accepted: 0, dropped: 1 },
  ])
  t.equal(got.block?.rows, 3)
  const ids = got.bodies.flatMap((body) => body.ids)
  t.equal(new Set(ids).size, 3)
  t.equal(ids.length, 3)
})

void test('a body beyond its permissions or limits is refused', async (t) => {
  const line = (source: string, message = 'm'): string => JSON.stringify({ source, message })
  const send = async (lines: readonly string[], rules: Partial<BodyTask>) =>
    await encode(createEncoder(), [
      { bytes: bytesOf(line('first')) },
      { bytes: bytesOf(lines.join('\n')), ...rules },
      { bytes: bytesOf(line('last')) },
    ])
  const sourcesOf = ({ bodies }: BlockResult) => bodies.map(({ sources }) => sources)

  const denied = await send([line('a'), line('b'), line('a')], { allowedSources: ['a'] })
  t.equal(denied.bodies[1]?.refusal?.code, 'source_not_allowed')
  t.same(sourcesOf(denied), [['first'], [], ['last']])
  t.same(denied.block?.sources, ['first', 'last'])
  t.equal(denied.block?.rows, 2)

  const many = await send([line('a', '1'), line('a', '2'), line('a', '3')], { maxRows: 2 })
  t.equal(many.bodies[1]?.refusal?.code, 'file_parse_error')
  t.equal(many.block?.rows, 2)
  const enough = await send([line('a', '1'), line('a', '2')], { maxRows: 2 })
  t.equal(enough.bodies[1]?.accepted, 2)

  const ruled = await send([line('a'), line('off'), line('new'), line('__proto__'), '{'], {
    verdicts: withFound(
      NO_VERDICTS,
      ['a', 'off', 'new', '__proto__'],
      new Map([
        ['off', 'drop'],
        ['new', 'unknown_source'],
      ]),
    ),
  })
  t.match(ruled.bodies[1], { received: 5, accepted: 2, dropped: 1, rejected: 2 })
  t.same(ruled.bodies[1]?.sources, ['a', '__proto__'])
  t.same(
    ruled.bodies[1]?.errors.map(({ line: at, code }) => [at, code]),
    [
      [3, 'unknown_source'],
      [5, 'invalid_json'],
    ],
  )
  t.equal(ruled.dead?.rows, 2)
  t.same(ruled.block?.sources, ['first', 'a', '__proto__', 'last'])
})

void test('a source that only rejected lines name is not listed', async (t) => {
  const lines = ['{"source":"a","message":""}', '{"source":"b","message":"m","summary":17}']
  const { bodies, block } = await encode(createEncoder(), [{ bytes: bytesOf(lines.join('\n')) }])
  t.match(bodies[0], { accepted: 0, rejected: 2, sources: [] })
  t.equal(block, null)
})

void test('an invalid time in the first line of a thread is rejected', async (t) => {
  for (const timestamp of ['0000-00-00T10:00:07Z', `${'\0'.repeat(16)}:07.123Z`]) {
    const body = bytesOf(`{"timestamp":"${timestamp}","source":"a","message":"m"}`)
    const { bodies, block } = await encode(createEncoder(), [{ bytes: body }])
    t.match(bodies[0], { accepted: 0, rejected: 1 })
    t.equal(block, null)
  }
})

void test('no two texts have equal hashes under all secrets', async (t) => {
  // The two halves differ by the constant in the source of the hash.
  const made = ['ADňÐān x𧍲!', 'CDŊŐƃl x򡍰#', 'DDŋƐǄk x󢍱$']
  const messages = [...made, ...made.map((text) => `${text}1234567812345678`)]
  const lines = messages.map((message) => JSON.stringify({ source: 'a', message }))
  const { block } = await encode(createEncoder(), [{ bytes: bytesOf(lines.join('\n')) }])
  t.equal(block?.rows, messages.length)
})

void test('a body of which nothing can be read is refused and leaves no dead letters', async (t) => {
  const good = Buffer.from('{"source":"a","message":"m"}')
  const utf16 = Buffer.from('{"source":"a","message":"m"}\n', 'utf16le')
  const noise = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 7919) & 255))
  for (const bytes of [Buffer.from('a\nb\n{"c'), utf16, noise]) {
    const bodies = [{ bytes: good }, { protocol: 'ingest', bytes: Uint8Array.from(bytes) }]
    const { bodies: results, dead } = await encode(createEncoder(), bodies)
    t.match(results[0], { accepted: 1, refusal: null })
    t.match(results[1], { received: 0, rejected: 0, refusal: { code: 'bad_request' } })
    t.equal(dead, null)
  }
  const replay = [{ bytes: Buffer.from('{"c') }]
  t.match((await encode(createEncoder(), replay)).bodies[0], { rejected: 1, refusal: null })
  const half = [{ protocol: 'ingest', bytes: Buffer.from('{"c\n{"source":"a","message":"m"}') }]
  t.match((await encode(createEncoder(), half)).bodies[0], { accepted: 1, rejected: 1 })
})

void test('a large block leaves out the columns without values, a small one has all', async (t) => {
  const namesOf = async (count: number, last: object): Promise<readonly string[]> => {
    const lines = Array.from({ length: count - 1 }, (_, i) => ({ source: 'a', message: `m ${i}` }))
    const body = [...lines, { source: 'a', message: 'last', ...last }].map((line) =>
      JSON.stringify(line),
    )
    const { block } = await encode(createEncoder(), [{ bytes: bytesOf(body.join('\n')) }])
    const read = readNative(block?.bytes ?? new Uint8Array())
    t.equal(read.rows, count)
    return read.columns.map(({ name }) => name)
  }
  const values = {
    trace_id: 't',
    span_id: 's',
    summary: 'u',
    dedup_key: 'd',
    host: 'h',
    tags: { a: 1 },
  }
  const all = await namesOf(2, {})
  const large = await namesOf(1000, {})
  const empty = [...Object.keys(values), 'search_words', 'tags_text', 'constant_text']
  const left = all.filter((name) => !empty.includes(name) && !name.startsWith('attribute_'))
  t.same(new Set(large), new Set(left))
  t.same(
    new Set(await namesOf(1000, { ...values, message: 'naïve' })),
    new Set(all.filter((name) => name !== 'tags_text' && name !== 'constant_text')),
  )
})
