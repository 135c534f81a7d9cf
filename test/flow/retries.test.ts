import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { encode } from '@msgpack/msgpack'
import { test } from 'tap'
import { callGrpc } from '../support/grpc.js'
import { protobufLogs } from '../support/protobuf.js'
import {
  countOf,
  INGEST_KEY,
  KNOWN,
  logIn,
  type Service,
  settledCount,
  startService,
  tempDataDir,
} from '../support/service.js'

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

void test('what was acknowledged before a kill is stored once when it is sent again', async (t) => {
  const env = { ...KNOWN, DATA_DIR: tempDataDir(t), FLUENT_PORT: '0', OTLP_GRPC_PORT: '0' }
  const first = await startService(t, env)
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
})
