import { test } from 'tap'
import { decodeSyslog } from '../../../../../src/ingest/protocols/syslog/syslog.js'
import { RecordBatch } from '../../../../../src/ingest/record-batch.js'
import { AT, collect, ingestContext, NOW } from '../../formats/collect.js'

const SENDER = '10.0.0.7'

function decode(texts: readonly string[], isCut = false) {
  const batch = new RecordBatch(SENDER)
  for (const text of texts) {
    const bytes = Buffer.from(text)
    batch.record(bytes, 0, bytes.length, isCut)
  }
  const sink = collect()
  decodeSyslog(batch.take(), ingestContext, sink)
  return sink
}

/** Each with what is not the default of `WANTED`. */
const MESSAGES: readonly (readonly [text: string, want: Readonly<Record<string, unknown>>])[] = [
  [
    String.raw`<134>1 2026-11-21T09:28:19.000Z web-1 checkout 812 ID47 [meta@32473 run="a\"b\]" seq="7"][x@1 k="é"] paid`,
    {
      source: 'checkout',
      host: 'web-1',
      tags: { run: 'a"b]', seq: '7', k: 'é', pid: '812', msgid: 'ID47', facility: 'local0' },
    },
  ],
  [
    '<134>1 2026-11-21T09:28:19Z web-1 checkout - - [mdc@32473 trace_id="a1" spanId="b2" seq="7"] paid',
    {
      source: 'checkout',
      host: 'web-1',
      traceId: 'a1',
      spanId: 'b2',
      tags: { seq: '7', facility: 'local0' },
    },
  ],
  [
    '<14>1 2026-11-21T09:28:19Z - - - - [origin ip="192.0.2.1" x="" ip="192.0.2.129"][b@1 ip="192.0.2.7" k="v"] paid',
    { tags: { ip: ['192.0.2.1', '192.0.2.129', '192.0.2.7'], k: 'v', facility: 'user' } },
  ],
  ['<192>paid', { severity: null, timestampMs: NOW, tags: null }],
  [
    '<999>Nov 21 09:28:19 db-1 postgres[99]: paid',
    { source: 'postgres', host: 'db-1', severity: null, tags: { pid: '99' } },
  ],
  ['<960>1 2026-11-21T09:28:19Z - - - - - paid', { severity: null, tags: null }],
  [
    '<34>1 2026-11-21T09:28:19Z - - - - - \uFEFFpaid',
    { severity: 'CRITICAL', tags: { facility: 'auth' } },
  ],
  [
    '<13>1 - - - - - - paid',
    { timestampMs: NOW, tags: { facility: 'user', severity_text: 'notice' } },
  ],
  [
    '<11>Nov 21 09:28:19 db-1 postgres[99]: paid',
    { source: 'postgres', host: 'db-1', severity: 'ERROR', tags: { pid: '99', facility: 'user' } },
  ],
  [
    '<11>Nov 21 09:28:19 db-1 paid',
    { host: 'db-1', severity: 'ERROR', tags: { facility: 'user' } },
  ],
  ...[
    '1,2026/11/21 10:00:01,0018,THREAT,x',
    'backup 12:30:01 finished',
    '12:30:01 finished',
    'job 7: done',
  ].map(
    (message) =>
      [
        `<11>Nov 21 09:28:19 db-1 ${message}`,
        { host: 'db-1', severity: 'ERROR', message, tags: { facility: 'user' } },
      ] as const,
  ),
  [
    '<11>Nov 21 09:28:19 db-1 syslogd 1.4.1: restart',
    {
      source: 'syslogd',
      host: 'db-1',
      severity: 'ERROR',
      message: 'restart',
      tags: { facility: 'user' },
    },
  ],
  [
    '<11>1 2026-11-21T09:28:19Z db-1 mgd 3046 UI_LOGOUT [junos@2636 username="bob"]',
    {
      source: 'mgd',
      host: 'db-1',
      severity: 'ERROR',
      message: '[junos@2636 username="bob"]',
      tags: { username: 'bob', pid: '3046', msgid: 'UI_LOGOUT', facility: 'user' },
    },
  ],
  [
    '<11>Nov 21 09:28:19 cron: paid',
    { source: 'cron', severity: 'ERROR', tags: { facility: 'user' } },
  ],
  [
    '<12>2026-11-21T10:28:19.000000+01:00 db-1 kernel: paid',
    { source: 'kernel', host: 'db-1', severity: 'WARNING', tags: { facility: 'user' } },
  ],
  // rsyslog's `%msg%` begins with a blank.
  [
    '<13>1 2026-11-21T09:28:19Z web-1 app 7 - -  paid',
    { source: 'app', host: 'web-1', tags: { pid: '7', facility: 'user', severity_text: 'notice' } },
  ],
  [
    '<11>Nov 21 09:28:19 db-1 postgres[99]:  paid',
    { source: 'postgres', host: 'db-1', severity: 'ERROR', tags: { pid: '99', facility: 'user' } },
  ],
  [
    '<11>Nov 21 09:28:19 db-1 postgres[99]:     at paid',
    {
      source: 'postgres',
      host: 'db-1',
      severity: 'ERROR',
      message: '   at paid',
      tags: { pid: '99', facility: 'user' },
    },
  ],
  ...(
    [
      ['<189>45: Nov 21 09:28:19.000: ', {}, { sequence: '45' }],
      [
        '<189>45: sw-1: 000046: .Nov 21 09:28:19.000 UTC: ',
        { host: 'sw-1' },
        { sequence: '45', counter: '000046' },
      ],
      ['<189>: 2026 Nov 21 09:28:19.000 UTC: ', {}, {}],
      ['<189>Nov 21 2026 09:28:19 asa-1 : ', { host: 'asa-1' }, {}],
      [
        '<189>Nov 21 09:28:19 sw-1 45: rack-2: *Mar  1 18:46:11.123: ',
        { host: 'sw-1' },
        { sequence: '45' },
      ],
      ['<189>1 2026-11-21T09:28:19Z sw-1 - - - - ', { host: 'sw-1' }, {}],
      ['<189>45: *Mar  1 18:46:11.123: ', { timestampMs: NOW }, { sequence: '45' }],
      ['<189>45: 12w3d: ', { timestampMs: NOW }, { sequence: '45' }],
      ['<189>', { timestampMs: NOW }, {}],
    ] as const
  ).map(
    ([head, more, tags]) =>
      [
        `${head}%LINK-3-UPDOWN: paid`,
        {
          severity: 'ERROR',
          message: '%LINK-3-UPDOWN: paid',
          ...more,
          tags: { ...tags, facility: 'local7' },
        },
      ] as const,
  ),
  ['<134>checkout: paid', { source: 'checkout', timestampMs: NOW, tags: { facility: 'local0' } }],
  [
    '<134>checkout[7]: paid',
    { source: 'checkout', timestampMs: NOW, tags: { pid: '7', facility: 'local0' } },
  ],
  ['<131>paid', { timestampMs: NOW, severity: 'ERROR', tags: { facility: 'local0' } }],
  [
    '<131>ERROR: paid',
    { timestampMs: NOW, severity: 'ERROR', message: 'ERROR: paid', tags: { facility: 'local0' } },
  ],
  [
    '<131>2026 is no time',
    {
      timestampMs: NOW,
      severity: 'ERROR',
      message: '2026 is no time',
      tags: { facility: 'local0' },
    },
  ],
  [
    '<8>1 2026-11-21T09:28:19Z h app - - - paid',
    {
      source: 'app',
      host: 'h',
      severity: 'CRITICAL',
      tags: { facility: 'user', severity_text: 'emerg' },
    },
  ],
  [
    '<134>1 2026-11-21T09:28:19Z h app - - - {"level":"error","message":"paid","user":{"id":7}}',
    { source: 'app', host: 'h', severity: 'ERROR', tags: { user: { id: 7 }, facility: 'local0' } },
  ],
  [
    '<134>Nov 21 09:28:19 h app: @cee: {"msg":"paid","k":1}',
    { source: 'app', host: 'h', tags: { k: 1, facility: 'local0' } },
  ],
  [
    `<134>Nov 21 09:28:19 h app: {"msg":"paid","time":${AT + 7}}`,
    { timestampMs: AT + 7, source: 'app', host: 'h', tags: { facility: 'local0' } },
  ],
  [
    `<134>Nov 21 09:28:19 h app: {"msg":"paid","time":${AT + 1007}}`,
    { source: 'app', host: 'h', tags: { facility: 'local0' } },
  ],
  [
    '<134>Nov 21 09:28:19 h app: {"msg":"paid","level":"error","time":"soon"}',
    { source: 'app', host: 'h', severity: 'ERROR', tags: { time: 'soon', facility: 'local0' } },
  ],
  [
    '2026-11-21T09:28:19.000000+00:00 h app[3]: paid',
    { source: 'app', host: 'h', severity: null, tags: { pid: '3' } },
  ],
  ['paid', { timestampMs: NOW, severity: null, tags: null }],
  [
    '{"msg":"paid","service":"shop"}',
    { source: 'shop', timestampMs: NOW, severity: null, tags: null },
  ],
]

const WANTED = {
  timestampMs: AT,
  source: 'nameless',
  host: SENDER,
  severity: 'INFO',
  message: 'paid',
  tags: null,
}

void test('messages in the forms that programs send', async (t) => {
  const { events, rejects } = decode(MESSAGES.map(([text]) => text))
  t.same(rejects, [])
  MESSAGES.forEach(([text, want], i) => t.match(events[i], { ...WANTED, ...want }, text))
  for (const [i, [text, want]] of MESSAGES.entries())
    t.same({ ...events[i]?.tags }, { ...Object(want['tags']) }, `the tags of ${text}`)
})

void test('a message of several lines is whole', async (t) => {
  const { events } = decode(['<11>Nov 21 09:28:19 h app: boom\n  at a\n\n  at b'])
  t.equal(events[0]?.message, 'boom\n  at a\n\n  at b')
})

void test('one bad message is a dead letter, and the others are events', async (t) => {
  const { events, rejects } = decode(['<1>a', '<134>1 2026-11-21T09:28:19Z h app - - -', '<1>b'])
  t.same(
    events.map(({ message }) => message),
    ['a', 'b'],
  )
  t.match(rejects, [{ line: 2, reason: 'missing_message' }])
})

void test('a message that was cut is a dead letter with its beginning', async (t) => {
  const { events, rejects } = decode(['<1>begins'], true)
  t.same(events, [])
  t.match(rejects, [{ reason: 'message_too_large', raw: '<1>begins' }])
})
