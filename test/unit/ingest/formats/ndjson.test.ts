import {
  anything,
  array,
  assert,
  constantFrom,
  dictionary,
  integer,
  json,
  oneof,
  property,
  record as recordOf,
  string,
  uint8Array,
} from 'fast-check'
import { test } from 'tap'
import { decodeIngest } from '../../../../src/ingest/formats/ndjson.js'
import { AppError } from '../../../../src/model/errors.js'
import { AT, collect, ingestContext, NOW } from './collect.js'
import { DAY_MS } from '../../../../src/model/time.js'

function decode(body: string | Uint8Array, context = ingestContext) {
  const sink = collect()
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const received = decodeIngest(bytes, context, sink)
  return { ...sink, received }
}

/** Decodes a record. @returns its event, or the reason of the rejection */
function one(record: unknown) {
  const { events, rejects } = decode(JSON.stringify(record))
  const [event] = events
  if (events.length + rejects.length !== 1) throw new Error('not one record')
  return { event, tags: event?.tags ?? {}, reason: rejects[0]?.reason, reject: rejects[0] }
}

void test('a canonical event is decoded field by field', async (t) => {
  const { events } = decode(
    JSON.stringify({
      timestamp: '2026-11-21T10:28:19+01:00',
      source: 'checkout',
      type: 'metric',
      severity: 'warn',
      message: '  kept verbatim\n',
      host: 'web-1',
      environment: 'staging',
      trace_id: 'abc',
      span_id: 'def',
      summary: 'sum',
      dedup_key: 'sha256:00',
      tags: { a: 1 },
      schema_version: '1.0',
    }),
  )
  t.same(events, [
    {
      timestampMs: AT,
      source: 'checkout',
      type: 'metric',
      severity: 'WARNING',
      message: '  kept verbatim\n',
      host: 'web-1',
      environment: 'staging',
      traceId: 'abc',
      spanId: 'def',
      summary: 'sum',
      dedupKey: 'sha256:00',
      tags: { a: 1 },
      template: '',
      exception: '',
    },
  ])
})

void test('missing fields have defaults', async (t) => {
  const { event } = one({ source: 'a', message: 'b' })
  t.match(event, { timestampMs: NOW, type: 'log', environment: 'production', host: '', tags: null })
  t.equal(event?.severity, null)
  t.match(one({ source: 'a', message: 'b', host: null, tags: null, severity: null }).event, {
    host: '',
  })
})

void test('NDJSON, an array and an object are distinguished', async (t) => {
  const record = { source: 'a', message: 'b' }
  const line = JSON.stringify(record)
  const counts = (body: string, received: number) =>
    t.equal(decode(body).events.length, received, JSON.stringify(body.slice(0, 30)))
  counts(`${line}\n${line}\n`, 2)
  counts(`\r\n${line}\r\n\r\n  \n${line}`, 2)
  counts(JSON.stringify([record, record, record]), 3)
  counts(` \n[${line}]\n`, 1)
  counts(`\uFEFF${line}\n${line}`, 2)
  counts(`\uFEFF[${line}]`, 1)
  counts(JSON.stringify(record, null, 2), 1)
  counts(`\n\n${JSON.stringify(record, null, 2)}\n`, 1)
  counts('[]', 0)
  counts('', 0)
  counts('\n \n', 0)
})

void test('an invalid line is rejected with its number and text, and the others are decoded', async (t) => {
  const line = '{"source":"a","message":"b"}'
  const { events, lines, rejects, received } = decode(`${line}\r\n\n{"source":\n${line}\n12\n"x"\n`)
  t.equal(received, 5)
  t.equal(events.length, 2)
  t.same(lines, [1, 4])
  t.match(rejects, [
    { line: 3, reason: 'invalid_json', raw: '{"source":' },
    { line: 5, reason: 'invalid_event', raw: '12' },
    { line: 6, reason: 'invalid_event', raw: '"x"' },
  ])
})

void test('the elements of an array are numbered by position', async (t) => {
  const { lines, rejects } = decode('[{"source":"a","message":"b"}, null, {"source":"a"}]')
  t.same(lines, [1])
  t.match(rejects, [
    { line: 2, reason: 'invalid_event', raw: 'null' },
    { line: 3, reason: 'missing_message', raw: '{"source":"a"}', source: 'a' },
  ])
})

void test('an array that is not JSON fails as a whole, without its content', async (t) => {
  t.throws(() => decode('[{"secret":1},'), { code: 'validation_error' })
  t.throws(() => decode('[1'), { message: /^the body begins as a JSON array and is none$/ })
})

void test('the numbers of lines are right in large bodies', async (t) => {
  const rows = 5000
  const body = Array.from({ length: rows }, (_, i) =>
    JSON.stringify({
      source: 'a',
      message: `${i} ${i % 7 === 0 ? 'ünï 日本' : ''} ${'x'.repeat(i % 90)}`,
    }),
  )
  body[1234] = 'broken ü'
  const { events, lines, rejects } = decode(body.join('\n'))
  t.equal(events.length, rows - 1)
  t.match(rejects, [{ line: 1235, raw: 'broken ü' }])
  t.ok(events.every(({ message }, i) => Number.parseInt(message, 10) + 1 === lines[i]))
  t.ok(events[4900 - 1]?.message.includes('日本'), 'wide letters arrive')
})

void test('invalid UTF-8 becomes replacement characters', async (t) => {
  const body = Buffer.concat([
    Buffer.from('{"source":"a","message":"caf'),
    Buffer.from([0xe9]),
    Buffer.from('"}'),
  ])
  t.equal(decode(body).events[0]?.message, 'caf\uFFFD')
})

void test('lone surrogates are replaced, NUL stays', async (t) => {
  const { events } = decode(
    String.raw`{"source":"a","message":"x\ud800y\u0000","tags":{"k\udc00":"\udfff"}}`,
  )
  t.match(events, [{ message: 'x\uFFFDy\0', tags: { 'k\uFFFD': '\uFFFD' } }])
  t.equal(decode(String.raw`{"source":"a","message":"\ud83d\ude80"}`).events[0]?.message, '🚀')
})

void test('a record without a source, or with a blank one, takes the default', async (t) => {
  for (const [record, source] of [
    [{ message: 'b' }, 'nameless'],
    [{ source: '', message: 'b' }, 'nameless'],
    [{ source: ' \t', message: 'b' }, 'nameless'],
    [{ source: null, message: 'b' }, 'nameless'],
    [{ msg: 'b', level: 30 }, 'nameless'],
    [{ source: ' ', service: 'api', msg: 'b' }, 'api'],
    [{ source: { ip: '10.0.0.1' }, message: 'b' }, 'nameless'],
    [{ source: { ip: '10.0.0.1' }, message: 'b', service: { name: 'api' } }, 'api'],
  ] as const)
    t.equal(one(record).event?.source, source, JSON.stringify(record))
})

void test('a record that cannot be stored is rejected with the reason', async (t) => {
  const rejects = (record: object, reason: string, naming: string) => {
    const { reject } = one(record)
    t.equal(reject?.reason, reason, naming)
    t.ok(reject?.message.includes(naming), `${reject?.message} names ${naming}`)
  }
  const record = { source: 'a', message: 'b' }
  rejects({ source: 'a' }, 'missing_message', 'message')
  rejects({ source: 'a', message: '' }, 'missing_message', 'message')
  rejects({ source: 'a', type: 'metric', tags: { v: 1 } }, 'missing_message', 'message')
  rejects({ source: 'a', message: 5 }, 'invalid_event', 'message')
  rejects({ source: 'a', message: { x: 1 } }, 'invalid_event', 'message')
  rejects({ source: 5, message: 'b' }, 'invalid_event', 'source')
  rejects({ source: 'a\u0001', message: 'b' }, 'invalid_event', 'source')
  rejects({ source: 'a'.repeat(121), message: 'b' }, 'invalid_event', '120')
  rejects({ ...record, type: 'alarm' }, 'invalid_event', 'type')
  rejects({ ...record, type: 'alarm', extra: 1 }, 'invalid_event', 'type')
  rejects({ ...record, severity: { a: 1 } }, 'invalid_event', 'severity')
  rejects({ ...record, timestamp: 'soon' }, 'invalid_timestamp', 'timestamp')
  rejects({ ...record, timestamp: true }, 'invalid_timestamp', 'timestamp')
  rejects({ ...record, timestamp: 'soon', extra: 1 }, 'invalid_timestamp', 'timestamp')
  rejects({ ...record, timestamp: '1969-12-31T23:59:59Z' }, 'timestamp_out_of_range', '1970')
  rejects({ ...record, timestamp: NOW + 86_400_001 }, 'timestamp_out_of_range', 'day')
  for (const extra of [{}, { extra: 1 }]) {
    rejects({ ...record, ...extra, host: 'h'.repeat(256) }, 'invalid_event', 'host')
    rejects({ ...record, ...extra, trace_id: 't'.repeat(257) }, 'invalid_event', 'trace_id')
    rejects({ ...record, ...extra, summary: 's'.repeat(16_385) }, 'invalid_event', 'summary')
  }
  rejects({ ...record, environment: 'e'.repeat(65) }, 'invalid_event', 'environment')
  rejects({ ...record, host: 7 }, 'invalid_event', 'host')
  t.equal(
    one({ source: '😀'.repeat(120), message: 'b' }).reason,
    undefined,
    'characters, not units',
  )
  t.equal(one({ ...record, timestamp: NOW + DAY_MS }).reason, undefined, 'one day ahead')
})

void test('the length of a message is counted in bytes', async (t) => {
  const context = { ...ingestContext, maxMessageBytes: 10 }
  const reason = (message: string) =>
    decode(JSON.stringify({ source: 'a', message }), context).rejects[0]?.reason
  t.equal(reason('0123456789'), undefined)
  t.equal(reason('0123456789a'), 'message_too_large')
  t.equal(reason('ééééé'), undefined)
  t.equal(reason('éééééa'), 'message_too_large')
})

void test('a level in any spelling is a severity, and a more specific word becomes a tag', async (t) => {
  const reads = (severity: unknown, want: string | null, text?: string) => {
    for (const extra of [{}, { extra: 1 }]) {
      const { event, tags } = one({ source: 'a', message: 'b', severity, ...extra })
      t.equal(event?.severity, want, String(severity))
      t.equal(tags['severity_text'], text, `${String(severity)}: text`)
    }
  }
  reads('ERR', 'ERROR')
  reads('notice', 'INFO', 'notice')
  reads('FATAL', 'CRITICAL', 'FATAL')
  reads('banana', 'INFO', 'banana')
  reads('', null)
  reads('unknown', null)
  reads(3, 'ERROR')
  reads('4', 'WARNING')
  reads(50, 'ERROR')
  reads(35, 'INFO')
})

void test('a priority of the producer stays a tag', async (t) => {
  const { event, tags } = one({ source: 'a', message: 'b', priority: 'P1' })
  t.equal(event?.severity, null)
  t.same(tags, { priority: 'P1' })
})

void test('unmapped scalars become tags, next to the tags of the record', async (t) => {
  const { tags } = one({
    source: 'a',
    message: 'b',
    user: 7,
    ok: false,
    nil: null,
    tags: { user: 'own' },
  })
  t.same(tags, { user: 'own', ok: false })
  t.same(one({ source: 'a', message: 'b', http: { url: '/x', codes: [1, 2] } }).tags, {
    http: { url: '/x', codes: [1, 2] },
  })
})

void test('members named like properties of Object.prototype are ordinary tags', async (t) => {
  const { events } = decode(
    '{"source":"a","message":"b","__proto__":{"x":1},"constructor":"c","toString":1}',
  )
  const tags = events[0]?.tags ?? {}
  t.equal(JSON.stringify(tags), '{"__proto__":{"x":1},"constructor":"c","toString":1}')
  t.equal(Reflect.get({}, 'x'), undefined, 'nothing is polluted')
})

void test('tags are limited, and omitted ones are counted', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`k${i}`, i]))
  t.same(one({ source: 'a', message: 'b', ...many }).tags, many)
  t.same(one({ source: 'a', message: 'b', tags: many }).tags, many)
  const most = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i]))
  const { omitted_tags: omitted, ...kept } =
    one({ source: 'a', message: 'b', tags: most }).tags ?? {}
  t.ok(Number(omitted) > 0)
  t.equal(Object.keys(kept).length + Number(omitted), 10_000)
  t.same(one({ source: 'a', message: 'b', big: 'x'.repeat(70_000), ok: 1 }).tags, {
    ok: 1,
    omitted_tags: 1,
  })
  const deep = '{"fields":'.repeat(20_000) + '1' + '}'.repeat(20_000)
  const { events, rejects } = decode(`{"source":"a","message":"b","fields":${deep},"tags":${deep}}`)
  t.equal(events.length + rejects.length, 1, 'deep nesting is no problem')
})

void test('no body makes the decoder throw anything but AppError or lose a record', async (t) => {
  const whole = (bytes: Uint8Array) => {
    try {
      const { events, rejects, received } = decode(bytes)
      return received === events.length + rejects.length
    } catch (error) {
      return error instanceof AppError
    }
  }
  const line = oneof(
    json(),
    string(),
    anything().map((value) => JSON.stringify(value) ?? ''),
  )
  assert(property(uint8Array({ maxLength: 300 }), whole))
  assert(
    property(array(line), (lines) => whole(Buffer.from(lines.join('\n')))),
    { numRuns: 500 },
  )
  assert(property(array(json()), (items) => whole(Buffer.from(`[${items.join(',')}]`))))
  t.pass('held')
})

void test('each record of a body is decoded once and in order', async (t) => {
  const message = string({ minLength: 1 })
  assert(
    property(array(message), (messages) => {
      const records = messages.map((text) => ({ source: 'a', message: text }))
      const ndjson = decode(records.map((r) => JSON.stringify(r)).join('\n'))
      const list = decode(JSON.stringify(records))
      const want = messages.map((text) => Buffer.from(text).toString())
      const got = [ndjson, list].map(({ events }) => JSON.stringify(events.map((e) => e.message)))
      return got.every((text) => text === JSON.stringify(want))
    }),
  )
  t.pass('held')
})

void test('similar lines are decoded as they are in bodies of their own', async (t) => {
  const text = oneof(
    string(),
    constantFrom('', 'INFO', '{', '}', '"', ',', 'a\tb', 'ü', '2026-11-21T09:28:19Z'),
  )
  const canonical = recordOf(
    {
      timestamp: oneof(constantFrom('2026-11-21T09:28:19Z', '', 0), integer()),
      source: text,
      severity: oneof(text, integer({ min: 0, max: 70 })),
      message: text,
      tags: dictionary(text, oneof(text, integer(), dictionary(text, text)), { maxKeys: 3 }),
      host: oneof(text, constantFrom(null, true)),
    },
    { requiredKeys: ['source', 'severity', 'message'] },
  )
  const spaced = constantFrom(0, 1)
  const line = property(
    array(canonical),
    spaced,
    constantFrom('\n', '\r\n'),
    (records, spaces, end) => {
      const lines = records.map((r) => JSON.stringify(r, null, spaces).replace(/\n */g, ''))
      const together = decode(lines.join(end))
      const single = lines.map((each) => decode(each))
      const same = (list: readonly unknown[]) => JSON.stringify(list)
      return (
        same(together.events) === same(single.flatMap(({ events }) => events)) &&
        same(together.rejects.map(({ reason }) => reason)) ===
          same(single.flatMap(({ rejects }) => rejects.map(({ reason }) => reason)))
      )
    },
  )
  assert(line, { numRuns: 500 })
  t.pass('held')
})

void test('a line that resembles the one before it is still validated as JSON', async (t) => {
  const good = '{"source":"a","message":"b","timestamp":1795253350042,"tags":{"k":"v"}}'
  const reasonOf = (line: string) => decode(`${good}\n${good}\n${line}\n${good}`).rejects[0]?.reason
  t.equal(reasonOf('{"source":"a","message":"b","timestamp":01,"tags":{"k":"v"}}'), 'invalid_json')
  t.equal(reasonOf('{"source":"a","message":"b","timestamp":,"tags":{"k":"v"}}'), 'invalid_json')
  t.equal(reasonOf('{"source":"a","message":"b","timestamp":1,"tags":{"k":"v"}}}'), 'invalid_json')
  t.equal(reasonOf('{"source":"a","message":"b","timestamp":1,"tags":{"k":"v"}'), 'invalid_json')
  t.equal(reasonOf('{"source":"a","message":"b","timestamp":1,"tags":{"k":v}}'), 'invalid_json')
  t.equal(
    reasonOf('{"source":"a","message":"b\tc","timestamp":1,"tags":{"k":"v"}}'),
    'invalid_json',
  )
  t.equal(reasonOf('{"source":"a","message":"b'), 'invalid_json')
  const odd = decode(
    `${good}\n{"source":"a","message":"b","timestamp":1795253350043,"tags":{"k":"}"}}\n${good}`,
  )
  t.same(
    odd.events.map((event) => event.tags),
    [{ k: 'v' }, { k: '}' }, { k: 'v' }],
  )
  const twice = '{"source":"a","message":"b","message":"c"}'
  t.same(
    decode(`${twice}\n${twice}`).events.map((event) => event.message),
    ['c', 'c'],
  )
})
