/**
 * Bytes on a socket that were a request once: each connection is answered or closed in time, nothing is a fault
 * of the service, and it goes on. Inputs that bring about an answer of a new kind are kept.
 */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { Random } from '../../bench/data/random.js'
import { statuses } from '../support/http.js'
import { collect, settled, startLiveService } from '../support/live-service.js'
import { INGEST_KEY } from '../support/service.js'
import { readCorpus, writeCorpus } from './corpus.js'
import { createMutator } from './mutate.js'
import { KEEPS, SEED, TIMES } from './settings.js'
import { MINUTE_MS } from '../../src/model/time.js'

t.comment(`FUZZ_SEED=${SEED}`)
const INPUTS = 800
const AT_ONCE = 40
/** the library ends what is idle or slow after 12 s; a handler has 30 s */
const HANGS_MS = MINUTE_MS
/** a client that says it is done is given this time for an answer first */
const LISTEN_MS = 60
const FAULTS = [500, 502, 504]

const TOKENS = [
  '\r\n',
  '\r\n\r\n',
  '\n',
  '\r',
  ' HTTP/1.1\r\n',
  ' HTTP/1.0\r\n',
  ' HTTP/2.0\r\n',
  'Content-Length: 5\r\n',
  'Content-Length: -1\r\n',
  'Content-Length: 99999999999999999999\r\n',
  'Content-Length: 0x10\r\n',
  'Content-Length: 5, 5\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: chunked, identity\r\n',
  'Transfer-Encoding : chunked\r\n',
  'Content-Encoding: gzip\r\n',
  'Expect: 100-continue\r\n',
  'Connection: close\r\n',
  'Upgrade: websocket\r\n',
  'Host: a\r\nHost: b\r\n',
  'Cookie: ACCESS_TOKEN=',
  'X-Forwarded-For: ::1\r\n',
  '0\r\n\r\n',
  'ffffffffffffffff\r\n',
  '-5\r\n',
  '5;a=b\r\nhello\r\n',
  'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
  'POST /ingest HTTP/1.1\r\n',
  '*',
  'http://a/',
  '/../',
  '%00',
  '%zz',
  '?',
  '#',
  ':',
  '\t',
  '\0',
  '\x80',
  '\xff',
  'A'.repeat(5_000),
]

const AUTH = `Authorization: Bearer ${INGEST_KEY}\r\n`
const EVENT = '{"source":"raw","message":"a line"}'
const post = (path: string, headers: string, body: string | Buffer): Buffer => {
  const head = `POST ${path} HTTP/1.1\r\nHost: a\r\n${headers}Content-Length: ${body.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)])
}
const get = (path: string, headers = ''): Buffer =>
  Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`)
const chunked = (...parts: readonly string[]): Buffer => {
  const chunks = parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('')
  const head = `POST /ingest HTTP/1.1\r\nHost: a\r\n${AUTH}Transfer-Encoding: chunked\r\n\r\n`
  return Buffer.from(`${head}${chunks}0\r\n\r\n`)
}
const socket = (protocol: string): Buffer =>
  get(
    '/ws/kpis',
    `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${protocol}`,
  )
const login = JSON.stringify({ email: 'nobody@example.com', password: 'wrong password' })
const WELL_FORMED: readonly Buffer[] = [
  get('/health'),
  get('/api/monitoring/health'),
  get('/api/logs?limit=5&source=raw', 'Cookie: ACCESS_TOKEN=a; b=c\r\n'),
  get('/metrics', 'Accept-Encoding: gzip\r\nConnection: close\r\n'),
  post('/ingest', AUTH, `${EVENT}\n${EVENT}`),
  post('/ingest', `${AUTH}Content-Encoding: gzip\r\n`, gzipSync(EVENT)),
  post('/ingest', `${AUTH}Expect: 100-continue\r\n`, EVENT),
  post('/api/auth/login', 'Content-Type: application/json\r\n', login),
  post('/webhooks/scm', 'X-Scm-Token: 0\r\nX-Scm-Event: push\r\n', '{}'),
  post('/api/sources/ephemeral', 'Content-Type: multipart/form-data; boundary=x\r\n', '--x--\r\n'),
  chunked(EVENT, '\n', EVENT),
  Buffer.concat([post('/ingest', AUTH, EVENT), get('/health')]),
  Buffer.from('OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'),
  Buffer.from('HEAD /health HTTP/1.1\r\nHost: a\r\n\r\n'),
  socket(''),
  socket('Sec-WebSocket-Protocol: v1, jwt.abc\r\n'),
  Buffer.concat([socket(''), Buffer.from([0x81, 0x84, 1, 2, 3, 4, 113, 107, 109, 99])]),
]

interface Exchange {
  readonly text: string
  readonly isHung: boolean
}

/** Writes the input in pieces, then says that no more comes, and waits for the end of the connection. */
async function exchange(port: number, pieces: readonly Buffer[]): Promise<Exchange> {
  const client = connect({ port, host: '127.0.0.1', noDelay: true })
  let text = ''
  client.on('data', (chunk) => (text += chunk.toString('latin1')))
  client.on('error', () => undefined)
  const closed = new Promise<false>((resolve) => {
    client.once('close', () => resolve(false))
  })
  for (const piece of pieces) {
    client.write(piece)
    if (pieces.length > 1) await sleep(2)
  }
  await Promise.race([closed, sleep(LISTEN_MS)])
  client.end()
  const timer = new AbortController()
  const late = sleep(HANGS_MS, true as const, { signal: timer.signal }).catch(() => false as const)
  const isHung = await Promise.race([closed, late])
  timer.abort()
  client.destroy()
  return { text, isHung }
}

/** What kind of answer it was: of these each is kept once. */
const kindOf = (text: string): string =>
  [
    ...statuses(text),
    /"code":"(\w+)"/.exec(text)?.[1] ?? '',
    /^connection: close/im.test(text) ? 'closed' : '',
  ].join(' ')

function cut(input: Buffer, random: Random): readonly Buffer[] {
  if (random.chance(0.7) || input.length < 2) return [input]
  const at = [random.below(input.length), random.below(input.length)].toSorted((a, b) => a - b)
  return [input.subarray(0, at[0]), input.subarray(at[0], at[1]), input.subarray(at[1])]
}

const service = await startLiveService(t, { LOG_LEVEL: 'warn', LOGIN_LIMIT: '100000/60' })
const ports = [service.api, service.collector].map((url) => Number(new URL(url).port))

t.test(
  'whatever bytes come are answered or cut off, and none is a fault',
  { timeout: 0 },
  async (t) => {
    const random = new Random(SEED)
    const mutate = createMutator(TOKENS)
    const kept = readCorpus('raw')
    const inputs = [...WELL_FORMED, ...kept]
    const kinds = new Map<string, number>()
    const tryOne = async (
      input: Buffer,
      pieces: readonly Buffer[],
      port: number,
    ): Promise<void> => {
      const { text, isHung } = await exchange(port, pieces)
      const what = JSON.stringify(input.toString('latin1')).slice(0, 2_000)
      if (isHung) t.fail('the connection hangs', { what, seed: SEED })
      if (statuses(text).some((status) => FAULTS.includes(status)))
        t.fail('a fault of the service', { what, text: text.slice(0, 500), seed: SEED })
      const kind = kindOf(text)
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
      if (kinds.get(kind) !== 1 || inputs.includes(input)) return
      inputs.push(input)
      kept.push(input)
    }
    const portOf = (): number => random.pick(ports)
    const waiting = [
      ...inputs.map((input) => ({ input, pieces: [input], port: portOf() })),
      ...Array.from({ length: INPUTS * TIMES }, () => {
        const input = mutate(random.pick(inputs), inputs, random)
        return { input, pieces: cut(input, random), port: portOf() }
      }),
    ]
    const count = waiting.length
    const lane = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
        await tryOne(next.input, next.pieces, next.port)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
    t.comment(`${count} connections: ${JSON.stringify(Object.fromEntries(kinds))}`)
    t.ok(kinds.size > 10, 'answers of many kinds')
    if (KEEPS) writeCorpus('raw', kept)
  },
)

t.test('the service is well after all of it', async (t) => {
  const sent = await collect(service, 'POST /ingest', { token: INGEST_KEY, body: EVENT })
  t.equal(sent.status, 202)
  await settled(service)
  t.equal((await service.call('GET /api/monitoring/health')).body.status, 'ok')
  t.match((await service.call('GET /metrics')).text, /^log_engine_pipeline_bytes 0$/m)
  const grave = service
    .log()
    .split('\n')
    .filter((line) => line !== '' && Number(JSON.parse(line).level) >= 50)
  t.same(grave, [], 'nothing unexpected was logged')
})
