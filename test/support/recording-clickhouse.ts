import { once } from 'node:events'
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { startBackend, type Backend } from './cluster.js'

export interface RecordingClickHouse {
  /** settings of a service that works with it */
  readonly env: Readonly<Record<string, string>>
  readonly server: Backend
  /** the text of every statement that came, and the names and values of settings beside it; not what is bound */
  readonly statements: ReadonlySet<string>
}

interface Test {
  teardown(end: () => Promise<void>): void
}

/** A real engine behind a door that writes down what is asked of it. */
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
  /** names and values of settings, and whatever else came that is not bound */
  readonly beside: readonly string[]
}

export interface Recorder {
  readonly url: string
  /** statements that are not answered yet */
  running(): number
  stop(): void
}

/** Passes everything on to a server, and tells of each statement when it comes. */
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

/** What ClickHouse reads as SQL or as a setting. An insert's body is rows. */
function statementOf({ url = '/', headers }: IncomingMessage, body: Buffer): Recorded {
  const { searchParams } = new URL(url, 'http://engine')
  const settings = [...searchParams].filter(
    ([name]) => name !== 'query' && !name.startsWith('param_'),
  )
  const texts = settings.map(([name, value]) => `${name}=${value}`)
  // each is another
  const beside = texts.filter((text) => !/^(?:query_id|insert_deduplication_token)=/.test(text))
  const sql = searchParams.get('query')
  if (sql !== null) return { sql, beside }
  const boundary = /boundary=([^;]+)/.exec(headers['content-type'] ?? '')?.[1]
  if (boundary === undefined) return { sql: body.toString('utf8'), beside }
  const parts = body.toString('utf8').split(`--${boundary}`)
  const query = parts.find((part) => /name="query"/.test(part.slice(0, 200)))
  // everything that is not bound
  const unknown = parts.filter(
    (part) => !/^\r\n[^\r]*name="(?:query|param_\w+)"|^(?:--)?\s*$/.test(part),
  )
  return {
    sql: query?.split('\r\n\r\n').slice(1).join('\r\n\r\n') ?? '',
    beside: [...beside, ...unknown],
  }
}
