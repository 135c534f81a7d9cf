import { test } from 'tap'
import { DelimitedFraming } from '../../../../src/ingest/protocols/delimited.js'
import { decodeLines } from '../../../../src/ingest/protocols/lines.js'
import { RecordBatch } from '../../../../src/ingest/record-batch.js'
import { collect, ingestContext } from '../formats/collect.js'
import { recordList } from '../record-list.js'

void test('records end with one byte, however the stream is cut', async (t) => {
  const stream = `a\nbb\r\n\n${'c'.repeat(30)}\nd\n${'e'.repeat(90)}\nf`
  const want = [
    ...['a', 'bb'].map((text) => ({ text, isCut: false })),
    { text: 'c'.repeat(20), isCut: true },
    { text: 'd', isCut: false },
    { text: 'e'.repeat(20), isCut: true },
    { text: 'f', isCut: false },
  ]
  for (const size of [1, 5, 33, 1_000]) {
    const framing = new DelimitedFraming(10, 20)
    const sink = recordList()
    for (let at = 0; at < stream.length; at += size) {
      framing.push(Buffer.from(stream.slice(at, at + size)), sink)
      t.ok(framing.heldBytes < 2_000)
    }
    framing.end(sink)
    t.same(sink.records, want, `chunks of ${size}`)
  }
})

void test('lines of JSON and of text are events', async (t) => {
  const batch = new RecordBatch('10.0.0.7')
  for (const text of [
    '{"message":"paid","level":"error","app":"shop","host":"web-1"}',
    'plain text',
    '{"broken',
    '  ',
    '[1]',
    '[{"message":"zero"}]',
    '{"message":"one"}{"message":"two"}, {"message":"thr',
  ]) {
    const bytes = Buffer.from(text)
    batch.record(bytes, 0, bytes.length, false)
  }
  const sink = collect()
  decodeLines(batch.take(), ingestContext, sink)
  t.match(sink.events, [
    { message: 'paid', source: 'shop', host: 'web-1', severity: 'ERROR' },
    { message: 'plain text', source: 'nameless', host: '10.0.0.7', severity: null },
    { message: '[1]' },
    { message: 'zero' },
    { message: 'one', host: '10.0.0.7' },
    { message: 'two' },
  ])
  t.match(sink.rejects, [
    { line: 3, reason: 'invalid_json', raw: '{"broken' },
    { line: 7, reason: 'invalid_json', raw: '{"message":"thr' },
  ])
})
