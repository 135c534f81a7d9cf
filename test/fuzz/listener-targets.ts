import { RecordBatch } from '../../src/ingest/record-batch.js'
import type { Framing } from '../../src/ingest/record-batch.js'
import { SyslogFraming } from '../../src/ingest/protocols/syslog/framing.js'
import { decodeSyslog } from '../../src/ingest/protocols/syslog/syslog.js'
import { collect, type Collected, ingestContext } from '../unit/ingest/formats/collect.js'
import type { DecodeContext, EventSink } from '../../src/model/event.js'
import type { Target } from './fuzz.js'

const MESSAGE_BYTES = 4096
const FRAME_BYTES = 5000
const CONTEXT: DecodeContext = { ...ingestContext, maxMessageBytes: MESSAGE_BYTES }

type Check = (got: Collected, received: number, maxMessageBytes: number) => void

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

/** How a stream is cut into chunks does not matter, and each record becomes an event or a rejection. */
const checkStream =
  ({ framing, parse }: FramedTarget, check: Check) =>
  (input: Buffer): void => {
    const whole = batchOf(input, Math.max(1, input.length), framing(FRAME_BYTES))
    const { records } = whole
    const body = whole.take()
    const pieces = batchOf(input, 1 + ((input[0] ?? 0) % 7), framing(FRAME_BYTES)).take()
    if (!body.equals(pieces)) throw new Error('broken: chunks change the records')
    const got = collect()
    parse(body, CONTEXT, got)
    check(got, records, MESSAGE_BYTES)
    // Bytes that are no batch harm nobody.
    parse(input, CONTEXT, collect())
  }

/** @param check what every record must be */
export const listenerTargets = (check: Check): readonly Target[] => [
  {
    name: 'syslog',
    part: /\/build\/src\/ingest\/(?:protocols\/syslog|record-batch|formats\/text)/,
    runs: 2000,
    seeds: [
      '<34>1 2026-11-21T09:28:19.003Z host app 123 ID47 [x@1 a="b"] message\n<35>Nov 21 09:28:19 h tag[1]: two\n at x\n',
      '56 <34>1 2026-11-21T09:28:19Z h a - - - {"msg":"json","k":1}24 <35>checkout: @cee: {"a":',
      '<14>python: one\0<14>two\nlines\0{"message":"plain"}\n2026-11-21 09:28:19 ERROR plain text\n',
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
]
