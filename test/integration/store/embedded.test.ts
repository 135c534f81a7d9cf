import { setTimeout as sleep } from 'node:timers/promises'
import { readdir } from 'node:fs/promises'
import t from 'tap'
import { type EmbeddedState, startEmbedded } from '../../../src/store/embedded.js'
import {
  createTestDatabase,
  quietLog,
  startTestServer,
  TEST_RESOURCES,
} from '../../support/clickhouse.js'

const count = {
  name: 'count',
  sql: 'SELECT count() AS n FROM t',
}

t.test('an engine that is killed comes back at the same address with its data', async (t) => {
  const states: EmbeddedState[] = []
  const server = await startTestServer({ onState: (state) => states.push(state) })
  t.teardown(() => server.stop())
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await store.command('CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a')
  await store.insertRows('t', [{ a: 1 }, { a: 2 }])
  const pid = server.engine.pid()
  if (pid === null) throw new Error('no process')

  process.kill(pid, 'SIGKILL')
  while (states.at(-1) !== 'down') await sleep(5)
  await t.rejects(store.ping(), { code: 'dependency_unavailable' })
  t.equal(server.engine.pid(), null)
  while (states.at(-1) !== 'ready') await sleep(20)

  t.not(server.engine.pid(), pid)
  t.same(await store.query(count, {}), [{ n: 2 }])
  t.same(states, ['ready', 'down', 'starting', 'ready'])
})

t.test(
  'a directory that is in use is refused by name, and its owner is not disturbed',
  async (t) => {
    const server = await startTestServer()
    t.teardown(() => server.stop())
    const { store, drop } = await createTestDatabase(server)
    t.teardown(drop)

    await t.rejects(
      startEmbedded({ dataDir: server.dataDir, log: quietLog, resources: TEST_RESOURCES }),
      { name: 'EmbeddedStartError', message: `${server.dataDir} is in use by another instance` },
    )
    await store.ping()
    t.equal(server.engine.state, 'ready')
  },
)

t.test('nobody gets in without the credentials', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { url, username } = server.engine
  const status = async (headers: Record<string, string>, path = '/'): Promise<number> => {
    const reply = await fetch(url + path, {
      method: 'POST',
      body: 'SYSTEM STOP LISTEN HTTP',
      headers,
    })
    return reply.status
  }
  const basic = (text: string): Record<string, string> => ({
    Authorization: `Basic ${Buffer.from(text).toString('base64')}`,
  })

  t.equal(await status({}), 401, 'no credentials')
  t.equal(await status(basic('default:')), 401, "the engine's own user")
  t.equal(await status(basic(`${username}:`)), 401, 'no password')
  t.equal(await status(basic(`${username}:wrong`)), 401, 'wrong password')
  t.equal(await status({ 'X-ClickHouse-User': 'default' }), 401, 'by header')
  t.equal(await status({}, '/?user=default'), 401, 'by address')
  t.equal(await status({}, '/play'), 401, 'another handler')
})

t.test('the password is neither on a command line nor left in a file', async (t) => {
  const server = await startTestServer({ password: 'a-password-for-this-test' })
  t.teardown(() => server.stop())
  t.same(await readdir(`${server.dataDir}/run`), [], 'the configuration is removed once it is read')
})

t.test('an engine that was stopped stays stopped and gives its directory free', async (t) => {
  const first = await startTestServer()
  const pid = first.engine.pid()
  await first.engine.stop()
  t.equal(first.engine.state, 'stopped')
  t.throws(() => process.kill(pid ?? 0, 0), { code: 'ESRCH' })

  const second = await startTestServer({ dataDir: first.dataDir })
  t.equal(second.engine.state, 'ready')
  await second.stop()
})
