import { Type, type Static } from '@sinclair/typebox'
import tap, { test } from 'tap'
import { createExclusive } from '../../../src/coordination/lock.js'
import { createReplica, type Replica } from '../../../src/coordination/replica.js'
import { createRedisState } from '../../../src/coordination/redis-state.js'
import type { State } from '../../../src/coordination/state.js'
import type { Collection } from '../../../src/coordination/collection.js'
import { createEntities } from '../../../src/coordination/entities.js'
import { migrate } from '../../../src/clickhouse/migrate.js'
import type { Store } from '../../../src/clickhouse/client.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'
import { seeded } from '../../support/landing.js'
import { startRedis } from '../../support/redis.js'
import { until } from '../../support/state-contract.js'

const CounterDoc = Type.Object({ n: Type.Number() })
type Counter = Readonly<Static<typeof CounterDoc>>

interface Instance {
  readonly counters: Collection<Counter>
  readonly replica: Replica
  readonly state: State
  /** Catch-ups from ClickHouse. */
  reads: number
}

/** Long enough that no test passes because of it. */
const NEVER_MS = 600_000

const redis = await startRedis()
if (redis === null) {
  tap.plan(0, 'redis-server is not installed')
} else {
  tap.teardown(() => redis.kill())
  const server = await startTestServer()
  tap.teardown(() => server.stop())

  const database = async (): Promise<Store> => {
    const { store, drop } = await createTestDatabase(server)
    tap.teardown(drop)
    await migrate(store, { numbers: { rollup_days: 121 }, log: quietLog })
    return store
  }

  const open = async (store: Store, keyPrefix: string, everyMs: number): Promise<Instance> => {
    const state = await createRedisState({ url: redis.url, keyPrefix, onError: () => undefined })
    const observed: { by: Replica | null; reads: number } = { by: null, reads: 0 }
    const entities = await createEntities(store, {
      log: quietLog,
      exclusive: createExclusive(state),
      onStored: async () => await observed.by?.notify(),
    })
    const read = async (): Promise<void> => {
      observed.reads++
      await entities.catchUp()
    }
    const onError = (): void => undefined
    const replica = await createReplica({ state, onError, everyMs })
    replica.onCatchUp(read)
    observed.by = replica
    tap.teardown(async () => {
      await replica.close()
      await state.close()
    })
    return {
      counters: entities.collection('counter', CounterDoc),
      replica,
      state,
      get reads() {
        return observed.reads
      },
    }
  }

  const answers = async ({ state }: Instance): Promise<boolean> =>
    await state.ping().then(
      () => true,
      () => false,
    )

  void test('a client of one instance reads its own writes on another', async (t) => {
    const store = await database()
    const first = await open(store, 'own-writes:', NEVER_MS)
    const second = await open(store, 'own-writes:', NEVER_MS)
    const all = [first, second, await open(store, 'own-writes:', NEVER_MS)]
    const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
    t.comment(`seed ${seed}`)
    const random = seeded(seed)
    const pick = (): Instance => all[Math.floor(random() * all.length)] ?? first
    const expected = new Map<string, number>()
    const wrong: string[] = []
    for (let i = 0; i < 150; i++) {
      const id = `id ${Math.floor(random() * 5)}`
      const writer = pick()
      await writer.replica.refresh()
      if (random() < 0.2) {
        await writer.counters.remove(id)
        expected.delete(id)
      } else {
        await writer.counters.put(id, { n: i })
        expected.set(id, i)
      }
      const reader = pick()
      await reader.replica.refresh()
      const found = reader.counters.get(id)?.n
      if (found !== expected.get(id)) wrong.push(`${id} at ${i}: ${found}`)
    }
    t.same(wrong, [])
    await first.counters.clear()
    await second.replica.refresh()
    t.equal(second.counters.size, 0, 'what was cleared is gone everywhere')
  })

  void test('a change comes without being asked for, and costs nothing when there is none', async (t) => {
    const store = await database()
    const [one, two] = [
      await open(store, 'signals:', NEVER_MS),
      await open(store, 'signals:', NEVER_MS),
    ]
    await one.counters.put('a', { n: 1 })
    await until(() => two.counters.get('a')?.n === 1)
    await two.replica.refresh()
    const { reads } = two
    for (let i = 0; i < 50; i++) await two.replica.refresh()
    t.equal(two.reads, reads, 'nothing is read while nothing changes')
    await two.counters.put('b', { n: 2 })
    await two.replica.refresh()
    t.equal(two.reads, reads, 'nor after a change of its own')
  })

  void test('without Redis changes come a little later, and after its loss nothing is missing', async (t) => {
    const store = await database()
    const [one, two] = [await open(store, 'loss:', 200), await open(store, 'loss:', 200)]
    const { caughtUpAtMs: knownSinceMs } = two.replica
    await redis.kill()
    await until(async () => !(await answers(one)))
    await one.counters.put('a', { n: 1 })
    await until(() => two.counters.get('a')?.n === 1)
    t.ok(two.replica.caughtUpAtMs > knownSinceMs)
    await redis.start()
    await until(() => answers(one))
    await one.counters.put('b', { n: 2 })
    await until(() => answers(two))
    await two.replica.refresh()
    t.equal(two.counters.get('b')?.n, 2, 'an empty Redis is no reason to miss anything')
  })

  void test('changes that were made at once are neither lost nor mixed', async (t) => {
    const store = await database()
    const [one, two] = [
      await open(store, 'at-once:', NEVER_MS),
      await open(store, 'at-once:', NEVER_MS),
    ]
    const add = ({ counters }: Instance): Promise<unknown> =>
      counters.update('sum', (current) => ({ n: (current?.n ?? 0) + 1 }))
    await Promise.all(Array.from({ length: 20 }, (_, i) => add(i % 2 === 0 ? one : two)))
    await Promise.all([one.replica.refresh(), two.replica.refresh()])
    t.equal(one.counters.get('sum')?.n, 20)
    t.equal(two.counters.get('sum')?.n, 20)
  })
}
