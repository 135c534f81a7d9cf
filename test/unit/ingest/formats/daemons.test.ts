import { test } from 'tap'
import { decodeIngest } from '../../../../src/ingest/formats/ndjson.js'
import { decodeUpload, type FileType } from '../../../../src/ingest/formats/upload.js'
import type { Severity } from '../../../../src/model/event.js'
import { AT, collect, ingestContext, NOW, uploadContext } from './collect.js'

/** The logs of common daemons and tools, as they write them. */

async function decode(body: string | Uint8Array, type: FileType = 'txt') {
  const sink = collect()
  await decodeUpload(type, Buffer.from(body), uploadContext, sink)
  const { events, rejects } = sink
  return { events, rejects, messages: events.map(({ message }) => message) }
}

const lines = (...all: readonly string[]): string => `${all.join('\n')}\n`

void test('PostgreSQL: each common prefix, and the lines that explain an error are part of it', async (t) => {
  for (const prefix of [
    '2026-11-21 09:28:19.000 UTC [77] ann@shop ',
    '2026-11-21 10:28:19.000 CET [77] ann@shop ',
    '2026-11-21 09:28:19 UTC [77]: [3-1] user=ann,db=shop,app=psql,client=10.0.0.9 ',
  ]) {
    const { events, messages } = await decode(
      lines(
        `${prefix}ERROR:  duplicate key`,
        `${prefix}DETAIL:  Key (id)=(1) already exists.`,
        `${prefix}STATEMENT:  INSERT`,
        '\tINTO t VALUES (1)',
        `${prefix.replace('[77]', '[78]')}DETAIL:  of another process`,
        `${prefix}LOG:  duration: 3 ms`,
        `${prefix}FATAL:  terminating`,
      ),
    )
    t.same(
      messages,
      [
        'duplicate key\nDETAIL:  Key (id)=(1) already exists.\nSTATEMENT:  INSERT\n\tINTO t VALUES (1)',
        'DETAIL:  of another process',
        'duration: 3 ms',
        'terminating',
      ],
      prefix,
    )
    t.match(events[0], { timestampMs: AT, severity: 'ERROR' })
    t.match(events[0]?.tags, { pid: '77', user: 'ann', database: 'shop' })
    t.same(
      events.map(({ severity }) => severity),
      ['ERROR', null, 'INFO', 'CRITICAL'],
    )
  }
  const { events } = await decode(
    '2026-11-21 09:28:19.000 UTC [9] LOG:  checkpoint starting: time\n',
  )
  t.match(events, [{ message: 'checkpoint starting: time', tags: { pid: '9' } }])
})

void test('Go: a panic and its goroutines are one record, with the time of the line before', async (t) => {
  const stack = [
    'goroutine 34 [running, locked to thread]:',
    'net/http.(*conn).serve.func1()',
    '\t/usr/lib/go/src/net/http/server.go:1898 +0xbe',
    'main.Map[...]({0xc000, 0x3})',
    '\t/src/main.go:17',
    'created by net/http.(*Server).Serve in goroutine 1',
    '\t/usr/lib/go/src/net/http/server.go:3285 +0x4b4',
  ]
  const panic = [
    'panic: boom [recovered]',
    '\tpanic: boom',
    '[signal SIGSEGV: segmentation violation code=0x1]',
  ]
  const { events, messages } = await decode(
    lines(
      '2026/11/21 09:28:19 listening on :8080',
      ...panic,
      '',
      ...stack,
      '',
      'goroutine 35 [select, 3 minutes]:',
      'main.main()',
      '\t/src/main.go:9 +0x1d',
      'exit status 2',
      '2026/11/21 09:28:20 listening on :8080',
      '2026/11/21 09:28:21 http: panic serving 10.0.0.1:5: boom',
      ...stack,
      'fatal error: all goroutines are asleep - deadlock!',
      ...stack,
    ),
  )
  t.same(
    messages.map((message) => message.split('\n')[0]),
    [
      'listening on :8080',
      'panic: boom [recovered]',
      'listening on :8080',
      'http: panic serving 10.0.0.1:5: boom',
      'fatal error: all goroutines are asleep - deadlock!',
    ],
  )
  t.match(events[1], { severity: 'CRITICAL', timestampMs: AT })
  t.equal(messages[1]?.split('\n').length, panic.length + stack.length + 4)
  t.match(messages[1], /exit status 2$/)
  t.equal(messages[3], ['http: panic serving 10.0.0.1:5: boom', ...stack].join('\n'))
  const dump = await decode(lines('SIGQUIT: quit', 'PC=0x46a5a1 m=0 sigcode=0', '', ...stack))
  t.equal(dump.messages.length, 1)
  const alone = await decode(lines(...stack, '', 'goroutine 9 [select]:', 'main.main()'))
  t.equal(alone.messages.length, 1)
})

void test('Redis writes levels as signs', async (t) => {
  const levels = { '.': 'DEBUG', '-': 'DEBUG', '*': 'INFO', '#': 'WARNING' }
  for (const [sign, severity] of Object.entries(levels)) {
    const { events } = await decode(`812:M 21 Nov 2026 09:28:19.000 ${sign} Ready to accept\n`)
    t.match(events, [{ severity, timestampMs: AT, message: 'Ready to accept' }])
    t.match(events[0]?.tags, { pid: '812', role: 'M' })
  }
})

const ALB =
  'https 2026-11-21T09:28:19.000000Z app/web/50dc6c495c0c9188 10.0.0.9:2817 10.1.0.1:80 0.086 0.048 0.037 STATUS 200 0 57 ' +
  '"GET https://www.example.com:443/cart?id=7 HTTP/1.1" "curl/8" ECDHE TLSv1.2 arn:aws:x "Root=1-58" "-" "-" 1 2026-11-21T09:28:18Z'
const CLASSIC =
  '2026-11-21T09:28:19.000000Z web 10.0.0.9:2817 10.1.0.1:80 0.000073 0.001048 0.000057 STATUS 200 0 57 "GET http://www.example.com:80/cart?id=7 HTTP/1.1" "curl/8" - -'
const HAPROXY =
  '10.0.0.9:33317 [21/Nov/2026:09:28:19.000] http-in~ shop/web1 10/0/30/69/109 STATUS 57 - - ---- 1/1/1/1/0 0/0 {a|b} "GET /cart?id=7 HTTP/1.1"'
const ENVOY =
  '[2026-11-21T09:28:19.000Z] "GET /cart?id=7 HTTP/1.1" STATUS UF 0 57 1000 - "-" "curl/8"'
const COMBINED =
  '10.0.0.9 - ann [21/Nov/2026:09:28:19 +0000] "GET /cart?id=7 HTTP/1.1" STATUS 57 "https://a/" "curl/8"'

void test('every access log gives the request as tags and the severity of its status', async (t) => {
  for (const [name, line] of Object.entries({
    ALB,
    CLASSIC,
    HAPROXY,
    ENVOY,
    COMBINED,
    vhost: `www.example.com:443 ${COMBINED}`,
    werkzeug:
      'INFO:werkzeug:10.0.0.9 - - [21/Nov/2026 09:28:19] "GET /cart?id=7 HTTP/1.1" STATUS -',
    syslog: `Nov 21 09:28:19 lb1 haproxy[7]: ${HAPROXY}`,
    rfc3164: `<134>Nov 21 09:28:19 web1 nginx: ${COMBINED}`,
    cri: `2026-11-21T09:28:19.000000000Z stdout F ${COMBINED}`,
  })) {
    for (const [status, severity] of [
      [200, 'INFO'],
      [404, 'WARNING'],
      [503, 'ERROR'],
    ] as const) {
      const { events } = await decode(line.replace('STATUS', String(status)))
      t.match(events, [{ severity, timestampMs: AT }], `${name} ${status}`)
      t.match(events[0]?.tags, { method: 'GET', path: '/cart?id=7', status }, name)
      if (name !== 'ENVOY') t.match(events[0]?.tags, { ip: '10.0.0.9' }, name)
      t.match(events[0]?.message, String(status), 'all can be searched')
    }
  }
  const { events } = await decode(COMBINED.replace('STATUS', '200'))
  t.same(events[0]?.tags, {
    ip: '10.0.0.9',
    user: 'ann',
    method: 'GET',
    path: '/cart?id=7',
    status: 200,
    bytes: 57,
    referrer: 'https://a/',
    agent: 'curl/8',
  })
  const raw = await decode(
    String.raw`10.0.0.9 - - [21/Nov/2026:09:28:19 +0000] "\x16\x03\"" 400 7 "-" "-"`,
  )
  t.match(raw.events, [{ severity: 'WARNING', tags: { status: 400, bytes: 7 } }])
})

void test('rows of W3C logs (IIS, CloudFront) have the fields that a line before them names', async (t) => {
  const iis = lines(
    '#Software: Microsoft Internet Information Services 10.0',
    '#Date: 2026-11-21 09:28:19',
    '#Fields: date time s-computername cs-method cs-uri-stem cs-uri-query cs-username c-ip cs(User-Agent) sc-status sc-bytes',
    '2026-11-21 09:28:19 WEB1 GET /a - ann 10.0.0.9 Mozilla/5.0+(X) 200 12',
    '2026-11-21 09:28:20 WEB1 GET /b x=1 - 10.0.0.9 - 500 0',
    '#Fields: date time c-ip sc-status',
    '2026-11-21 09:28:21 10.0.0.8 404',
    'something else entirely',
  )
  const { events, messages } = await decode(iis)
  t.equal(events.length, 4)
  t.match(events[0], { timestampMs: AT, severity: 'INFO', host: 'WEB1' })
  t.match(events[0]?.tags, {
    method: 'GET',
    path: '/a',
    user: 'ann',
    ip: '10.0.0.9',
    agent: 'Mozilla/5.0+(X)',
    status: 200,
    bytes: 12,
  })
  t.match(events[1], { severity: 'ERROR', tags: { 'cs-uri-query': 'x=1' } })
  t.match(events[2], { severity: 'WARNING', timestampMs: AT + 2000, tags: { ip: '10.0.0.8' } })
  t.equal(messages[3], 'something else entirely')
  const tabbed = lines(
    '#Version: 1.0',
    '#Fields: date\ttime\tsc-bytes\tc-ip\tcs-method\tcs-uri-stem\tsc-status\tcs(Referer)',
    '2026-11-21\t09:28:19\t392\t10.0.0.9\tGET\t/a b\t403\t-',
  )
  t.match((await decode(tabbed)).events, [
    { severity: 'WARNING', tags: { bytes: 392, path: '/a b', status: 403 } },
  ])
  const odd = await decode(
    lines('#Fields: date time constructor toString', '2026-11-21 09:28:19 a b'),
  )
  t.same(odd.events[0]?.tags, { constructor: 'a', toString: 'b' }, 'names that every object has')
  const script = await decode(lines('#!/bin/sh', '# Fields: none', 'echo'))
  t.equal(script.events.length, 3, 'comments of other files are lines')
})

void test('CEF and LEEF, alone and in syslog lines', async (t) => {
  const cef = String.raw`CEF:0|Acme|Fire\|wall|2.1|100|Port scan|SEVERITY|src=10.0.0.9 msg=all of it\=this and that cs1Label=Rule cs1=deny all rt=${AT}`
  for (const [word, severity] of [
    ['0', 'INFO'],
    ['5', 'WARNING'],
    ['8', 'ERROR'],
    ['10', 'CRITICAL'],
    ['Low', 'INFO'],
    ['Very-High', 'CRITICAL'],
    ['Unknown', null],
    ['constructor', null],
    ['toString', null],
  ] as const) {
    const line = cef.replace('SEVERITY', word)
    const { events, messages } = await decode(line)
    t.match(events, [{ severity, timestampMs: AT }], word)
    t.same(messages, [line])
    t.match(events[0]?.tags, {
      vendor: 'Acme',
      product: 'Fire|wall',
      event_id: '100',
      name: 'Port scan',
      src: '10.0.0.9',
      msg: 'all of it=this and that',
      cs1: 'deny all',
    })
  }
  const inner = cef.replace('SEVERITY', '9')
  for (const head of [
    'Nov 21 09:28:19 fw1 ',
    '<134>Nov 21 09:28:19 fw1 ',
    '<134>1 2026-11-21T09:28:19Z fw1 cef - - - ',
  ]) {
    const { events, messages } = await decode(head + inner)
    t.match(events, [{ severity: 'CRITICAL', host: 'fw1', tags: { vendor: 'Acme' } }], head)
    t.same(messages, [inner])
  }
  const leef = (
    await decode(
      lines(
        'LEEF:1.0|Acme|Proxy|4.0|17|src=10.0.0.9\tsev=9\tusrName=joe doe',
        'LEEF:2.0|Acme|Proxy|4.0|17|^|src=10.0.0.9^sev=2',
        'LEEF:2.0|Acme|Proxy|4.0|17|x5E|src=10.0.0.9^sev=6',
      ),
    )
  ).events
  t.match(
    leef.map(({ severity }) => severity),
    ['CRITICAL', 'INFO', 'WARNING'],
  )
  t.match(leef[0]?.tags, { event_id: '17', usrName: 'joe doe' })
  t.ok(leef.every(({ tags }) => tags?.['src'] === '10.0.0.9'))
})

void test('apt: an action is a record', async (t) => {
  const { events, messages } = await decode(
    lines(
      '',
      'Start-Date: 2026-11-21  09:28:19',
      'Commandline: apt-get install curl',
      'Install: curl:amd64 (7.88.1-10)',
      'End-Date: 2026-11-21  09:28:25',
      '',
      'Start-Date: 2026-11-21  09:30:19',
      'Upgrade: tzdata:amd64 (2026a, 2026b)',
      'Error: Sub-process returned an error code (1)',
      'End-Date: 2026-11-21  09:30:25',
    ),
  )
  t.match(events, [
    { timestampMs: AT, severity: null },
    { timestampMs: AT + 120_000, severity: 'ERROR' },
  ])
  t.match(messages[0], /^Commandline: apt-get install curl\nInstall: .*\nEnd-Date: /)
})

void test('npm: the lines of one number in a debug log are a record, and what it prints has a level', async (t) => {
  const { events, messages } = await decode(
    lines(
      '0 verbose cli /usr/bin/node',
      '1 timing npm Completed',
      '2 error code E404',
      '2 error 404 Not Found',
      '3 warn old',
    ),
  )
  t.same(messages, ['cli /usr/bin/node', 'npm Completed', 'code E404\n404 Not Found', 'old'])
  t.same(
    events.map(({ severity }) => severity),
    ['DEBUG', 'INFO', 'ERROR', 'WARNING'],
  )
  const printed = await decode(
    lines('npm ERR! code E404', 'npm WARN deprecated x', 'added 3 packages'),
  )
  t.match(printed.events, [
    { severity: 'ERROR', message: 'code E404' },
    { severity: 'WARNING', message: 'deprecated x' },
    { severity: null, message: 'added 3 packages' },
  ])
  t.same((await decode('3 errors found\n4 error codes\n')).messages, [
    '3 errors found',
    '4 error codes',
  ])
})

void test("Python's default layout: what follows it may be of another form", async (t) => {
  const { events, messages } = await decode(
    lines(
      'WARNING:root:low disk',
      'plain text of another program',
      'INFO:app:2026-11-21 09:28:19,000 - jobs - ERROR - failed',
      'ERROR:app.views:broke',
      'Traceback (most recent call last):',
      '  File "a.py", line 1, in <module>',
      '    run()',
      'ValueError: bad',
      'plain text again',
      'WARNING:app:{"level":"error","message":"in JSON","order":7}',
    ),
  )
  t.same(messages, [
    'low disk',
    'plain text of another program',
    'failed',
    'broke\nTraceback (most recent call last):\n  File "a.py", line 1, in <module>\n    run()\nValueError: bad',
    'plain text again',
    'in JSON',
  ])
  t.match(events[2], { severity: 'ERROR', timestampMs: AT, tags: { logger: 'jobs' } })
  t.match(events[5], { severity: 'ERROR', tags: { logger: 'app', order: 7 } })
})

void test('syslog lines may hold JSON', async (t) => {
  for (const cookie of ['', '@cee: ', '@cee:']) {
    const { events } = await decode(
      `<134>Nov 21 09:28:19 web1 api[7]: ${cookie}{"level":"error","msg":"boom","order":7}`,
    )
    t.match(events, [{ message: 'boom', severity: 'ERROR', host: 'web1', timestampMs: AT }])
    t.match(events[0]?.tags, { order: 7, program: 'api' })
  }
})

void test('a file of Latin-1 is read as such, and one of UTF-8 with broken bytes is not', async (t) => {
  const latin = Buffer.from('INFO café geöffnet über der Straße\n', 'latin1')
  t.same((await decode(latin)).messages, ['INFO café geöffnet über der Straße'])
  t.match((await decode(Buffer.from('time,message\n,naïve\n', 'latin1'), 'csv')).messages, [
    'naïve',
  ])
  const broken = Buffer.concat([Buffer.from('café geöffnet '), Buffer.of(0xe9), Buffer.from('\n')])
  t.same((await decode(broken)).messages, ['café geöffnet \ufffd'])
  const random = Buffer.from(
    Array.from({ length: 4000 }, (_, i) => (i * 7919 + (i >> 3) * 104_729) & 255),
  )
  await t.rejects(decode(random), { code: 'file_parse_error' })
})

void test('JSON objects one after another, on several lines or on one', async (t) => {
  const objects = [
    { level: 'info', message: 'one' },
    { level: 'error', message: 'two } "tricky" {', tags: { a: [1, { b: 2 }] } },
    { message: 'three' },
  ]
  const pretty = objects.map((object) => JSON.stringify(object, null, 2))
  const plain = objects.map((object) => JSON.stringify(object))
  for (const text of [
    pretty.join('\n'),
    pretty.join('\n\n'),
    pretty.join('\r\n'),
    pretty.join(',\n'),
    pretty.join(''),
    plain.join(''),
    plain.join(' '),
    plain.join(',\n'),
    [plain[0], pretty[1], plain[2]].join('\n'),
    `\n\n${pretty.join('\n')}`,
  ]) {
    const want = ['one', 'two } "tricky" {', 'three']
    const sink = collect()
    decodeIngest(Buffer.from(text), ingestContext, sink)
    t.same(
      sink.events.map(({ message }) => message),
      want,
      text.slice(0, 40),
    )
    t.same(sink.rejects, [])
    t.same((await decode(text, 'json')).messages, want)
  }
  t.same((await decode(pretty.join('\n'))).messages.length, 3, 'in a text file')
  const sink = collect()
  decodeIngest(
    Buffer.from(['{', ...pretty, '{"message":"last"}', 'x'].join('\n')),
    ingestContext,
    sink,
  )
  t.ok(sink.rejects.length > 0)
  t.match(sink.events.at(-1), { message: 'last' }, 'a broken line does not take the others with it')
})

void test('a bracket does not end an object', async (t) => {
  for (const text of ['{]{}', '{[}{}', '{"a":1]{"message":"b"}']) {
    const sink = collect()
    decodeIngest(Buffer.from(text), ingestContext, sink)
    t.equal(sink.events.length + sink.rejects.length, 1, text)
  }
})

void test('many broken lines are not each searched to the end of the body', async (t) => {
  const sink = collect()
  decodeIngest(Buffer.from('{"a":\n'.repeat(200_000)), ingestContext, sink)
  t.equal(sink.rejects.length, 200_000)
  t.equal(sink.events.length, 0)
})

void test('a line without a time has that of the line before, else that of the upload', async (t) => {
  const { events } = await decode(lines('hello', '2026-11-21 09:28:19 INFO a', 'WARNING:x:y'))
  t.same(
    events.map(({ timestampMs }) => timestampMs),
    [NOW, AT, AT],
  )
})

void test('loggers of PHP, Ruby, Java, .NET, Node.js and Rust: time, level, and the stack below', async (t) => {
  const layouts: readonly [string, readonly string[], string, Severity | null, object][] = [
    [
      'Laravel',
      [
        '[2026-11-21 09:28:19] production.ERROR: bad {"exception":"[object] (E(code: 0): bad at /app/x.php:1)',
        '[stacktrace]',
        '#0 /app/x.php(1): f()',
        '#1 /app/y.php(2): g()',
        '#2 {main}',
        '"}',
      ],
      'bad {',
      'ERROR',
      { channel: 'production' },
    ],
    [
      'Symfony',
      ['[2026-11-21T10:28:19.000000+01:00] request.CRITICAL: Uncaught "X" {} []'],
      'Uncaught',
      'CRITICAL',
      { channel: 'request' },
    ],
    [
      'PHP',
      [
        '[21-Nov-2026 09:28:19 UTC] PHP Fatal error:  Uncaught Error: f in /x.php:3',
        'Stack trace:',
        '#0 /x.php(9): g()',
        '#1 {main}',
        '  thrown in /x.php on line 3',
      ],
      'PHP Fatal error:',
      null,
      {},
    ],
    [
      'PHP-FPM',
      ['[21-Nov-2026 09:28:19] WARNING: [pool www] server reached pm.max_children'],
      '[pool www]',
      'WARNING',
      {},
    ],
    [
      'Ruby',
      ['E, [2026-11-21T09:28:19.000000 #12] ERROR -- web: boom'],
      'boom',
      'ERROR',
      { pid: '12', logger: 'web' },
    ],
    [
      'java.util.logging',
      [
        'Nov 21, 2026 9:28:19 AM com.acme.Checkout run',
        'SEVERE: boom',
        'java.lang.E: x',
        '\tat com.acme.A.b(A.java:1)',
      ],
      'SEVERE: boom',
      null,
      { logger: 'com.acme.Checkout', method: 'run' },
    ],
    [
      'Nest',
      [
        '[Nest] 12  - 11/21/2026, 9:28:19 AM   ERROR [Checkout] boom',
        'E: boom',
        '    at X (/a.js:1:1)',
      ],
      'boom',
      'ERROR',
      { pid: '12', logger: 'Checkout' },
    ],
    [
      'Rust',
      ['[2026-11-21T09:28:19Z WARN  acme::checkout] slow'],
      'slow',
      'WARNING',
      { logger: 'acme::checkout' },
    ],
    [
      'Cassandra',
      ['ERROR [main] 2026-11-21 09:28:19,000 CassandraDaemon.java:803 - boom'],
      'boom',
      'ERROR',
      { thread: 'main' },
    ],
    [
      'Debian',
      ['update-alternatives 2026-11-21 09:28:19: link group pager updated'],
      'link group',
      null,
      { program: 'update-alternatives' },
    ],
  ]
  for (const [name, record, message, severity, tags] of layouts) {
    const { events } = await decode(lines(...record, ...record))
    t.equal(events.length, 2, `${name}: each record with all of its lines`)
    for (const event of events) {
      t.match(event, { timestampMs: AT }, name)
      t.ok(event.message.startsWith(message), `${name}: ${event.message}`)
      t.equal(
        event.message.split('\n').length,
        record.length - (name.includes('util') ? 1 : 0),
        name,
      )
      t.equal(event.severity, severity, name)
      t.match(event.tags ?? {}, tags, name)
    }
  }
  const { events } = await decode(
    lines(
      'fail: Acme.Checkout[13]',
      '      no stock',
      '      System.E: x',
      '         at P.Main()',
      'info: Acme.Web[0]',
      '      ready',
    ),
  )
  t.match(events, [
    {
      severity: 'ERROR',
      message: /^no stock\n[^]*at P\.Main/,
      tags: { logger: 'Acme.Checkout', event_id: '13' },
    },
    { severity: 'INFO', message: 'ready' },
  ])
})
