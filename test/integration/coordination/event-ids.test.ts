import t from 'tap'
import { AppError } from '../../../src/model/errors.js'
import type { Store } from '../../../src/clickhouse/client.js'
import { type EventIds, reserveEventIds } from '../../../src/coordination/event-ids.js'
import { migrate } from '../../../src/clickhouse/migrate.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'

const noLock = <T>(work: () => Promise<T>): Promise<T> => work()
const options = { log: quietLog, exclusive: noLock, blockSize: 100 }

async function takeAll(ids: EventIds, count: number): Promise<number[]> {
  const taken: number[] = []
  while (taken.length < count) {
    if (ids.remaining > 0) taken.push(ids.take())
    else await new Promise((done) => setImmediate(done))
  }
  return taken
}

t.test('event ids are unique, and are reserved ahead of their use', async (t) => {
  const server = await startTestServer()
  const { store, drop } = await createTestDatabase(server)
  const numbers = { rollup_days: 121 }
  await migrate(store, { numbers, log: quietLog })
  t.teardown(async () => {
    await drop()
    await server.stop()
  })

  t.test('ids grow, begin at 1 and never end while ClickHouse answers', async (t) => {
    const ids = await reserveEventIds(store, options)
    const taken = await takeAll(ids, 1_000)
    ids.close()
    t.equal(taken[0], 1)
    t.ok(taken.every((id, i) => i === 0 || id > (taken[i - 1] ?? 0)))
  })

  t.test('several instances without a lock, and their restarts, never share an id', async (t) => {
    const seen = new Set<number>()
    for (let start = 0; start < 3; start++) {
      const instances = await Promise.all([1, 2, 3].map(() => reserveEventIds(store, options)))
      const taken = await Promise.all(instances.map((ids) => takeAll(ids, 150)))
      for (const ids of instances) ids.close()
      for (const id of taken.flat()) seen.add(id)
    }
    t.equal(seen.size, 1_350)
  })

  t.test('a smaller block does not fall back below what was reserved', async (t) => {
    const before = await reserveEventIds(store, { ...options, blockSize: 5_000 })
    const after = await reserveEventIds(store, { ...options, blockSize: 10 })
    t.ok(after.take() >= before.take() + 5_000)
    before.close()
    after.close()
  })

  t.test('without ClickHouse the ids in hand last, then it is said, then it goes on', async (t) => {
    let isDown = false
    const unstable: Store = {
      ...store,
      insertRows: (table, rows, request) =>
        isDown
          ? Promise.reject(new AppError('dependency_unavailable', 'down'))
          : store.insertRows(table, rows, request),
    }
    const ids = await reserveEventIds(unstable, options)
    isDown = true
    for (let i = 0; i < 100; i++) ids.take()
    t.equal(ids.remaining, 0)
    t.throws(() => ids.take(), { code: 'dependency_unavailable' })
    isDown = false
    t.equal((await takeAll(ids, 150)).length, 150)
    ids.close()
  })
})
