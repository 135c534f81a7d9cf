import { gzipSync, deflateSync, brotliCompressSync } from 'node:zlib'
import { readFileSync, readdirSync } from 'node:fs'
import { accessTokenOf } from '../../src/api/auth/credentials.js'
import { createOriginCheck } from '../../src/api/auth/origin.js'
import { createTokens } from '../../src/api/auth/tokens.js'
import { decodeCursor, encodeCursor } from '../../src/records/cursor.js'
import { readEventQuestion } from '../../src/api/event-question.js'
import { parseQueryTime } from '../../src/api/query-time.js'
import { decodeIngest } from '../../src/ingest/formats/ndjson.js'
import { parseScmWebhook } from '../../src/ingest/webhook/webhook-events.js'
import { isAcceptedTime, parseTimestamp } from '../../src/ingest/formats/timestamp.js'
import { decodeTextLines, decodeUpload, type FileType } from '../../src/ingest/formats/upload.js'
import { createClientAddress } from '../../src/http/address.js'
import { parseCookies } from '../../src/http/cookies.js'
import { decompress, readContentCoding, type ContentCoding } from '../../src/http/decompress.js'
import { parseMultipart } from '../../src/http/multipart.js'
import { HeaderBag, decodeSegment, readFraming } from '../../src/http/request.js'
import { largestContent } from '../../src/http/zstd.js'
import { ByteBuffer } from '../../src/lib/byte-buffer.js'
import {
  DictColumn,
  FixedColumn,
  StringColumn,
  toNativeBlock,
} from '../../src/clickhouse/native-writer.js'
import { readBlock } from '../../src/clickhouse/native-reader.js'
import { TemplateMiner } from '../../src/templates/miner.js'
import { matches } from '../../src/templates/template-text.js'
import { levelAtHead } from '../../src/templates/head-level.js'
import { AppError, type ErrorCode } from '../../src/model/errors.js'
import {
  EVENT_TYPES,
  REJECT_REASONS,
  SEVERITIES,
  type CanonicalEvent,
} from '../../src/model/event.js'
import { verifySignature } from '../../src/ingest/webhook/signature.js'
import {
  FRAME_HEADER,
  encodeFrame,
  frameAt,
  parseSegmentName,
  scanSegment,
} from '../../src/wal/file.js'
import { completeQuery } from '../../src/query/completion.js'
import { MAX_LINE, parseQuery } from '../../src/query/parser.js'
import { printQuery } from '../../src/query/printer.js'
import { toConditions, toWordSearch } from '../../src/events/conditions.js'
import type { EventFilter } from '../../src/events/filter.js'
import { uws } from '../support/http.js'
import {
  NOW,
  collect,
  ingestContext,
  uploadContext,
  type Collected,
} from '../unit/ingest/formats/collect.js'
import type { Target } from './fuzz.js'
import { listenerTargets } from './listener-targets.js'
import { protocolTargets } from './protocol-targets.js'

const MESSAGE_BYTES = 4096

function insist(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`broken: ${what}`)
}

/** Runs it; what it throws must be for the client. @returns whether it threw */
function refuses(codes: readonly ErrorCode[], run: () => void): boolean {
  try {
    run()
    return false
  } catch (error) {
    if (error instanceof AppError && codes.includes(error.code)) return true
    throw error
  }
}

async function refusesLater(
  codes: readonly ErrorCode[],
  run: () => Promise<void>,
): Promise<boolean> {
  try {
    await run()
    return false
  } catch (error) {
    if (error instanceof AppError && codes.includes(error.code)) return true
    throw error
  }
}

const PROTOTYPE = Object.getOwnPropertyNames(Object.prototype).join()
const isWhole = (text: unknown): boolean => typeof text === 'string' && !/\p{Surrogate}/u.test(text)

/** What every event must be, wherever it came from. */
function checkEvent(event: CanonicalEvent, maxMessageBytes: number): void {
  const { timestampMs, source, type, severity, message, tags } = event
  insist(Number.isSafeInteger(timestampMs), 'a time is an integer')
  insist(isAcceptedTime(timestampMs, NOW), 'a time is accepted')
  insist(EVENT_TYPES.includes(type), 'a type is known')
  insist(severity === null || SEVERITIES.includes(severity), 'a severity is known')
  insist(message !== '' && Buffer.byteLength(message) <= maxMessageBytes, 'a message has its size')
  insist(source.trim() !== '' && Array.from(source).length <= 120, 'a source has its size')
  // oxlint-disable-next-line no-control-regex -- what a source must not hold
  insist(!/[\u0000-\u001f\u007f-\u009f]/.test(source), 'a source holds no control characters')
  const { host, environment, traceId, spanId, summary, dedupKey, template } = event
  for (const text of [
    source,
    message,
    host,
    environment,
    traceId,
    spanId,
    summary,
    dedupKey,
    template,
  ])
    insist(isWhole(text), 'texts are whole Unicode')
  if (tags === null) return
  const json = JSON.stringify(tags)
  insist(!/\\ud[89a-f]/.test(json.replaceAll('\\\\', '')), 'tags are whole Unicode')
  insist(
    Object.getPrototypeOf(tags) === Object.prototype || Object.getPrototypeOf(tags) === null,
    'tags are plain',
  )
}

/** A line may hold several objects. */
const ANOTHER_OBJECT = /\}[\s,]*\{/

function checkCollected(
  got: Collected,
  received: number,
  { input, maxMessageBytes }: { readonly input: Buffer; readonly maxMessageBytes: number },
): void {
  insist(received === got.events.length + got.rejects.length, 'every record is accounted for')
  for (const event of got.events) checkEvent(event, maxMessageBytes)
  for (const { line, reason, source } of got.rejects) {
    insist(line >= 1, 'a line has a number')
    insist(REJECT_REASONS.includes(reason), 'a reason is known')
    insist(isWhole(source), 'a rejection names a whole source')
  }
  const lines = [...got.lines, ...got.rejects.map(({ line }) => line)]
  insist(
    new Set(lines).size === lines.length || ANOTHER_OBJECT.test(input.toString('utf8')),
    'a line is one message',
  )
  insist(
    Object.getOwnPropertyNames(Object.prototype).join() === PROTOTYPE,
    'nobody else is changed',
  )
}

function checkRecords(got: Collected, received: number, maxMessageBytes: number): void {
  insist(received === got.events.length + got.rejects.length, 'every record is accounted for')
  for (const event of got.events) checkEvent(event, maxMessageBytes)
}

const CONTEXT = { ...ingestContext, maxMessageBytes: MESSAGE_BYTES }

/** NDJSON, and that what a body means does not depend on which lines came before. */
function checkIngest(input: Buffer): void {
  const got = collect()
  let received = 0
  const isRefused = refuses(['validation_error'], () => {
    received = decodeIngest(input, CONTEXT, got)
  })
  if (isRefused) return
  checkCollected(got, received, { input, maxMessageBytes: MESSAGE_BYTES })
  const text = input.toString('utf8')
  const lines = text.split('\n')
  if (got.events.length < 2 || lines.length !== received) return
  if (new Set(got.lines).size !== got.lines.length) return
  got.events.forEach((event, i) => {
    const alone = collect()
    decodeIngest(Buffer.from(lines[(got.lines[i] ?? 0) - 1] ?? ''), CONTEXT, alone)
    insist(
      JSON.stringify(alone.events) === JSON.stringify([event]),
      'a line means what it means alone',
    )
  })
}

/** Text lines of `/ingest`, which are never refused but for their number. */
function checkLines(input: Buffer): void {
  const got = collect()
  const isRefused = refuses(['file_parse_error', 'bad_request'], () =>
    decodeTextLines(input, CONTEXT, got),
  )
  const received = got.events.length + got.rejects.length
  if (!isRefused) checkCollected(got, received, { input, maxMessageBytes: MESSAGE_BYTES })
}

const uploadTarget = (type: FileType, part: RegExp, seeds: readonly string[]): Target => ({
  name: `upload-${type}`,
  part,
  seeds,
  runs: 750,
  tokens: [
    'timestamp,level,message\n',
    ';',
    '\t',
    '"a""b"',
    '<34>1 ',
    'Jan  1 00:00:00 ',
    'level=info ',
  ],
  check: async (input) => {
    if (type === 'txt') checkLines(input)
    const got = collect()
    const context = { ...uploadContext, maxMessageBytes: MESSAGE_BYTES, maxRows: 500 }
    let received = 0
    const isRefused = await refusesLater(['file_parse_error', 'empty_file'], async () => {
      received = await decodeUpload(type, input, context, got)
    })
    if (isRefused) return
    checkCollected(got, received, { input, maxMessageBytes: MESSAGE_BYTES })
    insist(received <= 500, 'no more rows than allowed')
    insist(
      got.events.every(({ source }) => source === 'file'),
      'all rows have the source that was asked for',
    )
  },
})

const WEBHOOKS = new URL('../../../test/fixtures/webhooks/', import.meta.url)
const webhookSeeds = readdirSync(WEBHOOKS).map((name) =>
  readFileSync(new URL(name, WEBHOOKS), 'utf8'),
)

const FORM =
  '--XyZ\r\nContent-Disposition: form-data; name="source_name"\r\n\r\nshop\r\n' +
  '--XyZ\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n' +
  'Content-Type: text/csv\r\n\r\na,b\r\n1,2\r\n--XyZ--\r\n'

function checkForm(input: Buffer): void {
  const own = new Uint8Array(input)
  const limits = { fileBytes: 2000, fieldBytes: 200, parts: 6 }
  refuses(['validation_error', 'file_too_large', 'unsupported_media_type'], () => {
    const form = parseMultipart(uws, own, 'multipart/form-data; boundary=XyZ', limits)
    insist(
      Object.keys(form.fields).length + form.files.length <= limits.parts,
      'not too many parts',
    )
    for (const { data } of form.files)
      insist(data.byteLength <= limits.fileBytes, 'a file has its size')
    for (const value of Object.values(form.fields)) insist(isWhole(value), 'a field is text')
  })
}

const PLAIN = Buffer.from('{"source":"a","message":"compressed"}\n'.repeat(20))
/** 40 lines of NDJSON, by `zstd -19 --check`: with Huffman and FSE tables */
const ZSTD = Buffer.from(
  'KLUv/WQ1Ct0MAAaZPRlwTdqQtgLuwGMUq6pS/EyR3Tvx5JuoLhAHRgAwADAAp4eHkU50DPNaha0rGsIvsc4BTJaG' +
    'ofhOaSyUBuOAMAYlUlAOC4JDsd6tygNxeDAJQtMgGIsSWEjgYBTNogwWhOEBYZpFEsWzNS/pZi76nbJCuqfhod+O' +
    '7V8zk8i+71zV805trOEx2ynTdnf+ucwfsss8xJpcAVkjwrwn2oevNPVueKcw3WM8TqtzlG0tr3ayMFsuolvRMZ7h' +
    'rTCpXthWFt3py34MK4DJ0jAUvFntbruRjarvIez5uE7brHM65SuT8eybWQlPXr1pbLbeTJ8S/sce2129rFSoEWAo' +
    'lUi9/4wB0CiSgLIOEmBACGYwBIdZHMQYhhH++wHa6jqb51ZNVqU3JvOXS/pIyXM0F1KPcTIfu2q1F5qo9OVGYd5V' +
    'reKwa0p2wnKhGUcrs961GCQxW6y8q7HqGh9q7RiWmghJd2oiXRebzXUyUO3ZRHtsxl6wVW495m9X0uqJHpGAdLPX' +
    '9iDisbUwGUYMqyoAEFM5uRQAAANVBTKzGnxZqt8=',
  'base64',
)
const CODINGS: readonly ContentCoding[] = ['gzip', 'deflate', 'br', 'zstd']
const LIMIT = 30_000

/** The first byte tells the coding. */
async function checkCompressed(input: Buffer): Promise<void> {
  const coding = CODINGS[(input[0] ?? 0) % CODINGS.length] ?? 'gzip'
  const body = new Uint8Array(input.subarray(1))
  await refusesLater(['bad_request', 'body_too_large'], async () => {
    const plain = await decompress(body, coding, LIMIT)
    insist(plain.byteLength <= LIMIT, 'no more than allowed comes out')
  })
  insist((largestContent(body) ?? 0) >= 0, 'the content of frames has a size')
}

const compressed = (index: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([index]), bytes])

const KEY = Buffer.alloc(32, 7)
const FILTERS = { list: 'logs', severity: ['ERROR'] }

/** One text for everything small that is read from a head. */
function checkTexts(input: Buffer): void {
  const text = input.toString('utf8')
  refuses(['invalid_cursor'], () => {
    const position = decodeCursor(
      KEY,
      FILTERS,
      text,
      (value): value is number => typeof value === 'number',
    )
    insist(encodeCursor(KEY, FILTERS, position) === text, 'only what was given out is a cursor')
  })
  refuses(['validation_error'], () => {
    insist(Number.isSafeInteger(parseQueryTime(text, 'start_time')), 'a moment is a number of ms')
  })
  refuses(['bad_request'], () => {
    insist(isWhole(decodeSegment(text)), 'a path segment is text')
  })
  for (const [name, value] of parseCookies(text))
    insist(name !== '' && typeof value === 'string', 'a cookie')
  const time = parseTimestamp(text, CONTEXT)
  insist(time === null || Number.isInteger(time), 'a time is an integer or none')
  const level = levelAtHead(text)
  insist(level === null || SEVERITIES.includes(level), 'a level is known')
  checkHead(text)
  checkSearch(text)
}

const NO_NAMES = {
  applications: () => [],
  templateAliases: (id: string) => [id],
  redirects: () => [],
}

function checkSearch(text: string): void {
  for (const parameters of [{ search: text.slice(0, 1000) }, { q: text }])
    refuses(['validation_error'], () => {
      checkFilter(text, readEventQuestion(parameters, NO_NAMES, null).filter)
    })
}

function checkFilter(text: string, filter: EventFilter): void {
  const words = toWordSearch(filter.terms, 'host')
  insist(words?.conditions.every(isPlainSql) ?? true, 'nothing of the search stands in the SQL')
  const texts = [{ text, words: words?.conditions.map(() => 1) ?? [] }]
  const found = { constantTexts: texts, hosts: texts }
  for (const { sql, params } of toConditions(filter, { found, endMs: NOW })) {
    insist(isPlainSql(sql), 'nothing of the search stands in the SQL')
    for (const [, name = ''] of sql.matchAll(/\{(\w+):/g))
      insist(name in params || /^(?:from|to|arrived)_ms$/.test(name), 'a value is bound')
  }
}

const isPlainSql = (sql: string): boolean => /^[\x20-\x7e]+$/.test(sql)

const clientAddress = createClientAddress(['127.0.0.1', '10.0.0.0/8', 'fd00::/8'])

function checkHead(text: string): void {
  const headers = new HeaderBag()
  headers.add('host', 'a')
  for (const line of text.split('\n')) {
    const [name = '', ...rest] = line.split(':')
    headers.add(name.toLowerCase(), rest.join(':').trim())
  }
  headers.add('content-encoding', text.slice(0, 20))
  refuses(['unsupported_media_type'], () => {
    const coding = readContentCoding(headers)
    insist(coding === 'identity' || CODINGS.includes(coding), 'a coding is known')
  })
  const framing = readFraming(headers)
  if (framing.kind === 'length') insist(Number.isSafeInteger(framing.bytes), 'a length is a number')
  insist(clientAddress('127.0.0.1', [text]) !== '', 'a client has an address')
}

const tokens = createTokens({
  secret: 'a secret of the fuzzer, 32 characters and more',
  accessSeconds: 3600,
  refreshSeconds: 3600,
  nowMs: () => NOW,
})
const GRANTEE = { userId: 'u', role: 'viewer', family: 'f' } as const
const ACCESS = tokens.issueAccess(GRANTEE)
const REFRESH = tokens.issueRefresh({ ...GRANTEE, epoch: 1, jti: 'j' })
const mayUseCookies = createOriginCheck(['https://dashboard.example'])
const SIGNED = Buffer.from('{}')

/** A head's credentials: nobody gets in with anything but what was given out. */
async function checkCredentials(input: Buffer): Promise<void> {
  const text = input.toString('latin1')
  refuses(['unauthorized', 'token_expired'], () => {
    tokens.verifyAccess(text)
    insist(text === ACCESS, 'only what was signed is an access token')
  })
  refuses(['invalid_refresh_token', 'unauthorized'], () => {
    tokens.verifyRefresh(text)
    insist(text === REFRESH, 'only what was signed is a refresh token')
  })
  refuses(['unauthorized'], () => {
    const { token, via } = accessTokenOf({ authorization: text, cookie: () => '' })
    insist(via === 'bearer' && /^[\w.~+/=-]+$/.test(token), 'a token is a word')
  })
  const isSigned = await verifySignature(text, SIGNED, ['a secret of the webhook'])
  insist(!isSigned, 'no signature by chance')
  const headers = new HeaderBag()
  headers.add('host', 'logs.example')
  headers.add('origin', text)
  if (mayUseCookies(headers))
    insist(
      text === 'https://dashboard.example' || new URL(text).host === 'logs.example',
      'an origin is allowed',
    )
}

const SEGMENT_KEY = Buffer.from('0123456789ab')
const FRAME = Buffer.concat(
  encodeFrame(SEGMENT_KEY, { kind: 'record', seq: 7, payload: [Buffer.from('rows of a sender')] }),
)
const DONE = Buffer.concat(encodeFrame(SEGMENT_KEY, { kind: 'done', seq: 7, payload: [] }))

/** A segment of the WAL as a disk may give it back: what checks out is whole, and the rest is told. */
function checkSegment(input: Buffer): void {
  const { frames, damaged } = scanSegment(SEGMENT_KEY, input)
  const bytes = frames.reduce((sum, { payload }) => sum + FRAME_HEADER + payload.length, 0)
  const lost = damaged.reduce((sum, { length }) => sum + length, 0)
  insist(bytes + lost === input.length, 'every byte is of a frame or damaged')
  for (const { kind, seq, offset, payload } of frames) {
    const again = Buffer.concat(encodeFrame(SEGMENT_KEY, { kind, seq, payload: [payload] }))
    insist(again.equals(input.subarray(offset, offset + again.length)), 'a frame is as written')
    insist(frameAt(SEGMENT_KEY, input, offset) !== null, 'and found where it is')
  }
  const name = parseSegmentName(input.toString('latin1'))
  insist(name === null || name.key.length === 12, 'a name has its key')
}

function nativeSeed(rows: number): Uint8Array {
  const id = new FixedColumn('id', 'UInt64', 8)
  const isNew = new FixedColumn('is_new', 'UInt8', 1)
  const time = new FixedColumn('ts', "DateTime64(3, 'UTC')", 8)
  const source = new DictColumn('source')
  const message = new StringColumn('variables')
  for (let row = 0; row < rows; row++) {
    id.data.u64(row + 1)
    isNew.data.u8(row % 2)
    time.data.u64(NOW + row)
    source.push(`source ${row % 3}`)
    message.push(`message ${row}`)
  }
  return toNativeBlock([id, isNew, time, source, message], rows, new ByteBuffer()).bytes
}

/** A block as a disk may give it back: what is read of it is cut and put together without loss. */
function checkNative(input: Buffer): void {
  const block = readBlock(input)
  if (block === null) return
  const middle = block.rows >>> 1
  for (const [from, to] of [
    [0, block.rows],
    [0, middle],
    [middle, block.rows],
  ] as const) {
    const piece = readBlock(block.slice(from, to))
    insist(piece !== null && piece.rows === to - from, 'a piece is a block')
    for (let row = 0; row < Math.min(3, piece.rows); row++)
      for (const column of ['id', 'source', 'variables', 'is_new']) {
        insist(piece.text(column, row) === block.text(column, from + row), 'texts stay')
        insist(piece.number(column, row) === block.number(column, from + row), 'numbers stay')
      }
  }
}

/** Lines of one source: each is of the template it is given. */
function checkMining(input: Buffer): void {
  const miner = new TemplateMiner({
    templates: 50,
    share: 0.5,
    evidencePerSource: 200,
  })
  const lines = input.toString('utf8').split('\n').slice(0, 60)
  const numbers = lines.map((line, i) => miner.resolve(`s${i % 3}`, Buffer.from(line)))
  lines.forEach((line, i) => {
    const text = miner.textOf(miner.rootOf(numbers[i] ?? 0))
    insist(matches(text, line), `a message is of its template: ${JSON.stringify(text)}`)
  })
}

/** A line is a query or has a fault within it; a query is printed as a line of the same query. */
function checkQuery(input: Buffer): void {
  const line = input.toString('utf8')
  const parsed = parseQuery(line)
  for (const position of [0, line.length >> 1, line.length]) {
    const found = completeQuery(line, position)
    insist(found.position + found.length <= line.length, 'a completion is within the line')
  }
  if (parsed.fault !== null) {
    const { position, length } = parsed.fault
    insist(
      position >= 0 && length >= 0 && position + length <= line.length,
      'a fault has its place',
    )
    return
  }
  const canonical = printQuery(parsed.query)
  if (canonical.length > MAX_LINE) return
  const { query } = parseQuery(canonical)
  insist(JSON.stringify(query) === JSON.stringify(parsed.query), 'a query stays what it is')
}

export const TARGETS: readonly Target[] = [
  {
    name: 'ndjson',
    part: /\/build\/src\/(?:ingest\/formats|model)\//,
    runs: 1500,
    seeds: [
      '{"timestamp":"2026-11-21T09:28:19.123Z","source":"shop","severity":"INFO","message":"order 1 paid"}\n' +
        '{"timestamp":"2026-11-21T09:28:19.124Z","source":"shop","severity":"ERROR","message":"order 2 lost"}\n' +
        '{"timestamp":"2026-11-21T09:28:19.125Z","source":"shop","severity":"INFO","message":"order 3 paid"}',
      '[{"source":"a","message":"b","tags":{"k":"v","n":1,"deep":{"x":[1,2,{"y":null}]}}}]',
      '{"@timestamp":1763717299123,"log.level":"warn","service":{"name":"api"},"msg":"x","trace":{"id":"t"}}',
      '{"time":1763717299,"level":30,"hostname":"h","pid":1,"name":"pino","msg":"hello","v":1}',
      '{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"otel"}}]},' +
        '"scopeLogs":[{"logRecords":[{"timeUnixNano":"1763717299123000000","severityNumber":17,' +
        '"body":{"stringValue":"boom"},"traceId":"00"}]}]}]}',
      '{"source":"a",\n "message":"over\\nlines"\n}',
      '{"source":"\\ud800","message":"\\ud800 lone"}',
      String.raw`{"source":"a","message":"{\"level\":\"warn\",\"msg\":\"inner\",\"k\":\"\\ud800\"}"}`,
      String.raw`{"source":"a","message":"b","attributes":"{\"k\":\"\\udc00\"}"}`,
      '{"source":"a","message":"x","__proto__":{"polluted":1},"tags":{"__proto__":{"polluted":1}}}',
      `${'{"a":'.repeat(500)}1${'}'.repeat(500)}`,
    ],
    check: checkIngest,
  },
  uploadTarget('csv', /\/build\/src\/collector\//, [
    'timestamp,level,message\n2026-11-21T09:28:19Z,INFO,"hello, ""you"""\n2026-11-21T09:28:20Z,ERROR,bye\n',
    'time;severity;msg\r\n1763717299;warn;a\r\n',
    'message\nonly one\ncolumn\n',
  ]),
  uploadTarget('json', /\/build\/src\/collector\//, [
    '[{"message":"a","level":"info"},{"message":"b"}]',
    '{"message":"a"}\n{"message":"b","@timestamp":"2026-11-21T09:28:19Z"}\n',
    '{"records":[{"msg":"x"}]}',
  ]),
  uploadTarget('txt', /\/build\/src\/collector\//, [
    'Nov 21 09:28:19 host sshd[123]: Failed password for root from 10.0.0.1 port 22 ssh2\n',
    '<34>1 2026-11-21T09:28:19.003Z host app 123 ID47 [x@1 a="b"] message\n',
    '2026-11-21 09:28:19,123 ERROR [main] com.x.Y - boom\njava.lang.Error: x\n\tat a.b(C.java:1)\n',
    '10.0.0.1 - - [21/Nov/2026:09:28:19 +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8"\n',
    'level=info ts=2026-11-21T09:28:19Z msg="hello world" caller=a.go:1\n',
    'MESSAGE=hello\n__REALTIME_TIMESTAMP=1763717299123456\nPRIORITY=3\n\n',
    '__CURSOR=s=1\n__REALTIME_TIMESTAMP=1763717299123456\nPRIORITY=3\nMESSAGE=hello\n\n' +
      '__CURSOR=s=2\nMESSAGE\n\x05\0\0\0\0\0\0\0two\nx\n_HOSTNAME=h\n\n',
    '0000000000I1121 09:28:19.123456    1 a.go:12] klog line\n',
  ]),
  {
    name: 'webhook',
    part: /\/build\/src\/ingest\/webhook/,
    runs: 1250,
    seeds: [
      ...webhookSeeds,
      String.raw`{"object_kind":"tag_push","ref":"refs/tags/\ud800","project":{"path_with_namespace":"a/b"},"user":{"username":"\udc00"}}`,
    ],
    tokens: [
      '"object_kind":"push"',
      '"project":',
      '"object_attributes":',
      '"commits":[]',
      '"ref":"refs/heads/x"',
    ],
    check: (input) => {
      refuses(['invalid_payload'], () => {
        const context = { nowMs: NOW, environment: 'test', maxMessageBytes: MESSAGE_BYTES }
        const delivery = parseScmWebhook(input, context)
        if (delivery.kind === 'ignored') return
        insist(delivery.events.length > 0, 'a delivery has events')
        for (const event of delivery.events) {
          checkEvent(event, MESSAGE_BYTES)
          insist(event.source === delivery.source, 'all events are of one source')
          insist(/^sha256:[0-9a-f]{64}$/.test(event.dedupKey), 'an event has its key')
        }
      })
    },
  },
  {
    name: 'multipart',
    part: /\/build\/src\/http\/multipart/,
    runs: 1500,
    seeds: [FORM],
    tokens: [
      '--XyZ',
      '--XyZ--',
      '\r\n\r\n',
      'Content-Disposition: form-data; name=',
      '; filename="',
      'XyZ',
    ],
    check: checkForm,
  },
  {
    name: 'compressed',
    part: /\/build\/src\/http\/(?:decompress|zstd)/,
    runs: 750,
    seeds: [
      compressed(0, gzipSync(PLAIN)),
      compressed(1, deflateSync(PLAIN)),
      compressed(2, brotliCompressSync(PLAIN)),
      compressed(3, ZSTD),
      compressed(0, gzipSync(Buffer.alloc(1_000_000))),
      compressed(2, brotliCompressSync(Buffer.alloc(1_000_000))),
    ],
    check: checkCompressed,
  },
  {
    name: 'texts',
    part: /\/build\/src\/(?:api|http|clickhouse|events|records|templates\/head-level|ingest\/formats\/time)/,
    runs: 1250,
    seeds: [
      encodeCursor(KEY, FILTERS, 12345),
      '2026-11-21T09:28:19.123+01:00',
      'gzip',
      'content-length: 12\ntransfer-encoding: chunked\nx-forwarded-for: 10.0.0.1, [::1]:80',
      'ACCESS_TOKEN=a.b.c; x="y%20z"; =; a',
      'error "exact phrase" time* -x',
      'severity>=warning (host:web-1 OR user.id:4*) -has:trace 10.0.0.9 message:/a b/ count:2..5 new:1h id:7 日本',
      '%F0%9F%98%80/%zz/%00',
      'Fri, 21 Nov 2026 09:28:19 GMT',
      '[ERROR] boom',
    ],
    check: checkTexts,
  },
  {
    name: 'credentials',
    part: /\/build\/src\/api\/auth\/|\/ingest\/webhook\/signature/,
    runs: 750,
    seeds: [
      ACCESS,
      REFRESH,
      `Bearer ${ACCESS}`,
      'bearer   x.y.z  ',
      'https://logs.example',
      'https://dashboard.example',
      'null',
      '0'.repeat(64),
      `${Buffer.from('{"alg":"none"}').toString('base64url')}.${ACCESS.split('.')[1]}.`,
    ],
    tokens: [
      ...ACCESS.split('.'),
      ...REFRESH.split('.'),
      'Bearer ',
      'https://',
      'logs.example',
      '@',
      ':443',
    ],
    check: checkCredentials,
  },
  {
    name: 'segment',
    part: /\/build\/src\/wal\/file/,
    runs: 750,
    seeds: [
      Buffer.concat([FRAME, FRAME, DONE]),
      Buffer.concat([FRAME.subarray(0, 30), FRAME, DONE]),
      '0000000001-303132333435363738396162.log',
    ],
    tokens: ['0123', FRAME.toString('latin1')],
    check: checkSegment,
  },
  {
    name: 'native',
    part: /\/build\/src\/clickhouse\/native-reader/,
    runs: 750,
    seeds: [nativeSeed(1), nativeSeed(7)],
    tokens: ['UInt64', 'UInt8', 'Enum8(', 'Float32', 'LowCardinality(String)', 'String'],
    check: checkNative,
  },
  {
    name: 'query',
    part: /\/build\/src\/query\//,
    runs: 1500,
    seeds: [
      'severity>=warning (source:checkout OR source:cart) priority:P1,P2 region:eu-* has:trace count>10 new:1h',
      'user.id:42 http.status:500..599 -has:user message:/timeout after \\d+ ms/ trace:4bf92f35',
      'NOT "a \\"b" /x[/]y\\/(?i)z{2,3}/ AND 10.0.0.9 "user id":"a,b" \\OR tag.host:x* id:1..5 a->b',
    ],
    tokens: [
      'OR',
      'AND',
      'NOT',
      '..',
      '>=',
      '<',
      ':',
      '"',
      '/',
      '\\',
      '*',
      '-',
      '(',
      ')',
      ',',
      'has:',
    ],
    check: checkQuery,
  },
  {
    name: 'mining',
    part: /\/build\/src\/templates\//,
    runs: 600,
    seeds: [
      'user bob logged in from 10.0.0.1\nuser eve logged in from 10.0.0.2\nuser x y logged in from 10.0.0.3\n' +
        'GET /a/b?c=d HTTP/1.1 200 12ms\nGET /e HTTP/1.1 500 7ms\nat 2026-11-21 09:28:19 done',
      'b9\ufeff\\',
      'a=1 b="x y" c=[1,2] {"k":"v"} C:\\x\\y fe80::1 b9000564-fe1a-409b-b8cc-1e88b294cd1d',
    ],
    check: checkMining,
  },
  ...listenerTargets(checkRecords),
  ...protocolTargets(checkRecords),
]
