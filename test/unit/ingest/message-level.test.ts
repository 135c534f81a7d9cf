import { test } from 'tap'

import type { BodyTask } from '../../../src/ingest/block.js'
import { SEVERITIES } from '../../../src/model/event.js'
import { bytesOf, createEncoder, encode } from './encode-bodies.js'

/** What programs log in JSON, with levels that other words precede, or that are numbers. */
const LINES: readonly (readonly [line: string, severity: string])[] = [
  ['{"msg":"the order was not paid in time","level":"error"}', 'ERROR'],
  ['{"level":50,"time":1795252405334,"pid":7,"msg":"no money"}', 'ERROR'],
  ['{"message":"the disk of db-1 is nearly full","levelname":"WARNING"}', 'WARNING'],
  ['{"log":{"level":"fatal"},"message":"the end of all of it"}', 'CRITICAL'],
  ['{"@t":"2026-11-21T09:28:19Z","@mt":"paid by {card}","@l":"Debug"}', 'DEBUG'],
  ['{"method":"GET","url":"/cart","status":503}', 'ERROR'],
  ['{"msg":"an \\"level\\":\\"error\\" in a text of a program"}', 'INFO'],
  ['{"msg":"cut off here, so it is no JSON","level":"error"', 'INFO'],
  ['{level} ERROR is no JSON', 'ERROR'],
]

const MESSAGES = LINES.map(([line]) => line)
const BODIES: readonly Partial<BodyTask>[] = [
  {
    format: 'ingest',
    bytes: bytesOf(MESSAGES.map((message) => JSON.stringify({ message })).join('\n')),
  },
  {
    format: 'otlp/logs',
    protocol: 'otlp',
    bytes: bytesOf(
      JSON.stringify({
        resourceLogs: [
          {
            scopeLogs: [{ logRecords: MESSAGES.map((text) => ({ body: { stringValue: text } })) }],
          },
        ],
      }),
    ),
  },
  {
    format: 'elasticsearch/bulk',
    protocol: 'elasticsearch',
    bytes: bytesOf(
      MESSAGES.map((message) => `{"create":{}}\n${JSON.stringify({ message })}\n`).join(''),
    ),
  },
]

void test('a message in JSON without a level of its record has that of its members', async (t) => {
  for (const body of BODIES) {
    const { block } = await encode(createEncoder({ isDeduplicated: false }), [body])
    const severities = [...(block?.severities ?? [])].map((index) => SEVERITIES[index])
    t.same(
      severities,
      LINES.map(([, severity]) => severity),
      String(body.format),
    )
  }
})
