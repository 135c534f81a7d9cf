import { Type, type Static } from '@sinclair/typebox'
import t from 'tap'
import type { Store } from '../../../src/clickhouse/client.js'
import { migrate } from '../../../src/clickhouse/migrate.js'
import type { Collection } from '../../../src/coordination/collection.js'
import { createEntities } from '../../../src/coordination/entities.js'
import { createExclusive } from '../../../src/coordination/lock.js'
import { createRedisState } from '../../../src/coordination/redis-state.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'
import { startRedis } from '../../support/redis.js'

const ThingDoc = Type.Object({ owner: Type.String(), n: Type.Integer() })
type Thing = Readonly<Static<typeof ThingDoc>>
type Things = Collection<Thing>

const MOST = 25
const BOUND = { most: MOST, nouns: 'things', setting: 'THINGS' }
const ofOwner = ({ owner }: Thing): string => owner

const server = await startTestServer()
t.teardown(() => server.stop())

async function database(): Promise<Store> {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await migrate(store, { numbers: { rollup_days: 121 }, log: quietLog })
  return store
}

/** Creates things at once, on one instance after the other. @returns how many were made and refused */
async function createAtOnce(all: readonly Things[], count: number, owner = 'ann') {
  const creations = all.flatMap((things, first) =>
    Array.from({ length: Math.ceil((count - first) / all.length) }, (_, turn) => {
      const n = first + turn * all.length
      return things.put(`${owner}-${n}`, { owner, n })
    }),
  )
  const results = await Promise.allSettled(creations)
  const refused = results.filter((one) => one.status === 'rejected')
  for (const { reason } of refused)
    if (Object(reason).code !== 'overloaded') throw new Error('another fault', { cause: reason })
  return { made: count - refused.length, refused: refused.length }
}

/** @param open opens the things of one more instance of the same database */
async function holds(t: Tap, open: () => Promise<Things>) {
  const all = [await open(), await open()]
  t.same(await createAtOnce(all, 3 * MOST), { made: MOST, refused: 2 * MOST })
  const [first] = all
  const known = first?.list()[0]
  if (first === undefined || known === undefined) return
  const { owner, n } = known
  t.same(await first.update(`${owner}-${n}`, (one) => one && { ...one, n: -1 }), { owner, n: -1 })
  await t.rejects(first.put('one more', { owner, n }), {
    code: 'overloaded',
    message: `there are ${MOST} things, which is the most`,
    details: { limit: MOST, setting: 'THINGS' },
  })
  await first.remove(`${owner}-${n}`)
  t.same(await createAtOnce(all.toReversed(), 3, 'bob'), { made: 1, refused: 2 })
}

type Tap = Pick<typeof t, 'same' | 'rejects'>

t.test('a bound is exact, however many are created at once', async (t) => {
  const store = await database()
  const entities = await createEntities(store, { log: quietLog })
  const things = entities.collection('thing', ThingDoc, BOUND)
  await holds(t, async () => things)
})

t.test(
  'the bound of an owner leaves the others alone, and holds for nobody without one',
  async (t) => {
    const store = await database()
    const entities = await createEntities(store, { log: quietLog })
    const things = entities.collection('thing', ThingDoc, { ...BOUND, ownerOf: ofOwner })
    const [ann, bob, nobody] = await Promise.all(
      ['ann', 'bob', ''].map((owner) => createAtOnce([things], MOST + 5, owner)),
    )
    t.same(
      [ann, bob],
      Array.from({ length: 2 }, () => ({ made: MOST, refused: 5 })),
    )
    t.same(nobody, { made: MOST + 5, refused: 0 })
  },
)

t.test('a creation that fails gives its place back', async (t) => {
  const store = await database()
  const entities = await createEntities(store, { log: quietLog })
  const things = entities.collection('thing', ThingDoc, { ...BOUND, most: 1 })
  const unstorable = { owner: 'ann', n: 0.5 }
  await t.rejects(things.put('a', unstorable), /does not fit/)
  const longest = { owner: 'x'.repeat(5 * 1024 * 1024), n: 1 }
  await t.rejects(things.put('a', longest), RangeError)
  t.same(await createAtOnce([things], 3), { made: 1, refused: 2 })
})

const redis = await startRedis()
if (redis !== null) {
  t.teardown(() => redis.kill())
  t.test('a bound is exact for two instances that create at once', async (t) => {
    const store = await database()
    await holds(t, async () => {
      const state = await createRedisState({
        url: redis.url,
        keyPrefix: 'bounds:',
        onError: () => undefined,
      })
      t.teardown(() => state.close())
      const exclusive = createExclusive(state)
      const entities = await createEntities(store, { log: quietLog, exclusive })
      return entities.collection('thing', ThingDoc, BOUND)
    })
  })
}
