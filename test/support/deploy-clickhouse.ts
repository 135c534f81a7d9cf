import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { resolveLibchdb } from 'chdb/libchdb'
import { createStore, type Store } from '../../src/clickhouse/client.js'
import { configXml, usersXml } from '../../src/clickhouse/embedded/config.js'
import { startEngine } from '../../src/clickhouse/embedded/process.js'
import { quietLog, TEST_RESOURCES } from './clickhouse.js'
import { readDeploy } from './deploy.js'
import { freePort } from './ports.js'
import { READY_MS } from './service.js'

export const DEPLOYED_PASSWORD = 'password-of-log-engine'

interface Owner {
  teardown(end: () => Promise<unknown>): void
}

export interface DeployedClickHouse {
  readonly url: string
  connect(username: string, password: string, database: string): Store
}

/** From the configuration that comes with a server; without it the engine requires fewer grants. */
const STRICT = `<clickhouse><access_control_improvements>
  <on_cluster_queries_require_cluster_grant>true</on_cluster_queries_require_cluster_grant>
  <select_from_system_db_requires_grant>true</select_from_system_db_requires_grant>
  <select_from_information_schema_requires_grant>true</select_from_information_schema_requires_grant>
  <table_engines_require_grant>true</table_engines_require_grant>
</access_control_improvements></clickhouse>`

interface Deployed {
  /** Other configuration files, by their path. */
  readonly more?: Readonly<Record<string, string>>
  /** The file of the service's user in `deploy/clickhouse/`. */
  readonly users?: string
  readonly httpPort?: number
  readonly tcpPort?: number
}

/** Starts the engine with the shipped files merged into its configuration, as a server merges them. */
export async function startDeployedClickHouse(
  t: Owner,
  { more = {}, users = 'users.d/log-engine.xml', ...ports }: Deployed = {},
): Promise<DeployedClickHouse> {
  const dir = mkdtempSync(join(tmpdir(), 'deploy-clickhouse-'))
  const write = (path: string, text: string): void => writeFileSync(join(dir, path), text)
  for (const folder of ['config.d', 'users.d', 'data']) mkdirSync(join(dir, folder))
  const config = {
    clickhouseDir: join(dir, 'data'),
    usersFile: join(dir, 'users.xml'),
    backupsDir: '/data/backups',
    httpPort: ports.httpPort ?? (await freePort()),
    tcpPort: ports.tcpPort ?? null,
    username: 'test_admin',
    password: 'password-of-test-admin',
    resources: TEST_RESOURCES,
    remoteServers: '',
    s3: null,
  }
  // The HTTP handlers of the default configuration know one user only.
  write('config.xml', configXml(config).replace(/<http_handlers>[^]*<\/http_handlers>/, ''))
  write('users.xml', usersXml(config))
  write('config.d/log-engine.xml', readDeploy('clickhouse/config.d/log-engine.xml'))
  write('config.d/strict.xml', STRICT)
  for (const [path, text] of Object.entries(more)) write(path, text)
  // The engine has no environment variables, and its own first queries run as the user `default`.
  const own = readDeploy(`clickhouse/${users}`)
    .replace(/<password from_env="\w+"\/>/, `<password>${DEPLOYED_PASSWORD}</password>`)
    .replace('<default remove="1"/>', '')
  write('users.d/log-engine.xml', own)
  const engine = startEngine({
    libraryPath: resolveLibchdb().path,
    clickhouseDir: config.clickhouseDir,
    configFile: join(dir, 'config.xml'),
    tcpPort: config.tcpPort,
    log: quietLog,
  })
  t.teardown(async () => {
    await engine.kill()
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
  })
  const url = `http://127.0.0.1:${config.httpPort}`
  const connect = (username: string, password: string, database: string): Store =>
    createStore({ url, username, password, database })
  const admin = connect(config.username, config.password, 'default')
  t.teardown(() => admin.close())
  for (const until = Date.now() + READY_MS; ; await sleep(50)) {
    const isUp = await admin.ping().then(
      () => true,
      () => false,
    )
    if (isUp) return { url, connect }
    if (engine.hasExited || Date.now() > until) throw new Error(await engine.exited)
  }
}
