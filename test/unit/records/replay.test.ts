import { array, assert, asyncProperty, constantFrom, integer, record } from 'fast-check'
import { test } from 'tap'
import type { DeadLetter } from '../../../src/model/dead-letter.js'
import {
  MAX_REPLAYED,
  createReplay,
  noReplayClaims,
  type ReplayOutcome,
} from '../../../src/records/replay.js'
import { AppError } from '../../../src/model/errors.js'

const letter = (id: number, raw = `{"n":${id}}`, source = 'web'): DeadLetter => ({
  id,
  receivedAtMs: Math.floor(id / 3),
  protocol: 'ingest',
  source,
  keyId: '',
  reason: 'invalid_event',
  detail: '',
  line: 1,
  raw,
})
const any = { reasons: [], sources: [], after: null }
const never = new AbortController().signal

/**
 * A store and an ingestion that fulfil the contract of `resubmit`: what is stored or rejected and the
 * deletion of its letter are one step, which becomes visible with `settle`.
 */
function setUp(initial: readonly DeadLetter[], outcome: (line: string) => ReplayOutcome) {
  const deadLetters = new Map(initial.map((each) => [each.id, each]))
  const stored: string[] = []
  let unsettled: (() => void)[] = []
  let failIn = Infinity
  let nextId = 1_000_000
  const replay = createReplay({
    deadLetters: {
      page: async ({ after, limit, sources }) =>
        [...deadLetters.values()]
          .filter(({ source }) => sources.length === 0 || sources.includes(source))
          .filter(
            (l) =>
              after === null ||
              l.receivedAtMs < after.receivedAtMs ||
              (l.receivedAtMs === after.receivedAtMs && l.id < after.id),
          )
          .toSorted((a, b) => b.receivedAtMs - a.receivedAtMs || b.id - a.id)
          .slice(0, limit),
      byIds: async (ids) => ids.flatMap((id) => deadLetters.get(id) ?? []),
    },
    resubmit: async (lines) => {
      const outcomes: ReplayOutcome[] = []
      for (const { id, line } of lines) {
        if (failIn-- <= 0) throw new AppError('overloaded', 'no capacity')
        const found = outcome(line)
        outcomes.push(found)
        if (found === 'stored') stored.push(line)
        if (found === 'kept') continue
        unsettled.push(() => deadLetters.delete(id))
        if (found === 'rejected') {
          const again = { ...letter(nextId++, line), receivedAtMs: 1e12 }
          unsettled.push(() => deadLetters.set(again.id, again))
        }
      }
      return outcomes
    },
    claims: noReplayClaims,
    hasTexts: (protocol) => protocol === 'syslog',
    settle: async () => {
      for (const apply of unsettled) apply()
      unsettled = []
    },
    withLock: (_key, _ttlMs, work) => work(),
  })
  return {
    replay,
    deadLetters,
    stored,
    failAfter: (n: number) => {
      failIn = n
    },
  }
}

void test('what is stored is gone, what is refused again is listed anew, the rest stays', async (t) => {
  const { replay, deadLetters, stored } = setUp(
    [
      letter(1),
      letter(2, '{"bad":1}'),
      letter(3, '{"off":1}'),
      letter(4, ''),
      letter(5, 'no json'),
      letter(6, '[{"n":1}]'),
      letter(7, `{"m":"${'x'.repeat(64 * 1024)}`),
      { ...letter(8, '<13>Nov 21 09:28:19 web-1 shop: paid'), protocol: 'syslog' },
    ],
    (line) => (line.includes('bad') ? 'rejected' : line.includes('off') ? 'kept' : 'stored'),
  )
  const result = await replay.run({ kind: 'all', query: any }, never)
  t.strictSame(result, { replayed: 2, failed: 1, skipped: 5, position: null })
  t.strictSame(stored, ['<13>Nov 21 09:28:19 web-1 shop: paid', '{"n":1}'])
  t.strictSame([...deadLetters.keys()], [3, 4, 5, 6, 7, 1_000_000])
})

void test('ids choose the dead letters; a repeated or unknown id is no error', async (t) => {
  const { replay, deadLetters, stored } = setUp([letter(1), letter(2), letter(3)], () => 'stored')
  const result = await replay.run({ kind: 'ids', ids: [1, 3, 3, 99] }, never)
  t.strictSame(result, { replayed: 2, failed: 0, skipped: 1, position: null })
  t.strictSame(stored.toSorted(), ['{"n":1}', '{"n":3}'])
  t.strictSame([...deadLetters.keys()], [2])
})

void test('an edited record takes the place of what was sent', async (t) => {
  const { replay, deadLetters, stored } = setUp([letter(1, 'no json'), letter(2)], () => 'stored')
  const edits = new Map([[1, '{"mended":1}']])
  const result = await replay.run({ kind: 'ids', ids: [1, 2], edits }, never)
  t.strictSame(result, { replayed: 2, failed: 0, skipped: 0, position: null })
  t.strictSame(stored, ['{"mended":1}', '{"n":2}'])
  t.equal(deadLetters.size, 0)
})

void test('a record on several lines is sent on one', async (t) => {
  const { replay, stored } = setUp([letter(1, '{\r\n  "a": 1\n}\n')], () => 'stored')
  await replay.run({ kind: 'ids', ids: [1] }, never)
  t.equal(stored.length, 1)
  t.strictSame(JSON.parse(stored[0] ?? ''), { a: 1 })
  t.notMatch(stored[0], /[\r\n]/)
})

void test('a call is bounded, and its position goes on without meeting what failed again', async (t) => {
  const count = MAX_REPLAYED + 700
  const all = Array.from({ length: count }, (_, i) => letter(i + 1))
  const { replay } = setUp(all, () => 'rejected')
  const first = await replay.run({ kind: 'all', query: any }, never)
  t.match(first, { replayed: 0, failed: MAX_REPLAYED, skipped: 0 })
  const query = { ...any, after: first.position }
  const rest = await replay.run({ kind: 'all', query }, never)
  t.match(rest, { failed: 700, position: null })
})

void test('a client that leaves stops the replay between chunks', async (t) => {
  const { replay, deadLetters } = setUp([letter(1)], () => 'stored')
  const left = AbortSignal.abort(new Error('left'))
  await t.rejects(replay.run({ kind: 'all', query: any }, left), { message: 'left' })
  t.equal(deadLetters.size, 1)
})

void test('whatever fails midway, repeating loses and doubles nothing', async () => {
  const scene = record({
    count: integer({ min: 0, max: 700 }),
    failures: array(integer({ min: 0, max: 400 }), { maxLength: 4 }),
    kind: constantFrom('ids', 'all'),
  })
  await assert(
    asyncProperty(scene, async ({ count, failures, kind }) => {
      const all = Array.from({ length: count }, (_, i) => letter(i + 1))
      const { replay, deadLetters, stored, failAfter } = setUp(all, () => 'stored')
      const ids = all.map(({ id }) => id)
      const request =
        kind === 'ids' ? ({ kind: 'ids', ids } as const) : ({ kind: 'all', query: any } as const)
      for (const n of failures) {
        failAfter(n)
        await replay.run(request, never).catch(() => undefined)
      }
      failAfter(Infinity)
      await replay.run(request, never)
      return deadLetters.size === 0 && stored.length === count && new Set(stored).size === count
    }),
    { numRuns: 30 },
  )
})
