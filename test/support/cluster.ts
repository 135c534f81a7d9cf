import { createServer } from 'node:net'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createStore, type Store } from '../../src/clickhouse/client.js'
import type { ClusterOptions } from '../../src/clickhouse/cluster/cluster.js'
import { startEmbedded, type Embedded } from '../../src/clickhouse/embedded/embedded.js'
import { quietLog, startTestServer } from './clickhouse.js'
import { signal } from './signals.js'

/** The name of the cluster in the configuration of its servers. */
const CLUSTER = 'test_cluster'
const USERNAME = 'engine_client'
const PASSWORD = 'password of the shards'
/** Small enough for three engines at once. */
const RESOURCES = { memoryBytes: 1536 * 1024 ** 2, mergeThreads: 2 }

export interface Shard {
  readonly url: string
  /** The directory of its backups. */
  readonly backupsDir: string
  /** The id of the engine's process; null when it is down. */
  pid(): number | null
  /** Kills the process; `up` starts it again. */
  down(): Promise<void>
  up(): Promise<void>
  /** Kills the process and starts it again at once. */
  kill(): void
  /** Ends the process and starts it on an empty disk. */
  wipe(): Promise<void>
  /** A connection to the tables of this server alone. */
  connect(database: string): Store
}

export interface TestCluster {
  readonly shards: readonly Shard[]
  /** The settings of a service on the cluster with its current shards. */
  readonly env: Readonly<Record<string, string>>
  /** Starts another server, which knows all others; they do not know it before `reload`. */
  add(): Promise<void>
  /** Gives all servers the same list of shards, and restarts them. */
  reload(): Promise<void>
  stop(): Promise<void>
}

interface Ports {
  readonly http: number
  readonly tcp: number
}

/**
 * Embedded engines that form one cluster over TCP, each a shard.
 *
 * @param more further configuration of each server, by the shard's number from 1
 */
export async function startCluster(
  count: number,
  more: (shard: number) => string = () => '',
): Promise<TestCluster> {
  const all = await Promise.all(Array.from({ length: count }, findPorts))
  const shards = await Promise.all(all.map((ports, i) => startShard(ports, all, more(i + 1))))
  return {
    shards,
    get env() {
      return clusterEnv(shards)
    },
    add: async () => {
      const ports = await findPorts()
      all.push(ports)
      shards.push(await startShard(ports, all))
    },
    reload: async () => {
      for (const shard of shards) await shard.down()
      await Promise.all(shards.map((shard) => shard.up()))
    },
    stop: async () => {
      await Promise.all(shards.map((shard) => shard.end()))
    },
  }
}

/** The database of a service: an engine or a cluster. */
export interface Backend {
  readonly engine: Pick<Embedded, 'url' | 'username' | 'password'>
  /** The settings of a service beyond the address. */
  readonly env: Readonly<Record<string, string>>
  /** Empty with a single engine. */
  readonly shards: readonly Shard[]
  stop(): Promise<void>
}

/** Starts an engine, or a cluster of `TEST_SHARDS` shards. */
export async function startBackend(): Promise<Backend> {
  const count = Number(process.env['TEST_SHARDS'] ?? 0)
  if (count === 0) return { env: {}, shards: [], ...(await startTestServer()) }
  const { env, shards, stop } = await startCluster(count)
  const engine = { url: shards[0]?.url ?? '', username: USERNAME, password: PASSWORD }
  return { engine, env, shards, stop }
}

export const ask = <Row = unknown>(store: Store, sql: string): Promise<readonly Row[]> =>
  store.query<Record<string, never>, Row>({ name: 'test', sql }, {})

/** The options of a store on the cluster. */
export const clusterOptions = (
  { shards }: Pick<TestCluster, 'shards'>,
  database: string,
): ClusterOptions => ({
  url: shards[0]?.url ?? '',
  username: USERNAME,
  password: PASSWORD,
  database,
  cluster: CLUSTER,
  nodes: shards.map(({ url }) => url),
  replication: 'auto',
  insertQuorum: 'auto',
})

const clusterEnv = (shards: readonly Shard[]): Readonly<Record<string, string>> => ({
  CLICKHOUSE_URL: shards[0]?.url ?? '',
  CLICKHOUSE_USER: USERNAME,
  CLICKHOUSE_PASSWORD: PASSWORD,
  CLICKHOUSE_CLUSTER: CLUSTER,
  CLICKHOUSE_NODES: shards.map(({ url }) => url).join(','),
})

const remoteServers = (all: readonly Ports[]): string => {
  const shards = all.map(
    ({ tcp }) => `<shard><internal_replication>true</internal_replication><replica>
      <host>127.0.0.1</host><port>${tcp}</port>
      <user>${USERNAME}</user><password>${PASSWORD}</password>
    </replica></shard>`,
  )
  return `<remote_servers><${CLUSTER}>${shards.join('')}</${CLUSTER}></remote_servers>`
}

async function startShard(
  ports: Ports,
  all: readonly Ports[],
  more = '',
): Promise<Shard & { end(): Promise<void> }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'shard-test-'))
  const start = (): Promise<Embedded> =>
    startEmbedded({
      dataDir,
      log: quietLog,
      resources: RESOURCES,
      httpPort: ports.http,
      tcpPort: ports.tcp,
      password: PASSWORD,
      remoteServers: remoteServers(all) + more,
    })
  let engine: Embedded | null = await start()
  const { url, username, password } = engine
  const kill = (): void => {
    const pid = engine?.pid() ?? null
    if (pid !== null) signal(pid, 'SIGKILL')
  }
  const down = async (): Promise<void> => {
    kill()
    await engine?.stop()
    engine = null
  }
  return {
    url,
    backupsDir: join(dataDir, 'backups'),
    pid: () => engine?.pid() ?? null,
    kill,
    down,
    up: async () => {
      engine ??= await start()
    },
    wipe: async () => {
      await down()
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
      mkdirSync(dataDir, { mode: 0o700 })
      engine = await start()
    },
    connect: (database) => createStore({ url, username, password, database }),
    end: async () => {
      await down()
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function findPorts(): Promise<Ports> {
  return { http: await freePort(), tcp: await freePort() }
}

/** The ports are listened on until all are chosen, so that no two are the same. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  await new Promise((done) => server.close(done))
  if (address === null || typeof address === 'string') throw new Error('bug: no port')
  return address.port
}
