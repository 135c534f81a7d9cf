import { X509Certificate } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { test, type Test } from 'tap'
import {
  type Kinds,
  RECORDS,
  sentRecords,
  type SentRecord,
  SEVERITY_OF,
} from '../support/shippers/records.js'
import { sendByFluentLogger, sendByGraypy } from '../support/shippers/fluent.js'
import { LOG4J_SOURCES, sendByLog4j, sendByLogback, traceOf } from '../support/shippers/java.js'
import { sendByJournalUpload } from '../support/shippers/journal.js'
import {
  RSYSLOG_SOURCES,
  sendByLogger,
  sendByPython,
  sendByRsyslog,
  sendBySyslogNg,
  SYSLOG_NG_SOURCES,
} from '../support/shippers/syslog.js'
import { sendByPackage } from '../support/shippers/packages.js'
import {
  allEvents,
  type Caller,
  KNOWN,
  logIn,
  lostDatagrams,
  type Service,
  startService,
  tempDataDir,
} from '../support/service.js'
import { eventually } from '../support/live-service.js'
import { certificateIn } from '../support/certificate.js'
import { runTool, without } from '../support/tools.js'

interface Item {
  readonly timestamp: string
  readonly source: string
  readonly severity: string
  readonly message: string
  readonly host: string
  readonly tags: Readonly<Record<string, unknown>>
  readonly occurrence_count: number
  readonly trace_id: string
}

/** What every event of a source must be. */
interface Want {
  readonly source: string
  readonly records: readonly SentRecord[]
  /** Whether the protocol carries the time. */
  readonly isTimed: boolean
  readonly host: string | RegExp
  readonly tags: (record: SentRecord) => Readonly<Record<string, unknown>>
  /** The trace of a record; absent when the shipper sends none. */
  readonly traceOf?: (record: SentRecord) => string
}

/** Ports of the service by name, as it says at its start. */
const portOf = (service: Service, name: string): number =>
  Number(new RegExp(`^ +${name} +127\\.0\\.0\\.1:(\\d+)$`, 'm').exec(service.banner)?.[1])

/** Stored messages of sources. */
async function storedOf(caller: Caller, sources: readonly string[]): Promise<number> {
  const { items } = await caller.get<{ items: readonly { source: string; count: number }[] }>(
    '/api/analytics/top-sources?window=30d&limit=50',
  )
  return items
    .filter(({ source }) => sources.includes(source))
    .reduce((sum, { count }) => sum + count, 0)
}

async function untilStored(caller: Caller, source: string): Promise<void> {
  for (const until = Date.now() + 30_000; Date.now() < until; await sleep(100))
    if ((await storedOf(caller, [source])) >= RECORDS) return
}

/** Every record is found once, with all that its protocol carries. */
async function checkFound(t: Test, caller: Caller, want: Want): Promise<void> {
  const read = async () =>
    (await allEvents(caller, { source: want.source })) as unknown as readonly Item[] // the same items with more fields
  let items = await read()
  // The views of an insert are stored side by side, so the counts may be there a moment before the events.
  for (let tries = 0; items.length < RECORDS && tries < 20; tries++) {
    await sleep(100)
    items = await read()
  }
  const bySeq = new Map<number, Item>()
  for (const item of items) bySeq.set(Number(/ seq=(\d+)/.exec(item.message)?.[1]), item)
  t.equal(items.length, RECORDS, `${want.source}: ${RECORDS} events`)
  const wrong: unknown[] = []
  for (const record of want.records) {
    const item = bySeq.get(record.seq)
    const isFound =
      item !== undefined &&
      item.message === record.message &&
      item.severity === SEVERITY_OF[record.level] &&
      item.occurrence_count === 1 &&
      (want.traceOf === undefined || item.trace_id === want.traceOf(record)) &&
      (!want.isTimed || Date.parse(item.timestamp) === record.atMs) &&
      (typeof want.host === 'string' ? item.host === want.host : want.host.test(item.host)) &&
      Object.entries(want.tags(record)).every(([name, value]) => item.tags[name] === value)
    if (!isFound) wrong.push({ record, item })
  }
  t.same(wrong.slice(0, 3), [], `${want.source}: each with its message, level, time, host and tags`)
}

void test('shippers of other protocols than HTTP are understood', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'listeners-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const { cert, key } = certificateIn(dir)
  const service = await startService(t, {
    ...KNOWN,
    DATA_DIR: tempDataDir(t),
    SYSLOG_PORT: '0',
    SYSLOG_TLS_PORT: '0',
    TLS_CERT_FILE: cert,
    TLS_KEY_FILE: key,
    GELF_PORT: '0',
    FLUENT_PORT: '0',
    LINES_PORT: '0',
  })
  const caller = await logIn(service)
  const ports = { plain: portOf(service, 'syslog'), tls: portOf(service, 'syslog TLS') }
  const isDone = (sources: readonly string[]) => async (): Promise<boolean> =>
    (await storedOf(caller, sources)) >= RECORDS * sources.length

  const tried = (
    name: string,
    tools: readonly string[],
    run: (t: Test, records: readonly SentRecord[]) => Promise<void>,
    kinds: Kinds = {},
  ) => t.test(name, { skip: without(...tools) }, async (t) => run(t, sentRecords(name, kinds)))

  const RFC5424 = {
    isTimed: true,
    host: 'web-1',
    tags: ({ seq }: SentRecord) => ({
      seq: String(seq),
      pid: '42',
      msgid: 'ID7',
      facility: 'local0',
    }),
  }
  await tried('rsyslog', ['rsyslogd'], async (t, records) => {
    await sendByRsyslog(ports, records, isDone(RSYSLOG_SOURCES))
    for (const source of RSYSLOG_SOURCES) {
      const is3164 = source === 'rsyslog-3164'
      const tags = is3164 ? () => ({ pid: '42', facility: 'local0' }) : RFC5424.tags
      await checkFound(t, caller, { ...RFC5424, source, records, tags })
    }
  })
  await tried('syslog-ng', ['syslog-ng'], async (t, records) => {
    await sendBySyslogNg(ports, records, isDone(SYSLOG_NG_SOURCES))
    for (const source of SYSLOG_NG_SOURCES)
      await checkFound(t, caller, { ...RFC5424, source, records })
  })
  for (const [source, options] of [
    ['logger-lines', ['-T']],
    ['logger-counted', ['-T', '--octet-count']],
    ['logger-3164', ['-T', '--rfc3164']],
    ['logger-udp', ['-d']],
  ] as const)
    await tried(
      source,
      ['logger'],
      async (t, records) => {
        await sendByLogger(ports, records, ['-t', source, '--id=42', ...options])
        await untilStored(caller, source)
        const tags = () => ({ pid: '42', facility: 'local0' })
        await checkFound(t, caller, { source, records, isTimed: false, host: /./, tags })
      },
      { lines: false },
    )
  for (const kind of ['tcp', 'udp'] as const)
    await tried(`python-${kind}`, ['python3'], async (t, records) => {
      await sendByPython(ports, records, kind)
      const source = `python-${kind}`
      await untilStored(caller, source)
      const tags = () => ({ facility: 'local0' })
      await checkFound(t, caller, { source, records, isTimed: false, host: '127.0.0.1', tags })
    })
  await tried('winston-syslog', [], async (t, records) => {
    await sendByPackage('winston-syslog', ports.plain, records)
    const source = 'winston-syslog'
    await untilStored(caller, source)
    const tags = ({ seq }: SentRecord) => ({ facility: 'local0', seq })
    await checkFound(t, caller, { source, records, isTimed: false, host: 'web-1', tags })
  })
  for (const source of ['gelf-udp', 'gelf-tcp'] as const)
    await tried(source, [], async (t, records) => {
      await sendByPackage(source, portOf(service, 'GELF'), records)
      await untilStored(caller, source)
      const tags = ({ seq }: SentRecord) => ({ seq })
      await checkFound(t, caller, { source, records, isTimed: true, host: 'web-1', tags })
    })
  await tried('fluent-org', [], async (t, records) => {
    await sendByPackage('fluent-org', portOf(service, 'Forward'), records)
    const source = 'fluent-org.shop'
    await untilStored(caller, source)
    const tags = ({ seq }: SentRecord) => ({ seq })
    await checkFound(t, caller, { source, records, isTimed: true, host: 'web-1', tags })
  })
  await tried('python-fluent', ['python3'], async (t, records) => {
    await sendByFluentLogger(portOf(service, 'Forward'), records)
    const source = 'python-fluent.shop'
    await untilStored(caller, source)
    const tags = ({ seq }: SentRecord) => ({ seq })
    await checkFound(t, caller, { source, records, isTimed: true, host: 'web-1', tags })
  })
  await tried('log4j', ['javac'], async (t, records) => {
    const { collector } = service
    const [syslog, gelf, lines] = [ports.plain, portOf(service, 'GELF'), portOf(service, 'lines')]
    await sendByLog4j({ collector, syslog, gelf, lines }, records)
    for (const source of LOG4J_SOURCES) {
      await untilStored(caller, source)
      const tags = ({ seq }: SentRecord) => ({ seq: String(seq) })
      const host = source === 'log4j-http' ? /^[\w.-]+$/ : /^/
      await checkFound(t, caller, { source, records, isTimed: false, host, tags, traceOf })
    }
  })
  await tried('logback', ['javac'], async (t, records) => {
    // Its highest level is ERROR.
    const sent = records.map((one) =>
      one.level === 'crit' ? { ...one, level: 'error' as const } : one,
    )
    await sendByLogback(portOf(service, 'lines'), sent)
    await untilStored(caller, 'logback')
    const tags = ({ seq }: SentRecord) => ({ seq: String(seq), logger: 'shop.Cart' })
    const want = { source: 'logback', isTimed: false, host: '127.0.0.1', tags, traceOf }
    await checkFound(t, caller, { ...want, records: sent })
  })
  await tried('journal-upload', ['systemd-journal-upload'], async (t, records) => {
    await sendByJournalUpload(service.collector, records)
    const source = 'journal-upload'
    await untilStored(caller, source)
    const tags = ({ seq }: SentRecord) => ({ SEQ: String(seq) })
    await checkFound(t, caller, { source, records, isTimed: true, host: 'web-1', tags })
  })
  await tried('graypy', ['python3'], async (t, records) => {
    await sendByGraypy(service.collector, records)
    await untilStored(caller, 'graypy')
    const tags = ({ seq }: SentRecord) => ({ seq, facility: 'shop.cart' })
    const want = { source: 'graypy', records, isTimed: false, host: 'web-1', tags }
    await checkFound(t, caller, want)
  })
  await tried('lines', [], async (t, records) => {
    const socket = connect(portOf(service, 'lines'), '127.0.0.1')
    for (const { level, message, seq, atMs } of records) {
      const line = { '@timestamp': new Date(atMs).toISOString(), app: 'lines', level, message, seq }
      socket.write(`${JSON.stringify(line)}\n`)
    }
    socket.end()
    await untilStored(caller, 'lines')
    const tags = ({ seq }: SentRecord) => ({ seq })
    await checkFound(t, caller, {
      source: 'lines',
      records,
      isTimed: true,
      host: '127.0.0.1',
      tags,
    })
  })
  t.equal(await lostDatagrams(service), 0, 'no datagram was lost')
  t.notMatch(service.log(), /"level":"error"/, 'and nothing went wrong')
})

const isLinux = process.platform === 'linux'
const onlyLinux = isLinux ? false : 'another system has no second address of its own by itself'
void test(
  'only addresses of LISTENER_ALLOW send, and the log names another',
  { skip: onlyLinux },
  async (t) => {
    const service = await startService(t, {
      ...KNOWN,
      DATA_DIR: tempDataDir(t),
      LISTENER_ALLOW: '127.0.0.2',
      SYSLOG_PORT: '0',
    })
    const port = portOf(service, 'syslog')
    for (const from of ['127.0.0.1', '127.0.0.2']) {
      const udp = createSocket('udp4')
      await new Promise<void>((resolve) => udp.bind(0, from, resolve))
      const datagram = `<134>app: datagram of ${from}`
      await new Promise((resolve) => udp.send(datagram, port, '127.0.0.1', resolve))
      udp.close()
      const socket = connect({ port, host: '127.0.0.1', localAddress: from })
      socket.on('error', () => undefined).end(`<134>app: line of ${from}\n`)
      await new Promise((resolve) => socket.once('close', resolve))
    }
    const caller = await logIn(service)
    const messages = async () =>
      (await allEvents(caller, { source: 'app' })).map(({ message }) => message).toSorted()
    t.same(await eventually(messages, (all) => all.length >= 2), [
      'datagram of 127.0.0.2',
      'line of 127.0.0.2',
    ])
    const told = service.log().match(/"address":"127\.0\.0\.1".*LISTENER_ALLOW does not name/g)
    t.equal(told?.length, 1, 'once a minute')
  },
)

/** The fingerprint of the certificate that a port shows. */
const shownBy = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] }
    const socket = connectTls(options, () => {
      resolve(socket.getPeerCertificate().fingerprint256)
      socket.destroy()
    }).on('error', reject)
  })

void test('a certificate that is over is told at the start, and used; a renewed one is used without a restart', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'listeners-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const { cert, key } = certificateIn(dir)
  const over = join(dir, 'over.pem')
  const args = ['x509', '-in', cert, '-signkey', key, '-days', '0', '-out', over]
  const { code, text } = runTool('openssl', args)
  t.equal(code, 0, text)
  const service = await startService(t, {
    DATA_DIR: tempDataDir(t),
    LOG_LEVEL: 'info',
    SYSLOG_TLS_PORT: '0',
    OTLP_GRPC_PORT: '0',
    TLS_CERT_FILE: over,
    TLS_KEY_FILE: key,
  })
  t.match(service.log(), /the certificate of TLS_CERT_FILE is not valid/)
  const ports = [portOf(service, 'syslog TLS'), portOf(service, 'OTLP/gRPC')]
  const shown = () => Promise.all(ports.map(shownBy))
  const fingerprint = (file: string) => new X509Certificate(readFileSync(file)).fingerprint256
  const [before, open] = [
    fingerprint(over),
    connectTls({ port: ports[0], rejectUnauthorized: false }),
  ]
  t.same(await shown(), [before, before])

  const other = mkdtempSync(join(dir, 'renewed-'))
  const renewed = certificateIn(other)
  const told = (pattern: RegExp) =>
    eventually(
      async () => service.log(),
      (log) => pattern.test(log),
    )
  cpSync(renewed.cert, over)
  await told(/are no certificate and its key: .*the former certificate stays in use/)
  t.same(await shown(), [before, before], 'the key is still that of the other one')
  cpSync(renewed.key, key)
  await told(/TLS_CERT_FILE was renewed/)
  const after = fingerprint(renewed.cert)
  t.same(await shown(), [after, after])
  t.equal(open.readyState, 'open', 'open connections go on')
  open.destroy()
})
