import { deflateSync, gzipSync } from 'node:zlib'
import { test } from 'tap'
import { GelfChunks } from '../../../../../src/ingest/protocols/gelf/chunks.js'
import { decodeGelfBatch } from '../../../../../src/ingest/protocols/gelf/batch.js'
import { RecordBatch } from '../../../../../src/ingest/record-batch.js'
import { AT, collect, ingestContext } from '../../formats/collect.js'
import { recordList } from '../../record-list.js'

const MESSAGE = {
  version: '1.1',
  host: 'web-1',
  short_message: 'paid',
  full_message: 'paid',
  timestamp: AT / 1000,
  level: 3,
  _app: 'shop',
  _seq: 7,
}

void test('messages are read, compressed or not', async (t) => {
  const text = Buffer.from(JSON.stringify(MESSAGE))
  const batch = new RecordBatch('10.0.0.7')
  for (const bytes of [
    text,
    gzipSync(text),
    deflateSync(text),
    Buffer.from('no JSON'),
    Buffer.from('x\x9cbroken'),
  ])
    batch.record(bytes, 0, bytes.length, false)
  batch.record(text, 0, 20, true)
  const { events, rejects } = collectOf(batch)
  t.equal(events.length, 3)
  for (const event of events) {
    t.match(event, {
      timestampMs: AT,
      source: 'shop',
      host: 'web-1',
      severity: 'ERROR',
      message: 'paid',
    })
    t.same({ ...event.tags }, { seq: 7 })
  }
  t.same(
    rejects.map(({ reason }) => reason),
    ['invalid_json', 'invalid_json', 'message_too_large'],
  )
  t.equal(rejects[2]?.raw, text.toString('utf8', 0, 20), 'the beginning is kept')
})

void test('a message without a host has the address of its sender', async (t) => {
  const batch = new RecordBatch('10.0.0.7')
  for (const host of [undefined, null, '', 'web-1']) {
    const bytes = Buffer.from(JSON.stringify({ ...MESSAGE, host }))
    batch.record(bytes, 0, bytes.length, false)
  }
  const hosts = collectOf(batch).events.map(({ host }) => host)
  t.same(hosts, ['10.0.0.7', '10.0.0.7', '10.0.0.7', 'web-1'])
})

void test('messages of a batch that swell are refused after some, and those that are broken cost nothing', async (t) => {
  const bomb = gzipSync(Buffer.alloc(5_000_000))
  const broken = Buffer.from('x\x9cbroken')
  const good = gzipSync(JSON.stringify(MESSAGE))
  const read = (messages: readonly Buffer[]) => {
    const batch = new RecordBatch('10.0.0.7')
    for (const bytes of messages) batch.record(bytes, 0, bytes.length, false)
    return collectOf(batch)
  }
  const many = read([...Array.from({ length: 1_000 }, () => broken), good])
  t.equal(many.events.length, 1)
  const few = read([...Array.from({ length: 5 }, () => bomb), good])
  t.same([few.events.length, few.rejects.length], [1, 5])
  const all = read([...Array.from({ length: 200 }, () => bomb), good])
  t.equal(all.rejects.length, 201, 'the good one behind them too')
})

void test('a short message in JSON is read as the line of a program', async (t) => {
  const line = { level: 'warn', msg: 'retried', user: 42 }
  const text = Buffer.from(
    JSON.stringify({ ...MESSAGE, short_message: JSON.stringify(line), level: 6 }),
  )
  const batch = new RecordBatch('10.0.0.7')
  batch.record(text, 0, text.length, false)
  const [event] = collectOf(batch).events
  t.match(event, { source: 'shop', host: 'web-1', severity: 'WARNING', message: 'retried' })
  t.match(event?.tags, { user: 42, seq: 7 })
})

function collectOf(batch: RecordBatch) {
  const sink = collect()
  decodeGelfBatch(batch.take(), ingestContext, sink)
  return sink
}

const chunk = (id: string, number: number, count: number, text: string): Buffer =>
  Buffer.concat([
    Buffer.from([0x1e, 0x0f]),
    Buffer.from(id.padEnd(8)),
    Buffer.from([number, count]),
    Buffer.from(text),
  ])

void test('chunks are put together in any order', async (t) => {
  let nowMs = 0
  const chunks = new GelfChunks(() => nowMs)
  const sink = recordList()
  const take = (datagram: Buffer, from = 'a 1') => chunks.take(datagram, from, sink)
  take(chunk('one', 0, 1, 'alone'))
  take(Buffer.from('plain'))
  take(chunk('two', 2, 3, 'c'))
  take(chunk('two', 0, 3, 'a'))
  take(chunk('two', 0, 3, 'a again'))
  take(chunk('two', 1, 3, 'another sender'), 'a 2')
  take(chunk('two', 1, 3, 'b'))
  t.same(sink.texts, ['alone', 'plain', 'abc'])
  take(chunk('none', 1, 3, ''))
  take(chunk('none', 0, 3, 'a'))
  take(chunk('none', 2, 3, ''))
  t.same(sink.records.splice(3), [{ text: 'a', isCut: false }], 'chunks without content count')
  take(chunk('late', 0, 2, 'a'))
  nowMs = 5_001
  take(chunk('late', 1, 2, 'b'))
  t.same(sink.texts.length, 3, 'a message of which a chunk comes after 5 seconds is dropped')
  for (const [number, count] of [
    [3, 3],
    [0, 0],
    [0, 129],
  ] as const)
    take(chunk('bad', number, count, 'x'))
  t.same(sink.texts.length, 3)
})

void test('the memory for missing chunks is bounded', async (t) => {
  const chunks = new GelfChunks(() => 0)
  const sink = recordList()
  for (let i = 0; i < 5_000; i++) chunks.take(chunk(String(i), 0, 2, 'x'.repeat(8_000)), 'a', sink)
  t.ok(chunks.heldBytes <= 9 * 1024 * 1024, `${chunks.heldBytes} bytes`)
})
