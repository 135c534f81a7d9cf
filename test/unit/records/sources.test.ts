import { test } from 'tap'
import { Collection } from '../../../src/coordination/collection.js'
import { EntityWriter, type EntityRow } from '../../../src/coordination/entity-writer.js'
import { ClickHouseError } from '@clickhouse/client'
import { toStoreFailure } from '../../../src/clickhouse/failure.js'
import { quietLog } from '../../support/clickhouse.js'
import { Sources, type Source } from '../../../src/records/sources.js'

const REFUSED = new ClickHouseError({
  message: 'no',
  code: '27',
  type: 'CANNOT_PARSE_INPUT_ASSERTION_FAILED',
})

/** Sources on a table that is an array; rows named `bad …` are refused. */
function setUp(limits = { maxSources: 1_000, perKey: 1_000 }) {
  const inserts: (readonly EntityRow[])[] = []
  const store = {
    insertRows: async (_table: string, rows: readonly EntityRow[]) => {
      if (rows.some(({ id }) => id.startsWith('bad'))) throw toStoreFailure('insert', REFUSED, null)
      inserts.push(rows)
    },
  }
  let version = 0
  const records = new Collection<Source>(
    {
      // oxlint-disable-next-line typescript/no-explicit-any -- the only function that is called
      store: store as any,
      // oxlint-disable-next-line typescript/no-explicit-any
      writer: new EntityWriter(store as any),
      log: quietLog,
      nextVersion: () => ++version,
      exclusive: null,
      onStored: null,
      catchUp: async () => undefined,
    },
    { kind: 'source', parse: (doc) => doc as Source, rows: [] },
  )
  const sources = new Sources(records, limits, () => 0)
  return { sources, records, inserts }
}

const registration = (name: string, keyId = '') =>
  ({ name, type: 'push', connector: 'custom', applicationId: null, keyId }) as const

void test('the sources of a batch are stored by few inserts, each once', async (t) => {
  const { sources, records, inserts } = setUp()
  const all = Array.from({ length: 500 }, (_, i) => registration(`s${i}`))
  for (const each of all) sources.register(each)
  t.same(await sources.store(all), [])
  t.same(
    inserts.map(({ length }) => length),
    [250, 250],
  )
  t.equal(records.size, 500)
  await sources.store(all)
  t.equal(inserts.length, 2)
})

void test('a source that ClickHouse refuses keeps no other from being stored', async (t) => {
  const { sources, records } = setUp()
  const names = ['a', 'bad 1', 'b', 'c', 'bad 2', 'd', 'e']
  const all = names.map((name) => registration(name))
  for (const each of all) sources.register(each)
  t.same(await sources.store(all), ['bad 1', 'bad 2'])
  t.same(
    records.entries().map(([name]) => name),
    ['a', 'b', 'c', 'd', 'e'],
  )
})

void test('a key registers a limited number of sources, and deletion gives them back', async (t) => {
  const { sources } = setUp({ maxSources: 5, perKey: 2 })
  const add = async (name: string, keyId: string) => {
    const limit = sources.limitOf(keyId)
    if (limit !== null) return limit
    sources.register(registration(name, keyId))
    await sources.store([registration(name, keyId)])
    return null
  }
  t.same(
    [await add('a', 'k'), await add('b', 'k'), await add('c', 'k')],
    [null, null, 'key_source_limit'],
  )
  t.same([await add('c', 'l'), await add('d', ''), await add('e', '')], [null, null, null])
  t.equal(await add('f', 'l'), 'source_limit')
  await sources.change('a', { enabled: false })
  t.equal(sources.limitOf('k'), 'source_limit', 'a changed source counts once')
  sources.forget(['a', 'd'])
  await sources.remove(['a', 'd'])
  t.same([await add('a', 'k'), await add('g', 'k')], [null, 'key_source_limit'])
  sources.follow('b', null)
  t.equal(sources.limitOf('k'), null, 'another instance deleted one')
})

void test('the list is ordered by name and goes on after any name', async (t) => {
  const { sources } = setUp()
  for (const name of ['b', 'é', 'a', '\u{1f600}', 'B']) sources.register(registration(name))
  const names = (after?: string, limit?: number) =>
    sources.list(after, limit).map(({ name }) => name)
  const all = names()
  t.equal(all.length, 5)
  for (let i = 0; i < all.length; i++) t.same(names(all[i]), all.slice(i + 1))
  t.same(names('a', 2), all.slice(all.indexOf('a') + 1).slice(0, 2))
  sources.forget(['b'])
  t.same(
    names('a'),
    all.slice(all.indexOf('a') + 1).filter((name) => name !== 'b'),
  )
})
