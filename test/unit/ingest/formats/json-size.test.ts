import * as fc from 'fast-check'
import { test } from 'tap'
import { decodeIngest } from '../../../../src/ingest/formats/ndjson.js'
import { decodeUpload } from '../../../../src/ingest/formats/upload.js'
import { checkRequest, itemEnds, measure } from '../../../../src/ingest/formats/json-size.js'
import type { Rejection } from '../../../../src/model/event.js'

const CONTEXT = {
  nowMs: Date.UTC(2026, 10, 21),
  toUtc: (ms: number) => ms,
  environment: 'test',
  source: null,
  defaultSource: 'nameless',
  requestSource: '',
  params: '',
  maxMessageBytes: 1000,
  maxRows: 1000,
}

function decode(text: string): { events: number; rejections: Rejection[] } {
  const rejections: Rejection[] = []
  let events = 0
  decodeIngest(Buffer.from(text), CONTEXT, {
    event: () => {
      events++
    },
    reject: (_line, rejection) => rejections.push(rejection),
  })
  return { events, rejections }
}

const good = '{"source":"a","message":"m"}'

void test('items of any array are found where JSON.parse finds them', (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue({ maxDepth: 4 }), { minLength: 1 }),
      fc.nat(4),
      (items, indent) => {
        const bytes = Buffer.from(JSON.stringify(items, null, indent))
        const ends = itemEnds(bytes, 1, Infinity) ?? []
        const starts = [1, ...ends.map((end) => end + 1)]
        const found = ends.map((end, i): unknown =>
          JSON.parse(bytes.toString('utf8', starts[i], end)),
        )
        return JSON.stringify(found) === JSON.stringify(items)
      },
    ),
  )
  t.end()
})

void test('no text makes the search run over its end', (t) => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('[', ']', '{', '}', ',', ':', '"', '\\', ' ', 'a') }),
      (text) => {
        const bytes = Buffer.from(text)
        return (
          measure(bytes, 0, bytes.length).end <= bytes.length &&
          (itemEnds(bytes, 0, 10)?.length ?? 0) <= 11
        )
      },
    ),
  )
  t.end()
})

void test('records are counted before the first is decoded', (t) => {
  const tooMany = { code: 'file_parse_error' }
  for (const body of [
    `[${'{},'.repeat(1000)}{}]`,
    `[${'{},'.repeat(1_000_000)}`,
    '{}\n'.repeat(1001),
    '1\r\n\n \n'.repeat(1001),
  ]) {
    let seen = 0
    const sink = {
      event: () => void seen++,
      reject: () => void seen++,
    }
    t.throws(() => decodeIngest(Buffer.from(body), CONTEXT, sink), tooMany, body.slice(0, 10))
    t.equal(seen, 0)
  }
  t.match(decode(`[${`${good},`.repeat(999)}${good}]`), { events: 1000 })
  t.match(decode(`\n \r\n${`${good}\n\n\n`.repeat(1000)}\n`), { events: 1000 })
  t.end()
})

void test('a record of very many values is rejected unparsed, the others are stored', (t) => {
  const values = `{"source":"a","message":"m","list":[${'{},'.repeat(60_000)}1]}`
  const nested = `{"source":"a","message":${'['.repeat(60_000)}${']'.repeat(60_000)}}`
  const long = `{"source":"a","message":"m","text":"${'{},[]'.repeat(60_000)}\\""}`
  for (const bad of [values, nested])
    for (const body of [[bad, good, good].join('\n'), `[${[good, bad, good].join()}]`])
      t.match(decode(body), { events: 2, rejections: [{ reason: 'invalid_event' }] })
  t.match(decode(`${long}\n${good}`), { events: 2, rejections: [] }, 'a text is one value')
  t.end()
})

void test('an array that is no JSON is refused as a whole', (t) => {
  for (const body of ['[1,,2]', '[1,]', '[,1]', '[1 2]', '[1}', '[{]', '[1]x', '[', '["]', '[[1]'])
    t.throws(() => decode(body), { code: 'validation_error' }, body)
  t.match(decode('[ ]'), { events: 0, rejections: [] })
  t.match(decode(` [${good} ,\n${good}]\n`), { events: 2, rejections: [] })
  t.end()
})

void test('a file of very many values is refused before it is parsed', async (t) => {
  const sink = { event: () => undefined, reject: () => undefined }
  const context = { ...CONTEXT, source: 'file' }
  for (const body of [`[${'{},'.repeat(1000)}{}]`, `{"logs":[${'{},'.repeat(2_000_001)}1]}`])
    for (const type of ['json', 'txt'] as const)
      await t.rejects(decodeUpload(type, Buffer.from(body), context, sink), {
        code: 'file_parse_error',
      })
})

void test('a file with an object of very many members, or an open quote, is refused before it is parsed', async (t) => {
  const events: number[] = []
  const sink = { event: (line: number) => void events.push(line), reject: () => undefined }
  const context = { ...CONTEXT, source: 'file', maxRows: 100_000 }
  const wide = `{${Array.from({ length: 50_001 }, (_, i) => `"k${i}":1`).join()}}`
  for (const body of [wide, `{"logs":[${wide}]}`, `[${wide}]`])
    for (const type of ['json', 'txt'] as const)
      await t.rejects(decodeUpload(type, Buffer.from(body), context, sink), {
        code: 'file_parse_error',
        message: /50000 members/,
      })
  await t.rejects(
    decodeUpload('csv', Buffer.from(`message\n"${'a\n'.repeat(100)}`), context, sink),
    { code: 'file_parse_error' },
  )
  const many = Array.from({ length: 60_000 }, () => '{"message":"m"}')
  t.equal(await decodeUpload('json', Buffer.from(many.join(',')), context, sink), many.length)
})

void test('a request of JSON may have many values, but no object as many members', async (t) => {
  const check = (text: string) => checkRequest(Buffer.from(text))
  const object = (members: number): string =>
    `{${Array.from({ length: members }, (_, i) => `"k${i}":"a,{"`).join()}}`
  check(object(50_000))
  check(`{"a":[${`${object(40_000)},`.repeat(4)}1],"b":{"c":${object(40_000)},"d":1}}`)
  check(`[${'1,'.repeat(1_900_000)}1]`)
  const wide = object(50_001)
  for (const text of [wide, `[${wide}]`, `{"a":[[{"b":${wide}}]]}`, `]}${wide}`, wide.slice(0, -1)])
    t.throws(() => check(text), { code: 'body_too_large', message: /50000 members/ })
  for (const text of [`[${'1,'.repeat(2_000_001)}1]`, '['.repeat(2_000_001)])
    t.throws(() => check(text), { code: 'body_too_large', message: /2000000 JSON values/ })
})
