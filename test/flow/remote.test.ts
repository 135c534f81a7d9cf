import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { createStore } from '../../src/clickhouse/client.js'
import { startTestServer } from '../support/clickhouse.js'
import {
  countOf,
  ingest,
  KNOWN,
  logIn,
  runToEnd,
  settledCount,
  startService,
  tempDataDir,
} from '../support/service.js'

const lines = (count: number): string =>
  Array.from({ length: count }, (_, i) =>
    JSON.stringify({ source: 'app', message: `m ${i}` }),
  ).join('\n')

void test('a ClickHouse of its own, with a password, serves as well', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { url, username, password } = server.engine
  const remote = {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USER: username,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: 'remote_test',
  }
  const dataDir = tempDataDir(t)
  const first = await startService(t, { DATA_DIR: dataDir, ...KNOWN, ...remote })
  t.match(first.banner, /remote ClickHouse/)
  t.equal((await ingest(first, lines(1000))).status, 202)
  await first.kill()
  const second = await startService(t, { DATA_DIR: dataDir, ...KNOWN, ...remote })
  const caller = await logIn(second)
  t.equal(await settledCount(() => countOf(caller, 'app'), 1000), 1000)
  t.match(await second.stop(), { code: 0 })

  await t.test('a wrong password stops the start in one line', async (t) => {
    const { code, stderr } = await runToEnd({
      DATA_DIR: tempDataDir(t),
      ...remote,
      CLICKHOUSE_PASSWORD: 'wrong-and-secret',
    })
    t.not(code, 0)
    const messages = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
    t.equal(messages.length, 1)
    t.match(messages[0], /CLICKHOUSE_PASSWORD/)
    t.notMatch(stderr, /wrong-and-secret/)
  })

  await t.test('a database of a newer program is left alone', async (t) => {
    const store = createStore({ url, username, password, database: 'remote_test' })
    t.teardown(() => store.close())
    const [before] = await store.query<Record<string, never>, { n: number }>(
      { name: 'test', sql: 'SELECT count() AS n FROM schema_migrations' },
      {},
    )
    await store.command(
      `INSERT INTO schema_migrations SELECT * REPLACE (9999 AS version) FROM schema_migrations LIMIT 1`,
    )
    const { code, stderr } = await runToEnd({ DATA_DIR: dataDir, ...remote })
    t.not(code, 0)
    const messages = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
    t.equal(messages.length, 1)
    t.match(messages[0], /newer/)
    t.ok((before?.n ?? 0) > 10)
  })

  await t.test('a database or a data directory of an unreleased version is refused', async (t) => {
    const store = createStore({ url, username, password, database: 'remote_test' })
    t.teardown(() => store.close())
    await store.insertRows('schema_migrations', [{ version: 105, name: 'of_before' }])
    const old = tempDataDir(t)
    writeFileSync(join(old, 'instance-id'), 'of before')
    for (const [dir, message] of [
      [tempDataDir(t), /^.*database remote_test was made by an unreleased version.*$/],
      [old, /^.*DATA_DIR .* was made by an unreleased version.*$/],
    ] as const) {
      const { code, stderr } = await runToEnd({ DATA_DIR: dir, ...remote })
      t.not(code, 0)
      const lines = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
      t.equal(lines.length, 1)
      t.match(lines[0], message)
    }
  })
})
