import { test } from 'tap'
import { decodeUpload } from '../../../../src/ingest/formats/upload.js'
import type { CanonicalEvent } from '../../../../src/model/event.js'
import { AT, collect, uploadContext } from './collect.js'

async function decode(body: string | Uint8Array, context = uploadContext) {
  const sink = collect()
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  await decodeUpload('txt', bytes, context, sink)
  return { ...sink, messages: sink.events.map((event) => event.message) }
}

/** Decodes one line. */
async function one(line: string): Promise<Partial<CanonicalEvent>> {
  const { events } = await decode(`${line}\n`)
  if (events.length !== 1) throw new Error(`${events.length} events of one line`)
  return events[0] ?? {}
}

interface Want {
  readonly message: string
  readonly severity?: string | null
  readonly at?: number
  readonly host?: string
  readonly tags?: object
}

const FORMS: readonly (readonly [line: string, want: Want])[] = [
  [
    '<131>1 2026-11-21T09:28:19.000Z web-1 app 123 ID7 [meta a="b \\"c\\" \\]" d="e"][x@1] hello',
    {
      message: 'hello',
      severity: 'ERROR',
      host: 'web-1',
      tags: { a: 'b "c" ]', d: 'e', program: 'app', pid: '123' },
    },
  ],
  [
    '<34>1 2026-11-21T09:28:19Z - - - - - \uFEFFhello',
    { message: 'hello', severity: 'CRITICAL', host: '' },
  ],
  [
    '<134>Nov 21 09:28:19 web-1 app[123]: hello',
    { message: 'hello', severity: 'INFO', host: 'web-1', tags: { program: 'app', pid: '123' } },
  ],
  [
    '<132>2026-11-21T09:28:19+00:00 web-1 app: hello',
    { message: 'hello', severity: 'WARNING', host: 'web-1' },
  ],
  [
    'Nov 21 09:28:19 combo sshd(pam_unix)[19939]: check pass; user unknown',
    {
      message: 'check pass; user unknown',
      severity: null,
      host: 'combo',
      tags: { program: 'sshd(pam_unix)' },
    },
  ],
  [
    'Nov 21 09:28:19 combo syslogd 1.4.1: restart.',
    { message: 'restart.', tags: { program: 'syslogd' } },
  ],
  [
    'Nov 21 09:28:19 combo  -- root[2421]: ROOT LOGIN ON tty2',
    { message: 'ROOT LOGIN ON tty2', tags: { program: 'root' } },
  ],
  ['Nov 21 09:28:19 combo kernel: Linux version 2.6', { message: 'Linux version 2.6' }],
  [
    'Nov 21 09:28:19 combo something without a name',
    { message: 'something without a name', host: 'combo' },
  ],
  [
    '2026-11-21T09:28:19+0000 web-1 app[123]: hello',
    { message: 'hello', host: 'web-1', tags: { pid: '123' } },
  ],
  [
    '2026-11-21T09:28:19.000123456Z stderr F hello',
    { message: 'hello', tags: { stream: 'stderr' } },
  ],
  [
    '2026-11-21T09:28:19.0Z stdout F {"level":"error","msg":"inner","n":1}',
    { message: 'inner', severity: 'ERROR', tags: { n: 1 } },
  ],
  [
    '2026-11-21T09:28:19.0Z stderr F W1121 09:28:18.000000       1 x.go:7] inner',
    { message: 'inner', severity: 'WARNING', tags: { caller: 'x.go:7' } },
  ],
  [
    '10.0.0.1 - bob [21/Nov/2026:10:28:19 +0100] "GET /a\\x22b HTTP/1.1" 502 17 "-" "curl \\"x\\""',
    {
      message: '10.0.0.1 - bob "GET /a\\x22b HTTP/1.1" 502 17 "-" "curl \\"x\\""',
      severity: 'ERROR',
      tags: { status: 502, bytes: 17 },
    },
  ],
  [
    '::1 - - [21/Nov/2026:09:28:19 +0000] "GET / HTTP/1.1" 404 -',
    { message: '::1 - - "GET / HTTP/1.1" 404 -', severity: 'WARNING' },
  ],
  [
    '2026/11/21 09:28:19 [crit] 17#18: *15 open() failed',
    { message: '*15 open() failed', severity: 'CRITICAL', tags: { pid: '17' } },
  ],
  ['2026/11/21 09:28:19 plain Go line', { message: 'plain Go line', severity: null }],
  [
    '[Sat Nov 21 09:28:19 2026] [error] mod_jk child in error state 6',
    { message: 'mod_jk child in error state 6', severity: 'ERROR' },
  ],
  [
    '[Sat Nov 21 09:28:19.000456 2026] [core:notice] [pid 12:tid 34] [client ::1:5] AH00094: up',
    {
      message: '[client ::1:5] AH00094: up',
      severity: 'INFO',
      tags: { module: 'core', pid: '12', severity_text: 'notice' },
    },
  ],
  [
    'E1121 09:28:19.000456    1234 server.go:42] it broke',
    { message: 'it broke', severity: 'ERROR', tags: { caller: 'server.go:42' } },
  ],
  [
    'APPREAD 1795253299 2026.11.21 R04-M1 2026-11-21-01.28.19.675872 R04-M1 RAS APP FATAL ciod: failed',
    {
      message: 'ciod: failed',
      severity: 'CRITICAL',
      at: AT + 675,
      host: 'R04-M1',
      tags: { alert: 'APPREAD', component: 'APP' },
    },
  ],
  [
    '261121 092819 148 WARN dfs.DataNode$X: Got exception',
    { message: 'Got exception', severity: 'WARNING', tags: { logger: 'dfs.DataNode$X' } },
  ],
  [
    '26/11/21 09:28:19 INFO Remoting: Starting remoting',
    { message: 'Starting remoting', severity: 'INFO' },
  ],
  [
    'nova-api.log.1.2026-11-21_13:53:08 2026-11-21 09:28:19.000 25746 INFO nova.osapi [req-38101a0b-2096 113d - - -] 10.11.10.1 "GET /v2"',
    {
      message: '10.11.10.1 "GET /v2"',
      severity: 'INFO',
      tags: { logger: 'nova.osapi', pid: '25746' },
    },
  ],
  [
    '2026-11-21 09:28:19,000 - WARN  [Send:188@688] - Send worker leaving',
    { message: 'Send worker leaving', severity: 'WARNING' },
  ],
  [
    '2026-11-21 09:28:19,000 - INFO  [Q[myid=1]/0:0:2181:F@774] - Notification',
    { message: 'Notification', tags: { thread: 'Q[myid=1]/0:0:2181:F@774' } },
  ],
  [
    '[2026-11-21T09:28:19.000] [FATAL] checkout - bye',
    { message: 'bye', severity: 'CRITICAL', tags: { logger: 'checkout' } },
  ],
  [
    '2026-11-21 09:28:19,000 ERROR [main] com.acme.Checkout - it: broke',
    {
      message: 'it: broke',
      severity: 'ERROR',
      tags: { thread: 'main', logger: 'com.acme.Checkout' },
    },
  ],
  [
    '2026-11-21 09:28:19.000 [main] INFO  com.acme.Checkout - up',
    { message: 'up', severity: 'INFO', tags: { thread: 'main' } },
  ],
  [
    '2026-11-21 09:28:19.000  WARN 123 --- [           main] c.acme.Checkout   : slow',
    { message: 'slow', severity: 'WARNING', tags: { pid: '123', logger: 'c.acme.Checkout' } },
  ],
  [
    '2026-11-21 09:28:19,000 - app.views - ERROR - it broke',
    { message: 'it broke', severity: 'ERROR', tags: { logger: 'app.views' } },
  ],
  [
    '2026-11-21 09:28:19.000 UTC [123] LOG:  checkpoint starting',
    { message: 'checkpoint starting', severity: 'INFO', tags: { pid: '123' } },
  ],
  [
    '2026-11-21T09:28:19.000000Z 0 [Warning] [MY-010068] [Server] CA',
    { message: '[MY-010068] [Server] CA', severity: 'WARNING' },
  ],
  ['2026-11-21T09:28:19Z INFO main: up', { message: 'main: up', severity: 'INFO', host: '' }],
  ['2026-11-21 09:28:19 Error while opening', { message: 'Error while opening', severity: null }],
  ['2026-11-21 09:28:19 ERRORS.TXT was read', { message: 'ERRORS.TXT was read', severity: null }],
  ['2026-11-21 09:28:19 just a text', { message: 'just a text', severity: null }],
  [
    'time=2026-11-21T09:28:19Z level=warn msg="a \\"b\\"\\nc" n=1',
    { message: 'a "b"\nc', severity: 'WARNING', tags: { n: '1' } },
  ],
  [
    '{"time":"2026-11-21T09:28:19Z","level":"error","msg":"m"}',
    { message: 'm', severity: 'ERROR' },
  ],
  [
    '- 1795253299 2026.11.21 dn228 Nov 21 01:28:19 dn228/dn228 crond(pam_unix)[2915]: session closed',
    { message: 'session closed', host: 'dn228', tags: { program: 'crond(pam_unix)' } },
  ],
  [
    '11-21 09:28:19.000  1702  2395 D WindowManager: it froze',
    { message: 'it froze', severity: 'DEBUG', tags: { pid: '1702', logger: 'WindowManager' } },
  ],
  [
    '134681 node-246 unix.hw state_change.unavailable 1795253299 1 Component State Change',
    { message: 'Component State Change', host: 'node-246' },
  ],
  [
    '20261121-9:28:19:7|Step_LSC|30002312|onStandStepChanged 3579',
    { message: 'onStandStepChanged 3579', at: AT + 7 },
  ],
  [
    '[11.21 09:28:19] chrome.exe - proxy.example:5070 open',
    { message: 'proxy.example:5070 open', tags: { program: 'chrome.exe' } },
  ],
  [
    '2026-11-21 09:28:19, Info                  CBS    Loaded Stack',
    { message: 'Loaded Stack', severity: 'INFO', tags: { component: 'CBS' } },
  ],
  [
    'Nov  1 09:28:19 mac Microsoft Word[14463]: hello',
    {
      message: 'hello',
      at: Date.UTC(2026, 10, 1, 9, 28, 19),
      tags: { program: 'Microsoft Word', pid: '14463' },
    },
  ],
  [
    'Nov 21 09:28:19 mac com.apple.xpc.launchd[1] (com.apple.x): died',
    { message: 'died', tags: { program: 'com.apple.xpc.launchd' } },
  ],
  [
    '2026-11-21 09:28:19,000 INFO [main] org.apache.hadoop.MRAppMaster: Created',
    {
      message: 'Created',
      severity: 'INFO',
      tags: { thread: 'main', logger: 'org.apache.hadoop.MRAppMaster' },
    },
  ],
  [
    'type=SYSCALL msg=audit(1795253299.000:45): arch=c000003e syscall=59 success=yes',
    {
      message: 'type=SYSCALL msg=audit(1795253299.000:45): arch=c000003e syscall=59 success=yes',
      tags: { audit_type: 'SYSCALL', audit_id: '45' },
    },
  ],
  [
    'node=web-1 type=USER_LOGIN msg=audit(1795253299.000:46): pid=1 res=failed',
    {
      message: 'node=web-1 type=USER_LOGIN msg=audit(1795253299.000:46): pid=1 res=failed',
      host: 'web-1',
    },
  ],
  [
    '2026-11-21T09:28:19.000000Z 0 [System] [MY-010931] [Server] ready for connections',
    {
      message: '[MY-010931] [Server] ready for connections',
      severity: 'INFO',
    },
  ],
]

void test('each form of a line gives time, level, host and message', async (t) => {
  for (const [line, want] of FORMS) {
    const event = await one(line)
    t.equal(event.message, want.message, line)
    t.equal(event.timestampMs, want.at ?? AT, `${line}: time`)
    if (want.severity !== undefined) t.equal(event.severity, want.severity, `${line}: level`)
    if (want.host !== undefined) t.equal(event.host, want.host, `${line}: host`)
    if (want.tags !== undefined) t.match(event.tags, want.tags, `${line}: tags`)
  }
})

void test('a line without a known head has the time of arrival', async (t) => {
  for (const line of [
    'hello',
    '  indented',
    'ERROR it broke',
    '2026-99-21 09:28:19 no such day',
    '{"broken":',
  ]) {
    t.match(await one(line), { message: line, timestampMs: uploadContext.nowMs, severity: null })
  }
  t.match(await one('ERROR:app.views:it broke'), { message: 'it broke', severity: 'ERROR' })
  t.match(await one('09:28:19.000 [main] WARN com.acme.X - m'), {
    message: 'm',
    severity: 'WARNING',
  })
})

void test('each line without a head is a record, in files of any length', async (t) => {
  const lines = Array.from(
    { length: 2000 },
    (_, i) => `${i % 3 === 0 ? 'Error: ' : ''}thing ${i} happened`,
  )
  t.same((await decode(lines.join('\n'))).messages, lines)
  const dated = lines.map((line) => `2026-11-21 09:28:19 ${line}`)
  t.same((await decode(dated.join('\r\n'))).messages, lines)
})

void test('a stack trace belongs to the record above it', async (t) => {
  const java = [
    '2026-11-21 09:28:19 ERROR broke',
    'java.lang.IllegalStateException: no',
    '\tat a.B.c(B.java:1)',
    '',
    'Caused by: java.io.IOException: disk',
    '\t... 5 more',
    '2026-11-21 09:28:20 INFO on',
  ]
  const { messages, lines } = await decode(java.join('\n'))
  t.same(messages, [
    'broke\njava.lang.IllegalStateException: no\n\tat a.B.c(B.java:1)\nCaused by: java.io.IOException: disk\n\t... 5 more',
    'on',
  ])
  t.same(lines, [1, 7])
  const plain = ['boom', '    at f (/app/x.js:1:2)', 'next', '  indented']
  t.same((await decode(plain.join('\n'))).messages, [
    'boom\n    at f (/app/x.js:1:2)',
    'next',
    '  indented',
  ])
})

void test('lines without a head are records of their own in a file with few heads', async (t) => {
  const body = ['2026-11-21 09:28:19 dated', 'a', 'b', 'c', 'd']
  t.equal((await decode(body.join('\n'))).events.length, 5)
})

void test('the indentation of continuation lines by journalctl is removed', async (t) => {
  const head = 'Nov 21 09:28:19 web-1 app[1]: '
  const { messages } = await decode(
    `${head}one\n${' '.repeat(head.length)}two\n${' '.repeat(head.length)}  three\n${head}four\n`,
  )
  t.same(messages, ['one\ntwo\n  three', 'four'])
})

void test('lines that a container runtime split are joined by stream', async (t) => {
  const cri = (rest: string) => `2026-11-21T09:28:19.000000000Z ${rest}`
  const body = [
    cri('stdout P abc'),
    cri('stderr F err'),
    cri('stdout P def'),
    cri('stdout F ghi'),
    cri('stderr F boom'),
    cri('stderr F     at f (x.js:1:2)'),
    cri('stdout P open end'),
  ]
  const { messages, lines } = await decode(body.join('\n'))
  t.same(messages, ['err', 'abcdefghi', 'boom\n    at f (x.js:1:2)', 'open end'])
  t.same(lines, [2, 1, 5, 7])
})

void test('a record does not grow beyond the message limit', async (t) => {
  const context = { ...uploadContext, maxMessageBytes: 300 }
  const { events, rejects } = await decode(
    `2026-11-21 09:28:19 ERROR top\n${'\tat x\n'.repeat(100)}`,
    context,
  )
  t.same(rejects, [])
  t.ok(events.length > 1)
  t.ok(events.every((event) => event.timestampMs === AT && event.severity === 'ERROR'))
  t.equal(events.map((event) => event.message).join('\n'), `top${'\n\tat x'.repeat(100)}`)
})

void test('a line with an invalid year is rejected, and the others are decoded', async (t) => {
  const { messages, rejects } = await decode('2036-11-21 09:28:19 far\n2026-11-21 09:28:19 near\n')
  t.same(messages, ['near'])
  t.match(rejects, [{ line: 1, reason: 'timestamp_out_of_range' }])
})

void test('all entries of a journal export are decoded, including sized fields', async (t) => {
  const text = 'line one\nline two'
  const size = Buffer.alloc(8)
  size.writeBigUInt64LE(BigInt(text.length))
  const journalRecord = (message: Buffer) =>
    Buffer.concat([
      Buffer.from(`__CURSOR=x\n__REALTIME_TIMESTAMP=${AT}000\n_HOSTNAME=web-1\n`),
      message,
      Buffer.from('\nPRIORITY=3\n\n'),
    ])
  const { events, lines } = await decode(
    Buffer.concat([
      journalRecord(Buffer.concat([Buffer.from('MESSAGE\n'), size, Buffer.from(text)])),
      journalRecord(Buffer.from('MESSAGE=a=b')),
    ]),
  )
  t.match(events, [
    { message: text, severity: 'ERROR', host: 'web-1', timestampMs: AT },
    { message: 'a=b' },
  ])
  t.same(lines, [1, 9])
})

void test('JSON in a text file is read as JSON, on one line or on several', async (t) => {
  const records = [{ msg: 'a' }, { msg: 'b' }]
  t.same((await decode(JSON.stringify(records, null, 2))).messages, ['a', 'b'])
  t.same((await decode(records.map((r) => JSON.stringify(r)).join('\n'))).messages, ['a', 'b'])
  t.same(
    (await decode('{"log":"x\\n","stream":"stdout","time":"2026-11-21T09:28:19Z"}\nplain\n'))
      .messages,
    ['x', 'plain'],
  )
})
