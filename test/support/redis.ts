import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { bound } from './bound.js'
import { freePort } from './ports.js'

export interface RedisServer {
  readonly url: string
  /** Stops the process without closing its connections. */
  readonly pause: () => void
  readonly resume: () => void
  /** Kills the process; `start` starts an empty one on the same port. */
  readonly kill: () => Promise<void>
  readonly start: () => Promise<void>
}

const mustRun = process.env['REQUIRE_SERVERS'] === '1' || process.env['CI'] === 'true'

/**
 * Starts a redis-server of its own on a free loopback port, without persistence.
 *
 * @param password '' for none
 * @returns null when redis-server is not installed
 * @throws Error instead, when REQUIRE_SERVERS=1 or CI=true
 */
export async function startRedis(password = ''): Promise<RedisServer | null> {
  const port = await freePort()
  let child: ChildProcess | null = null
  process.once('exit', () => child?.kill('SIGKILL'))
  const start = async (): Promise<void> => {
    child = await launch(port, password)
    await answers(port, password, child)
  }
  try {
    await start()
  } catch (error) {
    if (!mustRun && isMissing(error)) return null
    throw error
  }
  const signal = (name: NodeJS.Signals): void => {
    child?.kill(name)
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    kill: async () => {
      if (child === null || child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      signal('SIGKILL')
      await ended
    },
    start,
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT'

async function launch(port: number, password: string): Promise<ChildProcess> {
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  if (password !== '') args.push('--requirepass', password)
  const { error } = spawnSync('redis-server', ['--version'])
  if (error !== undefined) throw error
  const child = spawn(...bound('redis-server', args), { stdio: 'ignore' })
  await once(child, 'spawn')
  return child
}

async function answers(port: number, password: string, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 1_000; attempt++) {
    const probe = new Redis(port, '127.0.0.1', {
      lazyConnect: true,
      retryStrategy: null,
      ...(password === '' ? {} : { password }),
    })
    probe.on('error', () => undefined)
    try {
      await probe.connect()
      await probe.ping()
      return
    } catch {
      if (child.exitCode !== null) break
      await delay(50)
    } finally {
      probe.disconnect()
    }
  }
  throw new Error(`redis-server did not come up on port ${port}`)
}
