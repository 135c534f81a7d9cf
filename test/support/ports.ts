import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ephemeral ports, because an outgoing connection may take one of those between two listeners. */
const [LOWEST, HIGHEST] = [12_000, 30_000]

/** A free port of the loopback address. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST)
    const server = createServer()
    server.listen({ host: '127.0.0.1', port, exclusive: true })
    const isFree = await Promise.race([
      once(server, 'listening').then(() => true),
      once(server, 'error').then(() => false),
    ])
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}
