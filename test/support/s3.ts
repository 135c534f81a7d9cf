import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from '@20minutes/s3rver'
import { freePort } from './ports.js'

/** The keys that the server knows. */
export const S3_KEY = 'S3RVER'

export interface TestS3 {
  /** The settings of a service that uses it. */
  readonly env: Readonly<Record<string, string>>
  /** Where it keeps objects. */
  readonly dir: string
  down(): Promise<void>
  up(): Promise<void>
  /** From now on it takes requests and answers none, until `thaw`. */
  freeze(): void
  thaw(): void
}

/** The part of tap's tests that ends something after the test. */
interface Owner {
  teardown(end: () => Promise<unknown> | void): void
}

/** Starts an S3 server with an empty bucket. */
export async function startS3(owner: Owner): Promise<TestS3> {
  const dir = mkdtempSync(join(tmpdir(), 's3-test-'))
  const port = await freePort()
  const frontPort = await freePort()
  const make = (): S3rver =>
    new S3rver({
      port,
      address: '127.0.0.1',
      silent: true,
      directory: dir,
      configureBuckets: [{ name: 'logs' }],
    })
  let server: S3rver | null = null
  const down = async (): Promise<void> => {
    front.close()
    await server?.close()
    server = null
  }
  const up = async (): Promise<void> => {
    server = make()
    await server.run()
    await front.listen()
  }
  const front = createFront(frontPort, port)
  await up()
  owner.teardown(async () => {
    await down()
    rmSync(dir, { recursive: true, force: true })
  })
  const env = {
    S3_URL: `http://127.0.0.1:${frontPort}/logs/engine`,
    S3_ACCESS_KEY_ID: S3_KEY,
    S3_SECRET_ACCESS_KEY: S3_KEY,
  }
  return { env, dir, down, up, freeze: front.freeze, thaw: front.thaw }
}

/** A port before another one, which passes nothing on while it is frozen. */
function createFront(port: number, behindPort: number) {
  let isFrozen = false
  const open = new Set<Socket>()
  const track = (socket: Socket): Socket => {
    open.add(socket.on('error', () => socket.destroy()).once('close', () => open.delete(socket)))
    if (isFrozen) socket.pause()
    return socket
  }
  const server = createServer((client) => {
    if (isFrozen) return void track(client)
    const behind = connect(behindPort, '127.0.0.1')
    track(client).pipe(track(behind)).pipe(client)
    client.once('close', () => behind.destroy())
    behind.once('close', () => client.destroy())
  })
  const endAll = (): void => {
    for (const socket of open) socket.destroy()
  }
  return {
    listen: async (): Promise<void> => {
      await once(server.listen(port, '127.0.0.1'), 'listening')
    },
    freeze: (): void => {
      isFrozen = true
      for (const socket of open) socket.unpipe().pause()
    },
    /** What hung is ended. */
    thaw: (): void => {
      isFrozen = false
      endAll()
    },
    close: (): void => {
      server.close()
      endAll()
    },
  }
}
