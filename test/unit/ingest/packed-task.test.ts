import { NO_VERDICTS } from '../../../src/ingest/verdicts.js'
import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import t from 'tap'
import type { BlockTask, BodyResult, BodyTask, RowBlock } from '../../../src/ingest/block.js'
import { watchedMemory } from '../../support/pipeline.js'
import { packResult, packTask, unpackTask } from '../../../src/ingest/packed-task.js'

const KEYS = [null, ['a'], ['a', 'b']]
const NO_REPEATS: ReadonlySet<string> = new Set()

const body = (size: number | null, kind: number, isFirstTry: boolean): BodyTask => ({
  format: kind === 3 ? 'csv' : 'ingest',
  coding: kind === 2 ? 'gzip' : 'identity',
  bytes: size === null ? null : Uint8Array.from({ length: size }, (_, i) => i + kind),
  events: null,
  protocol: kind === 4 ? 'replay' : 'ingest',
  source: null,
  keyId: `key ${kind % 2}`,
  defaultSource: `source ${kind % 5}`,
  requestSource: `request ${kind % 5}`,
  params: '',
  isRepeat: kind === 6,
  deniesRecords: kind === 7,
  repeats: kind === 6 ? new Set(['id']) : NO_REPEATS,
  allowedSources: KEYS[kind % KEYS.length] ?? null,
  keepRaw: kind !== 5,
  maxRows: 10,
  timeZone: kind === 3 ? 'Asia/Tokyo' : null,
  verdicts: isFirstTry ? NO_VERDICTS : { named: new Map([['a', 'drop']]), others: 'store' },
})

const task = (bodies: readonly BodyTask[]): BlockTask => ({
  bodies,
  environment: 'test',
  timeZone: 'UTC',
  maxMessageBytes: 100,
  modelVersion: 'm',
})

const result = (kind: number): BodyResult => ({
  received: kind + 3,
  accepted: kind,
  rejected: kind === 1 ? 1 : 0,
  dropped: 2,
  bytes: kind * 10,
  ms: kind / 8,
  ids: kind === 3 ? ['id'] : [],
  span: kind === 4 ? { fromMs: 7, toMs: 9 } : null,
  errors: kind === 1 ? [{ line: 1, code: 'invalid_json', message: 'no' }] : [],
  sources: ['x', 'y', 'z'].slice(0, kind % 3),
  refusal: kind === 4 ? { code: 'validation_error', message: 'no' } : null,
  reply: kind === 2 ? { pieces: ['{', '}'], order: Uint32Array.of(0, 1) } : null,
})

const bodies = fc.array(
  fc
    .tuple(
      fc.oneof(fc.constant(null), fc.nat(40), fc.constantFrom(16_384, 16_385, 70_000)),
      fc.nat(6),
      fc.boolean(),
    )
    .map(([size, kind, isFirstTry]) => body(size, kind, isFirstTry)),
  { maxLength: 40 },
)

const copyOf = (sent: readonly BodyTask[]): BodyTask[] =>
  sent.map((each) => ({ ...each, bytes: each.bytes?.slice(0) ?? null }))

t.test('unpacking returns the task and the result that were packed', async (t) => {
  fc.assert(
    fc.property(bodies, fc.array(fc.nat(5), { minLength: 40, maxLength: 40 }), (sent, kinds) => {
      const before = copyOf(sent)
      const memory = watchedMemory(t)
      const parcel = packTask(task(sent), memory, 100_000)
      // A worker gets a copy of everything but shared memory.
      const there = structuredClone(parcel.packed)
      const unpacked = unpackTask(there)
      t.ok(isDeepStrictEqual(unpacked, task(before)))
      const results = sent.map((_, i) => result(kinds[i] ?? 0))
      const packed = packResult(
        { block: null, dead: null, receivedAtMs: 0, bodies: results },
        there,
      )
      const { bodies: got } = parcel.unpack(structuredClone(packed))
      parcel.release()
      t.strictSame(got, results)
      t.ok(isDeepStrictEqual(task(sent), task(before)), 'every body can be sent again')
      t.equal(memory.bufferPool.inUse.size, 0)
      t.equal(memory.blockPool.inUse.size, 0)
    }),
    { numRuns: 200 },
  )
})

t.test('small bodies of one key share a buffer', async (t) => {
  const many = Array.from({ length: 300 }, () => body(200, 0, true))
  const memory = watchedMemory(t)
  const { inUse } = memory.bufferPool
  const { packed, release } = packTask(task([...many, body(50_000, 0, true), ...many]), memory, 0)
  t.equal(packed.runs.length, 3)
  t.equal(inUse.size, 3)
  release()
  t.equal(inUse.size, 0)
})

t.test('the slice for a block is released unless the block lies in it', async (t) => {
  const memory = watchedMemory(t)
  const { inUse } = memory.blockPool
  const send = () => packTask(task([body(1000, 0, true)]), memory, 70_000)
  const none = packResult(
    { block: null, dead: null, receivedAtMs: 0, bodies: [result(0)] },
    { slice: null },
  )
  for (const isRetained of [false, true]) {
    const { packed, unpack, release } = send()
    t.ok((packed.slice?.bytes ?? 0) >= 70_000)
    const { buffer = new ArrayBuffer(0), at } = packed.slice ?? {}
    const block = { ...BLOCK, bytes: new Uint8Array(buffer, at, 500) }
    const got = unpack({ ...none, block, isSliceUsed: true })
    release()
    t.equal(inUse.size, 1, 'the slice is in use')
    if (isRetained) got.retain()
    t.equal(inUse.size, 1, 'retained or not')
    got.release()
    t.equal(inUse.size, 0)
    t.throws(() => got.release(), { message: 'bug' }, 'a slice is released once')
  }
  const unused = send()
  unused.unpack(none)
  unused.release()
  send().release()
  t.equal(inUse.size, 0, 'the slice of a worker that made no block, or died, is released')
})

const BLOCK: RowBlock = {
  bytes: new Uint8Array(0),
  rows: 0,
  at: {
    id: 0,
    keptDays: 0,
    isNew: 0,
    priority: 0,
    prioritySource: 0,
    confidence: 0,
    templateId: 0,
  },
  hashes: new Int32Array(0),
  tsMs: new Float64Array(0),
  counts: new Int32Array(0),
  severities: new Uint8Array(0),
  sourceIndexes: new Uint32Array(0),
  templateNos: new Int32Array(0),
  sources: [],
  misses: null,
  occurrences: new Uint32Array(0),
  attributesLeftOut: 0,
}
