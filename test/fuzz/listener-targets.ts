import { isDeepStrictEqual } from 'node:util'
import { deflateSync, gzipSync } from 'node:zlib'
import { encode } from '@msgpack/msgpack'
import { readBatch, RecordBatch } from '../../src/ingest/record-batch.js'
import type { Framing } from '../../src/ingest/record-batch.js'
import { SyslogFraming } from '../../src/ingest/protocols/syslog/framing.js'
import { decodeSyslog } from '../../src/ingest/protocols/syslog/syslog.js'
import { DelimitedFraming } from '../../src/ingest/protocols/delimited.js'
import { forward } from '../../src/ingest/protocols/forward/forward.js'
import { MessageFraming } from '../../src/ingest/protocols/forward/framing.js'
import { createHandshake } from '../../src/ingest/protocols/forward/handshake.js'
import { GelfChunks } from '../../src/ingest/protocols/gelf/chunks.js'
import { decodeGelfBatch } from '../../src/ingest/protocols/gelf/batch.js'
import { JournalEntries } from '../../src/ingest/protocols/journal/entries.js'
import { decodeLines } from '../../src/ingest/protocols/lines.js'
import { readGrpcMessage, writeGrpcMessage } from '../../src/ingest/protocols/otlp/grpc.js'
import { AppError } from '../../src/model/errors.js'
import { collect, type Collected, ingestContext } from '../unit/ingest/formats/collect.js'
import type { DecodeContext, EventSink } from '../../src/model/event.js'
import type { Target } from './fuzz.js'

const MESSAGE_BYTES = 4096
const FRAME_BYTES = 5000
const CONTEXT: DecodeContext = { ...ingestContext, maxMessageBytes: MESSAGE_BYTES }

type Check = (got: Collected, received: number, maxMessageBytes: number) => void

/** The entries of a stream that comes in chunks, or that it is none. */
function splitJournal(stream: Buffer, chunkBytes: number): string {
  const split = new JournalEntries()
  const parts: Buffer[] = []
  try {
    for (let at = 0; at < stream.length; at += chunkBytes) {
      split.push(stream.subarray(at, at + chunkBytes))
      parts.push(split.take())
    }
  } catch (error) {
    if (error instanceof AppError && error.code === 'bad_request') return 'refused'
    throw error
  }
  return Buffer.concat([...parts, split.end()]).toString('latin1')
}

interface FramedTarget {
  readonly name: string
  readonly framing: (maxBytes: number) => Framing
  readonly parse: (body: Buffer, context: DecodeContext, sink: EventSink) => void
}

/** A batch of the records that a framing finds in a stream that comes in chunks. */
function batchOf(stream: Buffer, chunkBytes: number, framing: Framing): RecordBatch {
  const batch = new RecordBatch('10.0.0.7')
  for (let at = 0; at < stream.length; at += chunkBytes) {
    // A chunk of the network is not kept.
    const chunk = Buffer.from(stream.subarray(at, at + chunkBytes))
    framing.push(chunk, batch)
    if (framing.heldBytes > 0) chunk.fill(0xff)
    if (framing.heldBytes > FRAME_BYTES * 4 + chunkBytes * 4)
      throw new Error('broken: a framing holds more than its limit')
  }
  framing.end(batch)
  return batch
}

function recordsOf(body: Buffer): readonly unknown[] {
  const records: unknown[] = []
  readBatch(body).each((bytes, isCut) => records.push([Buffer.from(bytes), isCut]))
  return records
}

/** The lines that are not blank, each of which is a record or several. */
function linesIn(body: Buffer): number {
  let lines = 0
  readBatch(body).each((bytes, isCut) => {
    if (isCut || bytes.toString('utf8').trim() !== '') lines += 1
  })
  return lines
}

/** How a stream is cut into chunks does not matter, and each record becomes an event or a rejection. */
const checkStream =
  (
    { framing, parse }: FramedTarget,
    check: Check,
    mayBe: (got: number, body: Buffer) => boolean = (got, body) => got === readBatch(body).records,
  ) =>
  (input: Buffer): void => {
    const whole = batchOf(input, Math.max(1, input.length), framing(FRAME_BYTES))
    const body = whole.take()
    const pieces = batchOf(input, 1 + ((input[0] ?? 0) % 7), framing(FRAME_BYTES)).take()
    if (!isDeepStrictEqual(recordsOf(body), recordsOf(pieces)))
      throw new Error('broken: chunks change the records')
    const got = collect()
    parse(body, CONTEXT, got)
    const count = got.events.length + got.rejects.length
    if (!mayBe(count, body)) throw new Error('broken: a record is not accounted for')
    check(got, count, MESSAGE_BYTES)
    // Bytes that are no batch harm nobody.
    parse(input, CONTEXT, collect())
  }

/** @param check what every record must be */
export const listenerTargets = (check: Check): readonly Target[] => [
  {
    name: 'syslog',
    part: /\/build\/src\/ingest\/(?:protocols\/syslog|record-batch|formats\/text)/,
    runs: 1000,
    seeds: [
      '<34>1 2026-11-21T09:28:19.003Z host app 123 ID47 [x@1 a="b"] message\n<35>Nov 21 09:28:19 h tag[1]: two\n at x\n',
      '56 <34>1 2026-11-21T09:28:19Z h a - - - {"msg":"json","k":1}24 <35>checkout: @cee: {"a":',
      '<14>python: one\0<14>two\nlines\0{"message":"plain"}\n2026-11-21 09:28:19 ERROR plain text\n',
      '<134>1 2026-11-21T09:28:19.003456+01:00 h app 12 - - \uFEFFplain\n<13>Nov 21 09:28:19 h tag[12]: order 17 paid\n',
      '<30>2026-11-21T09:28:19.5Z h app: 10.0.0.1 - - [21/Nov/2026:09:28:19 +0000] "GET / HTTP/1.1" 200 2\n',
      '99999 <1>',
      '<1',
      '<1>',
      '7',
      '<999>x\n<0>\0',
    ],
    tokens: ['<34>1 ', '<13>', '\n', '\0', '12 <1>', 'Nov 21 09:28:19 ', '[a@1 b="c"]', '@cee: {'],
    check: checkStream(
      { name: 'syslog', framing: (max) => new SyslogFraming(max), parse: decodeSyslog },
      check,
    ),
  },
  {
    name: 'lines',
    part: /\/build\/src\/ingest\/protocols\/(?:lines|delimited)/,
    runs: 500,
    seeds: ['{"message":"a","level":"warn"}\nplain\r\n\n{"broken\n{"message":"\\ud800"}\n', '\n'],
    tokens: ['{"message":"', '"}\n', '"}{"a":"', '[{', '\r\n'],
    check: checkStream(
      { name: 'lines', framing: (max) => new DelimitedFraming(10, max), parse: decodeLines },
      check,
      (got, body) => got >= linesIn(body),
    ),
  },
  {
    name: 'journal-entries',
    part: /\/build\/src\/ingest\/protocols\/journal/,
    runs: 750,
    seeds: ['__CURSOR=1\nMESSAGE=a\n\nMESSAGE\n\u0002\0\0\0\0\0\0\0a\n\nPRIORITY=3\n\n'],
    tokens: ['\n\n', '=', '\0\0\0\0\0\0\0', '\n\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff'],
    check: (input) => {
      if (splitJournal(input, 7) !== splitJournal(input, input.length || 1))
        throw new Error('broken: entries depend on how they come')
    },
  },
  {
    name: 'gelf',
    part: /\/build\/src\/ingest\/protocols\/gelf/,
    runs: 750,
    seeds: [
      '{"version":"1.1","host":"h","short_message":"a","timestamp":1763717299.1,"level":3,"_app":"b"}\0{"short_message":',
      Buffer.concat([
        Buffer.from([0x1e, 0x0f, 1, 2, 3, 4, 5, 6, 7, 8, 0, 2]),
        Buffer.from('{"short_'),
      ]),
      Buffer.concat([
        gzipSync('{"short_message":"a"}'),
        Buffer.from('\0'),
        deflateSync('{"short_message":"a"}'),
      ]),
    ],
    check: (input) => {
      checkStream(
        { name: 'gelf', framing: (max) => new DelimitedFraming(0, max), parse: decodeGelfBatch },
        check,
        (got, body) => got <= readBatch(body).records,
      )(input)
      const chunks = new GelfChunks(() => 0)
      const batch = new RecordBatch('10.0.0.7')
      for (let at = 0; at < input.length; at += 20)
        chunks.take(input.subarray(at, at + 20), 'a', batch)
      if (batch.records > 0) decodeGelfBatch(batch.take(), CONTEXT, collect())
    },
  },
  {
    name: 'forward',
    part: /\/build\/src\/ingest\/protocols\/(?:forward|msgpack)/,
    runs: 1000,
    seeds: [
      encode(['tag', 1763717299, { message: 'a', level: 'info' }, { chunk: 'c' }]),
      encode([
        'tag',
        [
          [1763717299, { message: 'a' }],
          [[1763717299, {}], { message: 'b' }],
        ],
      ]),
      encode(['tag', encode([1763717299, { message: 'a' }]), { size: 1 }]),
      encode(['tag', gzipSync(encode([1763717299, { message: 'a' }])), { compressed: 'gzip' }]),
      encode(['PING', 'host', 'salt', '0'.repeat(128), '', '']),
    ],
    check: checkForward(check),
  },
  {
    name: 'grpc',
    part: /\/build\/src\/ingest\/protocols\/otlp\/grpc/,
    runs: 150,
    seeds: [writeGrpcMessage(Buffer.from('abc')), Buffer.from([1, 0, 0, 0, 0]), Buffer.alloc(0)],
    check: checkGrpc,
  },
]

/** What is one message is written back as it was; all else is refused. */
function checkGrpc(input: Buffer): void {
  try {
    const { bytes, coding } = readGrpcMessage(input, 'gzip')
    const again = writeGrpcMessage(bytes)
    again[0] = coding === 'identity' ? 0 : (input[0] ?? 0)
    if (!again.equals(input)) throw new Error('broken: the message is another one')
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'bad_request') throw error
  }
}

function checkForward(check: Check) {
  return (input: Buffer): void => {
    const messages = (size: number): Buffer[] => {
      const framing = new MessageFraming(FRAME_BYTES)
      const found: Buffer[] = []
      for (let at = 0; at < input.length; at += size) {
        const chunk = Buffer.from(input.subarray(at, at + size))
        if (framing.push(chunk, (message) => found.push(Buffer.from(message))) !== null) break
      }
      return found
    }
    const whole = messages(Math.max(1, input.length))
    if (!Buffer.concat(whole).equals(Buffer.concat(messages(1 + ((input[0] ?? 0) % 7)))))
      throw new Error('broken: chunks change the messages')
    const batch = new RecordBatch('10.0.0.7')
    for (const message of [...whole, input]) batch.record(message, 0, message.length, false)
    const got = collect()
    forward.parsers['forward/messages']?.(batch.take(), CONTEXT, got)
    check(got, got.events.length + got.rejects.length, MESSAGE_BYTES)
    const { isWelcome } = createHandshake(Buffer.from('nonce'), 'a shared key', 'h').check(input)
    if (isWelcome) throw new Error('broken: nobody knows the key by chance')
  }
}
