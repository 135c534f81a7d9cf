import t from 'tap'
import { startLiveService } from '../../support/live-service.js'

const service = await startLiveService(t)

const parse = (q: string, more: object = {}) =>
  service.call('POST /api/logs/query/parse', { json: { q, ...more } })

t.test('a line of the query language is parsed, or its fault told with its place', async (t) => {
  t.match(await parse('severity:ERR  host:web-1'), {
    status: 200,
    body: {
      query: { kind: 'and', nodes: [{ kind: 'field' }, { kind: 'field' }] },
      canonical: 'severity:error host:web-1',
      error: null,
      hints: [],
      completion: null,
    },
  })
  t.match((await parse('a sevrity:error')).body.hints, [{ position: 2, suggestion: 'severity' }])
  t.match(await parse('a (b'), {
    status: 200,
    body: {
      query: null,
      canonical: null,
      error: { position: 2, length: 2, suggestion: '(b)' },
    },
  })
  t.match((await parse('x'.repeat(2001))).body.error, { position: 2000, length: 1 })
  t.equal((await parse('x'.repeat(8001))).status, 422)
})

t.test('a position in a line is told what can be typed there', async (t) => {
  const { completion } = (await parse('severity:w', { position: 10 })).body
  t.same(completion, {
    position: 9,
    length: 1,
    expected: ['value'],
    field: { kind: 'builtin', name: 'severity' },
    names: ['warning'],
  })
  t.match((await parse('a', { position: 99 })).body.completion, { position: 0, length: 1 })
  t.equal((await parse('a', { position: -1 })).status, 422)
})
