/** Senders that are hostile or broken, against the built service: it refuses or stores, and goes on. */
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import t from 'tap'
import { rawExchange, statuses } from '../support/http.js'
import { settled, startLiveService, collect } from '../support/live-service.js'
import { currentKpis } from '../support/kpi-socket.js'
import { INGEST_KEY } from '../support/service.js'

const service = await startLiveService(t, { LOG_LEVEL: 'info' })
const port = Number(new URL(service.collector).port)
const send = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  collect(service, 'POST /ingest', { token: INGEST_KEY, body, headers })
const head = (headers: string): string =>
  `POST /ingest HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${INGEST_KEY}\r\n${headers}\r\n`
const own = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes)

const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    if (socket.destroyed) resolve()
    else socket.once('close', () => resolve())
  })

const drained = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    socket.once('drain', () => resolve())
  })

// 3 MB of zeros, compressed by `zstd`.
const ZSTD_ZEROS = Buffer.from(
  'KLUv/QRoTAAACAABAPz/ORACAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAzYOAAPJr9Y=',
  'base64',
)
/** Larger than the limit of a body. */
const SWELLS_MIB = 17
const BOMBS = 60

/** Accepted messages of all tests. */
let accepted = 0

t.test('a gigabyte, declared or sent, is refused', async (t) => {
  const declared = await rawExchange(port, [head('Content-Length: 1073741824\r\n')], {
    waitMs: 20_000,
  })
  t.same(statuses(declared.text), [413])
  t.ok(declared.isClosed, 'nobody waits for it')
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  let text = ''
  socket.on('data', (chunk) => (text += chunk.toString('latin1')))
  const end = closed(socket)
  socket.write(head('Transfer-Encoding: chunked\r\n'))
  const chunk = Buffer.concat([
    Buffer.from('100000\r\n'),
    Buffer.alloc(1_048_576, 'x'),
    Buffer.from('\r\n'),
  ])
  for (let i = 0; i < 1024 && !socket.destroyed; i++)
    if (!socket.write(chunk)) await Promise.race([drained(socket), end])
  await end
  t.same(
    statuses(text).filter((status) => status !== 413),
    [],
    'never a success',
  )
})

t.test('what swells when it is unpacked is refused', async (t) => {
  const zeros = Buffer.alloc(64 * 1024 * 1024)
  const bombs: [string, Buffer][] = [
    ['gzip', gzipSync(zeros)],
    ['br', brotliCompressSync(zeros, { params: { [constants.BROTLI_PARAM_QUALITY]: 3 } })],
    // Many bodies within the limit.
    ['gzip', Buffer.concat(Array.from({ length: 20 }, () => gzipSync(zeros.subarray(0, 2 ** 20))))],
    ['zstd', Buffer.concat(Array.from({ length: 1000 }, () => ZSTD_ZEROS))],
  ]
  for (const [coding, bytes] of bombs) {
    const { status, body } = await send(own(bytes), { 'content-encoding': coding })
    t.equal(status, 413, coding)
    t.equal(body.detail.code, 'body_too_large', coding)
  }
})

const onLinux = process.platform === 'linux' ? false : 'Linux only'

t.test('what swells in many bodies at once does so by turns', { skip: onLinux }, async (t) => {
  const pid = Number(/"pid":(\d+)/.exec(service.log())?.[1])
  // The peak over the whole test.
  const mostMib = (): number =>
    Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
  const before = mostMib()
  const bomb = own(gzipSync(Buffer.alloc(SWELLS_MIB * 1024 * 1024)))
  const replies = await Promise.all(
    Array.from({ length: BOMBS }, () => send(bomb, { 'content-encoding': 'gzip' })),
  )
  for (const { status } of replies) t.ok([413, 429, 503].includes(status), String(status))
  const grown = mostMib() - before
  t.ok(grown < (BOMBS * SWELLS_MIB) / 2, `${Math.round(grown)} MiB more`)
})

const record = (fields: string): string => `{"source":"abuse","message":"m",${fields}}`
const BODIES: readonly (readonly [string, string | Buffer, number])[] = [
  ['nested a million deep', Buffer.from('['.repeat(1_000_000)), 422],
  ['nested in tags', record(`"tags":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`), 202],
  [
    'a million tags',
    record(`"tags":{${Array.from({ length: 1_000_000 }, (_, i) => `"k${i}":1`).join()}}`),
    202,
  ],
  [
    'keys of the prototype',
    record('"__proto__":{"a":1},"constructor":{"prototype":{"a":1}},"tags":{"__proto__":{"a":1}}'),
    202,
  ],
  ['NUL', record('"host":"a\\u0000b"'), 202],
  ['invalid UTF-8', Buffer.from('{"source":"abuse","message":"a\xff\xc0\x80b"}', 'latin1'), 202],
  ['lone surrogates', record('"summary":"\\ud800 \\udc00","tags":{"\\ud800":"\\udfff"}'), 202],
  [
    'numbers past 2^53',
    record('"tags":{"n":9007199254740993,"m":1e400,"o":-18446744073709551616}'),
    202,
  ],
  ['the year 0', record('"timestamp":"0000-01-01T00:00:00Z"'), 202],
  ['the year 9999', record('"timestamp":"9999-12-31T23:59:59Z"'), 202],
  ['a line of 10 MB', `{"source":"abuse","message":"${'x'.repeat(10_000_000)}"}`, 202],
  ['a million empty lines', '\n'.repeat(1_000_000), 202],
]

for (const [what, body, status] of BODIES) {
  t.test(`${what}: answered with every record accounted for`, async (t) => {
    const reply = await send(typeof body === 'string' ? body : own(body))
    t.equal(reply.status, status, reply.text.slice(0, 300))
    if (status !== 202) return
    const { received, rejected, dropped } = reply.body
    t.equal(received, reply.body.accepted + rejected + dropped)
    accepted += reply.body.accepted
  })
}

t.test('connections that send nothing, or a byte now and then, hold nobody up', async (t) => {
  const sockets = Array.from({ length: 300 }, () => connect(port, '127.0.0.1'))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  sockets.forEach((socket, i) => {
    socket.on('error', () => undefined)
    if (i % 3 === 1) socket.write('POST /ing')
    if (i % 3 === 2) socket.write(`${head('Content-Length: 1000\r\n')}{"sou`)
  })
  const reply = await send('{"source":"abuse","message":"beside them"}')
  t.equal(reply.status, 202)
  accepted += reply.body.accepted
  // uWebSockets.js closes connections that are idle, or slow in sending head or body.
  await Promise.all(sockets.map((socket) => closed(socket.resume())))
  t.ok(sockets.every(({ destroyed }) => destroyed))
})

t.test('a line break in what is reflected starts no header', async (t) => {
  const text = await rawExchange(
    port,
    [
      `GET /health HTTP/1.1\r\nHost: a\r\nX-Request-Id: a%0d%0aX-Evil: 1\r\nOrigin: a%0d%0aX-Evil: 1\r\n\r\n`,
    ],
    { until: (got) => got.includes('}') },
  )
  t.notMatch(text.text, /^X-Evil/im)
})

t.test('after all of it every accepted message is counted, and no memory is leaked', async (t) => {
  await settled(service)
  t.equal((await currentKpis(service)).total_occurrences, accepted)
  const metrics = (await service.call('GET /metrics')).text
  t.match(metrics, /^log_engine_pipeline_bytes 0$/m)
  const grave = service
    .log()
    .split('\n')
    .filter((line) => line !== '' && Number(JSON.parse(line).level) >= 50)
  t.same(grave, [])
})
