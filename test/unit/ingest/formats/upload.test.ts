import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { array, assert, asyncProperty, constantFrom, oneof, string, uint8Array } from 'fast-check'
import { test } from 'tap'
import {
  decodeTextLines,
  decodeUpload,
  type FileType,
} from '../../../../src/ingest/formats/upload.js'
import { AppError } from '../../../../src/model/errors.js'
import { AT, collect, ingestContext, NOW, uploadContext } from './collect.js'
import { HOUR_MS } from '../../../../src/model/time.js'

async function decode(type: FileType, body: string | Uint8Array, context = uploadContext) {
  const sink = collect()
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const received = await decodeUpload(type, bytes, context, sink)
  return { ...sink, received, messages: sink.events.map((event) => event.message) }
}

const row = (i: number) => `2026-11-21T09:28:19.${String(i).padStart(3, '0')}Z`

void test('a CSV file is read with its header in any case and order', async (t) => {
  const { events, received } = await decode(
    'csv',
    'Host,Message,LEVEL,@timestamp,user\nweb-1,"a, ""b""\nc",warn,2026-11-21T09:28:19Z,u\n',
  )
  t.equal(received, 1)
  t.match(events, [
    { host: 'web-1', message: 'a, "b"\nc', severity: 'WARNING', timestampMs: AT, source: 'file' },
  ])
  t.same(events[0]?.tags, { user: 'u' })
})

void test('CSV may have any of four delimiters, a byte order mark and mixed line ends', async (t) => {
  for (const delimiter of [',', ';', '\t', '|']) {
    const rows = [
      ['Time', 'Severity', 'Message'],
      [row(0), 'INFO', '"one, two; three"'],
      [row(1), 'ERROR', 'x'],
    ]
    const body = `\uFEFF${rows.map((cells) => cells.join(delimiter)).join('\r\n')}\n`
    const { events } = await decode('csv', body)
    t.match(
      events,
      [
        { message: 'one, two; three', timestampMs: AT },
        { severity: 'ERROR', message: 'x' },
      ],
      delimiter,
    )
  }
  const { messages } = await decode('csv', 'sep=|\r\nlevel|message\r\ninfo|a,b\r\n')
  t.same(messages, ['a,b'])
})

void test('a row with another number of cells is rejected with its number, and the others are decoded', async (t) => {
  const { events, lines, rejects, received } = await decode(
    'csv',
    'level,message\ninfo,a\ninfo\n\ninfo,b,c\ninfo,d,\n',
  )
  t.equal(received, 4)
  t.same(lines, [2, 6])
  t.equal(events.length, 2)
  t.match(rejects, [
    { line: 3, reason: 'invalid_event' },
    { line: 5, reason: 'invalid_event' },
  ])
})

void test('empty and repeated column names are numbered', async (t) => {
  const { events } = await decode('csv', 'message,,user,user,__proto__\nm,1,2,3,4\n')
  t.equal(
    JSON.stringify(events[0]?.tags),
    '{"column_2":"1","user":"2","user_2":"3","__proto__":"4"}',
  )
})

void test('the exports of Grafana, Kibana, Datadog, CloudWatch and Splunk are read', async (t) => {
  const reads = async (csv: string, want: object) =>
    t.match((await decode('csv', csv)).events, [want], csv)
  await reads(
    '"Date/Time",Line,labels,tsNs,id\n2026-11-21 09:28:19,m,"{""app"":""x""}",1795253299000000000,1\n',
    {
      message: 'm',
      timestampMs: AT,
      tags: { app: 'x' },
    },
  )
  await reads(
    '"@timestamp","log.level",message,"host.name","trace.id"\n"Nov 21, 2026 @ 09:28:19.000",error,m,web-1,abc\n',
    {
      timestampMs: AT,
      severity: 'ERROR',
      host: 'web-1',
      traceId: 'abc',
    },
  )
  await reads('Date,Host,Service,Message,Status\n2026-11-21T09:28:19.000Z,web-1,shop,m,warn\n', {
    severity: 'WARNING',
    host: 'web-1',
    tags: { Service: 'shop' },
  })
  await reads(`timestamp,message\n${AT},m\n`, { timestampMs: AT, message: 'm' })
  await reads(
    '_time,_raw,host,source,sourcetype,index\n2026-11-21T09:28:19.000+0000,"a\nb",web-1,/x,st,main\n',
    {
      message: 'a\nb',
      source: 'file',
      tags: { source: '/x', sourcetype: 'st', index: 'main' },
    },
  )
})

void test('without known names the contents of the columns decide', async (t) => {
  const noHeader = await decode(
    'csv',
    `${row(0)},error,something long broke,7\n${row(1)},info,and more,8\n`,
  )
  t.match(noHeader.events, [
    {
      timestampMs: AT,
      severity: 'ERROR',
      message: 'something long broke',
      tags: { column_4: '7' },
    },
    { timestampMs: AT + 1, severity: 'INFO' },
  ])
  const oddHeader = await decode('csv', 'when,what\n2026-11-21 09:28:19,it broke again\n')
  t.match(oddHeader.events, [{ timestampMs: AT, message: 'it broke again' }])
})

void test('a JSON file is an array, lines, one object or an object with the array inside', async (t) => {
  const counts = async (body: unknown, want: number, name: string) =>
    t.equal(
      (await decode('json', typeof body === 'string' ? body : JSON.stringify(body))).events.length,
      want,
      name,
    )
  const record = { msg: 'm', level: 'info' }
  await counts([record, record], 2, 'array')
  await counts(JSON.stringify([record, record], null, 2), 2, 'array on several lines')
  await counts(`${JSON.stringify(record)}\r\n\n${JSON.stringify(record)}`, 2, 'NDJSON')
  await counts(record, 1, 'object')
  await counts({ meta: { total: 2 }, logs: [record, record] }, 2, 'array inside')
  await counts(
    { took: 1, hits: { total: { value: 1 }, hits: [{ _id: 'x', _source: record }] } },
    1,
    'Elasticsearch',
  )
  await counts({ events: [record], searchedLogStreams: [{ logStreamName: 's' }] }, 1, 'CloudWatch')
  await counts({ ...record, items: [{ a: 1 }, { a: 2 }] }, 1, 'a record that has a list')
  const loki = {
    status: 'success',
    data: { result: [{ stream: { app: 'x' }, values: [['1795253299000000000', 'm']] }] },
  }
  t.match((await decode('json', JSON.stringify(loki))).events, [
    { message: 'm', timestampMs: AT, tags: { app: 'x' } },
  ])
  const otlp = {
    resourceLogs: [
      {
        resource: { attributes: [{ key: 'host.name', value: { stringValue: 'web-1' } }] },
        scopeLogs: [
          { logRecords: [{ timeUnixNano: '1795253299000000000', body: { stringValue: 'm' } }] },
        ],
      },
    ],
  }
  t.match((await decode('json', JSON.stringify(otlp))).events, [
    { message: 'm', timestampMs: AT, host: 'web-1' },
  ])
})

void test('an invalid line of NDJSON is rejected, a file without any JSON is refused', async (t) => {
  const { lines, rejects } = await decode('json', '{"msg":"a"}\n{"msg":\n{"msg":"b"}')
  t.same(lines, [1, 3])
  t.match(rejects, [{ line: 2, reason: 'invalid_json' }])
  for (const body of ['{"secret', '[{"secret":1}', 'secret', '12', '"secret"', '<secret/>']) {
    await t.rejects(decode('json', body), { code: 'file_parse_error' }, body)
    await decode('json', body).catch((error: unknown) => t.notMatch(String(error), /secret/))
  }
})

void test('a file without rows is empty, with any name', async (t) => {
  const isEmpty = async (type: FileType, body: string | Uint8Array, name: string) =>
    t.rejects(decode(type, body), { code: 'empty_file' }, `${type}: ${name}`)
  for (const type of ['csv', 'json', 'txt'] as const) {
    await isEmpty(type, '', 'no bytes')
    await isEmpty(type, ' \r\n\n', 'blanks')
    await isEmpty(type, Buffer.from([0xef, 0xbb, 0xbf]), 'only a byte order mark')
    await isEmpty(type, Buffer.alloc(100), 'zeroes')
  }
  await isEmpty('csv', 'timestamp,message\n', 'only a header')
  await isEmpty('csv', 'time,level,customer\n', 'only a header without a message')
  await isEmpty('csv', 'timestamp,message\n\n,\n', 'blank rows')
  await isEmpty('json', '[]', 'empty array')
  await isEmpty('json', '{"logs":[]}', 'empty array inside')
})

void test('a file of another type is refused without its content in the message', async (t) => {
  const secret = 'level,message\ninfo,"secret'
  const png = Buffer.from(
    '89504e470d0a1a0a0000000d49484452000000100000001008060000001ff3ff61',
    'hex',
  )
  const refuses = async (type: FileType, body: string | Uint8Array, name: string) => {
    await t.rejects(decode(type, body), { code: 'file_parse_error' }, name)
    await decode(type, body).catch((error: unknown) =>
      t.notMatch(JSON.stringify(error) + String(error), /secret|info/),
    )
  }
  await refuses('csv', secret, 'quote that does not close')
  await refuses('csv', 'level,message\ninfo,"sec"ret\n', 'text after a quote')
  await refuses('csv', gzipSync(secret), 'gzip')
  await refuses('txt', gzipSync('x'), 'gzip')
  await refuses('txt', png, 'image')
  await refuses('json', Buffer.from('PK\u0003\u0004secret'), 'zip')
  await refuses('csv', `message${',x'.repeat(2000)}\nsecret`, 'too many columns')
})

void test('a file of more rows than the limit is refused', async (t) => {
  const context = { ...uploadContext, maxRows: 3 }
  const files = {
    csv: (n: number) => `message\n${'m\n'.repeat(n)}`,
    json: (n: number) => '{"msg":"m"}\n'.repeat(n),
    txt: (n: number) => 'm\n'.repeat(n),
  }
  for (const type of ['csv', 'json', 'txt'] as const) {
    t.equal((await decode(type, files[type](3), context)).received, 3, type)
    await t.rejects(decode(type, files[type](4), context), {
      code: 'file_parse_error',
      message: /3 rows/,
    })
  }
  const lines = 'message\n\n"a\nb\nc ""d"" e"\n\r\nm\n"m\n\nn"\n\n\n\n'
  t.equal((await decode('csv', lines, context)).received, 3, 'lines that are no rows')
  // The open quote makes it unreadable, for whoever reads that far.
  for (const end of ['\n', '\r', '\r\n']) {
    const open = `${files.csv(5)}"${'x'.repeat(1000)}`.replaceAll('\n', end)
    await t.rejects(decode('csv', open, context), { message: /3 rows/ }, 'before all is parsed')
  }
  // A quote within a text opens nothing, so it hides no rows; the open one after them is not reached.
  for (const text of ['a"b', 'a""b', ' x "', '\u00a0"a"', '\u0001"a'])
    await t.rejects(
      decode('csv', `message\n${text}\n${'m\n'.repeat(5)}"`, context),
      { message: /3 rows/ },
      text,
    )
})

void test('a CSV file of many pieces is decoded as one', async (t) => {
  const rows = Array.from({ length: 30_000 }, (_, i) =>
    i % 3 === 0 ? `info,"two\r\nlines ""${i}"""` : i % 3 === 1 ? `info,a"b ${i}` : '',
  )
  const { events, received } = await decode('csv', `level,message\r\n${rows.join('\r\n')}\r\n`)
  t.equal(received, 20_000)
  t.same(
    events.map(({ message }) => message),
    rows.flatMap((row, i) =>
      row === '' ? [] : i % 3 === 0 ? [`two\r\nlines "${i}"`] : [`a"b ${i}`],
    ),
  )
})

void test('UTF-16 with and without a byte order mark is decoded like UTF-8', async (t) => {
  const text = '2026-11-21 09:28:19 ERROR größer als 日本\r\n2026-11-21 09:28:20 INFO fine\r\n'
  const little = Buffer.from(text, 'utf16le')
  const big = Buffer.from(little).swap16()
  const want = [
    { message: 'größer als 日本', severity: 'ERROR', timestampMs: AT },
    { message: 'fine' },
  ]
  for (const body of [
    Buffer.from(text),
    Buffer.concat([Buffer.from([0xff, 0xfe]), little]),
    Buffer.concat([Buffer.from([0xfe, 0xff]), big]),
    little,
    big,
  ]) {
    t.match((await decode('txt', body)).events, want)
  }
  const csv = Buffer.from('\uFEFFlevel;message\r\ninfo;ü\r\n', 'utf16le')
  t.same((await decode('csv', csv)).messages, ['ü'])
})

void test('zero bytes in a text are preserved', async (t) => {
  t.same((await decode('txt', 'a\0b\nc\n')).messages, ['a\0b', 'c'])
})

/** Parts of log files, to be joined in any order. */
const PIECES = (
  '"~,~;~\n~\r\n~{~}~[~]~:~<34>~1 ~Nov 21 09:28:19 ~host ~app[1]: ~2026-11-21T09:28:19Z ~' +
  'stdout P ~stderr F ~    at f\n~- ~INFO ~[main] ~message~level~__CURSOR=1\n~MESSAGE\n~\0~ü~' +
  '{"msg":"m"}\n~{"log":"~[{"msg":"m"}]~a=b ~msg=~ '
).split('~')

void test('no file makes a decoder throw anything but AppError or lose a row', async (t) => {
  const pieces = constantFrom(...PIECES)
  const body = oneof(
    string(),
    array(pieces).map((list) => list.join('')),
    uint8Array({ maxLength: 300 }),
  )
  const type = constantFrom<FileType>('csv', 'json', 'txt')
  const isWhole = async (kind: FileType, file: string | Uint8Array) => {
    try {
      const { events, rejects, received } = await decode(kind, file)
      return received > 0 && received === events.length + rejects.length
    } catch (error) {
      return error instanceof AppError
    }
  }
  await assert(asyncProperty(type, body, isWhole), { numRuns: 1000 })
  t.pass('held')
})

void test('rows that are written as CSV are read unchanged', async (t) => {
  const cell = string({ minLength: 1 }).map((text) => Buffer.from(`x${text}x`).toString())
  const isSame = async (cells: string[]) => {
    const quoted = cells.map((text) => `info,"${text.replaceAll('"', '""')}"`)
    const { messages } = await decode('csv', `level,message\n${quoted.join('\r\n')}\r\n`)
    return JSON.stringify(messages) === JSON.stringify(cells)
  }
  await assert(asyncProperty(array(cell, { minLength: 1, maxLength: 8 }), isSame))
  t.pass('held')
})

/** Number of records in each sample file, by name. */
const SAMPLES: Readonly<Record<string, { type: FileType; count: number; now?: true }>> = {
  'bunyan.ndjson': { type: 'json', count: 300 },
  'journald-export.txt': { type: 'txt', count: 300 },
  'journald-json.ndjson': { type: 'json', count: 300 },
  'journald-short-iso.txt': { type: 'txt', count: 300 },
  'journald-short.txt': { type: 'txt', count: 300 },
  'log4j2-jsonlayout.json': { type: 'json', count: 1000 },
  'log4js-json.ndjson': { type: 'json', count: 300 },
  'log4js.log': { type: 'txt', count: 300 },
  'logback-logstash-encoder.json': { type: 'json', count: 1000 },
  'nginx-access-combined.log': { type: 'txt', count: 300 },
  'nginx-access.ndjson': { type: 'json', count: 300 },
  'nginx-error.log': { type: 'txt', count: 30 },
  'pino.ndjson': { type: 'json', count: 300 },
  'synthetic-array.json': { type: 'json', count: 300 },
  'synthetic-cri-k8s.log': { type: 'txt', count: 300 },
  'synthetic-docker-json-file.json': { type: 'json', count: 309 },
  'synthetic-excel-semicolon-bom-crlf.csv': { type: 'csv', count: 300 },
  'synthetic-grafana-explore.csv': { type: 'csv', count: 300 },
  'synthetic-kibana.csv': { type: 'csv', count: 300 },
  'synthetic-rfc3164.txt': { type: 'txt', count: 300 },
  'synthetic-rfc5424.txt': { type: 'txt', count: 300 },
  'winston.ndjson': { type: 'json', count: 300 },
}

const samplesDir = process.env['SAMPLES_DIR']

void test(
  'files that real programs wrote give their records, times and levels',
  { skip: samplesDir === undefined && 'SAMPLES_DIR names no folder of sample files' },
  async (t) => {
    const names = readdirSync(samplesDir ?? '.')
    t.same(names.sort(), Object.keys(SAMPLES).sort(), 'all files are known')
    for (const [name, { type, count }] of Object.entries(SAMPLES)) {
      const body = readFileSync(join(samplesDir ?? '.', name))
      const { events, rejects } = await decode(type, body)
      t.equal(events.length, count, name)
      t.same(rejects, [], `${name}: nothing is rejected`)
      t.ok(
        events.every(
          (event) => event.timestampMs !== NOW && Math.abs(event.timestampMs - AT) < HOUR_MS,
        ),
        name,
      )
      const levelled = events.filter((event) => event.severity !== null).length
      t.equal(levelled, /short|cri-|docker/.test(name) ? 0 : count, `${name}: levels`)
    }
  },
)

const loghubDir = process.env['LOGHUB_DIR']

void test(
  'each line of a raw loghub file gives the content that its authors took from it',
  { skip: loghubDir === undefined && 'LOGHUB_DIR names no folder of .raw and .log files' },
  async (t) => {
    const dir = loghubDir ?? '.'
    const raws = readdirSync(dir).filter((name) => name.endsWith('.raw'))
    t.ok(raws.length > 0, 'there are files')
    for (const name of raws) {
      const contents = readFileSync(join(dir, name.replace('.raw', '.log')), 'utf8').split('\n')
      const { events, messages, rejects } = await decode('txt', readFileSync(join(dir, name)))
      t.equal(events.length, contents.length - 1, name)
      t.same(rejects, [], `${name}: nothing is rejected`)
      t.notOk(
        events.some((event) => event.timestampMs === NOW),
        `${name}: each line has its time`,
      )
      const odd = messages.filter((message, i) => message.trim() !== contents[i]?.trim())
      t.same(odd, [], `${name}: contents`)
    }
  },
)

void test('a body of text lines may have any encoding, and is refused when it is binary', (t) => {
  const read = (body: Buffer) => {
    const sink = collect()
    decodeTextLines(body, ingestContext, sink)
    return sink.events.length
  }
  const program = readFileSync(process.execPath).subarray(0, 50_000)
  const packed = Buffer.concat([Buffer.from('PK\u0003\u0004'), gzipSync(program)])
  for (const body of [program, packed])
    t.throws(() => read(body), { code: 'bad_request', message: 'the body is not text' })
  // GB 18030
  const chinese = Buffer.from('c8d5d6beb4edcef30a'.repeat(50), 'hex')
  t.equal(read(chinese), 50)
  t.equal(read(Buffer.from('\u001b[31mred\u001b[0m\n\0\0\0\n')), 2)
  t.end()
})
