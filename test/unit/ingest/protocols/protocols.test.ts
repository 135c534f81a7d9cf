import { test } from 'tap'

import type { ProtocolFormat } from '../../../../src/ingest/block.js'
import { writeBusyItems } from '../../../../src/ingest/protocols/elasticsearch/bulk.js'
import { replyBytes } from '../../../../src/ingest/reply-text.js'
import { parserOf } from '../../../../src/ingest/protocols/table.js'
import { lokiPush, snappyBlock } from '../../../support/protobuf.js'
import { AT, collect, ingestContext } from '../formats/collect.js'

function decode(format: ProtocolFormat, body: string | Uint8Array, params = '') {
  const got = collect()
  const write = parserOf(format)(Buffer.from(body), { ...ingestContext, params }, got)
  const errors = got.rejects.map(({ line, reason, message }) => ({ line, code: reason, message }))
  const text = write?.(errors) ?? null
  const reply: unknown = text === null ? null : JSON.parse(replyBytes(text).toString())
  return { ...got, reply }
}

void test('a bulk request is answered action by action, in order', async (t) => {
  const lines = [
    '{"index":{"_index":"app-2026.11.21","_id":"1"},"attempts":0}',
    `{"@timestamp":"${new Date(AT).toISOString()}","message":"one","log":{"level":"warn"}}`,
    '{"create":{}}',
    'no json',
    '{"delete":{"_id":"2"}}',
    '{"create":{}}',
    '{"msg":"a tab\there"}',
  ]
  const { events, rejects, reply } = decode('elasticsearch/bulk', lines.join('\n'), 'index=shop')
  t.match(events, [
    { timestampMs: AT, source: 'app', severity: 'WARNING', message: 'one' },
    { source: 'shop', message: 'a tab\there' },
  ])
  t.match(rejects, [{ line: 2, reason: 'invalid_json' }])
  t.match(reply, {
    errors: true,
    items: [
      { index: { _index: 'app-2026.11.21', _id: '1', status: 201 } },
      { create: { status: 400, error: { type: 'document_parsing_exception' } } },
      { delete: { status: 404 } },
      { create: { _index: 'shop', status: 201 } },
    ],
  })
})

void test('documents are told by their whole ids', async (t) => {
  const ids: string[] = []
  const got = { ...collect(), identify: (id: string) => ids.push(id) > 0 }
  const long = 'z'.repeat(600)
  const body = ['1', '2']
    .map((end) => `{"create":{"_id":"${long}${end}"}}\n{"message":"a"}\n`)
    .join('')
  parserOf('elasticsearch/bulk')(Buffer.from(body), ingestContext, got)
  t.same(ids, [` ${long}1`, ` ${long}2`])
})

void test('actions for which there is no room may be sent again', async (t) => {
  const body = '{"create":{"_id":"1"}}\n{"message":"a"}\n{"delete":{"_index":"b","_id":"2"}}\n'
  const busy = { status: 429, error: { type: 'es_rejected_execution_exception', reason: 'full' } }
  const items = writeBusyItems(Buffer.from(body), 'index=shop', 'full')
  t.match(JSON.parse(items ?? ''), {
    errors: true,
    items: [
      { create: { _index: 'shop', _id: '1', ...busy } },
      { delete: { _index: 'b', _id: '2', ...busy } },
    ],
  })
})

void test('a bulk request of very many actions, or blank lines, is refused as a whole', async (t) => {
  const busy = (body: string) => writeBusyItems(Buffer.from(body), '', 'full')
  const action = '{"index":{}}\n{"message":"a"}\n'
  t.equal(JSON.parse(busy(action.repeat(2000)) ?? '').items.length, 2000)
  t.equal(busy(action.repeat(2001)), null)
  t.equal(busy('{}\n'.repeat(349_500)), null)
  t.equal(busy(' \n'.repeat(2001)), null)
})

void test('Loki in Snappy means the same as plain protobuf', async (t) => {
  const push = lokiPush('{app="shop", level="warn", zone="a"}', [
    { timeMs: AT, line: 'plain', metadata: { trace_id: 'a1' } },
    { timeMs: AT, line: '{"msg":"nested","level":50}' },
  ])
  for (const body of [push, snappyBlock(push)])
    t.match(decode('loki/push', body).events, [
      {
        timestampMs: AT,
        source: 'shop',
        severity: 'WARNING',
        message: 'plain',
        traceId: 'a1',
        tags: { zone: 'a' },
      },
      { timestampMs: AT, source: 'shop', severity: 'ERROR', message: 'nested' },
    ])
  for (const garbage of ['hello', Buffer.from('ff'.repeat(99), 'hex')])
    t.throws(() => decode('loki/push', garbage), { code: 'bad_request' })
})

void test('Loki takes protobuf of any length, which may begin like JSON', async (t) => {
  for (let chars = 1; chars <= 200; chars++) {
    const push = lokiPush('{app="x"}', [{ timeMs: AT, line: 'y'.repeat(chars) }])
    for (const body of [push, snappyBlock(push)]) {
      const { events } = decode('loki/push', body)
      if (events.length !== 1) t.fail(`${chars}: ${events.length}`)
    }
  }
  for (const garbage of ['{', '{"streams":[', '{"streams":x}', '[]'])
    t.throws(() => decode('loki/push', garbage), { code: 'bad_request' }, garbage)
})

void test('an entry of Loki without a line has no message', async (t) => {
  const values = [null, [`${AT}000000`], [`${AT}000000`, null], [`${AT}000000`, 5]]
  const body = JSON.stringify({ streams: [{ stream: { app: 'x' }, values }] })
  const { events, rejects } = decode('loki/push', body)
  t.match(events, [{ message: '5' }])
  t.same(
    rejects.map(({ reason }) => reason),
    ['missing_message', 'missing_message', 'missing_message'],
  )
})

void test('the stream in the labels of a container is a tag', async (t) => {
  for (const [labels, source, tags] of [
    [{ container_name: 'cart-1', source: 'stderr' }, 'cart-1', { source: 'stderr' }],
    [{ source: 'stderr' }, 'stderr', null],
    [{ app: 'cart', source: 'files' }, 'files', { app: 'cart' }],
  ] as const) {
    const push = { streams: [{ stream: labels, values: [[`${AT}000000`, 'plain']] }] }
    const { events } = decode('loki/push', JSON.stringify(push))
    t.match(events, [{ source, message: 'plain', tags }], JSON.stringify(labels))
  }
})

void test('events of Splunk take what their request says', async (t) => {
  const body = `{"time":${AT / 1000},"event":"one"}{"event":{"message":{"msg":"two"},"severity":"error"},"host":"own"}{"event":""}`
  const { events, rejects } = decode('splunk/event', body, 'host=asked&sourcetype=st')
  t.match(events, [
    { timestampMs: AT, message: 'one', host: 'asked', source: 'st' },
    { message: 'two', severity: 'ERROR', host: 'own' },
  ])
  t.match(rejects, [{ line: 1, reason: 'missing_message' }])
  const broken = decode('splunk/event', '{"event":"one"}{"event":two}{"event":"three"}{"event":"fo')
  t.match(broken.events, [{ message: 'one' }, { message: 'three' }], 'a broken one spoils no other')
  t.match(broken.rejects, [
    { reason: 'invalid_json', raw: '{"event":two}' },
    { reason: 'invalid_json', raw: '{"event":"fo' },
  ])
})

void test("a line of JSON of Docker's driver for Splunk is a record", async (t) => {
  const event = { line: { level: 'error', msg: 'no money' }, source: 'stderr', tag: 'checkout' }
  t.match(decode('splunk/event', JSON.stringify({ event })).events, [
    { message: 'no money', severity: 'ERROR', source: 'checkout', tags: { source: 'stderr' } },
  ])
})

void test('Loki before 1.0 has its entries as objects, and ids of traces have several names', async (t) => {
  const entries = [{ ts: new Date(AT).toISOString(), line: 'old' }, { line: 'without a time' }]
  const old = JSON.stringify({ streams: [{ labels: '{app="shop"}', entries }] })
  t.match(decode('loki/push', old).events, [
    { timestampMs: AT, source: 'shop', message: 'old' },
    { source: 'shop', message: 'without a time' },
  ])
  for (const metadata of [
    { traceID: 'a1', spanID: 'b2' },
    { TraceId: 'a1', span_id: 'b2' },
  ]) {
    const push = {
      streams: [{ stream: { app: 'shop' }, values: [[`${AT}000000`, 'x', metadata]] }],
    }
    const { events } = decode('loki/push', JSON.stringify(push))
    t.match(events, [{ traceId: 'a1', spanId: 'b2', tags: null }])
  }
})

void test('an index is a source without its hour, day and number', async (t) => {
  for (const [index, source] of [
    ['app-2026.11.21.05', 'app'],
    ['app-2026.11.21-000001', 'app'],
    ['app-20261121', 'app'],
    ['app-v2', 'app-v2'],
  ] as const) {
    const { events } = decode(
      'elasticsearch/bulk',
      `{"create":{"_index":"${index}"}}\n{"msg":"a"}\n`,
    )
    t.match(events, [{ source }], index)
  }
})

void test('events of Splunk may be numbers, and its raw text has the type and the index of its request', async (t) => {
  const { events } = decode('splunk/event', '{"event":42}{"event":[1,"b"]}{"event":true}')
  t.match(events, [{ message: '42' }, { message: '[1,"b"]' }, { message: 'true' }])
  const raw = decode('splunk/raw', 'one\ntwo', 'sourcetype=access&index=main&host=h')
  t.match(raw.events, [
    { message: 'one', host: 'h', source: 'access', tags: { index: 'main' } },
    { message: 'two', host: 'h', source: 'access', tags: { index: 'main' } },
  ])
  const timed = decode(
    'splunk/raw',
    `one\n${new Date(AT).toISOString()} two`,
    `time=${AT / 1000 - 60}`,
  )
  t.match(timed.events, [{ timestampMs: AT - 60_000 }, { timestampMs: AT }])
  t.throws(() => decode('splunk/raw', 'one', 'time=soon'), { code: 'validation_error' })
  const otel = { 'otel.log.severity.number': 17, 'otel.log.severity.text': 'Error' }
  const ofCollector = decode('splunk/event', JSON.stringify({ event: 'a', fields: otel }))
  t.match(ofCollector.events, [{ severity: 'ERROR' }])
})

void test('lines of text that Datadog gets may begin like JSON', async (t) => {
  for (const line of ['[2026-11-21 09:28:19] ERROR a', '{a} b', '[INFO] c', '"d" e'])
    t.match(decode('datadog/logs', `${line}\nnext`).events, [
      { message: line },
      { message: 'next' },
    ])
  for (const empty of ['', ' \n', '{}', ' { }', '[]', '[ {} ]'])
    t.same(decode('datadog/logs', empty), { ...decode('datadog/logs', ''), reply: null }, empty)
})

void test('Datadog takes lines of text, and no record is refused for the type of a field', async (t) => {
  const text = decode('datadog/logs', 'one\r\n\ntwo {"a":1}', 'service=shop&ddtags=env:prod')
  t.match(text.events, [
    { message: 'one', source: 'shop', environment: 'prod' },
    { message: 'two {"a":1}', source: 'shop' },
  ])
  t.throws(() => decode('datadog/logs', Buffer.alloc(256, 1)), { code: 'bad_request' })
  const odd = [
    { message: { user: 7 }, service: 's' },
    { message: 42 },
    { message: 'm', host: { name: 'web-1' } },
    { source: 's', message: 'm', type: 'access', trace_id: 123 },
  ]
  const { events, rejects } = decode('datadog/logs', JSON.stringify(odd))
  t.same(rejects, [])
  t.match(events, [
    { message: '{"user":7}' },
    { message: '42' },
    { message: 'm', host: 'web-1' },
    { message: 'm', source: 's', type: 'log', traceId: '123', tags: { type: 'access' } },
  ])
})
