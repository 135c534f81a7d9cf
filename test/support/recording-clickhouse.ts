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
  const { hostname, port } = new URL(server.engine.url)
  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = Buffer.concat(await incoming.toArray())
    for (const text of statementsOf(incoming, body)) statements.add(text)
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
  t.teardown(async () => {
    proxy.closeAllConnections()
    proxy.close()
    await server.stop()
  })
  const { username, password } = server.engine
  return {
    env: {
      ...server.env,
      CLICKHOUSE_URL: `http://127.0.0.1:${address.port}`,
      CLICKHOUSE_USER: username,
      CLICKHOUSE_PASSWORD: password,
    },
    server,
    statements,
  }
}

/** What ClickHouse reads as SQL or as a setting. An insert's body is rows. */
function statementsOf({ url = '/', headers }: IncomingMessage, body: Buffer): string[] {
  const { searchParams } = new URL(url, 'http://engine')
  const beside = [...searchParams].filter(([name]) => !name.startsWith('param_'))
  const texts = beside.map(([name, value]) => (name === 'query' ? value : `${name}=${value}`))
  // each is another
  const told = texts.filter((text) => !/^(?:query_id|insert_deduplication_token)=/.test(text))
  if (searchParams.has('query')) return told
  const boundary = /boundary=([^;]+)/.exec(headers['content-type'] ?? '')?.[1]
  if (boundary === undefined) return [...told, body.toString('utf8')]
  const parts = body.toString('utf8').split(`--${boundary}`)
  const query = parts.find((part) => /name="query"/.test(part.slice(0, 200)))
  // everything that is not bound
  const unknown = parts.filter(
    (part) => !/^\r\n[^\r]*name="(?:query|param_\w+)"|^(?:--)?\s*$/.test(part),
  )
  return [...told, ...unknown, query?.split('\r\n\r\n').slice(1).join('\r\n\r\n') ?? '']
}
