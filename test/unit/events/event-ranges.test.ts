import { test } from 'tap'
import type { EventQuery } from '../../../src/events/page.js'
import { toQuestion } from '../../../src/events/event-ranges.js'

const query = (sources: readonly string[] | null, limit = 50): EventQuery => ({
  filter: {
    severities: [],
    priorities: [],
    sources,
    types: [],
    environments: [],
    templateIds: [],
    search: '',
  },
  fromMs: 0,
  toMs: null,
  after: null,
  limit,
})

void test('a question is remembered by little, however many sources it names', async (t) => {
  const sources = Array.from({ length: 1000 }, (_, i) => `${i}`.padStart(255, 's'))
  t.ok(toQuestion(query(sources)).length < 100)
  const different = [
    query(sources),
    query(sources.slice(1)),
    query(null),
    query([]),
    query(null, 51),
    { ...query(null), after: { tsMs: 1, id: 1 } },
  ]
  t.equal(new Set(different.map(toQuestion)).size, different.length)
  t.equal(toQuestion(query([...sources])), toQuestion(query(sources)))
})
