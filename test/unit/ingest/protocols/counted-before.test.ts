/** What JSON.parse gets was counted before, in whatever part of a body it is: many small values take 100 times the memory of their text. */
import { test } from 'tap'
import type { ProtocolFormat } from '../../../../src/ingest/block.js'
import { measure } from '../../../../src/ingest/formats/json-size.js'
import { decodeUpload } from '../../../../src/ingest/formats/upload.js'
import { loaderOf, parserOf, PROTOCOLS } from '../../../../src/ingest/protocols/table.js'
import { RecordBatch } from '../../../../src/ingest/record-batch.js'
import { collect, ingestContext, uploadContext } from '../formats/collect.js'

/** The most values that any JSON.parse got since the last call. */
let most = 0
const { parse } = JSON
JSON.parse = (text: string, ...rest: []): unknown => {
  const bytes = Buffer.from(text)
  if (bytes.length > 2 * most) most = Math.max(most, measure(bytes, 0, bytes.length).values)
  return parse(text, ...rest)
}
const mostParsed = async (run: () => unknown): Promise<number> => {
  most = 0
  try {
    await run()
  } catch {
    // A body may be refused as a whole.
  }
  return most
}

/** Of one record, as JSON within a text too; and of one request. */
const [RECORD, REQUEST] = [50_000, 2_000_000]
const list = (length: number): string => `[${'{},'.repeat(length)}{}]`

/** Bodies with a text in every member that may hold JSON. */
function bodiesAround(inside: string): readonly string[] {
  const names =
    'message log msg body event attributes tags fields labels short_message full_message rawstring MESSAGE @mt @m'
  const records = names.split(' ').map((name) => ({ source: 'a', [name]: inside }))
  const otlp = {
    resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: inside } }] }] }],
  }
  const values = [
    ['1700000000000000000', inside],
    ['1700000000000000000', `a text ${inside}`],
  ]
  return [
    ...[...records, otlp, { streams: [{ stream: { app: 'a' }, values }] }].flatMap((one) => [
      JSON.stringify(one),
      JSON.stringify([one]),
      `{"index":{}}\n${JSON.stringify(one)}\n`,
    ]),
    JSON.stringify([{ logs: records, events: records, messages: [inside] }]),
    `a text\n${inside}`,
    `<13>1 2026-11-21T12:00:00Z host app - - - ${inside}`,
    `<13>Nov 21 12:00:00 host app: @cee:${inside}`,
    `MESSAGE=${inside}\n\n`,
    `message,tags\nx,"${inside.replaceAll('"', '""')}"`,
  ]
}

const context = { ...ingestContext, maxRows: 10_000 }
const inside = `{"message":"x","a":${list(RECORD + 10_000)}}`
const large = list(REQUEST + 100_000)
const wholes = [
  large,
  `{"a":${large}}`,
  `{"source":"a","message":"m","x":${large}}`,
  `{"index":${large}}\n{}`,
]

const formats = PROTOCOLS.flatMap(({ parsers }) => Object.keys(parsers)) as ProtocolFormat[]

/** A body as records of a listener's batch, where the format has such. */
function inBatch(format: ProtocolFormat, body: Buffer): Buffer {
  if (!/^(?:gelf|lines|syslog)\/(?:batch|messages)$/.test(format)) return body
  const batch = new RecordBatch('192.0.2.1')
  batch.record(body, 0, body.length, false)
  return batch.take()
}

for (const format of formats)
  test(format, async (t) => {
    await loaderOf(format)?.()
    const parsed = (body: string): Promise<number> =>
      mostParsed(() => parserOf(format)(inBatch(format, Buffer.from(body)), context, collect()))
    for (const body of bodiesAround(inside))
      t.ok((await parsed(body)) <= RECORD, `a text within ${body.slice(0, 60)}`)
    for (const body of wholes) t.ok((await parsed(body)) <= REQUEST, body.slice(0, 30))
  })

test('files', async (t) => {
  for (const type of ['json', 'csv', 'txt'] as const)
    for (const body of [...bodiesAround(inside), ...wholes]) {
      const parsed = await mostParsed(() =>
        decodeUpload(type, Buffer.from(body), uploadContext, collect()),
      )
      t.ok(parsed <= REQUEST, `${type}: ${body.slice(0, 60)}`)
    }
})
