import { t as suite, test } from 'tap'
import type { Store } from '../../../src/clickhouse/client.js'
import { createArrivalReader, type Blocks } from '../../../src/events/arrivals.js'
import { EVERYTHING } from '../../../src/query/ast.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { applySchema } from '../../support/landing.js'

const server = await startTestServer()
suite.teardown(() => server.stop())

const MIB = 1024 * 1024
const EVENTS = 300

/** Stores events, the last of which is the newest. */
const fill = (store: Store, firstId: number, messageBytes: number): Promise<unknown> =>
  store.command(
    `INSERT INTO landing (id, is_new, n, received_at, ts, source, type, severity, priority, template_id, variables)
    SELECT number + ${firstId}, 1, 1, now64(3), now64(3) - 1000 + number, 'wide', 'log', 'INFO', 'P4', 1, repeat('x', ${messageBytes})
    FROM numbers(${EVENTS})`,
  )

void test('of large arrivals the newest are read up to a bound, and all are counted', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const arrivals = createArrivalReader(store)
  const read = async (after: Blocks | null, limit: number) => {
    const upTo = await arrivals.newest()
    const since = after ?? upTo.map(([shard]) => [shard, 0] as const)
    const asked = { query: EVERYTHING, redirects: [], after: since, upTo, limit }
    const { matched, events } = await arrivals.read({ ...asked, nowMs: Date.now() })
    return { matched, ids: events.map(({ id }) => id) }
  }
  const newest = (lastId: number, count: number): readonly number[] =>
    Array.from({ length: count }, (_, i) => lastId - i)

  await fill(store, 1, 10)
  t.same(await read(null, 500), { matched: EVENTS, ids: newest(EVENTS, EVENTS) })
  t.same(await read(null, 299), { matched: EVENTS, ids: newest(EVENTS, EVENTS - 1) })
  t.same(await read(null, 5), { matched: EVENTS, ids: newest(EVENTS, 5) })

  const small = await arrivals.newest()
  await fill(store, EVENTS + 1, MIB / 8)
  t.same(await read(small, 500), { matched: EVENTS, ids: newest(2 * EVENTS, 8) })
  t.same(await read(small, 5), { matched: EVENTS, ids: newest(2 * EVENTS, 5) })
})
