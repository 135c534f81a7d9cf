import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import { startBackend } from './cluster.js'

/** What becomes of the requests for ClickHouse. */
type Mood =
  /** passed on */
  | 'well'
  /** the connection is cut */
  | 'gone'
  /** refused as by a server that lost a table, which no retry mends */
  | 'broken'

export interface UnrulyClickHouse {
  /** settings of a service that works with it */
  readonly env: Readonly<Record<string, string>>
  mood: Mood
}

interface Test {
  teardown(end: () => Promise<void>): void
}

/** A real engine behind a door that a test can shut. */
export async function startUnrulyClickHouse(t: Test): Promise<UnrulyClickHouse> {
  const server = await startBackend()
  const { hostname, port } = new URL(server.engine.url)
  const door: { mood: Mood } = { mood: 'well' }
  const proxy = createServer((incoming, outgoing) => {
    if (door.mood === 'gone') {
      incoming.socket.destroy()
      return
    }
    if (door.mood === 'broken') {
      incoming.resume()
      outgoing.writeHead(404, { 'x-clickhouse-exception-code': '60' })
      outgoing.end("Code: 60. DB::Exception: Table logs.events doesn't exist. (UNKNOWN_TABLE)")
      return
    }
    const { method, url: path, headers } = incoming
    const onward = httpRequest({ hostname, port, method, path, headers }, (reply) => {
      outgoing.writeHead(reply.statusCode ?? 500, reply.headers)
      reply.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    incoming.on('error', () => onward.destroy())
    incoming.pipe(onward)
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
  return {
    env: {
      ...server.env,
      CLICKHOUSE_URL: `http://127.0.0.1:${address.port}`,
      CLICKHOUSE_USER: server.engine.username,
      CLICKHOUSE_PASSWORD: server.engine.password,
    },
    get mood() {
      return door.mood
    },
    set mood(mood) {
      door.mood = mood
    },
  }
}
