/** The attributes of events, from their catalogue and from the events themselves. */
import { t as suite, test } from 'tap'
import { createEvents } from '../../../src/events/events.js'
import { DAY_MS } from '../../../src/model/time.js'
import { createBatchStore } from '../../../src/writer/batch-store.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { filterOf } from '../../support/event-filter.js'
import { applySchema, tagColumns } from '../../support/landing.js'

const server = await startTestServer()
suite.teardown(() => server.stop())

const NOW = Date.now()
const YESTERDAY = Math.floor(NOW / DAY_MS) * DAY_MS - DAY_MS + 1000

interface Made {
  readonly source: string
  readonly tags: object
  readonly n?: number
  readonly tsMs?: number
}

let id = 0
const toRow = ({ source, tags, n = 1, tsMs = YESTERDAY }: Made): object => ({
  id: (id += 1),
  is_new: 1,
  n,
  ts: new Date(tsMs).toISOString(),
  received_at: new Date(NOW).toISOString(),
  source,
  ...tagColumns(tags),
})

const MADE: readonly Made[] = [
  { source: 'web', tags: { status: 200, user: { id: 'u1' } }, n: 3 },
  { source: 'web', tags: { status: '5e2', list: ['a', true] } },
  { source: 'web', tags: {}, n: 4 },
  { source: 'cart', tags: { ok: false, status: 404 }, n: 2 },
  { source: 'cart', tags: { old: 1 }, tsMs: YESTERDAY - 5 * DAY_MS },
]

void test('catalogue and events name the same attributes', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  await store.insertRows('landing', MADE.map(toRow))
  const { fields } = createEvents(store)
  const of = async (q: string, fromMs = YESTERDAY - 1000) => {
    const { answer, completeFromMs } = await fields.of({
      filter: filterOf({ q }),
      fromMs,
      toMs: null,
    })
    const isOfDays = answer.answeredFrom === 'catalogue'
    t.equal(completeFromMs, isOfDays ? fromMs - (fromMs % DAY_MS) : fromMs, 'where it begins')
    const { attributes, total, isCapped, answeredFrom } = answer
    t.notOk(isCapped)
    const shown = attributes.map(
      ({ name, type, share, examples }) =>
        `${name} ${type} ${Math.round(share * total)} ${examples.toSorted().join()}`,
    )
    return { shown, total, answeredFrom }
  }
  const all = [
    'status mixed 6 "5e2",200,404,500',
    'user.id text 3 "u1"',
    'ok boolean 2 false',
    'list mixed 1 "a",true',
  ]
  t.same(await of(''), { shown: all, total: 10, answeredFrom: 'catalogue' })
  t.same(await of('has:severity'), { shown: all, total: 10, answeredFrom: 'events' })
  t.same(await of('source:cart'), {
    shown: ['ok boolean 2 false', 'status number 2 404'],
    total: 2,
    answeredFrom: 'catalogue',
  })
  t.same(await of('status:500'), {
    shown: ['list mixed 1 "a",true', 'status mixed 1 "5e2",500'],
    total: 1,
    answeredFrom: 'events',
  })
  t.same((await of('source:cart', 0)).shown.at(-1), 'old number 1 1')
  t.same(await of('source:none'), { shown: [], total: 0, answeredFrom: 'catalogue' })
  const starting = async (start: string) =>
    (await fields.starting({ start, limit: 3 })).map(({ name }) => name)
  t.same(await starting('us'), ['user.id'])
  t.same(await starting(''), ['status', 'user.id', 'ok'])

  const batches = createBatchStore(store)
  await batches.deleteSources(['web'])
  t.same((await of('')).shown, ['ok boolean 2 false', 'status number 2 404'])
  await batches.clear()
  t.same((await of('', 0)).shown, [])
})

void test('attributes beyond the bounds of the catalogue are said to be missing', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const often = Array.from({ length: 5 }, () => ({ source: 'web', tags: { often: 1 } }))
  const rare = Array.from({ length: 2100 }, (_, i) => ({ source: 'web', tags: { [`k${i}`]: i } }))
  await store.insertRows('landing', [...often, ...rare].map(toRow))
  const { fields } = createEvents(store)
  for (const q of ['', 'has:severity']) {
    const range = { filter: filterOf({ q }), fromMs: YESTERDAY - 1000, toMs: null }
    const { answer } = await fields.of(range)
    t.ok(answer.isCapped, q)
    t.equal(answer.attributes[0]?.name, 'often')
    t.equal(answer.attributes.length, q === '' ? 500 : 1000)
  }
})
