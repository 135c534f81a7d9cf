import { gzipSync } from 'node:zlib'
import { encode, ExtData } from '@msgpack/msgpack'
import { test } from 'tap'
import { forward } from '../../../../../src/ingest/protocols/forward/forward.js'
import { MessageFraming } from '../../../../../src/ingest/protocols/forward/framing.js'
import { readMessage } from '../../../../../src/ingest/protocols/forward/message.js'
import { RecordBatch } from '../../../../../src/ingest/record-batch.js'
import { AT, collect, ingestContext } from '../../formats/collect.js'

const SECONDS = AT / 1000
const bytes = (value: unknown): Buffer => Buffer.from(encode(value))

/** Fluentd's time with nanoseconds. */
function eventTime(nanos: number): ExtData {
  const data = Buffer.alloc(8)
  data.writeUInt32BE(SECONDS, 0)
  data.writeUInt32BE(nanos, 4)
  return new ExtData(0, data)
}

function decode(messages: readonly Buffer[]) {
  const batch = new RecordBatch('10.0.0.7')
  for (const message of messages) batch.record(message, 0, message.length, false)
  const sink = collect()
  forward.parsers['forward/messages']?.(batch.take(), ingestContext, sink)
  return sink
}

const RECORD = { message: 'paid', level: 'warn', seq: 7 }
const WANT = {
  timestampMs: AT,
  source: 'app.shop',
  severity: 'WARNING',
  message: 'paid',
  tags: { seq: 7 },
}

/** Two entries with `RECORD`, as the program zstd compresses them. */
const ZSTD_ENTRIES = Buffer.from(
  'KLUv/QRoZQEARAKSzmsBZDODp21lc3NhZ2WkcGFpZKVsZXZlbKR3YXJuo3NlcQcBAHxI9QQ8hdX9',
  'base64',
)

void test('all forms of a message are read', async (t) => {
  await forward.load?.()
  const entries = Buffer.concat([bytes([SECONDS, RECORD]), bytes([SECONDS, RECORD])])
  const forms: readonly (readonly [name: string, message: unknown, count: number])[] = [
    ['an event', ['app.shop', SECONDS, RECORD], 1],
    ['an event with an option', ['app.shop', eventTime(0), RECORD, { chunk: 'a' }], 1],
    [
      'a list',
      [
        'app.shop',
        [
          [SECONDS, RECORD],
          [eventTime(0), RECORD],
        ],
        { size: 2 },
      ],
      2,
    ],
    ['a list of Fluent Bit', ['app.shop', [[[eventTime(0), {}], RECORD]]], 1],
    ['packed', ['app.shop', entries, { size: 2 }], 2],
    ['packed as a text', ['app.shop', entries, null], 2],
    ['compressed', ['app.shop', gzipSync(entries), { compressed: 'gzip' }], 2],
    ['compressed with Zstandard', ['app.shop', ZSTD_ENTRIES, { compressed: 'zstd' }], 2],
    ['an empty list', ['app.shop', []], 0],
  ]
  for (const [name, message, count] of forms) {
    const { events, rejects } = decode([bytes(message)])
    t.same(rejects, [], name)
    t.equal(events.length, count, name)
    for (const event of events) t.match(event, WANT, name)
  }
})

void test('the time of an entry is that of its record, unless the record has one', async (t) => {
  const entry = (timestamp: unknown) => bytes(['app', SECONDS, { ...RECORD, timestamp }])
  const own = ['2026-11-21T08:00:00Z', Date.UTC(2026, 10, 21, 8), { seconds: 1_795_248_000 }]
  const noTimes = ['08:14:15', 'soon', { at: 'noon' }, true]
  const { events, rejects } = decode([null, '', ...own, ...noTimes].map(entry))
  t.same(rejects, [])
  const [missing, named, others] = [events.slice(0, 2), events.slice(2, 5), events.slice(5)]
  for (const { timestampMs } of named) t.equal(timestampMs, Date.UTC(2026, 10, 21, 8))
  for (const { timestampMs } of [...missing, ...others]) t.equal(timestampMs, SECONDS * 1000)
  t.same(
    others.map(({ tags }) => tags?.['timestamp']),
    noTimes,
  )
})

void test('what is none of the forms is a dead letter, and the others are events', async (t) => {
  const { events, rejects } = decode([
    bytes({ no: 'message' }),
    bytes(['tag']),
    bytes(['tag', Buffer.from('no gzip'), { compressed: 'gzip' }]),
    bytes(['tag', Buffer.from('x'), { compressed: 'zstd' }]),
    bytes(['app.shop', SECONDS, RECORD]),
  ])
  t.equal(rejects.length, 4)
  t.match(events, [WANT])
})

void test('the chunk is what the sender waits for', async (t) => {
  const chunkOf = (option: unknown) => readMessage(bytes(['tag', [], option]))?.chunk
  t.equal(chunkOf({ chunk: 'p8n9gmxTQVC8/nh2wlKKeQ==' }), 'p8n9gmxTQVC8/nh2wlKKeQ==')
  t.equal(chunkOf({ chunk: 'x'.repeat(300) }), null)
  t.equal(chunkOf({ size: 1 }), null)
  t.equal(readMessage(bytes(['tag', SECONDS, RECORD, { chunk: 'c' }]))?.chunk, 'c')
})

void test('messages are found in a stream, however it is cut', async (t) => {
  const messages = [
    bytes(['a', 1, RECORD]),
    bytes(['b', [[1, { text: 'x'.repeat(300), list: [1.5, -3, true, null, 'y'.repeat(70_000)] }]]]),
    bytes(['c', Buffer.alloc(5_000), { chunk: 'd' }]),
  ]
  const stream = Buffer.concat(messages)
  const chunksOf = (size: number): readonly Buffer[] =>
    Array.from({ length: Math.ceil(stream.length / size) }, (_, i) =>
      Buffer.from(stream.subarray(i * size, (i + 1) * size)),
    )
  for (const size of [1, 7, 1_000, 65_536, stream.length]) {
    const framing = new MessageFraming(1_000_000)
    const found: Buffer[] = []
    for (const chunk of chunksOf(size))
      framing.push(chunk, (message) => found.push(Buffer.from(message)))
    t.same(found, messages, `chunks of ${size}`)
    t.equal(framing.heldBytes, 0)
  }
  const take = (): void => undefined
  for (const size of [1, stream.length]) {
    const framing = new MessageFraming(messages[0]?.length ?? 0)
    const refused = chunksOf(size)
      .map((chunk) => framing.push(chunk, take))
      .find(Boolean)
    t.match(refused, /a message exceeds/, `a limit, chunks of ${size}`)
  }
  t.match(new MessageFraming(100).push(Buffer.from([0x91, 0xc1]), take), /no MessagePack/)
  t.match(new MessageFraming(100).push(Buffer.from('text'), take), /not the Forward protocol/)
  t.match(
    new MessageFraming(100).push(
      Buffer.concat([Buffer.from([0x91, 0xdb, 0xff, 0xff, 0xff, 0xff]), Buffer.alloc(200)]),
      take,
    ),
    /exceeds 100/,
  )
})
