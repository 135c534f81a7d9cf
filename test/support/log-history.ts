import { createStore, type Store } from '../../src/clickhouse/client.js'
import { startTestServer, type TestServer } from './clickhouse.js'
import { applySchema } from './landing.js'
import { HOUR_MS } from '../../src/model/time.js'

/** Messages of one kind: so many an hour, from an hour up to another. */
export interface Stretch {
  readonly source: string
  readonly message: string
  readonly severity: string
  readonly host: string
  /** Hours before the current one; `from` is included, `until` is not. */
  readonly from: number
  readonly until: number
  readonly perHour: number
}

/** The `until` of a steady series: it reaches into the future, because an hour may end while a test runs. */
export const GOES_ON = -2

/** Events of whole hours around the hour of `nowMs`. Their counts vary, the same way every time. */
export function eventsOf(stretches: readonly Stretch[], nowMs: number): readonly object[] {
  const running = Math.floor(nowMs / HOUR_MS)
  return stretches.flatMap(({ source, message, severity, host, from, until, perHour }) => {
    const events: object[] = []
    for (let ago = from; ago > until; ago--) {
      const n = perHour + (perHour < 10 ? 0 : ((running - ago) * 7) % 3)
      for (let i = 0; i < n; i++) {
        const ms = (running - ago) * HOUR_MS + Math.floor((i * HOUR_MS) / n)
        const timestamp = new Date(ms).toISOString()
        events.push({ source, message, severity, host, timestamp })
      }
    }
    return events
  })
}

/** A ClickHouse that the test queries and changes beside the service. */
export interface OwnServer {
  readonly server: TestServer
  readonly env: Readonly<Record<string, string>>
  /** Registers sources with a time of registration, before a service is started. */
  register(sources: readonly string[], createdAtMs: number): Promise<void>
}

interface Test {
  teardown(end: () => Promise<unknown> | void): void
}

export async function startOwnServer(t: Test): Promise<OwnServer> {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { url, username, password } = server.engine
  const store = createStore({ url, username, password, database: 'logs' })
  t.teardown(() => store.close())
  return {
    server,
    env: { CLICKHOUSE_URL: url, CLICKHOUSE_USER: username, CLICKHOUSE_PASSWORD: password },
    register: (sources, createdAtMs) => registerSources(store, sources, createdAtMs),
  }
}

/** Registers sources with a time of registration in a database that no service has used. */
async function registerSources(
  store: Store,
  sources: readonly string[],
  createdAtMs: number,
): Promise<void> {
  await applySchema(store)
  const rows = sources.map((name) => {
    const source = { name, type: 'push', connector: 'http', enabled: true, createdAtMs }
    const doc = JSON.stringify({ ...source, applicationId: null })
    return { kind: 'source', id: name, version: createdAtMs * 1000, is_deleted: 0, doc }
  })
  await store.insertRows('entities', rows)
}

/** The connector of a source whose time of registration was changed, as the API shows it. */
export const BACKDATED = 'backdated'

/** Changes the time of registration of a source. */
export async function backdateSource(
  store: Store,
  source: string,
  createdAtMs: number,
): Promise<void> {
  const sql = "SELECT version, doc FROM entities FINAL WHERE kind = 'source' AND id = {id:String}"
  const [row] = await store.query<{ id: string }, { version: number; doc: string }>(
    { name: 'source', sql },
    { id: source },
  )
  if (row === undefined) throw new Error(`there is no source ${source}`)
  const doc = JSON.stringify({ ...JSON.parse(row.doc), createdAtMs, connector: BACKDATED })
  const fields = { kind: 'source', id: source, version: row.version + 1, is_deleted: 0, doc }
  await store.insertRows('entities', [fields])
}
