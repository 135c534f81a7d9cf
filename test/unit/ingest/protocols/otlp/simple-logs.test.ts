import fc from 'fast-check'
import { PbfWriter } from 'pbf'
import { test } from 'tap'

import { parserOf } from '../../../../../src/ingest/protocols/table.js'
import { AT, collect, DecodingTaker, ingestContext } from '../../formats/collect.js'

type Value = string | number | boolean | readonly string[] | null

interface Sent {
  readonly severity: number
  readonly word: string
  readonly body: Value
  readonly time: number
  readonly trace: number
  readonly span: number
  readonly event: string
  readonly attributes: readonly (readonly [string, Value])[]
}

function writeAny(value: Value, pbf: PbfWriter): void {
  if (typeof value === 'string') pbf.writeStringField(1, value)
  else if (typeof value === 'boolean') pbf.writeBooleanField(2, value)
  else if (Array.isArray(value))
    pbf.writeMessage(
      5,
      (list, to) => list.forEach((each) => to.writeMessage(1, writeAny, each)),
      value,
    )
  else if (typeof value === 'number' && Number.isSafeInteger(value)) pbf.writeVarintField(3, value)
  else if (typeof value === 'number') pbf.writeDoubleField(4, value)
}

function writePair([key, value]: readonly [string, Value], pbf: PbfWriter): void {
  pbf.writeStringField(1, key)
  if (value !== null) pbf.writeMessage(2, writeAny, value)
}

function writeRecord(sent: Sent, pbf: PbfWriter): void {
  if (sent.time > 0) pbf.writeFixed64Field(1, sent.time * 1e6)
  pbf.writeVarintField(2, sent.severity)
  if (sent.word !== '') pbf.writeStringField(3, sent.word)
  if (sent.body !== null) pbf.writeMessage(5, writeAny, sent.body)
  for (const pair of sent.attributes) pbf.writeMessage(6, writePair, pair)
  pbf.writeFixed32Field(8, 1)
  if (sent.trace > 0) pbf.writeBytesField(9, Buffer.alloc(16, sent.trace - 1))
  if (sent.span > 0) pbf.writeBytesField(10, Buffer.alloc(8, sent.span - 1))
  pbf.writeFixed64Field(11, AT * 1e6)
  if (sent.event !== '') pbf.writeStringField(12, sent.event)
}

function requestOf(
  records: readonly Sent[],
  resource: readonly (readonly [string, Value])[],
): Buffer {
  const pbf = new PbfWriter()
  const described = (_: null, to: PbfWriter): void => {
    for (const pair of resource) to.writeMessage(1, writePair, pair)
  }
  const scope = (_: null, to: PbfWriter): void => {
    to.writeMessage(1, (name: string, at: PbfWriter) => at.writeStringField(1, name), 'lib')
    for (const record of records) to.writeMessage(2, writeRecord, record)
  }
  pbf.writeMessage(
    1,
    (_: null, to: PbfWriter) => {
      to.writeMessage(1, described, null)
      to.writeMessage(2, scope, null)
    },
    null,
  )
  return Buffer.from(pbf.finish())
}

function decode(bytes: Buffer, isInParts = false) {
  const got = collect()
  const taker = new DecodingTaker(got)
  parserOf('otlp/logs')(bytes, ingestContext, got, isInParts ? taker : null)
  const rejects = got.rejects.map(({ line, reason }) => ({ line, reason }))
  return { got: { events: got.events, rejects }, taken: taker.taken }
}

const text = fc.string({ unit: 'grapheme', maxLength: 20 })
const value: fc.Arbitrary<Value> = fc.oneof(
  text,
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.boolean(),
  fc.constantFrom(null, -0, 0.1, 1e21),
  fc.array(text, { maxLength: 2 }),
)
const name = fc.oneof(
  fc.constantFrom(
    'user.id',
    'trace_id',
    'spanId',
    'level',
    'scope',
    'resource.a',
    'service.version',
    '1',
    'Ä',
    '',
  ),
  fc.string({ maxLength: 6 }),
)
const pairs = fc.array(fc.tuple(name, value), { maxLength: 5 })
const record: fc.Arbitrary<Sent> = fc.record({
  severity: fc.oneof(fc.integer({ min: 1, max: 24 }), fc.integer({ min: 0, max: 30 })),
  word: fc.constantFrom('', 'INFO', 'info', 'Warning', 'NOTICE', 'own', 'fatal'),
  body: fc.oneof({ weight: 5, arbitrary: text }, value),
  time: fc.constantFrom(0, AT, AT - 1000),
  trace: fc.integer({ min: 0, max: 3 }),
  span: fc.integer({ min: 0, max: 3 }),
  event: fc.constantFrom('', '', '', 'named'),
  attributes: pairs,
})

void test('a record that is handed on in parts means the same', async (t) => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 6 }), pairs, (records, resource) => {
      const bytes = requestOf(records, resource)
      t.same(decode(bytes, true).got, decode(bytes).got)
    }),
    { numRuns: 300, seed: 7 },
  )
})

void test('usual records need no objects', async (t) => {
  const usual: Sent = {
    severity: 9,
    word: 'INFO',
    body: 'it is "so" \u001b[1m\n日本',
    time: AT,
    trace: 3,
    span: 2,
    event: '',
    attributes: [
      ['user.id', 'u1'],
      ['ok', true],
    ],
  }
  const odd = { ...usual, body: ['a'] }
  t.equal(decode(requestOf([usual, odd, usual], [['service.name', 'a']]), true).taken, 2)
})
