import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { test, type Test } from 'tap'
import {
  allEvents,
  countOf,
  ingest,
  KNOWN,
  logIn,
  settledCount,
  startService,
  tempDataDir,
  upload,
  type Caller,
  type Service,
} from '../support/service.js'
import { HOUR_MS } from '../../src/model/time.js'

const MIB = 1024 * 1024

/** A Zstandard frame of raw blocks (RFC 8878), for the test alone. */
function zstd(text: string): Uint8Array<ArrayBuffer> {
  const data = Buffer.from(text)
  const parts: Buffer[] = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xa0]), Buffer.alloc(4)]
  parts[1]?.writeUInt32LE(data.length)
  const step = 100_000
  for (let at = 0; at < data.length; at += step) {
    const block = data.subarray(at, at + step)
    const head = Buffer.alloc(3)
    head.writeUIntLE((block.length << 3) | (at + step >= data.length ? 1 : 0), 0, 3)
    parts.push(head, block)
  }
  return Uint8Array.from(Buffer.concat(parts))
}

const gzip = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(gzipSync(text))

const ndjson = (count: number, source: string): string =>
  Array.from({ length: count }, (_, i) =>
    JSON.stringify({ source, message: `order ${i} placed` }),
  ).join('\n')

async function bodies(t: Test, service: Service, caller: Caller): Promise<void> {
  const sent = async (body: string | Uint8Array<ArrayBuffer>, headers = {}): Promise<unknown> => {
    const reply = await ingest(service, body, headers)
    return { status: reply.status, ...((await reply.json()) as object) }
  }
  const taken = (n: number): object => ({
    status: 202,
    received: n,
    accepted: n,
    rejected: 0,
    dropped: 0,
  })
  t.match(await sent(gzip(ndjson(700, 'gzip')), { 'content-encoding': 'gzip' }), taken(700))
  t.match(await sent(zstd(ndjson(9000, 'zstd')), { 'content-encoding': 'zstd' }), taken(9000))
  t.match(await sent(`[${ndjson(3, 'array').replaceAll('\n', ',')}]`), taken(3))
  const stack = 'TypeError: x is not a function\n    at run (app.js:1:2)\n    at main (app.js:9:1)'
  t.match(await sent(JSON.stringify({ source: 'lines', message: stack }, null, 2)), taken(1))
  t.match(await sent(`\n\n${ndjson(2, 'blank')}\r\n\n`), taken(2))
  t.match(await sent('{"source":"broken","message":"a"}\n{"source":'), {
    status: 202,
    received: 2,
    accepted: 1,
    rejected: 1,
    errors: [{ line: 2, code: 'invalid_json' }],
  })
  t.match(await sent('no gzip', { 'content-encoding': 'gzip' }), { status: 400 })
  t.match(await sent('x', { 'content-encoding': 'lzma' }), { status: 415 })
  t.match(await sent('x', { authorization: 'Bearer wrong' }), {
    status: 401,
    detail: { code: 'unauthorized', message: /key is unknown/ },
  })
  t.match(await sent('x', { authorization: '' }), { detail: { message: /key is required/ } })
  t.match(await sent('a line of text'), { detail: { message: /text\/plain/ } })
  t.equal(await settledCount(() => countOf(caller, 'zstd'), 9000), 9000)
  t.equal(await countOf(caller, 'gzip'), 700)
  const [event] = await allEvents(caller, { source: 'lines' })
  t.equal(event?.message, stack, 'a message of several lines is kept as it is')
}

/** What a record without a source takes, best first: its request's query, header, key, `default`. */
async function nameless(t: Test, service: Service, caller: Caller): Promise<void> {
  const made = await caller.call('POST', '/api/ingest-keys', {
    name: 'limited',
    sources: ['checkout', 'cart'],
    auto_register: false,
  })
  const { key } = (await made.json()) as { key: string }
  const limited = { authorization: `Bearer ${key}` }
  const header = { 'x-source': 'header' }
  for (const [message, query, headers, source] of [
    ['by query', '?source=a%20query', header, 'a query'],
    ['by header', '', header, 'header'],
    ['by key', '', limited, 'checkout'],
    ['by key and query', '?source=cart', limited, 'cart'],
    ['by nothing', '', {}, 'default'],
  ] as const) {
    const body = [{ message }, { message: `${message}, parsed`, extra: 1 }]
    const text = body.map((record) => JSON.stringify(record)).join('\n')
    const reply = await ingest(service, text, headers, query)
    t.match(await reply.json(), { accepted: 2, rejected: 0 }, message)
    await settledCount(() => countOf(caller, source), 2)
    const events = await allEvents(caller, { source })
    t.same(events.map((event) => event.message).toSorted(), [message, `${message}, parsed`])
  }
  t.equal((await ingest(service, '{"message":"a"}', limited, '?source=other')).status, 403)
  t.equal((await ingest(service, '{"message":"a"}', {}, '?source=%00')).status, 422)
}

/** Text lines are read as those of an uploaded file, with the source of the request or key. */
async function textLines(t: Test, service: Service, caller: Caller): Promise<void> {
  const at = new Date(Date.now() - 60_000).toISOString()
  const text = [
    `${at} ERROR [main] shop.Cart - broke`,
    'java.lang.IllegalStateException: empty',
    '\tat shop.Cart.pay(Cart.java:17)',
    `${at} INFO [main] shop.Cart - fine`,
    '{"level":"warn","msg":"in JSON"}',
    '{"source":"other","message":"of a source of its own"}',
    '{"broken":',
  ].join('\r\n')
  for (const [body, coding] of [
    [text, {}],
    [gzip(text), { 'content-encoding': 'gzip' }],
  ] as const) {
    const headers = { 'content-type': 'text/plain; charset=utf-8', ...coding }
    const reply = await ingest(service, body, headers, '?source=lines%20of%20text')
    t.equal(reply.status, 202)
    t.match(await reply.json(), { received: 5, accepted: 5, rejected: 0 })
  }
  await settledCount(() => countOf(caller, 'lines of text'), 8)
  const events = await allEvents(caller, { source: 'lines of text', search: 'cart' })
  t.match(events, [{ severity: 'ERROR', timestamp: at }])
  t.match(events[0]?.message, /^broke\njava.lang.IllegalStateException: empty\n\tat/)
  const plain = { 'content-type': 'text/plain' }
  const json = '{"source":"lines of text","message":"a"}\n{"broken":'
  t.match(await (await ingest(service, json, plain)).json(), { accepted: 1, rejected: 1 })
  t.match(await (await ingest(service, ' \n[]', plain)).json(), { received: 0 })
  t.match(await (await ingest(service, ' \n', plain)).json(), { received: 0 })
  const binary = await ingest(service, Buffer.from('\u0001\u0002ELF\u0003\n'.repeat(9)), plain)
  t.equal(binary.status, 400)
  const many = await ingest(service, 'x\n'.repeat(500_001), plain)
  t.equal(many.status, 413)
  const made = await caller.call('POST', '/api/ingest-keys', { name: 'text', sources: ['mine'] })
  const { key } = (await made.json()) as { key: string }
  const limited = { ...plain, authorization: `Bearer ${key}` }
  t.equal((await ingest(service, 'one\ntwo', limited)).status, 202)
  t.equal((await ingest(service, 'one\n{"source":"shop","message":"a"}', limited)).status, 403)
  await settledCount(() => countOf(caller, 'mine'), 2)
}

/** An event is found by what its exception says. */
async function exceptions(t: Test, service: Service, caller: Caller): Promise<void> {
  const stack = 'ZebraError: no "grass"\n    at Paddock.feed (/srv/zoo/Paddock.js:17:4)'
  const records = [
    { service: 'zoo', level: 50, msg: 'feeding failed', err: { stack } },
    { service: 'zoo', level: 50, msg: 'Fütterung misslang', err: { stack } },
    { service: 'zoo', level: 30, msg: 'all quiet', note: 'ZebraError: no "grass"' },
  ]
  await ingest(service, records.map((record) => JSON.stringify(record)).join('\n'))
  await settledCount(() => countOf(caller, 'zoo'), 3)
  const found = async (search: string): Promise<number> =>
    (await allEvents(caller, { source: 'zoo', search })).length
  for (const search of ['zebraerror', 'ZebraError', 'paddock feed', 'padd*', 'feed srv zoo 17'])
    t.equal(await found(search), 2, search)
  for (const search of ['"error: no"', '"ZebraError: no"', '"Paddock.feed (/srv"'])
    t.equal(await found(search), 2, search)
  t.equal(await found('zebraerror feeding'), 1)
  t.equal(await found('zebraerror fütterung'), 1)
  t.equal(await found('"Paddock feed"'), 0)
  t.equal(await found('zebr'), 0)
}

async function tooLarge(t: Test, service: Service): Promise<void> {
  const limit = 16 * MIB
  for (const [body, headers] of [
    ['x'.repeat(limit + 1), {}],
    [gzip(' '.repeat(limit + 1)), { 'content-encoding': 'gzip' }],
  ] as const) {
    const reply = await ingest(service, body, headers).catch(() => null)
    t.ok(reply === null || reply.status === 413, `${reply?.status}`)
    if (reply !== null) t.match(await reply.json(), { detail: { code: 'body_too_large' } })
  }
  const lines = `{"source":"large","message":"${'x'.repeat(170)}"}\n`
  const whole = lines.repeat(Math.floor(limit / lines.length))
  t.equal((await ingest(service, whole.padEnd(limit))).status, 202)
}

/** 2,000 lines in the forms of a system log, with repeats among them. */
const generated = (): string =>
  Array.from({ length: 2000 }, (_, i) => {
    const at = new Date(Date.now() - HOUR_MS + i * 500).toISOString()
    const level = ['INFO', 'WARN', 'ERROR'][i % 3] ?? 'INFO'
    return `${at} ${level} worker-${i % 7}: request ${i % 40} took ${i % 90} ms`
  }).join('\n')

interface File {
  readonly source: string
  readonly text: string
}

async function files(
  t: Test,
  service: Service,
  caller: Caller,
  all: readonly File[],
): Promise<void> {
  for (const { source, text } of all) {
    const reply = await upload(service, caller, { type: 'txt', source, text })
    t.equal(reply.status, 202)
    t.match(
      await reply.json(),
      { events_processed: 2000, source_name: source, detail: { sent: 2000, errors: 0 } },
      source,
    )
  }
  const counts = async (): Promise<readonly number[]> =>
    await Promise.all(
      all.map(async ({ source }) => {
        const events = await allEvents(caller, { source, start_time: '1970-01-01' })
        return events.reduce((sum, event) => sum + event.occurrence_count, 0)
      }),
    )
  const total = async (): Promise<number> => (await counts()).reduce((sum, n) => sum + n, 0)
  await settledCount(total, all.length * 2000)
  t.same(
    await counts(),
    all.map(() => 2000),
  )
}

/** A file of another zone: its times are in the zone that the upload names. */
async function zones(t: Test, service: Service, caller: Caller): Promise<void> {
  const send = async (zone: string): Promise<Response> => {
    const form = new FormData()
    form.append('file', new Blob(['2026-07-01 10:00:00 INFO zoned\n']), 'a.txt')
    form.append('file_type', 'txt')
    form.append('source_name', 'zoned')
    form.append('time_zone', zone)
    return await fetch(`${service.api}/api/sources/ephemeral`, {
      method: 'POST',
      headers: { authorization: `Bearer ${caller.token}` },
      body: form,
    })
  }
  t.match(await (await send('America/New_York')).json(), {
    time_span: { from: '2026-07-01T14:00:00.000Z' },
  })
  const refused = await send('Mars/Olympus')
  t.equal(refused.status, 422)
  t.match(await refused.json(), {
    detail: { code: 'validation_error', details: { errors: [{ path: 'time_zone' }] } },
  })
}

/** An old file is not listed by default: the reply to the upload and the empty list say where it is. */
async function oldFile(t: Test, service: Service, caller: Caller): Promise<void> {
  const text = '2024-02-03 04:05:06 INFO first\n2024-03-04 05:06:07 INFO last\n'
  const reply = await upload(service, caller, { type: 'txt', source: 'old & gone', text })
  const stored = (await reply.json()) as { time_span: object; events_url: string }
  const [from, to] = ['2024-02-03T04:05:06.000Z', '2024-03-04T05:06:07.000Z']
  t.match(stored, { time_span: { from, to } })
  const list = async (path: string) =>
    await caller.get<{ items: readonly object[]; newest_event_at?: string }>(path)
  await settledCount(async () => (await list(stored.events_url)).items.length, 2)
  t.equal((await list(stored.events_url)).newest_event_at, undefined)
  const path = `/api/logs?${new URLSearchParams({ source: 'old & gone' }).toString()}`
  t.same(await list(path), { items: [], next_cursor: null, has_more: false, newest_event_at: to })
  t.notHas(await list('/api/logs?source=unheard'), { newest_event_at: to })
  t.notHas(await list(`${path}&start_time=2025-01-01`), { newest_event_at: to })
}

async function paging(t: Test, service: Service, caller: Caller): Promise<void> {
  const start = Date.now() - 5_400_000
  const events = Array.from({ length: 1500 }, (_, i) => ({
    source: 'pages',
    message: `step ${i}`,
    // Several events of one millisecond, and pages that end between them.
    timestamp: new Date(start + Math.floor(i / 7) * 1000).toISOString(),
  }))
  const text = (all: readonly object[]): string =>
    all.map((event) => JSON.stringify(event)).join('\n')
  await ingest(service, text(events))
  await settledCount(() => countOf(caller, 'pages'), 1500)
  let more = 0
  const walked = await allEvents(caller, { source: 'pages' }, async () => {
    const late = [-1, 0.5, 1].map((share) => ({
      source: 'pages',
      message: `meanwhile ${more++}`,
      timestamp: new Date(start + share * 214_000).toISOString(),
    }))
    await ingest(service, text(late))
    await settledCount(() => countOf(caller, 'pages'), 1500 + more)
  })
  const earlier = walked.filter(({ message }) => message.startsWith('step'))
  t.equal(earlier.length, 1500)
  t.equal(new Set(earlier.map(({ id }) => id)).size, 1500, 'each once')
  const keys = walked.map(({ timestamp, id }) => [Date.parse(timestamp), id] as const)
  const isSorted = keys.every(([ts, id], i) => {
    const [before, beforeId] = keys[i - 1] ?? [Number.POSITIVE_INFINITY, 0]
    return ts < before || (ts === before && id < beforeId)
  })
  t.ok(isSorted, 'newest first, then by id')
  t.ok(more > 10, 'events arrived in between')
}

void test('a running service', async (t) => {
  const service = await startService(t, { DATA_DIR: tempDataDir(t), ...KNOWN })
  const caller = await logIn(service)
  await t.test('takes bodies in every form', (t) => bodies(t, service, caller))
  await t.test('takes records without a source', (t) => nameless(t, service, caller))
  await t.test('takes text lines', (t) => textLines(t, service, caller))
  await t.test('finds events by their exceptions', (t) => exceptions(t, service, caller))
  await t.test('refuses bodies above 16 MiB, also when they grow to that', (t) =>
    tooLarge(t, service),
  )
  await t.test('counts 2,000 uploaded lines as 2,000', (t) =>
    files(t, service, caller, [{ source: 'generated', text: generated() }]),
  )
  await t.test('reads times in the zone of an upload', (t) => zones(t, service, caller))
  await t.test('says where the events of an old file are', (t) => oldFile(t, service, caller))
  await t.test('shows each event once while others arrive', (t) => paging(t, service, caller))
  const dir = process.env['LOGHUB_DIR'] ?? ''
  const names = existsSync(dir) ? readdirSync(dir, { recursive: true, encoding: 'utf8' }) : []
  const real = names
    .filter((name) => /(_2k\.log|\.raw)$/.test(name))
    .map((name) => ({ source: basename(name), text: readFileSync(join(dir, name), 'utf8') }))
  const skip = real.length === 0 ? 'LOGHUB_DIR names no folder with *_2k.log files' : false
  await t.test('counts the 2,000 lines of real logs exactly', { skip }, (t) =>
    files(t, service, caller, real),
  )
  const ended = await service.stop()
  t.equal(ended.code, 0)
})
