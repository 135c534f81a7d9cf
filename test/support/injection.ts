import { rmSync } from 'node:fs'
import t from 'tap'
import { sabotagedMain } from '../faults/sabotage.js'
import { createStore } from '../../src/clickhouse/client.js'
import { everyRoute, type EveryRoute } from './every-route.js'
import { MARK } from './hostile.js'
import { startLiveService, type Answer, type LiveService } from './live-service.js'
import { startRecordingClickHouse } from './recording-clickhouse.js'
import { KNOWN, launchService, logIn, tempDataDir } from './service.js'

export interface Injection {
  readonly service: LiveService
  readonly all: EveryRoute
  /** @returns what is wrong with a reply; null when nothing is */
  readonly fault: (sent: string, reply: Answer) => string | null
  /** Checks the database, the log and the recorded queries after all requests. */
  readonly verdict: () => Promise<void>
  /** Whether a table of another program still has its rows. */
  readonly hasCanaries: () => Promise<boolean>
  /** Sends hostile values to a sabotaged program that splices them into its SQL. @returns the findings of the checks */
  readonly giveaways: (
    change: Parameters<typeof sabotagedMain>[0],
    path: string,
  ) => Promise<readonly string[]>
}

/** The recorded queries that contain a hostile value. */
const leaked = (statements: Iterable<string>): readonly string[] =>
  [...statements].filter(
    (text) => text.includes(MARK) || /__proto__|constructor|passwd|<script/.test(text),
  )

/**
 * A service whose ClickHouse is behind a recording proxy: no value of a client may be in the text of a query.
 */
export async function startInjection(): Promise<Injection> {
  const clickhouse = await startRecordingClickHouse(t)
  const service = await startLiveService(t, { ...clickhouse.env, LOG_LEVEL: 'warn' })
  const { url, username, password } = clickhouse.server.engine
  const direct = createStore({ url, username, password, database: 'logs' })
  t.teardown(() => direct.close())
  await direct.command('CREATE TABLE canary (a UInt32) ENGINE = MergeTree ORDER BY a')
  await direct.insertRows('canary', [{ a: 1 }, { a: 2 }, { a: 3 }])

  const countOf = async (sql: string): Promise<number> => {
    const rows = await direct.query<Record<string, never>, { readonly n: number }>(
      { name: 'test', sql },
      {},
    )
    return rows[0]?.n ?? -1
  }
  const tables = () => countOf("SELECT count() AS n FROM system.tables WHERE database = 'logs'")
  const canaries = () => countOf('SELECT count() AS n FROM canary')

  const all = await everyRoute(service)
  const before = { tables: await tables(), canaries: await canaries() }
  const seen = new Map<number, number>()
  const fault = (sent: string, reply: Answer): string | null => {
    seen.set(reply.status, (seen.get(reply.status) ?? 0) + 1)
    if (reply.status >= 500) return `${reply.status}: ${reply.text.slice(0, 300)}`
    if (reply.headers.get('x-injected') !== null) return 'a header was made'
    for (const [name, value] of reply.headers)
      if (value.includes(MARK)) return `the header ${name} holds what was sent`
    // The value may be in the reply as data.
    const own = sent.replaceAll(/[^\w]/g, '')
    const isOwn = LEAK.test(sent) || own.includes('passwd')
    if (!isOwn && reply.status >= 400 && LEAK.test(reply.text)) return reply.text.slice(0, 300)
    if (reply.status >= 400 && reply.body?.detail?.code === undefined) return 'no envelope'
    return null
  }

  const verdict = async (): Promise<void> => {
    t.comment(JSON.stringify(Object.fromEntries(seen)))
    t.same({ tables: await tables(), canaries: await canaries() }, before)
    const found = (await service.call('GET /api/logs?source=bird&limit=200')).body
    t.equal(found.items.length, all.birds, 'the events of others are as they were')
    t.equal((await service.call(`GET /api/users/${all.user.id}`)).body.role, 'viewer')
    await service.login(all.user.email, all.user.password)
    const keys = (await service.call('GET /api/ingest-keys?limit=200')).body.items
    t.ok(keys.some(({ id }: { id: string }) => id === all.keyId))
    const statements = [...clickhouse.statements]
    t.ok(
      statements.some((text) => text.includes('{source')),
      'values are bound',
    )
    t.same(leaked(statements), [])
    const lines = service
      .log()
      .split('\n')
      .filter((line) => line !== '')
    const grave = lines.filter((line) => ['error', 'fatal'].includes(JSON.parse(line).level))
    t.same(grave, [], 'nothing unexpected was logged')
  }
  return {
    service,
    all,
    fault,
    verdict,
    hasCanaries: async () => (await canaries()) === before.canaries,
    giveaways: async (change, path) => {
      const { main, dir } = sabotagedMain(change)
      t.teardown(() => rmSync(dir, { recursive: true, force: true }))
      const env = { ...KNOWN, ...clickhouse.env, DATA_DIR: tempDataDir(t) }
      const other = launchService(t, env, main)
      const { call } = await logIn(await other.ready())
      await call('GET', path)
      await other.kill()
      return leaked(clickhouse.statements)
    },
  }
}

/** Texts that no reply may contain. */
export const LEAK =
  /DB::|ClickHouse|Code: \d+|SELECT |INSERT |system\.|FORMAT |\.js:\d+|node_modules|root:x:/

/** Escapes a value for a test's title. */
export const shown = (value: string): string =>
  encodeURI(Buffer.from(value).toString().slice(0, 80)).replaceAll('%20', ' ')
