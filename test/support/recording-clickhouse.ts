import { once } from 'node:events'
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { startBackend, type Backend } from './cluster.js'

export interface RecordingClickHouse {
  /** The settings of a service that uses it. */
  readonly env: Readonly<Record<string, string>>
  readonly server: Backend
  /** The text of every query with the names and values of its settings; without bound values. */
  readonly statements: ReadonlySet<string>
}

interface Test {
  teardown(end: () => Promise<void>): void
}

/** An embedded engine behind a proxy that records the queries. */
export async function startRecordingClickHouse(t: Test): Promise<RecordingClickHouse> {
  const server = await startBackend()
  const statements = new Set<string>()
  const recorder = await startRecorder(server.engine.url, ({ sql, beside }) => {
    for (const text of [...beside, sql]) statements.add(text)
  })
  t.teardown(async () => {
    recorder.stop()
    await server.stop()
  })
  const { username, password } = server.engine
  return {
    env: {
      ...server.env,
      CLICKHOUSE_URL: recorder.url,
      CLICKHOUSE_USER: username,
      CLICKHOUSE_PASSWORD: password,
    },
    server,
    statements,
  }
}

export interface Recorded {
  readonly sql: string
  /** Names and values of settings, and other parameters that are not bound. */
  readonly beside: readonly string[]
}

export interface Recorder {
  readonly url: string
  /** Queries without an answer yet. */
  running(): number
  stop(): void
}

/** Forwards all requests to a server, and calls back with each query. */
export async function startRecorder(
  url: string,
  note: (statement: Recorded) => void,
): Promise<Recorder> {
  const { hostname, port } = new URL(url)
  let running = 0
  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    running++
    outgoing.on('close', () => running--)
    const body = Buffer.concat(await incoming.toArray())
    note(statementOf(incoming, body))
    const { method = 'GET', headers, url: path = '/' } = incoming
    const onward = httpRequest({ hostname, port, method, path, headers })
    onward.on('response', (reply) => {
      outgoing.writeHead(reply.statusCode ?? 500, reply.headers)
      reply.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    onward.end(body)
  }
  const proxy = createServer((incoming, outgoing) => {
    void pass(incoming, outgoing).catch(() => outgoing.destroy())
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const address = proxy.address()
  if (address === null || typeof address === 'string') throw new Error('bug: no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    running: () => running,
    stop: () => {
      proxy.closeAllConnections()
      proxy.close()
    },
  }
}

/** The SQL and the settings of a request; the body of an insert is rows. */
function statementOf({ url = '/', headers }: IncomingMessage, body: Buffer): Recorded {
  const { searchParams } = new URL(url, 'http://engine')
  const settings = [...searchParams].filter(
    ([name]) => name !== 'query' && !name.startsWith('param_'),
  )
  const texts = settings.map(([name, value]) => `${name}=${value}`)
  // Each of these parameters has a random value.
  const beside = texts.filter((text) => !/^(?:query_id|insert_deduplication_token)=/.test(text))
  const sql = searchParams.get('query')
  if (sql !== null) return { sql, beside }
  const boundary = /boundary=([^;]+)/.exec(headers['content-type'] ?? '')?.[1]
  if (boundary === undefined) return { sql: body.toString('utf8'), beside }
  const parts = body.toString('utf8').split(`--${boundary}`)
  const query = parts.find((part) => /name="query"/.test(part.slice(0, 200)))
  // All parameters that are not bound.
  const unknown = parts.filter(
    (part) => !/^\r\n[^\r]*name="(?:query|param_\w+)"|^(?:--)?\s*$/.test(part),
  )
  return {
    sql: query?.split('\r\n\r\n').slice(1).join('\r\n\r\n') ?? '',
    beside: [...beside, ...unknown],
  }
}
