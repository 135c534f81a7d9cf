import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/**
 * Records what is posted to it. `answers` are the statuses of the next requests; then it answers 503 to what comes too early, and 200
 * to the rest.
 */
export async function startReceiver(
  t: { teardown(end: () => Promise<void> | void): void },
  isEarly: (one: Received) => boolean = () => false,
) {
  const received: Received[] = []
  const answers: number[] = []
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const { url: path = '', headers } = request
      const one = { path, headers, body: await text(request) }
      received.push(one)
      const status = answers.shift() ?? (isEarly(one) ? 503 : 200)
      response
        .writeHead(status, status === 302 ? { location: '/elsewhere' } : {})
        .end('{"ok":true,"channel":"C1","ts":"1700.25"}')
    }
    void answer()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo // it listens on TCP
  return { url: `http://127.0.0.1:${port}`, received, answers }
}
