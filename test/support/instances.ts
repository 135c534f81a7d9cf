import { createStore, type Store } from '../../src/clickhouse/client.js'
import { startBackend, type Backend } from './cluster.js'
import { JWT_SECRET, WEBHOOK_SECRET } from './live-service.js'
import { startRedis, type RedisServer } from './redis.js'
import { KNOWN, startService, tempDataDir, type Service } from './service.js'

type Env = Readonly<Record<string, string>>

/** The part of tap's tests that ends something after the test. */
interface Test {
  teardown(end: () => Promise<unknown> | void): void
}

/** A ClickHouse and a Redis for any number of instances. */
export interface Shared {
  /** Settings of every instance. */
  readonly env: Env
  readonly redis: RedisServer
  readonly server: Backend
  readonly store: Store
  /** Queries ClickHouse directly. */
  rows(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
  /** Starts an instance in a directory of its own. */
  start(env?: Env): Promise<Instance>
}

export interface Instance extends Service {
  readonly dataDir: string
  /** Restarts an instance in its directory, on other ports. */
  again(env?: Env): Promise<Instance>
}

/** @returns null when redis-server is not installed */
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
