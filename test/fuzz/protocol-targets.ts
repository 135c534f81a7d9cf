import { isDeepStrictEqual } from 'node:util'
import { encode } from '@msgpack/msgpack'
import type { ProtocolFormat } from '../../src/ingest/block.js'
import { replyBytes } from '../../src/ingest/reply-text.js'
import { PROTOCOLS, parserOf } from '../../src/ingest/protocols/table.js'
import { AppError } from '../../src/model/errors.js'
import type { DecodeContext } from '../../src/model/event.js'
import { lokiPush, protobufLogs, snappyBlock } from '../support/protobuf.js'
import { createEncoders, readBothWays } from '../unit/ingest/encode-bodies.js'
import { collect, type Collected, ingestContext, NOW } from '../unit/ingest/formats/collect.js'
import type { Target } from './fuzz.js'

const MESSAGE_BYTES = 4096
const CONTEXT: DecodeContext = {
  ...ingestContext,
  maxMessageBytes: MESSAGE_BYTES,
  maxRows: 1000,
  params: 'index=shop-2026.11.21&host=h&sourcetype=s&stream=x&ddtags=a:b',
}
/** What a body is refused with as a whole. */
const REFUSALS = ['bad_request', 'file_parse_error', 'body_too_large', 'validation_error']

const LABELS = '{app="shop", level="warn", env=`test`}'
const BULK =
  '{"index":{"_index":"a","_id":"1"},"attempts":0}\n{"@timestamp":"2026-11-21T09:28:19Z","message":"m","log":{"level":"warn"}}\n' +
  '{"create":{}}\n{"msg":"tab\there"}\n{"delete":{"_id":"1"}}\n{"update":{"_id":"2"}}\n{"doc":{"message":"x"}}\n'
const OTLP_JSON = (item: string, list: string): string =>
  `{"resource${item}":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"a"}}]},` +
  `"scope${item}":[{"scope":{"name":"s"},"${list}":[{"timeUnixNano":"${NOW}000000","startTimeUnixNano":"${NOW}000000",` +
  `"endTimeUnixNano":${NOW}000001,"name":"n","severityNumber":9,"body":{"kvlistValue":{"values":[{"key":"k","value":{"intValue":"9"}}]}},` +
  `"traceId":"5b8efff798038103d269b633813fc60c","status":{"code":2},"events":[{"name":"e"}],"gauge":{"dataPoints":[{"asInt":"1"}]},` +
  '"exponentialHistogram":{"dataPoints":[{"scale":1,"positive":{"offset":1,"bucketCounts":["1"]}}]}}]}]}]}'

const SEEDS: Readonly<Record<string, readonly (string | Uint8Array)[]>> = {
  'otlp/logs': [protobufLogs(), OTLP_JSON('Logs', 'logRecords')],
  'otlp/traces': [protobufLogs(), OTLP_JSON('Spans', 'spans')],
  'otlp/metrics': [protobufLogs(), OTLP_JSON('Metrics', 'metrics')],
  'elasticsearch/bulk': [BULK, '{"index":{}}', '{"index":{}}\n\n'],
  'elasticsearch/document': ['{"message":"m","level":30}', '[]'],
  'loki/push': [
    snappyBlock(lokiPush(LABELS, [{ timeMs: NOW, line: 'plain', metadata: { trace_id: 'a1' } }])),
    lokiPush(LABELS, [{ timeMs: NOW, line: '{"msg":"json","level":50}' }]),
    `{"streams":[{"stream":{"job":"a"},"values":[["${NOW}000000","level=error msg=\\"x y\\"",{"k":"v"}],["1","m {\\"a\\":1}"]]}]}`,
  ],
  'splunk/event': [
    '{"time":"1795252405.334","host":"h","event":"e"}{"event":{"message":{"msg":"m"},"severity":"warn"},"fields":{"a":"b"}}',
    '{"event":""}{}',
  ],
  'splunk/raw': ['2026-11-21 09:28:19 ERROR raw\n at x\nplain'],
  'datadog/logs': [
    '[{"message":"m","status":"warn","ddtags":"env:a,b:c","timestamp":1795252405334}]',
    '{}',
  ],
  'better-stack/logs': [
    encode([{ dt: new Date(NOW), message: 'm', level: 'warn' }]),
    encode([[NOW / 1000, {}], { log: 'x' }]),
    '{"message":"json"}',
  ],
  'journal/export': [
    `__CURSOR=s=1\n__REALTIME_TIMESTAMP=${NOW}000\nMESSAGE\n\u0003\0\0\0\0\0\0\0a\nb\nPRIORITY=3\n\n`,
  ],
  'gelf/messages': [
    '{"version":"1.1","host":"h","short_message":"m","level":3,"_app":"a"}\0{"short_message":"n"}',
  ],
  'new-relic/logs': [
    '[{"common":{"attributes":{"service":"a"}},"logs":[{"timestamp":1,"message":"m","attributes":{}}]}]',
  ],
  'logscale/events': [
    `[{"tags":{"host":"h"},"events":[{"timestamp":"2026-11-21T09:28:19Z","attributes":{"a":1},"rawstring":"r"}]}]`,
    '[{"fields":{"host":"h"},"messages":["one","two"]}]',
  ],
  'openobserve/json': ['[{"_timestamp":1795252405334000,"log":"m"}]'],
  'seq/clef': [
    '{"@t":"2026-11-21T09:28:19Z","@mt":"Hi {Name}","Name":"x","@l":"Warning"}',
    '{"Events":[{"Timestamp":"2026-11-21T09:28:19Z","Level":"Warning","MessageTemplate":"Hi {Name}","Properties":{"Name":"x"}}]}',
  ],
}

const ENCODERS = createEncoders()

type Check = (got: Collected, received: number, maxMessageBytes: number) => void

function checkBody(format: ProtocolFormat, input: Buffer, check: Check): void {
  const got = collect()
  try {
    const write = parserOf(format)(input, CONTEXT, got)
    const errors = got.rejects.map(({ line, reason, message }) => ({ line, code: reason, message }))
    const reply = write?.(errors) ?? null
    if (reply !== null) JSON.parse(replyBytes(reply).toString())
  } catch (error) {
    if (error instanceof AppError && REFUSALS.includes(error.code)) return
    throw error
  }
  const [objects, taken] = readBothWays(ENCODERS, (sink, taker) => {
    parserOf(format)(input, CONTEXT, sink, taker)
  })
  if (!isDeepStrictEqual(taken, objects))
    throw new Error('broken: records that are read without objects mean something else')
  check(got, got.events.length + got.rejects.length, MESSAGE_BYTES)
}

/** Every format of a protocol on the collector's port. @param check what every record must be */
export const protocolTargets = (check: Check): readonly Target[] =>
  PROTOCOLS.flatMap(({ parsers }) => Object.keys(parsers) as ProtocolFormat[])
    .filter((format) => Object.hasOwn(SEEDS, format))
    .map((format) => ({
      name: format.replace('/', '-'),
      part: /\/build\/src\/(?:ingest\/protocols|http\/snappy)/,
      runs: 300,
      seeds: (SEEDS[format] ?? []).map((seed) =>
        typeof seed === 'string' ? seed : Buffer.from(seed),
      ),
      tokens: ['{"index":{}}\n', '"\\ud800"', '\0', '{"event":1}', '\n\n', 'a=b '],
      check: (input) => checkBody(format, input, check),
    }))
