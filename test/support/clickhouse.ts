import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createStore, type Store } from '../../src/clickhouse/client.js'
import {
  type Embedded,
  type EmbeddedOptions,
  startEmbedded,
} from '../../src/clickhouse/embedded/embedded.js'
import type { LogAt } from '../../src/telemetry/log.js'

export const quietLog: LogAt<'debug' | 'info' | 'warn' | 'error'> = {
  debug() {},
  info() {},
  warn() {},
  error() {},
}

/** Small enough for several engines at once. */
export const TEST_RESOURCES = { memoryBytes: 2 * 1024 ** 3, mergeThreads: 2 }

export interface TestServer {
  readonly engine: Embedded
  readonly dataDir: string
  readonly stop: () => Promise<void>
}

/** Starts an embedded engine with a password in a directory of its own; the tests of a file share it. */
export async function startTestServer(options: Partial<EmbeddedOptions> = {}): Promise<TestServer> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'clickhouse-test-')))
  const engine = await startEmbedded({
    dataDir,
    log: quietLog,
    resources: TEST_RESOURCES,
    ...options,
  })
  return {
    engine,
    dataDir,
    async stop() {
      await engine.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

export interface TestDatabase {
  readonly store: Store
  readonly drop: () => Promise<void>
}

/** An empty database with a random name on a test server; the schema is not applied. */
export async function createTestDatabase(server: TestServer): Promise<TestDatabase> {
  const database = `test_${randomBytes(6).toString('hex')}`
  const store = createStore({ ...server.engine.connection, database })
  await store.createDatabase()
  return {
    store,
    async drop() {
      await store.command(`DROP DATABASE IF EXISTS ${database}`)
      await store.close()
    },
  }
}
