import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bound } from '../bound.js'
import { freePort } from '../ports.js'
import { toolPath } from '../tools.js'
import { NUMBER_OF, type SentRecord } from './records.js'

const LOCAL0 = 16 * 8
const priOf = ({ level }: SentRecord): number => LOCAL0 + NUMBER_OF[level]

/** A message of RFC 5424 with structured data. */
const message5424 = (record: SentRecord): string =>
  `<${priOf(record)}>1 ${new Date(record.atMs).toISOString()} web-1 shop 42 ID7 [meta@32473 seq="${record.seq}"] ${record.message}`

/** Runs a program until it ends. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  input = '',
): Promise<void> {
  const child = spawn(...bound(toolPath(command), args), { stdio: ['pipe', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  child.stdin.end(input)
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${command} ended with ${String(code)}: ${errors}`)
}

/** The options with which a relay runs as a part of a test, with a configuration of its own. */
const RELAYS = {
  rsyslogd: (file: string) => ['-n', '-f', file, '-i', 'NONE'],
  'syslog-ng': (file: string) =>
    `-F --no-caps -f ${file} -R ${file}.persist -c ${file}.ctl -p ${file}.pid`.split(' '),
}

/** Runs a relay, sends it the records with octet counts, and ends it when `isDone`. `DIR` in its configuration is a folder of its own. */
export async function relay(
  command: keyof typeof RELAYS,
  {
    config,
    port,
    records,
  }: { readonly config: string; readonly port: number; readonly records: readonly SentRecord[] },
  isDone: () => Promise<boolean>,
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'relay-'))
  const file = join(dir, 'relay.conf')
  writeFileSync(file, config.replaceAll('DIR', dir))
  const child = spawn(...bound(toolPath(command), RELAYS[command](file)), {
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: dir,
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const ended = once(child, 'close')
  try {
    const socket = await connectSoon(port, () => child.exitCode !== null)
    for (const record of records) {
      const bytes = Buffer.from(message5424(record))
      socket.write(Buffer.concat([Buffer.from(`${bytes.length} `), bytes]))
      // What it forwards by UDP is lost where the kernel has no room for it.
      if (record.seq % 50 === 0) await sleep(5)
    }
    socket.end()
    await once(socket, 'close')
    for (const until = Date.now() + 60_000; !(await isDone()) && Date.now() < until;)
      await sleep(100)
  } catch (cause) {
    throw new Error(`${command}: ${errors}`, { cause })
  } finally {
    child.kill('SIGTERM')
    await ended
    rmSync(dir, { recursive: true, force: true })
  }
}

async function connectSoon(port: number, hasEnded: () => boolean) {
  for (let attempt = 0; attempt < 200 && !hasEnded(); attempt++) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    if (isOpen) return socket.resume()
    await sleep(50)
  }
  throw new Error(`nobody listens on ${port}`)
}

export interface SyslogPorts {
  readonly plain: number
  readonly tls: number
}

/** The ways in which rsyslog forwards; each has a program's name of its own. */
export const RSYSLOG_SOURCES = [
  'rsyslog-counted',
  'rsyslog-lines',
  'rsyslog-3164',
  'rsyslog-udp',
] as const

/** Sends the records by way of rsyslog, which forwards each in several ways. */
export async function sendByRsyslog(
  ports: SyslogPorts,
  records: readonly SentRecord[],
  isDone: () => Promise<boolean>,
): Promise<void> {
  const port = await freePort()
  const rfc5424 = (name: string): string =>
    `template(name="${name}" type="string" string="<%PRI%>1 %TIMESTAMP:::date-rfc3339% %HOSTNAME% ${name} %PROCID% %MSGID% %STRUCTURED-DATA% %msg%\\n")`
  const to = `type="omfwd" target="127.0.0.1" port="${ports.plain}"`
  const config = `
global(workDirectory="DIR" parser.escapeControlCharactersOnReceive="off" maxMessageSize="64k")
module(load="imptcp")
input(type="imptcp" address="127.0.0.1" port="${port}")
${rfc5424('rsyslog-counted')}
${rfc5424('rsyslog-lines')}
${rfc5424('rsyslog-udp')}
template(name="rsyslog-3164" type="string" string="<%PRI%>%TIMESTAMP:::date-rfc3339% %HOSTNAME% rsyslog-3164[%PROCID%]: %msg%")
action(${to} protocol="tcp" TCP_Framing="octet-counted" template="rsyslog-counted")
action(${to} protocol="tcp" template="rsyslog-lines")
action(${to} protocol="tcp" template="rsyslog-3164")
action(${to} protocol="udp" template="rsyslog-udp")
`
  await relay('rsyslogd', { config, port, records }, isDone)
}

export const SYSLOG_NG_SOURCES = ['sng-syslog', 'sng-network', 'sng-udp', 'sng-tls'] as const

/** Sends the records by way of syslog-ng, which forwards each in several ways. */
export async function sendBySyslogNg(
  ports: SyslogPorts,
  records: readonly SentRecord[],
  isDone: () => Promise<boolean>,
): Promise<void> {
  const port = await freePort()
  const log = (name: string, driver: string, more: string): string => {
    const id = name.replace('-', '_')
    return `
rewrite r_${id} { set("${name}" value("PROGRAM")); };
destination d_${id} { ${driver}("127.0.0.1" ${more} persist-name("${name}")); };
log { source(in); rewrite(r_${id}); destination(d_${id}); };`
  }
  const config = `@version: 3.35
options { keep-hostname(yes); frac-digits(3); log-msg-size(65536); stats-freq(0); time-reopen(1); };
source in { syslog(ip("127.0.0.1") port(${port}) transport("tcp")); };
${log('sng-syslog', 'syslog', `port(${ports.plain}) transport("tcp")`)}
${log('sng-network', 'network', `port(${ports.plain}) transport("tcp") flags(syslog-protocol)`)}
${log('sng-udp', 'syslog', `port(${ports.plain}) transport("udp")`)}
${log('sng-tls', 'syslog', `port(${ports.tls}) transport("tls") tls(peer-verify(no))`)}
`
  await relay('syslog-ng', { config, port, records }, isDone)
}

/** Sends the records by `logger`, which reads them from a file: a line each, with its priority. */
export async function sendByLogger(
  { plain }: SyslogPorts,
  records: readonly SentRecord[],
  more: readonly string[],
): Promise<void> {
  const lines = records.map((record) => `<${priOf(record)}>${record.message}\n`).join('')
  const size = ['--size', '8KiB', '--prio-prefix']
  await runToEnd('logger', ['-n', '127.0.0.1', '-P', String(plain), ...size, ...more], lines)
}

const PYTHON = `
import json, logging, logging.handlers, socket, sys, time
port, kind, name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
handler = logging.handlers.SysLogHandler(('127.0.0.1', port), facility='local0',
    socktype=socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM)
handler.setFormatter(logging.Formatter(name + ': %(message)s'))
log = logging.getLogger('shop')
log.setLevel(10)
log.addHandler(handler)
levels = {'debug': 10, 'info': 20, 'warning': 30, 'error': 40, 'crit': 50}
for line in sys.stdin:
    record = json.loads(line)
    log.log(levels[record['level']], record['message'])
    if kind == 'udp' and record['seq'] % 50 == 0: time.sleep(0.005)
handler.close()
`

/** Sends the records by Python's own handler. */
export async function sendByPython(
  { plain }: SyslogPorts,
  records: readonly SentRecord[],
  kind: 'tcp' | 'udp',
): Promise<void> {
  const lines = records.map((record) => `${JSON.stringify(record)}\n`).join('')
  await runToEnd('python3', ['-c', PYTHON, String(plain), kind, `python-${kind}`], lines)
}
