import { bench, do_not_optimize, run } from 'mitata'
import { decodeIngest } from '../../src/ingest/formats/ndjson.js'
import { UTC } from '../../src/ingest/formats/zone.js'
import type { DecodeContext, EventSink } from '../../src/model/event.js'

const LINES = 2000
const context: DecodeContext = {
  toUtc: UTC,
  nowMs: Date.UTC(2026, 10, 22),
  environment: 'production',
  source: null,
  defaultSource: 'default',
  requestSource: '',
  params: '',
  maxMessageBytes: 262_144,
  maxRows: Number.POSITIVE_INFINITY,
}

const LEVELS = ['INFO', 'WARNING', 'ERROR', 'DEBUG'] as const
const at = (i: number) => new Date(Date.UTC(2026, 10, 21) + i * 137).toISOString()
const said = (i: number) =>
  `request ${i} from 10.0.${i % 256}.7 took ${i % 97} ms, order ${i * 31} placed by user ${i % 211}`

const canonical = (i: number) => ({
  timestamp: at(i),
  source: 'checkout',
  severity: LEVELS[i % 4],
  message: said(i),
  host: `web-${i % 8}`,
  trace_id: i.toString(16).padStart(32, 'a'),
})

const FORMS = {
  canonical,
  'canonical with tags': (i: number) => ({
    ...canonical(i),
    tags: { region: 'eu', pod: `p-${i}` },
  }),
  'canonical, not ASCII': (i: number) => ({ ...canonical(i), message: `${said(i)} für Ø 日本` }),
  pino: (i: number) => ({
    level: 30,
    time: Date.UTC(2026, 10, 21) + i,
    pid: 17,
    hostname: 'web-1',
    name: 'checkout',
    msg: said(i),
  }),
  logback: (i: number) => ({
    '@timestamp': at(i),
    '@version': '1',
    message: said(i),
    logger_name: 'com.acme.Checkout',
    thread_name: 'main',
    level: 'INFO',
    level_value: 20_000,
  }),
}

let events = 0
const sink: EventSink = {
  event: (_line, event) => {
    events += event.message.length
  },
  reject: (_line, { reason }) => {
    throw new Error(`bug: the bench data was rejected: ${reason}`)
  },
}

for (const [name, form] of Object.entries(FORMS)) {
  const lines = Array.from({ length: LINES }, (_, i) => JSON.stringify(form(i)))
  const body = Buffer.from(lines.join('\n'))
  bench(`${name}: decodeIngest, ${LINES} lines of ${Math.round(body.length / LINES)} bytes`, () =>
    do_not_optimize(decodeIngest(body, context, sink)))
  bench(`${name}: JSON.parse of the same lines as strings`, () => {
    for (const line of lines) do_not_optimize(JSON.parse(line))
  })
}

await run()
if (events === 0) throw new Error('bug: nothing was decoded')
