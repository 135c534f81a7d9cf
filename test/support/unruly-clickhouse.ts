import { once } from 'node:events'
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBackend, type Backend } from './cluster.js'

/** How the proxy treats requests; the last five moods apply to most inserts of batches and to nothing else. */
type Mood =
  /** Forwarded. */
  | 'well'
  /** The connection is closed. */
  | 'gone'
  /** Never answered. */
  | 'silent'
  /** Forwarded, and answered later. */
  | 'slow'
  /** Refused like by a server that lost a table, which a retry does not repair. */
  | 'broken'
  /** The insert happens, and its reply is lost. */
  | 'reply lost'
  /** The connection is closed, and the insert happens afterwards. */
  | 'late'
  /** The server gets half of the insert. */
  | 'half sent'
  /** The reply is delayed until the mood changes. */
  | 'reply delayed'
  /** The server refuses the insert, because its memory limit is too small. */
  | 'starved'

export interface UnrulyClickHouse {
  /** The settings of a service that uses it. */
  readonly env: Readonly<Record<string, string>>
  readonly server: Backend
  mood: Mood
  /** The number of inserts that were disturbed. */
  readonly harmed: number
  /** The number of requests that hang. */
  readonly holding: number
}

interface Test {
  teardown(end: () => Promise<void>): void
}

const SLOW_MS = 1500
/** Some inserts succeed in every mood. */
const HARMED_SHARE = 0.7

interface Exchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
}

/**
 * An embedded engine behind a proxy that disturbs requests.
 *
 * @param shared an engine behind several proxies; it is not stopped with this one
 */
export async function startUnrulyClickHouse(
  t: Test,
  random: () => number = Math.random,
  shared: Backend | null = null,
): Promise<UnrulyClickHouse> {
  const server = shared ?? (await startBackend())
  const door = { mood: 'well' as Mood, harmed: 0 }
  /** Ends the requests that hang until the mood changes. */
  const waiting = new Set<() => void>()
  const hold = (letGo: () => void): unknown => waiting.add(letGo)

  /** Forwards the request to the engine. */
  const forward = (incoming: IncomingMessage, path = incoming.url ?? '/'): ClientRequest => {
    const { hostname, port } = new URL(server.engine.url)
    const { method, headers } = incoming
    return httpRequest({ hostname, port, method, path, headers, agent: false })
  }
  const pass = ({ incoming, outgoing }: Exchange, path?: string, answerAfterMs = 0): void => {
    const onward = forward(incoming, path)
    onward.on('response', (reply) => {
      setTimeout(() => {
        outgoing.writeHead(reply.statusCode ?? 500, reply.headers)
        reply.pipe(outgoing)
      }, answerAfterMs)
    })
    onward.on('error', () => outgoing.destroy())
    incoming.on('error', () => onward.destroy())
    incoming.pipe(onward)
  }
  /** Forwards the request, and drops the reply. */
  const passUnheard = async (incoming: IncomingMessage, body: Buffer): Promise<void> => {
    const onward = forward(incoming)
    onward.on('error', () => undefined)
    onward.end(body)
    const [reply] = (await once(onward, 'response').catch(() => [])) as IncomingMessage[] // of node itself
    if (reply === undefined) return
    reply.on('error', () => undefined).resume()
    await once(reply, 'close')
  }
  const harm = async (exchange: Exchange, mood: Mood): Promise<void> => {
    const { incoming } = exchange
    door.harmed++
    if (mood === 'starved') {
      pass(exchange, `${incoming.url}&max_memory_usage=100000`)
      return
    }
    const body = Buffer.concat(await incoming.toArray().catch(() => []))
    if (mood === 'reply lost') await passUnheard(incoming, body)
    if (mood === 'reply delayed') {
      await passUnheard(incoming, body)
      if (door.mood === mood) {
        hold(() => incoming.socket.destroy())
        return
      }
    }
    incoming.socket.destroy()
    if (mood === 'late') {
      await sleep(random() * SLOW_MS)
      await passUnheard(incoming, body)
    }
    if (mood === 'half sent') {
      const onward = forward(incoming)
      onward.on('error', () => undefined)
      onward.write(body.subarray(0, Math.floor(body.length * random())), () => onward.destroy())
    }
  }

  const proxy = createServer((incoming, outgoing) => {
    const { mood } = door
    const exchange = { incoming, outgoing }
    incoming.on('error', () => undefined)
    outgoing.on('error', () => undefined)
    switch (mood) {
      case 'well':
        return pass(exchange)
      case 'gone':
        incoming.socket.destroy()
        return undefined
      case 'silent':
        incoming.resume()
        return void hold(() => incoming.socket.destroy())
      case 'slow':
        return void sleep(random() * SLOW_MS).then(() =>
          pass(exchange, undefined, random() * SLOW_MS),
        )
      case 'broken':
        incoming.resume()
        outgoing.writeHead(404, { 'x-clickhouse-exception-code': '60' })
        outgoing.end("Code: 60. DB::Exception: Table logs.events doesn't exist. (UNKNOWN_TABLE)")
        return undefined
      case 'reply lost':
      case 'late':
      case 'half sent':
      case 'reply delayed':
      case 'starved':
        if (!isInsert(incoming) || random() > HARMED_SHARE) return pass(exchange)
        return void harm(exchange, mood)
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const address = proxy.address()
  if (address === null || typeof address === 'string') throw new Error('bug: no port')
  t.teardown(async () => {
    proxy.closeAllConnections()
    proxy.close()
    if (shared === null) await server.stop()
  })
  return {
    env: {
      ...server.env,
      CLICKHOUSE_URL: `http://127.0.0.1:${address.port}`,
      CLICKHOUSE_USER: server.engine.username,
      CLICKHOUSE_PASSWORD: server.engine.password,
    },
    server,
    get mood() {
      return door.mood
    },
    set mood(mood) {
      door.mood = mood
      for (const letGo of waiting) letGo()
      waiting.clear()
    },
    get holding() {
      return waiting.size
    },
    get harmed() {
      return door.harmed
    },
  }
}

/** Whether the request inserts a batch. */
const isInsert = ({ url = '' }: IncomingMessage): boolean =>
  /^INSERT INTO (landing|dead_letters)/.test(
    new URL(url, 'http://engine').searchParams.get('query') ?? '',
  )
