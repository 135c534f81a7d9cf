import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import { encode } from '@msgpack/msgpack'
import { test } from 'tap'
import { callGrpc } from '../support/grpc.js'
import { certificateIn } from '../support/certificate.js'
import { protobufLogs } from '../support/protobuf.js'
import {
  type Caller,
  countOf,
  enginePid,
  INGEST_KEY,
  KNOWN,
  logIn,
  lostDatagrams,
  type Service,
  settledCount,
  startService,
  tempDataDir,
} from '../support/service.js'
import { signal } from '../support/signals.js'

const RECORDS = 200
/** Records of a source whose protocol takes them in many requests, or of which there are many. */
const FEW = 20
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

const sendForward =
  (source: string) =>
  async (service: Service): Promise<void> => {
    const socket = connect(portOf(service, 'Forward'), '127.0.0.1')
    const entries = each((i) => [Math.floor(NOW / 1000), { message: message(i) }])
    socket.write(encode([source, entries, { chunk: `chunk of ${source}` }]))
    const [ack] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    if (!ack.toString('latin1').includes(`chunk of ${source}`))
      throw new Error('no acknowledgement')
  }

const sendGrpc =
  (source: string) =>
  async (service: Service): Promise<void> => {
    const address = `127.0.0.1:${portOf(service, 'OTLP/gRPC')}`
    const metadata = { ...headers, 'idempotency-key': source, 'x-source': source }
    const { code, message: text } = await callGrpc(address, protobufLogs(), { headers: metadata })
    if (code !== 0) throw new Error(`gRPC: ${code} ${text}`)
  }

const documentsOf = (source: string): string =>
  each((i) => {
    const action = { index: { _index: source, _id: `document ${i}` } }
    return `${JSON.stringify(action)}\n${JSON.stringify({ message: message(i) })}\n`
  }).join('')
const sendDocuments =
  (source: string) =>
  async (service: Service): Promise<void> => {
    for (let i = 0; i < FEW; i++)
      await post(`/${source}/_doc/${i}`, JSON.stringify({ message: message(i) }))(service)
  }
const entriesOf = (source: string): string =>
  each((i) =>
    [
      `__CURSOR=s=${source}${i}`,
      `__REALTIME_TIMESTAMP=${NOW}000`,
      `SYSLOG_IDENTIFIER=${source}`,
      `MESSAGE=${message(i)}`,
      '',
      '',
    ].join('\n'),
  ).join('')
const linesOf = (source: string): string =>
  each((i) => JSON.stringify({ source, message: message(i) })).join('\n')

/** @param head of their sources' names */
function protocolsOf(head: string): readonly Protocol[] {
  const of = (
    name: string,
    sendAs: (source: string) => Protocol['send'],
    count = RECORDS,
  ): Protocol => ({ source: `${head}.${name}`, records: count, send: sendAs(`${head}.${name}`) })
  const journal = { 'content-type': 'application/vnd.fdo.journal' }
  return [
    of('forward', sendForward),
    of('es', (source) => post('/_bulk', documentsOf(source))),
    of('document', sendDocuments, FEW),
    of('journal', (source) => post('/upload', entriesOf(source), journal)),
    of('ndjson', (source) => post('/ingest', linesOf(source), { 'idempotency-key': source })),
    of('grpc', sendGrpc, 2),
  ]
}

void test('what was acknowledged before a kill is stored once, also when it is sent again', async (t) => {
  const env = { ...KNOWN, DATA_DIR: tempDataDir(t), FLUENT_PORT: '0', OTLP_GRPC_PORT: '0' }
  const first = await startService(t, env)
  const [stored, waiting] = [protocolsOf('stored'), protocolsOf('waiting')]
  const sendAll = async (service: Service, protocols: readonly Protocol[]): Promise<void> => {
    await Promise.all(protocols.map(({ send }) => send(service)))
  }
  const checkCounts = async (service: Service, protocols: readonly Protocol[]): Promise<void> => {
    const caller = await logIn(service)
    for (const { source, records: sent } of protocols) {
      const count = await settledCount(() => countOf(caller, source), sent)
      t.equal(count, sent, `${source}: stored once`)
    }
  }
  // The acknowledgements say that it is durable; a client that is cut off before its own comes does not know.
  await sendAll(first, stored)
  await checkCounts(first, stored)
  signal(enginePid(first), 'SIGSTOP')
  await sendAll(first, waiting)
  for (const [name, { send, taken }] of Object.entries(DOORS))
    t.match(await send(first, `killed.${name}`), taken, name)
  await first.kill()

  const second = await startService(t, env)
  for (let attempt = 0; attempt < 2; attempt++) {
    await sendAll(second, [...stored, ...waiting])
    await sleep(100)
  }
  await checkCounts(second, [...stored, ...waiting])
  const caller = await logIn(second)
  for (const name of NAMED) {
    const source = `killed.${name}`
    t.equal(await settledCount(() => countOf(caller, source), FEW), FEW, source)
  }
})

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

const datadogAt = (path: string): Door => ({
  send: http(
    path,
    records((service, i) => ({ service, message: message(i) })),
  ),
  taken: { status: 202 },
  busy: { ...LATER, text: /"errors":\[/ },
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
  document: {
    send: async (service, source) => {
      const send = (i: number) =>
        http(`/${source}/_doc/${i}`, () => json({ message: message(i) }))(service, source)
      for (let i = 1; i < FEW; i++) {
        const answer = await send(i)
        if (answer.status !== 201) return answer
      }
      return await send(0)
    },
    taken: { status: 201, text: /"result":"created"/ },
    busy: { ...LATER, text: /"es_rejected_execution_exception"/ },
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
  datadog: datadogAt('/api/v2/logs'),
  datadogv1: datadogAt('/v1/input'),
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
async function sendLines(
  service: Service,
  name: string,
  lines: readonly string[],
  tls: ConnectionOptions | null = null,
): Promise<void> {
  const address = { port: portOf(service, name), host: '127.0.0.1' }
  const socket = tls === null ? connect(address) : connectTls({ ...address, ...tls })
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.end(lines.join('\n'), () => resolve())
  })
}

async function sendDatagrams(service: Service, lines: readonly string[]): Promise<void> {
  const socket = createSocket('udp4')
  for (const line of lines)
    await new Promise((resolve) =>
      socket.send(line, portOf(service, 'syslog'), '127.0.0.1', resolve),
    )
  socket.close()
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
  const dataDir = tempDataDir(t)
  const { cert, key } = certificateIn(tempDataDir(t))
  const tls = { SYSLOG_TLS_PORT: '0', TLS_CERT_FILE: cert, TLS_KEY_FILE: key }
  const listeners = { SYSLOG_PORT: '0', LINES_PORT: '0', GELF_PORT: '0', ...tls }
  const ports = { FLUENT_PORT: '0', OTLP_GRPC_PORT: '0', ...listeners }
  const full = { WAL_MAX_BYTES: String(64 * 1024 * 1024) }
  const service = await startService(t, { ...KNOWN, DATA_DIR: dataDir, ...ports, ...full })
  const caller = await logIn(service)
  const engine = enginePid(service)
  signal(engine, 'SIGSTOP')
  t.teardown(() => void signal(enginePid(service), 'SIGCONT'))
  for (const [name, { send, taken }] of Object.entries(DOORS))
    t.match(await send(service, `away.${name}`), taken, `${name} takes records meanwhile`)
  await sendChunk(service, 'away.forward')
  const syslogOf = (source: string): string[] =>
    few((i) => `<14>1 - h ${source} - - - ${message(i)}`)
  const trust = { ca: readFileSync(cert) }
  await sendDatagrams(service, syslogOf('away.udp'))
  await sendLines(service, 'syslog TLS', syslogOf('away.tls'), trust)

  await fill(service)
  for (const [name, { send, busy }] of Object.entries(DOORS))
    t.match(await send(service, `full.${name}`), busy, `${name} says that there is no room`)
  const waiting = sendChunk(service, 'full.forward')
  let isAcknowledged = false
  void waiting.then(() => (isAcknowledged = true))
  await sendLines(service, 'syslog', syslogOf('full.syslog'))
  await sendLines(service, 'syslog TLS', syslogOf('full.tls'), trust)
  await sendDatagrams(service, syslogOf('full.udp'))
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
  t.equal(await lostDatagrams(service), 0, 'datagrams wait, too')

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
    'away.udp',
    'away.tls',
    'full.syslog',
    'full.tls',
    'full.udp',
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
