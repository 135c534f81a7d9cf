import { createStore, type Store } from '../../src/clickhouse/client.js'
import { startBackend, type Backend } from './cluster.js'
import { JWT_SECRET, WEBHOOK_SECRET } from './live-service.js'
import { startRedis, type RedisServer } from './redis.js'
import { KNOWN, startService, tempDataDir, type Service } from './service.js'

type Env = Readonly<Record<string, string>>

/** Something that is ended after the test, as tap's tests have it. */
interface Test {
  teardown(end: () => Promise<unknown> | void): void
}

/** One ClickHouse and one Redis, for any number of instances. */
export interface Shared {
  /** settings that every instance has */
  readonly env: Env
  readonly redis: RedisServer
  readonly server: Backend
  readonly store: Store
  /** Asks ClickHouse itself. */
  rows(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
  /** Starts an instance in a directory of its own, which is returned with it. */
  start(env?: Env): Promise<Instance>
}

export interface Instance extends Service {
  readonly dataDir: string
  /** Starts it again where it was, on other ports. */
  again(env?: Env): Promise<Instance>
}

/** @returns null when redis-server is not installed; the reason is to be printed as a skip */
export async function startShared(t: Test, settings: Env = {}): Promise<Shared | null> {
  const redis = await startRedis()
  if (redis === null) return null
  t.teardown(() => redis.kill())
  const server = await startBackend()
  t.teardown(() => server.stop())
  const { url, username, password } = server.engine
  const env = {
    ...KNOWN,
    JWT_SECRET,
    WEBHOOK_SECRET,
    REDIS_URL: redis.url,
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USER: username,
    CLICKHOUSE_PASSWORD: password,
    INSIGHTS_INTERVAL_SECONDS: '0',
    ...server.env,
    ...settings,
  }
  const store = createStore({ url, username, password, database: 'logs' })
  t.teardown(() => store.close())
  const startIn = async (dataDir: string, own: Env): Promise<Instance> => {
    const service = await startService(t, { ...env, DATA_DIR: dataDir, ...own })
    return { ...service, dataDir, again: (other = own) => startIn(dataDir, other) }
  }
  return {
    env,
    redis,
    server,
    store,
    rows: (sql) => store.query({ name: 'test', sql }, {}),
    start: (own = {}) => startIn(tempDataDir(t), own),
  }
}
