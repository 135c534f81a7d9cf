import fc from 'fast-check'
import { isDeepStrictEqual } from 'node:util'
import { PbfWriter } from 'pbf'
import { test } from 'tap'

import type { ProtocolFormat } from '../../../src/ingest/block.js'
import { parserOf } from '../../../src/ingest/protocols/table.js'
import { protobufLogs } from '../../support/protobuf.js'
import { createEncoders, MAX_MESSAGE, readBothWays } from './encode-bodies.js'
import { AT, collect, ingestContext, NOW } from './formats/collect.js'

type Value = string | number | bigint | boolean | readonly string[] | Buffer | null
type Pair = readonly [string, Value]

function writeAny(value: Value, pbf: PbfWriter): void {
  if (typeof value === 'string') pbf.writeStringField(1, value)
  else if (typeof value === 'boolean') pbf.writeBooleanField(2, value)
  else if (typeof value === 'bigint') writeVarint(3, value, pbf)
  else if (typeof value === 'number') pbf.writeDoubleField(4, value)
  else if (Buffer.isBuffer(value)) pbf.writeBytesField(7, value)
  else if (value !== null)
    pbf.writeMessage(
      5,
      (list, to) => list.forEach((each) => to.writeMessage(1, writeAny, each)),
      value,
    )
}

/** Writes all 64 bits, as the library can't. */
function writeVarint(no: number, value: bigint, pbf: PbfWriter): void {
  pbf.writeTag(no, 0)
  pbf.realloc(10)
  let rest = BigInt.asUintN(64, value)
  for (; rest > 127n; rest >>= 7n) pbf.buf[pbf.pos++] = Number(rest & 127n) | 128
  pbf.buf[pbf.pos++] = Number(rest)
}

function writePair([key, value]: Pair, pbf: PbfWriter): void {
  pbf.writeStringField(1, key)
  if (value !== null) pbf.writeMessage(2, writeAny, value)
}

/** A field of a record. */
type Field = (pbf: PbfWriter) => void
const writeFields = (fields: readonly Field[], pbf: PbfWriter): void =>
  fields.forEach((write) => write(pbf))

function otlpBody(scopes: readonly (readonly (readonly Field[])[])[], resource: readonly Pair[]) {
  const pbf = new PbfWriter()
  const described = (pairs: readonly Pair[], to: PbfWriter): void =>
    pairs.forEach((pair) => to.writeMessage(1, writePair, pair))
  const scope = (records: readonly (readonly Field[])[], to: PbfWriter): void => {
    if (records.length % 2 === 1)
      to.writeMessage(1, (name, at) => at.writeStringField(1, name), 'lib')
    for (const record of records) to.writeMessage(2, writeFields, record)
    to.writeStringField(3, 'https://schema')
  }
  pbf.writeMessage(
    1,
    (all, to) => {
      to.writeMessage(1, described, resource)
      for (const records of all) to.writeMessage(2, scope, records)
    },
    scopes,
  )
  return Buffer.from(pbf.finish())
}

function lokiBody(streams: readonly (readonly [string, readonly (readonly Field[])[]])[]): Buffer {
  const pbf = new PbfWriter()
  for (const stream of streams)
    pbf.writeMessage(
      1,
      ([labels, entries], to) => {
        if (labels !== '') to.writeStringField(1, labels)
        for (const entry of entries) to.writeMessage(2, writeFields, entry)
        to.writeVarintField(3, 7)
      },
      stream,
    )
  return Buffer.from(pbf.finish())
}

const encoders = createEncoders()

function bothWays(format: ProtocolFormat, bytes: Buffer, more = {}) {
  const context = { ...ingestContext, maxMessageBytes: MAX_MESSAGE, ...more }
  return readBothWays(encoders, (sink, taker) => {
    parserOf(format)(bytes, context, sink, taker)
  })
}

/** The number of records that become objects although WebAssembly may take them. */
function objectsOf(format: ProtocolFormat, bytes: Buffer): number {
  const got = collect()
  readBothWays(encoders, (_, taker) => {
    if (taker !== null) parserOf(format)(bytes, ingestContext, got, taker)
  })
  return got.events.length + got.rejects.length
}

const ofText =
  (no: number, text: string): Field =>
  (pbf) =>
    pbf.writeStringField(no, text)
const ofTime =
  (no: number, ns: bigint): Field =>
  (pbf) => {
    pbf.writeTag(no, 1)
    pbf.writeFixed32(Number(ns & 0xffff_ffffn))
    pbf.writeFixed32(Number(ns >> 32n))
  }
const ofId =
  (no: number, id: Buffer): Field =>
  (pbf) =>
    pbf.writeBytesField(no, id)
const ofBody =
  (body: Value): Field =>
  (pbf) =>
    pbf.writeMessage(5, writeAny, body)
const ofAttribute =
  (pair: Pair): Field =>
  (pbf) =>
    pbf.writeMessage(6, writePair, pair)
const ofNumber =
  (no: number, value: number): Field =>
  (pbf) =>
    pbf.writeVarintField(no, value)

const text = fc.oneof(
  fc.constantFrom(
    'up 17',
    'ERROR: disk is full',
    'Grüße 日本',
    'say "hi"',
    '{"msg":"five words before the level","level":"warn"}',
    'a\nb',
    '5e2',
    '1.50',
    '',
  ),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom('x'.repeat(MAX_MESSAGE), 'y'.repeat(MAX_MESSAGE + 1), 'z'.repeat(1023)),
)
const number = fc.oneof(
  fc.double(),
  fc.constantFrom(-0, 0.1, 1e21, 1e-7, 1e-6, 0.000_001_5, 1_763_717_299.123, 0.1 + 0.2, 2 ** 53),
  fc.tuple(fc.integer(), fc.constantFrom(1, 10, 1000, 1e6)).map(([a, b]) => a / b),
)
const value: fc.Arbitrary<Value> = fc.oneof(
  { weight: 3, arbitrary: text },
  { weight: 3, arbitrary: number },
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.integer().map(BigInt),
  fc.boolean(),
  fc.constantFrom<Value>(
    null,
    999_999_999_999_999n,
    -1_000_000_000_000_000n,
    Buffer.from([0, 255]),
  ),
  fc.array(text, { maxLength: 2 }),
)
const usualName = fc.constantFrom('http.method', 'status', 'user.id', 'd', 'region', 'k-1')
const name = fc.oneof(
  { weight: 3, arbitrary: usualName },
  fc.constantFrom(
    ...'trace_id spanId OTel-Trace-ID dd.span_id trace_id_ traceidx level severity_text detected_level'.split(
      ' ',
    ),
    ...'scope resource.a resource scopes service.version exception.stacktrace tags 1 Ä é _x'.split(
      ' ',
    ),
    '',
    '__proto__',
    'constructor',
    'n'.repeat(128),
    'n'.repeat(129),
  ),
  fc.string({ maxLength: 6 }),
)
const pair = fc.tuple(name, value)
const usualPair = fc.tuple(
  usualName,
  fc.oneof(fc.constantFrom<Value>('GET', 'u1', true, 200n), number),
)
const id = (bytes: number): fc.Arbitrary<Buffer> =>
  fc.oneof(
    fc.constantFrom(Buffer.alloc(bytes), Buffer.alloc(0), Buffer.alloc(3, 7)),
    fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((all) => Buffer.from(all)),
  )
const usualNs = fc.bigInt({ min: BigInt(AT) * 1_000_000n, max: BigInt(NOW) * 1_000_000n })
const ns = fc.oneof(
  usualNs,
  fc.constantFrom(0n, 7n, 5_000_000n, BigInt(AT) * 1_000_000n + 999_999n, 2n ** 64n - 1n),
)
const usualText = fc.constantFrom('up 17', 'ERROR: disk is full', 'Grüße 日本', 'say "hi"', 'a\nb')

/** Fields of a log record in any order, most of them usual ones. */
const logRecord = fc
  .tuple(
    fc.tuple(
      fc.constantFrom([9, ''], [9, 'INFO'], [9, 'Information'], [17, 'error'], [24, '']),
      usualText,
      usualNs,
    ),
    fc.array(usualPair.map(ofAttribute), { maxLength: 5 }),
    fc.array(
      fc.oneof(
        pair.map(ofAttribute),
        id(16).map((all) => ofId(9, all)),
        id(8).map((all) => ofId(10, all)),
        ns.map((at) => ofTime(11, at)),
        value.map(ofBody),
        fc.integer({ min: 0, max: 30 }).map((no) => ofNumber(2, no)),
        fc
          .constantFrom('', 'NOTICE', 'own', 'fatal', 'a word of many bytes')
          .map((word) => ofText(3, word)),
        fc.constantFrom('', 'named').map((event) => ofText(12, event)),
        fc.constantFrom(ofNumber(7, 300), ofNumber(1, 3), ofText(2, 'x'), ofText(99, 'unknown')),
        fc.constant<Field>((pbf) => pbf.writeFixed32Field(8, 1)),
      ),
      { maxLength: 1 },
    ),
    fc.boolean(),
  )
  .map(([[[level, word], body, at], attributes, others, areFirst]) => {
    const usual = [ofNumber(2, level), ofText(3, word), ofBody(body), ofTime(1, at)]
    return areFirst ? [...others, ...usual, ...attributes] : [...usual, ...attributes, ...others]
  })
const otlp = fc
  .tuple(
    fc.array(fc.array(logRecord, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 2 }),
    fc.oneof(
      fc.constantFrom<readonly Pair[]>([], [['service.name', 'a']], [['os', 'b']]),
      fc.array(fc.oneof(fc.tuple(fc.constantFrom('service.name', 'host.name', 'os'), text), pair)),
    ),
  )
  .map(([scopes, resource]) => otlpBody(scopes, resource))

const line = fc.oneof(
  { weight: 3, arbitrary: usualText },
  text,
  fc.constantFrom(
    '{"msg":"nested","level":50}',
    '{ no json',
    'a=b level=error msg="pairs"',
    'a=b message=x',
    'a=b is no logfmt {}',
    'a=b is no logfmt',
    'text {"a":1} ',
    'text {"a":1}',
    'text {"a":1}\u00a0',
    'msg=x',
    'a b msg=x',
  ),
)
const ofMetadata =
  (key: string, content: string | null): Field =>
  (pbf) =>
    pbf.writeMessage(
      3,
      (_, to) => {
        to.writeStringField(1, key)
        if (content !== null) to.writeStringField(2, content)
      },
      null,
    )
const metadata = fc
  .tuple(
    fc.oneof(
      usualName,
      fc.constantFrom(
        ...'trace_id span_id level severity loglevel detected_level zone traceId SpanID TRACE_ID span-id'.split(
          ' ',
        ),
      ),
      name,
    ),
    fc.oneof(fc.constantFrom('error', 'WARN', 'fatal', 'a1', '', '5', 'x'.repeat(257)), text),
  )
  .map(([key, content]) => ofMetadata(key, content === 'up 17' ? null : content))
const entry = fc
  .tuple(
    fc.tuple(
      fc.oneof(
        { weight: 9, arbitrary: fc.integer({ min: AT / 1000, max: NOW / 1000 }) },
        fc.constantFrom(0, -1, 5, 2 ** 41, 4e11),
      ),
      fc.oneof(
        { weight: 9, arbitrary: fc.integer({ min: 0, max: 999_999_999 }) },
        fc.constantFrom(-1, 2_000_000_000),
      ),
    ),
    line,
    fc.array(metadata, { maxLength: 2 }),
    fc.oneof(
      { weight: 9, arbitrary: fc.constant(null) },
      fc.constantFrom(ofNumber(4, 1), ofText(2, 'again'), ofText(1, ''), ofNumber(2, 5)),
    ),
  )
  .map(([[seconds, nanos], content, pairs, other]): readonly Field[] => [
    (pbf) =>
      pbf.writeMessage(
        1,
        (_, to) => {
          to.writeVarintField(1, seconds)
          to.writeVarintField(2, nanos)
        },
        null,
      ),
    ofText(2, content),
    ...pairs,
    ...(other === null ? [] : [other]),
  ])
const labels = fc.constantFrom(
  '{app="shop", level="warn", zone="a"}',
  '{service_name="shop", host="h"}',
  '{service_name="shop", level="fatal"}',
  '{service_name="shop", env="prod", pod="p-1", n="5"}',
  '{app="Grüße", x="say \\"hi\\""}',
  '{}',
  '',
)
const loki = fc
  .array(fc.tuple(labels, fc.array(entry, { minLength: 1, maxLength: 4 })), {
    minLength: 1,
    maxLength: 3,
  })
  .map(lokiBody)

/** Changes a byte, or cuts the body off. */
const change = fc.oneof(
  { weight: 2, arbitrary: fc.constant(null) },
  fc.tuple(fc.nat(), fc.oneof(fc.nat(255), fc.constantFrom(0, 1, 127, 128, 255)), fc.nat(9)),
)
function changed(body: Buffer, how: readonly [number, number, number] | null): Buffer {
  if (how === null || body.length === 0) return body
  const at = how[0] % body.length
  const bytes = Buffer.from(body)
  bytes[at] = how[1]
  return how[2] === 0 ? bytes.subarray(0, at) : bytes
}

for (const [format, body] of [
  ['otlp/logs', otlp],
  ['loki/push', loki],
] as const) {
  void test(`${format}: records mean the same whether they become objects or not`, async (t) => {
    const seen = { records: 0, refused: 0, objects: 0 }
    const property = fc.property(
      body,
      change,
      fc.constantFrom({}, {}, { requestSource: 'asked' }, { maxRows: 2 }),
      (whole, how, more) => {
        const bytes = changed(whole, how)
        const [objects, taken] = bothWays(format, bytes, more)
        const { counts } = objects as { readonly counts?: { readonly received: number } }
        if (counts === undefined) seen.refused++
        else {
          seen.records += counts.received
          seen.objects += objectsOf(format, bytes)
        }
        return isDeepStrictEqual(taken, objects)
      },
    )
    fc.assert(property, { numRuns: 300 })
    t.ok(seen.refused > 20, `${seen.refused} bodies refused`)
    t.ok(seen.objects > 100, `${seen.objects} became objects`)
    t.ok(seen.records - seen.objects > 50, `${seen.records} records`)
  })
}

const plain = (content: string, ...pairs: readonly Field[]): readonly Field[] => [
  (pbf) => pbf.writeMessage(1, (_, to) => to.writeVarintField(1, AT / 1000), null),
  ofText(2, content),
  ...pairs,
]

void test('of an id that comes twice the first one counts', (t) => {
  for (const first of ['', 'a1'])
    for (const second of ['', 'b2', 'error']) {
      const pairs = [ofMetadata('span_id', first), ofMetadata('SpanID', second)]
      const [objects, taken] = bothWays(
        'loki/push',
        lokiBody([['{app="a"}', [plain('up', ...pairs)]]]),
      )
      t.same(taken, objects, `${first} ${second}`)
    }
  t.end()
})

void test('usual records need no objects', async (t) => {
  const usual = [
    ofTime(1, BigInt(AT) * 1_000_000n),
    ofNumber(2, 9),
    ofText(3, 'INFO'),
    ofBody('it is "so" \u001b[1m\n日本'),
    ofAttribute(['user.id', 'u1']),
    ofAttribute(['ok', true]),
    ofAttribute(['took', 1.25]),
    ofAttribute(['n', -17n]),
    ofId(9, Buffer.alloc(16, 7)),
    ofId(10, Buffer.alloc(8, 7)),
  ]
  const resource: readonly Pair[] = [
    ['service.name', 'a'],
    ['os', 'linux'],
  ]
  const odd = [...usual, ofBody(['a'])]
  t.equal(objectsOf('otlp/logs', otlpBody([[usual, odd, usual], [usual]], resource)), 1)
  t.equal(objectsOf('otlp/logs', Buffer.from(protobufLogs())), 0)
  const entries = [
    plain('up'),
    plain('down'),
    plain('{"a":1}'),
    plain('Grüße', ofMetadata('trace_id', 'a1')),
  ]
  t.equal(objectsOf('loki/push', lokiBody([['{app="a", level="info"}', entries]])), 1)
})
