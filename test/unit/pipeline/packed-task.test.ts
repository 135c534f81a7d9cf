import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import t from 'tap'
import type { BlockTask, BodyResult, BodyTask } from '../../../src/pipeline/block.js'
import { packResult, packTask, unpackTask } from '../../../src/pipeline/packed-task.js'

const KEYS = [null, ['a'], ['a', 'b']]
const NO_VERDICTS = {}

const body = (size: number | null, kind: number, isFirstTry: boolean): BodyTask => ({
  format: kind === 3 ? 'csv' : 'ingest',
  bytes: size === null ? null : Uint8Array.from({ length: size }, (_, i) => i + kind),
  events: null,
  protocol: kind === 4 ? 'replay' : 'ingest',
  source: null,
  allowedSources: KEYS[kind % KEYS.length] ?? null,
  keepRaw: kind !== 5,
  maxRows: 10,
  verdicts: isFirstTry ? NO_VERDICTS : { a: 'drop' },
})

const task = (bodies: readonly BodyTask[]): BlockTask => ({
  bodies,
  environment: 'test',
  maxMessageBytes: 100,
  modelVersion: 'm',
})

const result = (kind: number): BodyResult => ({
  received: kind + 3,
  accepted: kind,
  rejected: kind === 1 ? 1 : 0,
  dropped: 2,
  errors: kind === 1 ? [{ line: 1, code: 'invalid_json', message: 'no' }] : [],
  sources: ['x', 'y', 'z'].slice(0, kind % 3),
  refusal: kind === 4 ? { code: 'validation_error', message: 'no' } : null,
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

t.test('a task comes out of its parcel as it went in, and so does the result', async (t) => {
  fc.assert(
    fc.property(bodies, fc.array(fc.nat(5), { minLength: 40, maxLength: 40 }), (sent, kinds) => {
      const before = copyOf(sent)
      const parcel = packTask(task(sent))
      // as a worker gets it: buffers move, the rest is copied
      const there = structuredClone(parcel.packed, { transfer: parcel.moved })
      const unpacked = unpackTask(there)
      t.ok(isDeepStrictEqual(unpacked, task(before)))
      const results = sent.map((_, i) => result(kinds[i] ?? 0))
      const packed = packResult({ block: null, dead: null, bodies: results }, there)
      const back = structuredClone(packed, {
        transfer: packed.returned.map(({ buffer }) => buffer),
      })
      const { bodies: got, returned } = parcel.unpack(back)
      t.strictSame(got, results)
      const again = before.map(({ bytes }) => bytes)
      t.ok(isDeepStrictEqual(returned, again), 'every body can be sent again')
    }),
    { numRuns: 200 },
  )
})

t.test('small bodies of one key cross in one buffer', async (t) => {
  const many = Array.from({ length: 300 }, () => body(200, 0, true))
  const { packed, moved } = packTask(task([...many, body(50_000, 0, true), ...many]))
  t.equal(packed.runs.length, 3)
  t.equal(moved.length, 3)
})
