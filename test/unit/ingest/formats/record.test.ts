import { test } from 'tap'
import { decodeIngest } from '../../../../src/ingest/formats/ndjson.js'
import type { CanonicalEvent, DecodeContext } from '../../../../src/model/event.js'
import { AT, collect, ingestContext, NOW, uploadContext } from './collect.js'

function read(record: object, context: DecodeContext = ingestContext) {
  const sink = collect()
  decodeIngest(Buffer.from(JSON.stringify(record)), context, sink)
  const event: Partial<CanonicalEvent> = sink.events[0] ?? {}
  return { event, tags: event.tags ?? {}, reason: sink.rejects[0]?.reason ?? null }
}

const ISO = '2026-11-21T09:28:19.000Z'

void test('bunyan', async (t) => {
  const { event, tags } = read({
    name: 'checkout',
    hostname: 'vm',
    pid: 1,
    level: 50,
    msg: 'boom\n at x',
    time: ISO,
    v: 0,
  })
  t.match(event, { source: 'checkout', host: 'vm', severity: 'ERROR', timestampMs: AT })
  t.equal(event.message, 'boom\n at x')
  t.same(tags, { pid: 1, v: 0 })
})

void test('pino, with a custom level and an error', async (t) => {
  const err = { type: 'Error', message: 'boom', stack: 'Error: boom\n    at f (x.js:1:2)' }
  const { event, tags } = read({
    level: 35,
    time: AT,
    pid: 2,
    hostname: 'vm',
    name: 'api',
    msg: 'm',
    err,
  })
  t.match(event, { source: 'api', severity: 'INFO', timestampMs: AT, message: 'm' })
  t.same(tags, { pid: 2, err })
  t.equal(read({ level: 60, time: AT, name: 'api', err }).event.message, 'Error: boom')
})

void test('winston without a time', async (t) => {
  const { event } = read({ level: 'silly', message: 'm', service: 'api' })
  t.match(event, {
    source: 'api',
    severity: 'DEBUG',
    timestampMs: NOW,
    tags: { severity_text: 'silly' },
  })
})

void test('whatever was logged with winston is its message', async (t) => {
  const { event } = read({ level: 'error', message: { order: 7, by: 'é' } })
  t.match(event, {
    severity: 'ERROR',
    message: '{"order":7,"by":"é"}',
    tags: { message: { order: 7 } },
  })
  t.equal(read({ level: 'error', message: ['a', 1] }).event.message, '["a",1]')
  t.equal(read({ level: 'error', message: 42 }).event.message, '42')
  t.equal(read({ level: 'error', message: {}, err: { message: 'boom' } }).event.message, 'boom')
})

void test('Loguru, by itself and as a line of Docker', async (t) => {
  const line = (more: object) => ({
    text: '2026-11-21 09:28:19 | ERROR | __main__:f:3 - m\nTraceback …\n',
    record: {
      elapsed: { repr: '0:00:00', seconds: 0 },
      exception: null,
      extra: { service: 'api', order: 7 },
      file: { name: 'a.py', path: '/a.py' },
      level: { icon: 'x', name: 'ERROR', no: 40 },
      message: 'm',
      name: '__main__',
      process: { id: 1, name: 'MainProcess' },
      time: { repr: '2026-11-21 09:28:19+00:00', timestamp: AT / 1000 },
      ...more,
    },
  })
  const want = { source: 'api', severity: 'ERROR', timestampMs: AT, message: 'm' }
  const { event, tags } = read(line({}))
  t.match(event, want)
  t.match(tags, { logger: '__main__', order: 7, exc_text: undefined })
  t.match(read({ log: JSON.stringify(line({})), stream: 'stderr' }).event, want)
  const compact = JSON.stringify({ '@t': ISO, '@mt': 'm {a}', '@l': 'Error', a: 1 })
  const ofSerilog = read({ log: `${compact}\n`, stream: 'stderr' }).event
  t.match(ofSerilog, { severity: 'ERROR', timestampMs: AT, message: 'm 1' })
  const failed = line({ level: { name: 'PAYMENT', no: 45 }, exception: { type: 'E' } })
  t.match(read(failed).event, { severity: 'ERROR', tags: { exc_text: /Traceback/ } })
})

void test('log4js', async (t) => {
  const { event, tags } = read({
    startTime: ISO,
    categoryName: 'checkout',
    data: ['hello', { user: 1 }],
    level: { level: 40_000, levelStr: 'ERROR', colour: 'red' },
    context: {},
    pid: 3,
  })
  t.match(event, { source: 'nameless', severity: 'ERROR', timestampMs: AT, message: 'hello' })
  t.same(tags, {
    logger: 'checkout',
    pid: 3,
    user: 1,
    level: { level: 40_000, colour: 'red' },
  })
})

void test('log4j2 JSON layout', async (t) => {
  const thrown = {
    name: 'java.lang.RuntimeException',
    message: 'boom',
    extendedStackTrace: [{ line: 3 }],
  }
  const { event, tags } = read({
    instant: { epochSecond: AT / 1000, nanoOfSecond: 159_462_853 },
    thread: 'main',
    level: 'FATAL',
    loggerName: 'com.acme.Checkout',
    message: 'm',
    thrown,
    contextMap: { trace_id: 'abc123', user: 'u' },
    threadId: 1,
  })
  t.match(event, {
    source: 'nameless',
    severity: 'CRITICAL',
    timestampMs: AT + 159,
    traceId: 'abc123',
  })
  t.same(tags, {
    logger: 'com.acme.Checkout',
    thread: 'main',
    thrown,
    user: 'u',
    threadId: 1,
    severity_text: 'FATAL',
  })
  t.equal(read({ timeMillis: AT, loggerName: 'a', message: 'm' }).event.timestampMs, AT)
})

void test('logback through the logstash encoder', async (t) => {
  const { event, tags } = read({
    '@timestamp': '2026-11-21T10:28:19.078+01:00',
    '@version': '1',
    message: 'm',
    logger_name: 'com.acme.Checkout',
    level: 'WARN',
    level_value: 30_000,
    stack_trace: 'java.lang.X\n\tat Y',
    trace_id: 'abc',
  })
  t.match(event, {
    source: 'nameless',
    severity: 'WARNING',
    timestampMs: AT + 78,
    traceId: 'abc',
  })
  t.match(tags, { logger: 'com.acme.Checkout', stack_trace: 'java.lang.X\n\tat Y' })
})

void test('Python, where 40 is an error', async (t) => {
  const python = { name: 'app', asctime: '2026-11-21 09:28:19,000', message: 'm' }
  t.match(read({ ...python, levelname: 'ERROR', levelno: 40 }).event, {
    severity: 'ERROR',
    timestampMs: AT,
  })
  t.equal(read({ ...python, level: 40, levelno: 40 }).event.severity, 'ERROR')
  t.equal(read({ ...python, level: 40 }).event.severity, 'WARNING')
})

void test('Windows, where 2 is an error and 4 is not', async (t) => {
  const windows = { EventID: 7, Computer: 'pc', Message: 'm', source: 'a' }
  t.match(read({ ...windows, Level: 2 }).event, { severity: 'ERROR', host: 'pc', message: 'm' })
  t.equal(read({ ...windows, Level: 4 }).event.severity, 'INFO')
  t.equal(read({ source: 'a', message: 'm', level: 4 }).event.severity, 'WARNING')
})

void test('journald, with the message as bytes', async (t) => {
  const journald = {
    __REALTIME_TIMESTAMP: `${AT}123`,
    PRIORITY: '3',
    SYSLOG_IDENTIFIER: 'sshd',
    _HOSTNAME: 'web-1',
    _PID: '12',
  }
  const latin = read({ ...journald, MESSAGE: [...Buffer.from('Größe', 'latin1')] })
  t.equal(latin.event.message, 'Größe')
  const { event, tags } = read({ ...journald, MESSAGE: [...Buffer.from('é\x1b[0m')] })
  t.match(event, {
    source: 'sshd',
    host: 'web-1',
    severity: 'ERROR',
    timestampMs: AT,
    message: 'é\x1b[0m',
  })
  t.same(tags, { _PID: '12' })
  t.equal(read({ ...journald, MESSAGE: [300] }).event.message, '{"_PID":"12","MESSAGE":[300]}')
})

void test('Docker json-file, with a plain line and with a JSON line', async (t) => {
  const docker = { stream: 'stderr', time: '2026-11-21T09:28:19.000000001Z' }
  t.match(read({ ...docker, log: 'hello\n' }, uploadContext).event, {
    message: 'hello',
    timestampMs: AT,
    tags: { stream: 'stderr' },
  })
  const log = '{"level":"error","msg":"inner","trace_id":"abc","n":1}\n'
  t.match(read({ ...docker, log }, uploadContext).event, {
    message: 'inner',
    severity: 'ERROR',
    traceId: 'abc',
    timestampMs: AT,
    tags: { n: 1, stream: 'stderr' },
  })
})

void test('a wrapped line whose time cannot be read has that of its transport', async (t) => {
  const line = JSON.stringify({ timestamp: '08:14:15', level: 'error', msg: 'no money', user: 'u' })
  for (const [name, record] of Object.entries({
    docker: { log: `${line}\n`, stream: 'stdout', time: '2026-11-21T09:28:19Z' },
    gelf: { short_message: line, host: 'web-1', timestamp: AT / 1000 },
    google: { textPayload: line, timestamp: '2026-11-21T09:28:19Z' },
  })) {
    const { event, tags } = read(record)
    t.match(event, { timestampMs: AT, severity: 'ERROR', message: 'no money' }, name)
    t.match(tags, { timestamp: '08:14:15', user: 'u' }, name)
  }
})

void test('GELF', async (t) => {
  const { event, tags } = read({
    version: '1.1',
    host: 'web-1',
    short_message: 'm',
    full_message: 'm\nstack',
    timestamp: AT / 1000 + 0.25,
    level: 3,
    _user: 'u',
    _app: 'shop',
    _cart: { items: 2 },
    _sizes: [1, 2],
  })
  t.match(event, {
    host: 'web-1',
    severity: 'ERROR',
    timestampMs: AT + 250,
    message: 'm',
    source: 'shop',
  })
  const custom = { user: 'u', cart: { items: 2 }, sizes: [1, 2] }
  t.same(tags, { version: '1.1', full_message: 'm\nstack', ...custom })
  t.equal(event.exception, 'm\nstack')
})

void test('OpenTelemetry log records', async (t) => {
  const { event, tags } = read({
    timeUnixNano: `${AT}000000`,
    observedTimeUnixNano: `${AT + 5}000000`,
    severityNumber: 17,
    severityText: 'INFO',
    body: { stringValue: 'm' },
    attributes: [
      { key: 'service.name', value: { stringValue: 'shop' } },
      { key: 'n', value: { intValue: '5' } },
      { key: 'list', value: { arrayValue: { values: [{ boolValue: true }] } } },
    ],
    traceId: '5b8efff798038103d269b633813fc60c',
    spanId: 'eee19b7ec3c1b174',
  })
  t.match(event, {
    source: 'shop',
    severity: 'ERROR',
    timestampMs: AT,
    message: 'm',
    spanId: 'eee19b7ec3c1b174',
  })
  t.match(tags, { n: '5', list: [true], severityText: 'INFO' })
  const late = read({
    timeUnixNano: '0',
    observedTimeUnixNano: `${AT}000000`,
    body: 'm',
    service: 'a',
  })
  t.equal(late.event.timestampMs, AT)
  t.equal(
    read({ severity_number: 0, severityText: 'WARN', body: 'm', service: 'a' }).event.severity,
    'WARNING',
  )
})

void test('MongoDB', async (t) => {
  const { event } = read({
    t: { $date: ISO },
    s: 'W',
    c: 'NETWORK',
    id: 1,
    msg: 'm',
    service: 'db',
  })
  t.match(event, {
    severity: 'WARNING',
    timestampMs: AT,
    message: 'm',
    tags: { c: 'NETWORK', id: 1 },
  })
  t.equal(
    read({ t: { $date: { $numberLong: `${AT}` } }, msg: 'm', app: 'a' }).event.timestampMs,
    AT,
  )
})

void test('Google Cloud, Datadog, CloudWatch, Kibana and Splunk exports', async (t) => {
  const google = read({
    timestamp: ISO,
    severity: 'DEFAULT',
    jsonPayload: { message: 'm', user: 'u' },
    'logging.googleapis.com/trace': 'projects/p/traces/abc',
    'logging.googleapis.com/spanId': 'def',
    logger: 'shop',
  })
  t.match(google.event, { message: 'm', traceId: 'abc', spanId: 'def', tags: { user: 'u' } })
  const datadog = read({
    id: 'x',
    content: {
      timestamp: ISO,
      service: 'shop',
      host: 'web-1',
      message: 'm',
      status: 'error',
      attributes: { dd: { trace_id: '123' }, user: 'u' },
    },
    ddtags: 'env:prod,team:a',
  })
  t.match(datadog.event, {
    source: 'shop',
    host: 'web-1',
    severity: 'ERROR',
    timestampMs: AT,
    message: 'm',
  })
  t.match(datadog.event, { traceId: '123', tags: { env: 'prod', team: 'a', user: 'u' } })
  const cloudwatch = read({
    '@timestamp': '2026-11-21 09:28:19.000',
    '@message': 'm',
    '@logStream': 's',
  })
  t.match(cloudwatch.event, { source: 's', message: 'm', timestampMs: AT })
  const kibana = read({
    _index: 'i',
    _source: {
      '@timestamp': ISO,
      log: { level: 'warn' },
      message: 'm',
      service: { name: 'shop' },
      trace: { id: 'abc' },
      host: { name: 'web-1' },
    },
  })
  t.match(kibana.event, {
    source: 'shop',
    severity: 'WARNING',
    timestampMs: AT,
    traceId: 'abc',
    host: 'web-1',
  })
  t.same(kibana.tags, { _index: 'i' })
  const splunk = read({
    preview: false,
    result: {
      _time: '2026-11-21T09:28:19.000+00:00',
      _raw: 'm',
      host: 'web-1',
      sourcetype: 'st',
      source: '/var/log/x',
    },
  })
  t.match(splunk.event, { message: 'm', host: 'web-1', timestampMs: AT, source: '/var/log/x' })
})

void test('the status of an access log in JSON gives the severity', async (t) => {
  const nginx = {
    time_iso8601: '2026-11-21T09:28:19+00:00',
    request: 'GET /x HTTP/1.1',
    request_id: 'abc',
  }
  const { event } = read({ ...nginx, status: '502' }, uploadContext)
  t.match(event, {
    message: '"GET /x HTTP/1.1" 502',
    severity: 'ERROR',
    traceId: 'abc',
    timestampMs: AT,
  })
  t.equal(read({ ...nginx, status: 404 }, uploadContext).event.severity, 'WARNING')
  t.equal(read({ ...nginx, status: 200 }, uploadContext).event.severity, 'INFO')
})

void test('an access log of Traefik', async (t) => {
  const { event } = read({
    RequestMethod: 'GET',
    RequestPath: '/x',
    DownstreamStatus: 502,
    level: 'info',
  })
  t.match(event, { severity: 'ERROR', message: '"GET /x" 502' })
})

void test('names match in any case and with any separators', async (t) => {
  for (const name of [
    'Log-Level',
    'LOG_LEVEL',
    'log.level',
    'logLevel',
    'log level',
    '@logLevel',
  ]) {
    t.equal(read({ source: 'a', message: 'm', [name]: 'error' }).event.severity, 'ERROR', name)
  }
})

void test('a name at the top wins over one in a container, and the field over its aliases', async (t) => {
  const { event, tags } = read({
    attributes: { message: 'inner', level: 'error' },
    lvl: 'info',
    msg: 'top',
    service: 'svc',
    source: 'own',
  })
  t.match(event, { message: 'top', severity: 'INFO', source: 'own' })
  t.same(tags, { message: 'inner', level: 'error', service: 'svc' })
})

void test('day and hour in separate columns make one time', async (t) => {
  const reads = (record: object) =>
    t.equal(read({ msg: 'm', app: 'a', ...record }).event.timestampMs, AT, JSON.stringify(record))
  reads({ date: '2026-11-21', time: '09:28:19' })
  reads({ Date: '26/11/21', Time: '09:28:19' })
  reads({ Date: '261121', Time: '092819' })
  reads({ Month: 'Nov', Date: '21', Time: '09:28:19' })
  reads({ Date: 'Nov', Day: 21, Time: '09:28:19' })
  t.equal(read({ msg: 'm', app: 'a', time: '09:28:19' }).reason, 'invalid_timestamp')
})

void test('numbers that are no times and words that are no levels stay tags', async (t) => {
  const { event, tags } = read({
    source: 'a',
    message: 'm',
    time: 12.5,
    status: 'shipped',
    when: 'later',
    t: 1,
  })
  t.match(event, { timestampMs: NOW, severity: null })
  t.same(tags, { time: 12.5, status: 'shipped', when: 'later', t: 1 })
})

void test('a record with thousands of spellings of one name is decoded', async (t) => {
  const spellings = Array.from(
    { length: 30_000 },
    (_, i) => `level${'_-. @'[i % 5]}${'_'.repeat(i % 200)}${'-'.repeat(i / 200)}`,
  )
  const record = Object.fromEntries(spellings.map((name) => [name, 999]))
  t.match(read({ source: 'a', message: 'm', ...record }).event, { severity: 'INFO' })
})

void test('traceparent gives both ids, zeros give none', async (t) => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  t.match(read({ source: 'a', message: 'm', traceparent }).event, {
    traceId: 'a'.repeat(32),
    spanId: 'b'.repeat(16),
  })
  t.equal(read({ source: 'a', message: 'm', traceId: '0'.repeat(32), x: 1 }).event.traceId, '')
})

void test('in an upload the source is given and the origin of a record stays a tag', async (t) => {
  const record = { source: 'own', service: 'svc', message: 'm' }
  t.match(read(record, uploadContext).event, {
    source: 'file',
    tags: { source: 'own', service: 'svc' },
  })
  t.match(read({ message: 'm', severity: 'error' }, uploadContext).event, {
    source: 'file',
    tags: null,
  })
})

void test('the name of a logger is a tag, and the service is the source', async (t) => {
  for (const [record, source, logger] of [
    [{ logger_name: 'com.acme.Pay', app: 'shop' }, 'shop', 'com.acme.Pay'],
    [{ loggerName: 'com.acme.Pay' }, 'nameless', 'com.acme.Pay'],
    [{ log: { logger: 'a.B' }, service: { name: 'shop' } }, 'shop', 'a.B'],
    [{ 'log.logger': 'a.B', 'service.name': 'shop' }, 'shop', 'a.B'],
    [{ logger: 'worker', component: 'billing' }, 'billing', 'worker'],
    [{ name: 'app.views', levelname: 'INFO' }, 'nameless', 'app.views'],
    [{ name: 'shop', level: 30 }, 'shop', undefined],
  ] as const) {
    const { event, tags } = read({ message: 'm', ...record })
    t.match({ source: event.source, logger: tags['logger'] }, { source, logger })
  }
})

void test('a shipped file gives its path as a tag, and its name as the last resort of a source', async (t) => {
  const path = '/var/log/shop/web.log'
  const file = { log: { file: { path }, offset: 1 }, message: 'm' }
  const labels = { 'app.kubernetes.io/name': 'cart' }
  for (const [record, source] of [
    [file, 'web.log'],
    [{ 'log.file.path': path, message: 'm' }, 'web.log'],
    [{ ...file, log: { file: { path: 'C:\\logs\\web.log' } } }, 'web.log'],
    [{ ...file, container: { name: 'nginx' } }, 'nginx'],
    [{ ...file, kubernetes: { labels: { app: 'shop' } } }, 'shop'],
    [{ ...file, kubernetes: { labels } }, 'cart'],
    [{ ...file, service: { name: 'api' }, container: { name: 'nginx' } }, 'api'],
    [{ file: path, source_type: 'file', message: 'm' }, 'web.log'],
    [{ filename: path, job: 'varlogs', message: 'm' }, 'varlogs'],
  ] as const) {
    const { event, tags } = read(record)
    t.equal(event.source, source, JSON.stringify(record))
    t.match(tags['log.file.path'], /web\.log$/)
  }
  const code = read({ file: '/src/app.js', line: 3, message: 'm' })
  t.match(code, { event: { source: 'nameless' }, tags: { file: '/src/app.js' } })
})

void test('the stream of a container is its source only when nothing else is named', async (t) => {
  for (const stream of ['stdout', 'stderr'])
    for (const [record, source] of [
      // As Docker's drivers for Fluentd and Splunk write it.
      [{ container_id: 'a1', container_name: '/cart-1', source: stream, log: 'm' }, 'cart-1'],
      [{ event: { line: 'm', source: stream, tag: 'cart', attrs: {} }, host: 'h' }, 'cart'],
      [{ event: { line: 'm', source: stream, tag: '' }, host: 'h' }, 'nameless'],
      [{ source: stream, service: { name: 'cart' }, msg: 'm' }, 'cart'],
      [{ source: stream, msg: 'm' }, stream],
      [{ source: stream, msg: 'm', tag: ' ' }, stream],
      [{ source: 'stdout.log', tag: 'cart', msg: 'm' }, 'stdout.log'],
    ] as const) {
      const { event } = read(record)
      t.match(event, { source, message: 'm' }, JSON.stringify(record))
    }
  t.equal(read({ container_name: '/cart-1', source: 'stdout', log: 'm' }).event.host, 'cart-1')
})

void test('exceptions beside a message can be searched and stay tags', async (t) => {
  const stack = 'TypeError: boom\n    at f (x.js:1:2)'
  const python = 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: bad'
  for (const [fields, headline] of [
    [{ err: { type: 'TypeError', message: 'boom', stack } }, 'TypeError: boom'],
    [{ error: { stack_trace: stack } }, 'TypeError: boom'],
    [{ 'error.stack_trace': stack, 'error.message': 'boom' }, 'TypeError: boom'],
    [{ exception: stack }, 'TypeError: boom'],
    [{ exception: { type: 'TypeError', message: 'boom' } }, 'TypeError: boom'],
    [{ stack_trace: stack }, 'TypeError: boom'],
    [{ exc_info: python }, 'ValueError: bad'],
    [
      { exc_info: [{ exc_type: 'ValueError', frames: ['a.py'] }], exception: python },
      'ValueError: bad',
    ],
    [
      { thrown: { name: 'TypeError', message: 'boom', extendedStackTrace: [{ class: 'a.B' }] } },
      'TypeError: boom',
    ],
    [{ attributes: { 'exception.stacktrace': stack } }, 'TypeError: boom'],
  ] as const) {
    const found = read({ level: 'error', msg: 'it failed', ...fields })
    t.equal(found.event.message, 'it failed', JSON.stringify(fields))
    t.match(found.event.exception, /Error/)
    t.match(JSON.stringify(found.tags), /Error/, 'the whole stays a tag')
    t.equal(
      read({ level: 'error', ...fields }).event.message,
      headline,
      'and is the message without one',
    )
  }
  t.equal(read({ msg: 'm', exc_info: true, error: null, err: {} }).event.exception, '')
  t.equal(read({ source: 'a', message: 'm', tags: { exception: stack } }).event.exception, stack)
  t.equal(read({ source: 'a', message: 'm', tags: { exception: 'boom' } }).event.exception, 'boom')
  const long = read({ msg: 'm', stack: 'frame\n'.repeat(50_000) })
  t.ok((long.event.exception?.length ?? 0) <= 32_768)
})

void test("Serilog's compact format", async (t) => {
  const compact = {
    '@t': ISO,
    '@mt': 'Order {OrderId} of {@User} took {Elapsed,8:0.0} ms {{net}} {Missing}',
    OrderId: 17,
    User: { name: 'ann' },
    Elapsed: 12.5,
    SourceContext: 'Shop.Orders',
    '@@odd': 1,
    '@tr': 'a'.repeat(32),
    '@sp': 'b'.repeat(16),
  }
  const { event, tags } = read(compact)
  t.match(event, {
    timestampMs: AT,
    severity: 'INFO',
    message: 'Order 17 of {"name":"ann"} took 12.5 ms {net} {Missing}',
    template: compact['@mt'],
    traceId: 'a'.repeat(32),
    spanId: 'b'.repeat(16),
  })
  t.match(tags, { logger: 'Shop.Orders', OrderId: 17, '@odd': 1 })
  const failed = read({ '@t': ISO, '@m': 'Order 17', '@l': 'Fatal', '@x': 'X: boom\n   at Y' })
  t.match(failed.event, { message: 'Order 17', severity: 'CRITICAL', exception: /boom/ })
  t.match(read({ '@t': ISO, '@x': 'X: boom\n   at Y' }).event, { message: 'X: boom' })
  // Members of these names without an @ are of other programs.
  t.match(read({ source: 'a', message: 'm', t: 1, l: 'Fatal', x: 'y' }).event, {
    severity: null,
    exception: '',
  })
})

void test('audit records and requests without a message say what was done', async (t) => {
  const cloudTrail = {
    eventVersion: '1.08',
    eventTime: ISO,
    eventSource: 's3.amazonaws.com',
    eventName: 'GetObject',
    userIdentity: { type: 'IAMUser' },
  }
  const gcp = {
    timestamp: ISO,
    logName: 'projects/p/logs/cloudaudit.googleapis.com%2Factivity',
    protoPayload: { methodName: 'buckets.list', resourceName: 'projects/p/buckets/b', status: {} },
  }
  const httpRequest = { requestMethod: 'GET', requestUrl: 'https://a/b', status: 502 }
  const denied = { ...gcp.protoPayload, status: { code: 7, message: 'DENIED' } }
  for (const [record, message, severity] of [
    [cloudTrail, 'GetObject s3.amazonaws.com', null],
    [{ ...cloudTrail, errorCode: 'NoSuchKey' }, 'GetObject s3.amazonaws.com: NoSuchKey', 'ERROR'],
    [
      { ...cloudTrail, errorCode: 'AccessDenied', errorMessage: 'not you' },
      'GetObject s3.amazonaws.com: AccessDenied not you',
      'ERROR',
    ],
    [gcp, 'buckets.list projects/p/buckets/b', null],
    [{ ...gcp, protoPayload: denied }, 'buckets.list projects/p/buckets/b: DENIED', 'ERROR'],
    [{ timestamp: ISO, httpRequest, logName: 'l' }, '"GET https://a/b" 502', 'ERROR'],
    [
      { verb: 'get', requestURI: '/api/v1/pods', responseStatus: { code: 403 } },
      '"get /api/v1/pods" 403',
      'WARNING',
    ],
    [{ ts: AT, uid: 'C1', 'id.orig_h': '10.0.0.1' }, '{"uid":"C1","id.orig_h":"10.0.0.1"}', null],
  ] as const) {
    const { event } = read(record)
    t.match(event, { message, severity }, message)
  }
  t.equal(
    read({ level: 'info', service: 'a' }).reason,
    'missing_message',
    'nothing is left to show',
  )
})

void test('Google Cloud names the trace, and the service as a label', async (t) => {
  const record = {
    textPayload: 'm',
    trace: `projects/p/traces/${'a'.repeat(32)}`,
    spanId: 'b'.repeat(16),
    resource: { type: 'cloud_run_revision', labels: { service_name: 'checkout' } },
  }
  t.match(read(record).event, {
    source: 'checkout',
    traceId: 'a'.repeat(32),
    spanId: 'b'.repeat(16),
  })
  t.match(read({ msg: 'm', trace: 'Error: x\n at y' }), {
    event: { traceId: '' },
    tags: { trace: /Error/ },
  })
})

void test('a failed request is at least a warning, whatever its logger calls it', async (t) => {
  const caddy = (status: number, level = 'info') => ({
    level,
    logger: 'http.log.access.log0',
    msg: 'handled request',
    request: { method: 'GET', host: 'a.b', uri: '/z' },
    status,
  })
  t.equal(read(caddy(200)).event.severity, 'INFO')
  t.equal(read(caddy(404)).event.severity, 'WARNING')
  t.equal(read(caddy(503)).event.severity, 'ERROR')
  t.equal(read(caddy(503, 'warn')).event.severity, 'WARNING', 'a level of its own stays')
  const pino = { level: 30, msg: 'request completed', req: { method: 'GET', url: '/' } }
  t.equal(read({ ...pino, res: { statusCode: 500 } }).event.severity, 'ERROR')
  t.equal(read({ level: 30, msg: 'job', status: 500 }).event.severity, 'INFO', 'no request')
})

void test('the environment of Datadog and OpenTelemetry', async (t) => {
  const attributes = [{ key: 'deployment.environment.name', value: { stringValue: 'staging' } }]
  for (const record of [
    { message: 'm', ddtags: 'env:staging,version:2' },
    { message: 'm', dd: { env: 'staging' } },
    { body: 'm', resource: { attributes } },
    { body: 'm', resource: { 'deployment.environment': 'staging' } },
  ])
    t.equal(read(record).event.environment, 'staging', JSON.stringify(record))
  t.equal(read({ message: 'm', env: 'dev', ddtags: 'env:staging' }).event.environment, 'dev')
})

void test('every word of a list of tags is kept or counted', async (t) => {
  const words = Array.from({ length: 300 }, (_, i) => `team${i}:a`)
  const { tags } = read({ message: 'm', ddtags: `${words.join(',')},, ,alone,:` }).event
  t.equal(Object.keys(tags ?? {}).length, 302)
  t.match(tags, { team0: 'a', team299: 'a', alone: true, ':': true })
  const long = read({ message: 'm', ddtags: `a:1,${'word:x,'.repeat(20_000)}` }).event
  t.same(long.tags, { a: '1', word: 'x' })
  const many = Array.from({ length: 20_000 }, (_, i) => `team${i}:a`).join()
  const { omitted_tags: omitted, ...kept } = read({ message: 'm', ddtags: many }).event.tags ?? {}
  t.equal(Number(omitted) + Object.keys(kept).length, 20_000)
})

void test('numbers that a double cannot hold keep their digits', async (t) => {
  const decode = (json: string) => {
    const sink = collect()
    decodeIngest(Buffer.from(json), ingestContext, sink)
    return sink.events[0]?.tags
  }
  t.same(
    decode(
      '{"message":"m \\" 12345678901234567890","a":12345678901234567890,"b":-9007199254740993,"c":9007199254740991,' +
        '"d":1e400,"e":0.1,"f":1.00000000000000000001,"g":[18446744073709551615],"h":"12345678901234567890","i":1e300}',
    ),
    {
      a: '12345678901234567890',
      b: '-9007199254740993',
      c: 9_007_199_254_740_991,
      d: '1e400',
      e: 0.1,
      f: '1.00000000000000000001',
      g: ['18446744073709551615'],
      h: '12345678901234567890',
      i: 1e300,
    },
  )
  const sink = collect()
  decodeIngest(Buffer.from(`{"msg":"m","time":${AT}123456}`), ingestContext, sink)
  t.equal(sink.events[0]?.timestampMs, AT, 'nanoseconds')
})
