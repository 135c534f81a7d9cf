import { NO_VERDICTS } from '../../src/ingest/verdicts.js'
import { bench, do_not_optimize, run } from 'mitata'
import { toConstantText } from '../../src/model/stored-message.js'
import { TemplateMiner } from '../../src/templates/miner.js'
import { SignatureCache } from '../../src/templates/signature-cache.js'
import { VALUE } from '../../src/templates/template-text.js'
import { BlockEncoder } from '../../src/ingest/block-encoder.js'
import { BodyEncoder } from '../../src/ingest/body-encoder.js'
import { DeadLetterEncoder } from '../../src/writer/dead-letter-encoder.js'
import type { BlockTask, RowBlock } from '../../src/ingest/block.js'
import { ConstantTexts } from '../../src/templates/constant-texts.js'
import { Corpus } from '../data/corpus.js'
import { HOUR_MS } from '../../src/model/time.js'

/** Time of a worker thread's work on bodies of generated events whose templates are known, beside that of JSON.parse. */
const EVENTS = 40_000
const nowMs = Date.now()
const corpus = new Corpus({
  seed: 1,
  events: EVENTS,
  startMs: nowMs - HOUR_MS,
  spanMs: HOUR_MS,
  sources: 16,
})
const bodies: Buffer[] = []
for (let body = corpus.block(1024 * 1024); body !== null; body = corpus.block(1024 * 1024))
  bodies.push(Buffer.from(body.bytes))

const signatures = SignatureCache.create(1 << 18)
const constantTexts = ConstantTexts.create()
const miner = new TemplateMiner()
const block = new BlockEncoder(
  {
    templateNo: (lo, hi) => signatures.get(lo, hi),
    templateGeneration: () => 0,
    constantText: (no) => constantTexts.get(no),
  },
  { seed: [1, 2, 3, 4], ignoredTags: [], isDeduplicated: true },
)
const encoder = new BodyEncoder({ block, dead: new DeadLetterEncoder() })

const toTask = (bytes: Uint8Array): BlockTask => ({
  bodies: [
    {
      format: 'ingest',
      bytes: Uint8Array.from(bytes),
      coding: 'identity',
      events: null,
      protocol: 'ingest',
      source: null,
      keyId: '',
      defaultSource: 'default',
      requestSource: '',
      params: '',
      isRepeat: false,
      deniesRecords: false,
      repeats: new Set<string>(),
      allowedSources: null,
      keepRaw: true,
      timeZone: null,
      maxRows: 500_000,
      verdicts: NO_VERDICTS,
    },
  ],
  timeZone: 'UTC',
  environment: 'production',
  maxMessageBytes: 262_144,
  modelVersion: 'm1',
})
const tasks = bodies.map(toTask)

/** One body of logs with attributes. */
function attributed(tagsOf: (i: number) => object): BlockTask {
  const lines = Array.from({ length: EVENTS }, (_, i) =>
    JSON.stringify({
      timestamp: new Date(nowMs).toISOString(),
      source: 'shop',
      severity: 'INFO',
      message: `request ${i} completed`,
      tags: tagsOf(i),
    }),
  )
  return toTask(Buffer.from(lines.join('\n')))
}

const flat = attributed((i) => ({
  method: 'GET',
  status: 200,
  path: `/a/${i % 100}`,
  ms: i,
  user: `u${i}`,
}))
const nested = attributed((i) => ({
  req: { id: i, method: 'GET', url: `/a/${i % 100}` },
  res: { statusCode: 200 },
  ms: i,
}))

/** Mines the unknown signatures of a block, as the miner's thread does. */
function learn({ misses, sources }: RowBlock): void {
  misses?.ends.forEach((end, i) => {
    const text = misses.bytes.subarray(misses.ends[i - 1] ?? 0, end)
    const no = miner.resolve(sources[misses.sourceIndexes[i] ?? 0] ?? '', text)
    signatures.put(misses.signatures[i * 2] ?? 0, misses.signatures[i * 2 + 1] ?? 0, no)
  })
  for (const { no, text } of miner.takeChanges())
    constantTexts.put(no, toConstantText(text.split(VALUE)))
}

// The texts of templates are final after the first round.
for (let round = 0; round < 2; round++) {
  for (const task of [...tasks, flat, nested]) {
    const result = await encoder.encode(task, nowMs)
    if (result.block !== null) learn(result.block)
  }
}

let rows = 0
bench(`${EVENTS} events: bytes to block`, async () => {
  for (const task of tasks) {
    const result = await encoder.encode(task, nowMs)
    rows += result.bodies[0]?.accepted ?? 0
    do_not_optimize(result)
  }
})

bench(`${EVENTS} events with five attributes`, async () => {
  do_not_optimize(await encoder.encode(flat, nowMs))
})

bench(`${EVENTS} events with attributes in objects, which are parsed`, async () => {
  do_not_optimize(await encoder.encode(nested, nowMs))
})

bench(`${EVENTS} events: JSON.parse alone`, () => {
  for (const bytes of bodies)
    for (const line of bytes.toString('latin1').trimEnd().split('\n'))
      do_not_optimize(JSON.parse(line))
})

await run()
if (rows === 0) throw new Error('bug: nothing was encoded')
