import { test } from 'tap'
import type { BodyResult } from '../../../src/ingest/block.js'
import { deletionOf, sumsOf } from '../../../src/ingest/submission.js'

const result = (
  sources: readonly string[],
  accepted: number,
  { rejected = 0, bytes = 1 } = {},
): BodyResult => ({
  received: accepted + rejected,
  accepted,
  rejected,
  dropped: 0,
  bytes,
  ms: 0,
  errors: [],
  sources,
  ids: [],
  span: null,
  refusal: null,
  reply: null,
})

const job = (protocol: string, replays: number | null = null) => ({
  submission: { protocol, replays },
})

void test('the counts of bodies with the same protocol and sources are summed', async (t) => {
  const [a, b] = [['a'], ['b']]
  const jobs = [job('ingest'), job('webhook'), job('ingest'), job('ingest')]
  const bodies = [
    result(a, 1, { bytes: 10 }),
    result(a, 2, { bytes: 20 }),
    result(b, 4, { rejected: 1, bytes: 30 }),
    result(a, 8, { bytes: 40 }),
  ]
  const totals = new Map<string, readonly number[]>()
  for (const { protocol, sources, ...sum } of sumsOf(jobs, bodies)) {
    const key = `${protocol} ${sources.join()}`
    const before = totals.get(key) ?? [0, 0, 0, 0]
    const now = [sum.received, sum.accepted, sum.rejected, sum.bytes]
    totals.set(
      key,
      now.map((n, i) => n + (before[i] ?? 0)),
    )
  }
  t.same(Object.fromEntries(totals), {
    'ingest a': [9, 9, 0, 50],
    'webhook a': [2, 2, 0, 20],
    'ingest b': [5, 4, 1, 30],
  })
  const alike = Array.from({ length: 500 }, () => job('ingest'))
  const sums = sumsOf(
    alike,
    alike.map((_, i) => result(i % 2 === 0 ? a : b, 1)),
  )
  t.equal(sums.length, 2)
})

void test('only messages that were stored or rejected again are removed from the dead letters', async (t) => {
  const jobs = [job('replay', 7), job('replay', 8), job('replay', 9), job('ingest')]
  const bodies = [result(['a'], 1), result([], 0), result([], 0, { rejected: 1 }), result(['a'], 1)]
  t.same(deletionOf(jobs, bodies), { kind: 'delete-dead-letters', ids: [7, 9] })
  t.equal(deletionOf(jobs.slice(3), bodies.slice(3)), null)
})
