import t from 'tap'
import { planCapacity } from '../../../src/http/capacity.js'
import { openFileLimit } from '../../../src/http/open-files.js'

const plan = (max: number, openFiles: number | null) => {
  const warnings: unknown[] = []
  const log = { warn: (...args: unknown[]) => warnings.push(args) }
  return { ...planCapacity(max, log as never, openFiles), warnings }
}

t.test('connections are shared between ports, WebSockets and requests', async (t) => {
  const { pool, perPort, webSockets, warnings } = plan(18_000, 20_000)
  t.same(pool, { limit: 18_000, open: 0 })
  t.ok(perPort < pool.limit && webSockets < perPort, 'each leaves a share to the others')
  t.ok(webSockets >= 10_500)
  t.same(warnings, [])
  t.equal(plan(18_000, null).pool.limit, 18_000, 'a system that does not say')
})

t.test('the open-file limit of the process counts, and is logged', async (t) => {
  const { pool, warnings } = plan(18_000, 1024)
  t.equal(pool.limit, 512)
  t.match(warnings, [
    [{ openFiles: 1024, needed: 18_512 }, /MAX_CONNECTIONS=18000.*512.*ulimit -n/],
  ])
  t.equal(plan(18_000, 256).pool.limit, 100, 'a small machine still starts')
})

t.test('the limit of this process can be read', async (t) => {
  const limit = openFileLimit()
  t.ok(limit !== null && limit >= 64, String(limit))
})
