import { test } from 'tap'
import type { BodyResult } from '../../../src/ingest/block.js'
import { deletionOf, sumsOf } from '../../../src/ingest/submission.js'

const result = (sources: readonly string[], accepted: number, rejected = 0): BodyResult => ({
  received: accepted + rejected,
  accepted,
  rejected,
  dropped: 0,
  errors: [],
  sources,
  refusal: null,
})

const job = (protocol: string, bytes: number, replays: number | null = null) => ({
  submission: { protocol, bytes: new Uint8Array(bytes), replays },
})

void test('the counts of bodies with the same protocol and sources are summed', async (t) => {
  const [a, b] = [['a'], ['b']]
  const jobs = [job('ingest', 10), job('webhook', 20), job('ingest', 30), job('ingest', 40)]
  const bodies = [result(a, 1), result(a, 2), result(b, 4, 1), result(a, 8)]
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
  const alike = Array.from({ length: 500 }, () => job('ingest', 1))
  const sums = sumsOf(
    alike,
    alike.map((_, i) => result(i % 2 === 0 ? a : b, 1)),
  )
  t.equal(sums.length, 2)
})

void test('only messages that were stored or rejected again are removed from the dead letters', async (t) => {
  const jobs = [job('replay', 1, 7), job('replay', 1, 8), job('replay', 1, 9), job('ingest', 1)]
  const bodies = [result(['a'], 1), result([], 0), result([], 0, 1), result(['a'], 1)]
  t.same(deletionOf(jobs, bodies), { kind: 'delete-dead-letters', ids: [7, 9] })
  t.equal(deletionOf(jobs.slice(3), bodies.slice(3)), null)
})
