import { encode } from '@msgpack/msgpack'
import { test } from 'tap'
import { UTC } from '../../../../../src/ingest/formats/zone.js'
import { decodeMsgpack } from '../../../../../src/ingest/protocols/msgpack/msgpack.js'
import type { EventSink } from '../../../../../src/model/event.js'

const CONTEXT = {
  nowMs: Date.UTC(2026, 0, 1),
  toUtc: UTC,
  environment: 'production',
  source: null,
  defaultSource: 'app',
  requestSource: '',
  params: '',
  maxMessageBytes: 1024,
  maxRows: 1000,
}
const RECORD = Buffer.from('\x81\xa7message\xa1x', 'latin1')
const bytes = (...parts: readonly (number | Buffer)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : part)))

function countsOf(body: Buffer): readonly [events: number, rejections: readonly string[]] {
  let events = 0
  const rejections: string[] = []
  decodeMsgpack(body, CONTEXT, {
    event: () => void events++,
    reject: (_, { message }) => void rejections.push(message),
  })
  return [events, rejections]
}

void test('maps, lists of them and entries are records', async (t) => {
  const entries = bytes(0x92, 0x92, 5, RECORD, 0x92, 0x92, 5, 0x80, RECORD)
  for (const [body, records] of [
    [RECORD, 1],
    [bytes(RECORD, 0x92, RECORD, RECORD, RECORD), 4],
    [entries, 2],
    [bytes(0x91, 0x92, RECORD, RECORD), 2],
    [bytes(0x90), 0],
  ] as const)
    t.same(countsOf(body), [records, []])
})

void test('a list that is cut off is no whole one', async (t) => {
  t.same(countsOf(bytes(0x92, RECORD)), [1, ['the rest of the body is no MessagePack']])
  t.same(countsOf(bytes(0x91, 0x92, RECORD)), [1, ['the rest of the body is no MessagePack']])
  for (const body of [bytes(0x91), bytes(0x92, 0x91), bytes(0x91, 0x91, 0x91)])
    t.throws(() => countsOf(body), { code: 'bad_request' })
})

// Read anew for each list of a deep nest, they would take hours.
void test('lists in lists take time in proportion to their size', async (t) => {
  const claim = bytes(0x92, 0xdd, 0xff, 0xff, 0xff, 0xff)
  for (const part of [bytes(0x92), bytes(0x91), claim])
    t.throws(() => countsOf(Buffer.alloc(1_200_000, part)), { code: 'bad_request' })
  const [events] = countsOf(bytes(Buffer.alloc(500_000, 0x92), Buffer.alloc(500_001, 5)))
  t.equal(events, 0)
})

void test('a map whose key is a list is refused alone, with an empty text', async (t) => {
  const texts: unknown[] = []
  decodeMsgpack(bytes(0x92, 0x81, 0x90, 1, RECORD), CONTEXT, {
    event: () => void texts.push('event'),
    reject: (_, { raw }) => void texts.push(raw),
  })
  t.same(texts, ['', 'event'])
})

void test('the names of a map may be bytes and numbers', async (t) => {
  const name = (text: string) => bytes(0xc4, text.length, Buffer.from(text))
  const events: unknown[] = []
  const rejections: string[] = []
  const sink: EventSink = {
    event: (_, { message, tags }) => void events.push([message, tags]),
    reject: (_, { message }) => void rejections.push(message),
  }
  const wide = bytes(0xcf, Buffer.from('0020000000000001', 'hex'))
  decodeMsgpack(bytes(0x83, name('message'), 0xa1, 0x6d, 7, 1, wide, 2), CONTEXT, sink)
  t.same(events, [['m', { 7: 1, '9007199254740993': 2 }]])
  decodeMsgpack(bytes(0x81, name('__proto__'), 0x80), CONTEXT, sink)
  t.equal(rejections.length, 1)
})

void test('an integer beyond 2^53 keeps its digits', async (t) => {
  const record = { message: 'm', big: 2n ** 53n + 1n, least: -(2n ** 63n), small: 7n }
  const tags: unknown[] = []
  decodeMsgpack(Buffer.from(encode(record, { useBigInt64: true })), CONTEXT, {
    event: (_, event) => void tags.push(event.tags),
    reject: (_, { message }) => t.fail(message),
  })
  t.same(tags, [{ big: '9007199254740993', least: '-9223372036854775808', small: 7 }])
})
