import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { encode } from '@msgpack/msgpack'
import { test } from 'tap'
import { callGrpc } from '../support/grpc.js'
import { protobufLogs } from '../support/protobuf.js'
import {
  type Caller,
  countOf,
  enginePid,
  INGEST_KEY,
  KNOWN,
  logIn,
  type Service,
  settledCount,
  startService,
  tempDataDir,
} from '../support/service.js'
import { signal } from '../support/signals.js'

const RECORDS = 200
const NOW = Date.now()
const each = <T>(make: (i: number) => T): T[] => Array.from({ length: RECORDS }, (_, i) => make(i))
const message = (i: number): string => `order ${i} of what is sent again`
const headers = { authorization: `Bearer ${INGEST_KEY}` }

/** A protocol whose clients name what they send, and send it again when its acknowledgement was lost. */
interface Protocol {
  /** Its events. */
  readonly source: string
  readonly records: number
  /** Sends, and waits for the acknowledgement. @throws Error for another answer */
  readonly send: (service: Service) => Promise<void>
}

const portOf = ({ banner }: Service, name: string): number =>
  Number(new RegExp(`^ +${name} +127\\.0\\.0\\.1:(\\d+)$`, 'm').exec(banner)?.[1])

const post =
  (path: string, body: string, more: Readonly<Record<string, string>> = {}) =>
  async ({ collector }: Service): Promise<void> => {
    const request = { method: 'POST', headers: { ...headers, ...more }, body }
    const reply = await fetch(collector + path, request)
    const text = await reply.text()
    if (!reply.ok || /"errors":true/.test(text)) throw new Error(`${path}: ${reply.status} ${text}`)
  }

async function sendForward(service: Service): Promise<void> {
  const socket = connect(portOf(service, 'Forward'), '127.0.0.1')
  const entries = each((i) => [Math.floor(NOW / 1000), { message: message(i) }])
  socket.write(encode(['retry.forward', entries, { chunk: 'the same chunk' }]))
  const [ack] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  if (!/ack.*the same chunk/s.test(ack.toString('latin1'))) throw new Error('no acknowledgement')
}

async function sendGrpc(service: Service): Promise<void> {
  const address = `127.0.0.1:${portOf(service, 'OTLP/gRPC')}`
  const metadata = { ...headers, 'idempotency-key': 'one', 'x-source': 'retry.grpc' }
  const { code, message: text } = await callGrpc(address, protobufLogs(), { headers: metadata })
  if (code !== 0) throw new Error(`gRPC: ${code} ${text}`)
}

const documents = each((i) => {
  const action = { index: { _index: 'retry.es', _id: `document ${i}` } }
  return `${JSON.stringify(action)}\n${JSON.stringify({ message: message(i) })}\n`
})
const entries = each((i) =>
  [
    `__CURSOR=s=${i}`,
    `__REALTIME_TIMESTAMP=${NOW}000`,
    `SYSLOG_IDENTIFIER=retry.journal`,
    `MESSAGE=${message(i)}`,
    '',
    '',
  ].join('\n'),
)
const lines = (source: string): string =>
  each((i) => JSON.stringify({ source, message: message(i) })).join('\n')

const PROTOCOLS: readonly Protocol[] = [
  { source: 'retry.forward', records: RECORDS, send: sendForward },
  { source: 'retry.es', records: RECORDS, send: post('/_bulk', documents.join('')) },
  {
    source: 'retry.journal',
    records: RECORDS,
    send: post('/upload', entries.join(''), { 'content-type': 'application/vnd.fdo.journal' }),
  },
  {
    source: 'retry.ndjson',
    records: RECORDS,
    send: post('/ingest', lines('retry.ndjson'), { 'idempotency-key': 'two' }),
  },
  { source: 'retry.grpc', records: 2, send: sendGrpc },
]

void test('what was acknowledged before a kill is stored once, also when it is sent again', async (t) => {
  const env = { ...KNOWN, DATA_DIR: tempDataDir(t), FLUENT_PORT: '0', OTLP_GRPC_PORT: '0' }
  const first = await startService(t, env)
  for (const [name, { send, taken }] of Object.entries(DOORS))
    t.match(await send(first, `killed.${name}`), taken, name)
  // The acknowledgements say that it is durable; a client that is cut off before its own comes does not know.
  await Promise.all(PROTOCOLS.map(({ send }) => send(first)))
  await first.kill()

  const second = await startService(t, env)
  const caller = await logIn(second)
  for (let attempt = 0; attempt < 2; attempt++) {
    await Promise.all(PROTOCOLS.map(({ send }) => send(second)))
    await sleep(100)
  }
  for (const { source, records } of PROTOCOLS) {
    const count = await settledCount(() => countOf(caller, source), records)
    t.equal(count, records, `${source}: stored once`)
  }
  for (const name of NAMED) {
    const source = `killed.${name}`
    t.equal(await settledCount(() => countOf(caller, source), FEW), FEW, source)
  }
})

/** Records of each source below. */
const FEW = 20
const few = <T>(make: (i: number) => T): T[] => Array.from({ length: FEW }, (_, i) => make(i))

interface Answer {
  readonly status: number
  readonly retryAfter?: string | null
  readonly text: string
}

/** A protocol whose clients hear whether their records were taken. */
interface Door {
  readonly send: (service: Service, source: string) => Promise<Answer>
  readonly taken: { readonly status: number; readonly text?: RegExp }
  /** How it says that its client should come again. */
  readonly busy: { readonly status: number; readonly text?: RegExp; readonly retryAfter?: RegExp }
}

const http =
  (path: string, body: (source: string) => string): Door['send'] =>
  async ({ collector }, source) => {
    const sent = { ...headers, 'content-type': 'application/json' }
    const reply = await fetch(collector + path, {
      method: 'POST',
      headers: sent,
      body: body(source),
    })
    const retryAfter = reply.headers.get('retry-after')
    return { status: reply.status, retryAfter, text: await reply.text() }
  }

const NS = `${NOW}000000`
const LATER = { status: 503, retryAfter: /^\d+$/ }
const json = (value: unknown): string => JSON.stringify(value)
const records = (make: (source: string, i: number) => unknown) => (source: string) =>
  few((i) => json(make(source, i))).join('\n')

const resourceOf = (source: string) => ({
  resource: { attributes: [{ key: 'service.name', value: { stringValue: source } }] },
})

const DOORS: Readonly<Record<string, Door>> = {
  ndjson: {
    send: http(
      '/ingest',
      records((source, i) => ({ source, message: message(i) })),
    ),
    taken: { status: 202 },
    busy: { status: 429, text: /"overloaded"/, retryAfter: /^\d+$/ },
  },
  otlp: {
    send: http('/v1/logs', (source) => {
      const logRecords = few((i) => ({ timeUnixNano: NS, body: { stringValue: message(i) } }))
      return json({ resourceLogs: [{ ...resourceOf(source), scopeLogs: [{ logRecords }] }] })
    }),
    taken: { status: 200, text: /^\{/ },
    busy: { ...LATER, text: /"code":14/ },
  },
  grpc: {
    send: async (service) => {
      const address = `127.0.0.1:${portOf(service, 'OTLP/gRPC')}`
      const { code, message: text } = await callGrpc(address, Buffer.alloc(0), { headers })
      return { status: code, text }
    },
    taken: { status: 0 },
    busy: { status: 14 },
  },
  elasticsearch: {
    send: http('/_bulk', (source) =>
      few((i) => `{"create":{"_index":"${source}"}}\n${json({ message: message(i) })}\n`).join(''),
    ),
    taken: { status: 200, text: /"errors":false/ },
    busy: { status: 200, text: /"status":429,"error":\{"type":"es_rejected_execution_exception"/ },
  },
  loki: {
    send: http('/loki/api/v1/push', (source) =>
      json({ streams: [{ stream: { app: source }, values: few((i) => [NS, message(i)]) }] }),
    ),
    taken: { status: 204 },
    busy: LATER,
  },
  splunk: {
    send: http(
      '/services/collector',
      records((source, i) => ({ source, event: message(i) })),
    ),
    taken: { status: 200, text: /"code":0/ },
    busy: { ...LATER, text: /"code":9/ },
  },
  datadog: {
    send: http(
      '/api/v2/logs',
      records((service, i) => ({ service, message: message(i) })),
    ),
    taken: { status: 202 },
    busy: { ...LATER, text: /"errors":\[/ },
  },
  betterstack: {
    send: http(
      '/',
      records((source, i) => ({ source, message: message(i) })),
    ),
    taken: { status: 202 },
    busy: LATER,
  },
  journal: {
    send: http('/upload', (source) =>
      few(
        (i) => `__CURSOR=${source}${i}\nSYSLOG_IDENTIFIER=${source}\nMESSAGE=${message(i)}\n\n`,
      ).join(''),
    ),
    taken: { status: 202 },
    busy: LATER,
  },
  splunkraw: {
    send: async (service, source) => {
      const path = `/services/collector/raw?channel=c&source=${source}`
      return await http(path, () => few(message).join('\n'))(service, source)
    },
    taken: { status: 200, text: /"code":0/ },
    busy: { ...LATER, text: /"code":9/ },
  },
  traces: {
    send: http('/v1/traces', (source) => {
      const spans = few((i) => ({
        traceId: i.toString(16).padStart(32, 'a'),
        spanId: i.toString(16).padStart(16, 'b'),
        name: message(i),
        startTimeUnixNano: NS,
        endTimeUnixNano: NS,
      }))
      return json({ resourceSpans: [{ ...resourceOf(source), scopeSpans: [{ spans }] }] })
    }),
    taken: { status: 200, text: /^\{/ },
    busy: { ...LATER, text: /"code":14/ },
  },
  metrics: {
    send: http('/v1/metrics', (source) => {
      const dataPoints = few((i) => ({ timeUnixNano: NS, asDouble: i }))
      const metrics = [{ name: 'orders', gauge: { dataPoints } }]
      return json({ resourceMetrics: [{ ...resourceOf(source), scopeMetrics: [{ metrics }] }] })
    }),
    taken: { status: 200, text: /^\{/ },
    busy: { ...LATER, text: /"code":14/ },
  },
  newrelic: {
    send: http(
      '/log/v1',
      records((service, i) => ({ service, message: message(i) })),
    ),
    taken: { status: 202 },
    busy: LATER,
  },
  logscale: {
    send: http('/api/v1/ingest/humio-structured', (source) => {
      const events = few((i) => ({
        timestamp: new Date(NOW).toISOString(),
        attributes: { source, message: message(i) },
      }))
      return json([{ tags: {}, events }])
    }),
    taken: { status: 200 },
    busy: LATER,
  },
  openobserve: {
    send: async (service, source) => {
      const body = (): string => json(few((i) => ({ message: message(i) })))
      return await http(`/api/default/${source}/_json`, body)(service, source)
    },
    taken: { status: 200 },
    busy: LATER,
  },
  seq: {
    send: http(
      '/api/events/raw',
      records((app, i) => ({ '@t': new Date(NOW).toISOString(), '@m': message(i), app })),
    ),
    taken: { status: 201 },
    busy: LATER,
  },
  gelf: {
    send: http(
      '/gelf',
      records((app, i) => ({ _app: app, host: 'h', short_message: message(i) })),
    ),
    taken: { status: 202 },
    busy: LATER,
  },
}

/** Those whose requests name a source. */
const NAMED = Object.keys(DOORS).filter((name) => name !== 'grpc')

/** Sends a chunk of Forward. @returns when it is acknowledged */
async function sendChunk(service: Service, source: string): Promise<void> {
  const socket = connect(portOf(service, 'Forward'), '127.0.0.1')
  const chunk = few((i) => [Math.floor(NOW / 1000), { message: message(i) }])
  socket.write(encode([source, chunk, { chunk: source }]))
  await once(socket, 'data')
  socket.destroy()
}

/** Sends lines to a port whose clients hear nothing. */
async function sendLines(service: Service, port: string, lines: readonly string[]): Promise<void> {
  const socket = connect(portOf(service, port), '127.0.0.1')
  await new Promise<void>((resolve) => socket.end(lines.join('\n'), () => resolve()))
}

/** Fills the write-ahead log. */
async function fill(service: Service): Promise<void> {
  const text = (): string => randomBytes(60_000).toString('hex')
  for (let bodies = 0; bodies < 60; bodies++) {
    const body = few(() => json({ source: 'filler', message: text() })).join('\n')
    // A body that is refused before it is read may end in an error of the connection.
    const request = { method: 'POST', headers, body }
    const reply = await fetch(`${service.collector}/ingest`, request).catch(() => null)
    if (reply === null) continue
    const { status } = reply
    if (status === 429) return
    if (status !== 202) throw new Error(`status ${status}`)
  }
  throw new Error('the write-ahead log has no limit')
}

void test('without ClickHouse, and without room, nothing is lost and nothing is counted twice', async (t) => {
  const listeners = { SYSLOG_PORT: '0', LINES_PORT: '0', GELF_PORT: '0' }
  const ports = { FLUENT_PORT: '0', OTLP_GRPC_PORT: '0', ...listeners }
  const full = { WAL_MAX_BYTES: String(64 * 1024 * 1024) }
  const service = await startService(t, { ...KNOWN, DATA_DIR: tempDataDir(t), ...ports, ...full })
  const caller = await logIn(service)
  const engine = enginePid(service)
  signal(engine, 'SIGSTOP')
  t.teardown(() => void signal(enginePid(service), 'SIGCONT'))
  for (const [name, { send, taken }] of Object.entries(DOORS))
    t.match(await send(service, `away.${name}`), taken, `${name} takes records meanwhile`)
  await sendChunk(service, 'away.forward')

  await fill(service)
  for (const [name, { send, busy }] of Object.entries(DOORS))
    t.match(await send(service, `full.${name}`), busy, `${name} says that there is no room`)
  const waiting = sendChunk(service, 'full.forward')
  let isAcknowledged = false
  void waiting.then(() => (isAcknowledged = true))
  const syslog = few((i) => `<14>1 - h full.syslog - - - ${message(i)}`)
  await sendLines(service, 'syslog', syslog)
  await sendLines(
    service,
    'lines',
    few((i) => json({ app: 'full.lines', message: message(i) })),
  )
  const gelf = few((i) => json({ _app: 'full.tcp', host: 'h', short_message: message(i) }))
  await sendLines(
    service,
    'GELF',
    gelf.map((one) => `${one}\0`),
  )
  await sleep(500)
  t.notOk(isAcknowledged, 'what waits for room is not acknowledged')

  signal(engine, 'SIGCONT')
  await waiting
  for (const [name, { send, taken }] of Object.entries(DOORS))
    for (const until = Date.now() + 30_000; ; await sleep(200)) {
      const { status, text } = await send(service, `full.${name}`)
      if (status === taken.status && (taken.text ?? /^/).test(text)) break
      if (Date.now() > until) throw new Error(`${name} has no room: ${status} ${text}`)
    }
  const sources = [
    ...[...NAMED, 'forward'].flatMap((name) => [`away.${name}`, `full.${name}`]),
    'full.syslog',
    'full.lines',
    'full.tcp',
  ]
  for (const source of sources) await settled(caller, source)
  await sleep(700)
  for (const source of sources) t.equal(await countOf(caller, source), FEW, source)
})

async function settled(caller: Caller, source: string): Promise<void> {
  for (const until = Date.now() + 30_000; Date.now() < until; await sleep(100))
    if ((await countOf(caller, source)) >= FEW) return
}
