/** The guide to sending logs: what it shows is run as it stands, but for addresses and the key. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { parseAllDocuments } from 'yaml'

import { freePort } from '../../support/ports.js'
import { certificateIn } from '../../support/certificate.js'
import {
  allEvents,
  INGEST_KEY,
  KNOWN,
  logIn,
  type Service,
  startService,
  tempDataDir,
} from '../../support/service.js'
import type { SentRecord } from '../../support/shippers/records.js'
import { relay, runToEnd } from '../../support/shippers/syslog.js'
import { runTool, without } from '../../support/tools.js'

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const GUIDE = readFileSync(join(ROOT, 'src/docs/sending-logs.md'), 'utf8')

interface Block {
  readonly language: string
  readonly text: string
}

const BLOCKS: readonly Block[] = [...GUIDE.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)].map(
  ([, language = '', text = '']) => ({ language, text }),
)
const SPANS = [...GUIDE.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/`([^`\n]+)`/g)].map(
  ([, text = '']) => text,
)

/** The first block, or code within a line, that holds a text. */
function shown(text: string): string {
  const found = [...BLOCKS.map((block) => block.text), ...SPANS].find((one) => one.includes(text))
  if (found === undefined) throw new Error(`the guide shows no ${text}`)
  return found
}

/** Members of the event that a shipper's record becomes. */
interface Wanted {
  readonly source: string
  readonly host?: string
  readonly severity?: string
  readonly tags?: Readonly<Record<string, unknown>>
}

const SECRET = 'a-secret-of-the-webhooks'

function folder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'guide-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

const portOf = ({ banner }: Service, name: string): string =>
  new RegExp(`^ +${name} +127\\.0\\.0\\.1:(\\d+)$`, 'm').exec(banner)?.[1] ?? ''

/** Puts the addresses of a service and the key into what the guide shows. */
function placed(text: string, service: Service): string {
  const { port } = new URL(service.collector)
  const ports = [
    ['5140', 'syslog'],
    ['6514', 'syslog TLS'],
    ['24224', 'Forward'],
    ['12201', 'GELF'],
  ] as const
  let all = text
    .replaceAll(/http:\/\/(?:127\.0\.0\.1|collector):8080/g, service.collector)
    .replaceAll(/'collector', (port: )?8080/g, `'127.0.0.1', $1${port}`)
    .replaceAll('logs.example', '127.0.0.1')
    .replaceAll(/(?<!\$)\bKEY\b/g, INGEST_KEY)
  for (const [shownPort, name] of ports)
    all = all.replaceAll(new RegExp(`\\b${shownPort}\\b`, 'g'), portOf(service, name))
  return all
}

test('the first thing that the guide shows is a command that sends an event', async (t) => {
  const lines = GUIDE.split('\n').slice(0, 12)
  t.match(
    lines.find((line) => line.startsWith('curl ')),
    /\/ingest -H "Authorization: Bearer \$KEY"/,
  )
})

/** What the configuration of each program holds. */
const CONFIGURED = {
  'OpenTelemetry Collector': 'otlphttp:',
  'OpenTelemetry SDKs': 'OTEL_EXPORTER_OTLP_ENDPOINT=',
  Vector: 'type: http',
  'Fluent Bit': 'Name es',
  Fluentd: '@type elasticsearch',
  Filebeat: 'output.elasticsearch:',
  Logstash: 'output { elasticsearch {',
  'Grafana Alloy': 'loki.write "logs"',
  Promtail: 'bearer_token: KEY',
  rsyslog: 'type="omfwd"',
  'rsyslog with TLS': 'StreamDriver="gtls"',
  'syslog-ng': 'syslog("logs.example"',
  journald: 'URL=http://any:KEY@',
  'Docker, loki': '--log-driver=loki',
  'Docker, splunk': '--log-driver=splunk',
  'Docker, syslog': '--log-driver syslog',
  'Docker, fluentd': '--log-driver fluentd',
  'Docker, gelf': '--log-driver gelf',
  'Datadog agent': 'logs_dd_url:',
  pino: "target: 'pino-loki'",
  winston: 'winston.transports.Http',
  Python: 'SysLogHandler(',
  log4j2: '<Http name="logs"',
}

test('each shipper has its configuration', async (t) => {
  for (const [program, text] of Object.entries(CONFIGURED))
    t.doesNotThrow(() => shown(text), program)
})

test('blocks of YAML are YAML', async (t) => {
  const yaml = BLOCKS.filter(({ language }) => language === 'yaml')
  t.ok(yaml.length >= 6)
  for (const { text } of yaml)
    t.same(
      parseAllDocuments(text).flatMap(({ errors }) => errors),
      [],
      text,
    )
})

test('rsyslog knows the parameters of both actions', { skip: without('rsyslogd') }, async (t) => {
  const dir = folder(t)
  const file = join(dir, 'rsyslog.conf')
  for (const part of ['port="5140"', 'StreamDriver="gtls"']) {
    writeFileSync(file, `global(workDirectory="${dir}")\n${shown(part)}`)
    const { code, text } = runTool('rsyslogd', ['-N1', '-f', file])
    t.equal(code, 0, `${part}: ${text}`)
  }
})

void test('what the guide shows sends events', async (t) => {
  const dir = folder(t)
  const { cert, key } = certificateIn(dir)
  const service = await startService(t, {
    ...KNOWN,
    DATA_DIR: tempDataDir(t),
    WEBHOOK_SECRET: SECRET,
    SYSLOG_PORT: '0',
    SYSLOG_TLS_PORT: '0',
    TLS_CERT_FILE: cert,
    TLS_KEY_FILE: key,
    GELF_PORT: '0',
    FLUENT_PORT: '0',
  })
  const caller = await logIn(service)
  const found = (source: string, search: string) => allEvents(caller, { source, search })
  const isThere = (source: string, search: string) => async (): Promise<boolean> =>
    (await found(source, search)).length > 0

  /** Finds the event of a shipper, which must come soon. */
  async function checkSent(t: Test, search: string, want: Wanted): Promise<void> {
    const isSent = isThere(want.source, search)
    for (const until = Date.now() + 30_000; !(await isSent()) && Date.now() < until;)
      await sleep(100)
    t.match(await found(want.source, search), [want], search)
  }

  await t.test('requests of curl', async (t) => {
    writeFileSync(join(dir, 'shop.ndjson'), '{"source":"shop","message":"order 1001 paid"}\n')
    writeFileSync(join(dir, 'dpkg.log'), '2026-11-21 09:28:19 status installed curl:amd64 7.88\n')
    let sent = 0
    for (const [i, { language, text }] of BLOCKS.entries()) {
      const isSent = text.includes('http://127.0.0.1:8080/') && text.includes('curl ')
      if (language !== 'sh' || !isSent) continue
      const script = placed(text, service)
        .replace(/^KEY=.*\n/, '')
        .replace(/^\w+=ik_.*\n/, '')
        .replaceAll('/var/log/dpkg.log', 'dpkg.log')
      const env = `cd ${dir}; KEY=${INGEST_KEY} WEBHOOK_SECRET=${SECRET}\n`
      const reply: unknown = JSON.parse(runTool('bash', ['-c', env + script]).text)
      const next = BLOCKS[i + 1]
      const wanted: unknown =
        next?.language === 'json' ? JSON.parse(next.text) : { rejected: 0, errors: [] }
      t.match(reply, wanted, script)
      sent += 1
    }
    t.equal(sent, 7)
  })

  await t.test('logger', { skip: without('logger') }, async (t) => {
    const line = /^logger .*/m.exec(shown('logger -n')) ?? ['']
    const { code, text } = runTool('bash', ['-c', placed(line[0], service)])
    t.equal(code, 0, text)
    const want = { source: 'checkout', severity: 'WARNING' }
    await checkSent(t, 'stock of item 7 is low', want)
  })

  const record = (message: string): SentRecord[] => [
    { seq: 7, atMs: Date.now(), level: 'error', message },
  ]
  const SENT = { source: 'shop', host: 'web-1', severity: 'ERROR', tags: { seq: '7' } }
  await t.test('rsyslog', { skip: without('rsyslogd') }, async (t) => {
    const port = await freePort()
    const input = `module(load="imptcp")\ninput(type="imptcp" address="127.0.0.1" port="${port}")`
    const action = placed(shown('type="omfwd"'), service)
    const config = `global(workDirectory="DIR")\n${input}\n${action}`
    await relay(
      'rsyslogd',
      { config, port, records: record('sent-by-rsyslog') },
      isThere('shop', 'sent-by-rsyslog'),
    )
    await checkSent(t, 'sent-by-rsyslog', SENT)
  })
  for (const kind of ['tcp', 'tls'])
    await t.test(`syslog-ng by ${kind}`, { skip: without('syslog-ng') }, async (t) => {
      const port = await freePort()
      const message = `sent-by-syslog-ng-${kind}`
      const plain = shown('destination d_logs')
      const to = kind === 'tls' ? shown('tls(ca-file(') : 'port(5140) transport("tcp")'
      const destination = placed(plain.replace('port(5140) transport("tcp")', to), service)
        .replace('/etc/ssl/logs-ca.pem', cert)
        .replace('disk-buffer(', 'disk-buffer(dir("DIR") ')
      const input = `source s_src { syslog(ip("127.0.0.1") port(${port}) transport("tcp")); };`
      const config = `@version: 3.35\noptions { keep-hostname(yes); };\n${input}\n${destination}`
      await relay('syslog-ng', { config, port, records: record(message) }, isThere('shop', message))
      await checkSent(t, message, SENT)
    })

  // Debian's packages are there, whichever Python comes first.
  const python = async (code: string): Promise<void> =>
    runToEnd('python3', [
      '-c',
      `import sys\nsys.path.append('/usr/lib/python3/dist-packages')\n${code}`,
    ])
  await t.test('Python', { skip: without('python3') }, async (t) => {
    const log = (handler: string, text: string): string =>
      `import logging, logging.handlers, socket\n${handler}\nlog = logging.getLogger('shop')\nlog.addHandler(handler)\nlog.error('${text}')\nhandler.close()\n`
    await python(log(placed(shown('SysLogHandler('), service), 'sent-by-SysLogHandler'))
    await checkSent(t, 'sent-by-SysLogHandler', { source: 'checkout', severity: 'ERROR' })
    const handler = `import graypy\nhandler = graypy.${placed(shown('GELFHTTPHandler('), service)}`
    await python(log(handler, 'sent-by-graypy'))
    await checkSent(t, 'sent-by-graypy', { source: 'checkout', severity: 'ERROR' })
    const sender = placed(shown('FluentSender('), service)
    await python(
      `import fluent.sender\ns = ${sender}\ns.emit('', {'message': 'sent-by-FluentSender'})\ns.close()`,
    )
    await checkSent(t, 'sent-by-FluentSender', { source: 'checkout' })
  })

  const node = async (code: string): Promise<void> => {
    // A file, because a worker thread of pino inherits the options that a text needs, and finds packages from where the file is.
    const file = join(ROOT, 'build', `guide-${process.pid}.mjs`)
    writeFileSync(file, code)
    const { code: status, text } = runTool('node', [file])
    rmSync(file)
    if (status !== 0) throw new Error(text)
  }
  await t.test('Node.js', async (t) => {
    const transport = placed(shown("target: 'pino-loki'"), service).replace(/^\/\/.*\n/, '')
    await node(
      `const { default: pino } = await import('pino')\nconst to = ${transport}\npino(to).error('sent-by-pino')\nto.end()`,
    )
    await checkSent(t, 'sent-by-pino', { source: 'shop', severity: 'ERROR' })
    const logger = placed(shown('winston.transports.Http'), service).trimEnd()
    await node(
      `const { default: winston } = await import('winston')\n${logger}.error('sent-by-winston')`,
    )
    await checkSent(t, 'sent-by-winston', { source: 'checkout', severity: 'ERROR' })
    const gelf = placed(shown('gelf.setConfig('), service)
    await node(
      `const { default: gelf } = await import('gelf-pro')\n${gelf}\ngelf.error('sent-by-gelf-pro', () => process.exit())`,
    )
    await checkSent(t, 'sent-by-gelf-pro', { source: 'checkout', severity: 'ERROR' })
    const client = placed(shown('new FluentClient('), service)
    await node(
      `const { FluentClient } = await import('@fluent-org/logger')\nconst client = ${client}\nawait client.emit('shop', { message: 'sent-by-FluentClient' })\nawait client.shutdown()`,
    )
    await checkSent(t, 'sent-by-FluentClient', { source: 'checkout.shop' })
  })
})
