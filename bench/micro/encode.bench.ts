import { bench, do_not_optimize, run } from 'mitata'
import { maySourceBe, readLevelWord, typeIndex } from '../../src/collector/line-words.js'
import { sourceSeed } from '../../src/mining/scan.js'
import { BlockEncoder } from '../../src/pipeline/block-encoder.js'
import { BodyEncoder } from '../../src/pipeline/body-encoder.js'
import { DeadLetterEncoder } from '../../src/pipeline/dead-letter-encoder.js'
import type { BlockTask } from '../../src/pipeline/block.js'
import { Corpus } from '../data/corpus.js'

/**
 * One worker thread's whole work on bodies of generated events whose templates are known; and of its parts
 * beside it.
 */
const EVENTS = 40_000
const nowMs = Date.now()
const corpus = new Corpus({
  seed: 1,
  events: EVENTS,
  startMs: nowMs - 3_600_000,
  spanMs: 3_600_000,
  sources: 16,
})
const bodies: Buffer[] = []
for (let body = corpus.block(1024 * 1024); body !== null; body = corpus.block(1024 * 1024))
  bodies.push(Buffer.from(body.bytes))

const block = new BlockEncoder(
  {
    maySourceBe,
    typeIndex,
    readLevelWord,
    levelAtHead: () => 1,
    sourceSeed,
    templateNo: () => 1,
    skeleton: () => new Uint8Array(0),
  },
  Int32Array.of(1, 2, 3, 4),
)
const encoder = new BodyEncoder({ block, dead: new DeadLetterEncoder() })

const tasks = bodies.map((bytes): BlockTask => ({
  bodies: [
    {
      format: 'ingest',
      bytes: Uint8Array.from(bytes),
      events: null,
      protocol: 'ingest',
      source: null,
      allowedSources: null,
      keepRaw: true,
      maxRows: 500_000,
      verdicts: {},
    },
  ],
  environment: 'production',
  maxMessageBytes: 262_144,
  modelVersion: 'm1',
}))

let rows = 0
bench(`${EVENTS} events: bytes to block`, async () => {
  for (const task of tasks) {
    const result = await encoder.encode(task, nowMs)
    rows += result.bodies[0]?.accepted ?? 0
    do_not_optimize(result)
  }
})

bench(`${EVENTS} events: JSON.parse alone`, () => {
  for (const bytes of bodies)
    for (const line of bytes.toString('latin1').trimEnd().split('\n'))
      do_not_optimize(JSON.parse(line))
})

await run()
if (rows === 0) throw new Error('bug: nothing was encoded')
