import { array, assert, constantFrom, property, record } from 'fast-check'
import { test } from 'tap'
import {
  NO_VERDICTS,
  verdictOf,
  withFound,
  type SourceVerdict,
} from '../../../src/ingest/verdicts.js'

const VERDICTS = ['store', 'drop', 'unknown_source', 'source_limit', 'key_source_limit'] as const

void test('every source of a body has the verdict that was found last', async () => {
  const one = constantFrom(...VERDICTS)
  const name = constantFrom('a', 'b', '__proto__', 'constructor', 'c', 'd', '')
  const round = array(record({ name, verdict: one }), { maxLength: 12 })
  assert(
    property(round, round, (first, second) => {
      const sources = [...new Set(first.map((each) => each.name))]
      const expected = new Map<string, (typeof VERDICTS)[number]>()
      let verdicts = NO_VERDICTS
      let stored = sources
      for (const findings of [first, second]) {
        const found = new Map<string, SourceVerdict>()
        for (const each of findings)
          if (each.verdict !== 'store' && stored.includes(each.name))
            found.set(each.name, each.verdict)
        verdicts = withFound(verdicts, stored, found)
        for (const source of stored) expected.set(source, found.get(source) ?? 'store')
        stored = stored.filter((source) => verdictOf(verdicts, source) === 'store')
      }
      return [...expected].every(([source, verdict]) => verdictOf(verdicts, source) === verdict)
    }),
  )
})

void test('what holds for most sources is said once', async (t) => {
  const sources = Array.from({ length: 50_000 }, (_, i) => `s-${i}`)
  const limited = new Map(sources.slice(10).map((name) => [name, 'key_source_limit'] as const))
  const beyond = withFound(NO_VERDICTS, sources, limited)
  t.equal(beyond.others, 'key_source_limit')
  t.same([...beyond.named.keys()], sources.slice(0, 10))
  const few = new Map(sources.slice(0, 3).map((name) => [name, 'drop'] as const))
  const some = withFound(NO_VERDICTS, sources, few)
  t.equal(some.others, 'store')
  t.same([...some.named], [...few])
})
