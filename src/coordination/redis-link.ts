import type { Redis, RedisOptions } from 'ioredis'
import type { Listeners } from './listeners.js'
import { stateUnavailable, type StateStatus } from './state.js'

interface LinkOptions {
  /** redis:// or rediss:// */
  readonly url: string
  readonly commandTimeoutMs: number
  /** told what went wrong with a connection, once per outage */
  readonly onError: (error: unknown) => void
  /** who gets what the subscriber hears */
  readonly listeners: Listeners
}

/**
 * The connections to Redis and whether it answers.
 * ok ─closed, or a command timed out─▶ down;  down ─both connections answer─▶ ok
 * While down, commands are refused at once: nothing queues up behind a server that is silent.
 */
export interface Link {
  /** @throws AppError dependency_unavailable whatever went wrong */
  readonly call: <T>(command: (redis: Redis) => Promise<T>) => Promise<T>
  /** a connection that only subscribes */
  readonly subscriber: Redis
  readonly onStatus: (listener: (status: StateStatus) => void) => () => void
  readonly close: () => Promise<void>
}

/** How often silence is looked into; also how long a recovery may go unnoticed. */
const HEARTBEAT_MS = 1_000

/** Resolves when the first attempt to connect has ended, well or badly; it goes on trying. */
export async function openLink(options: LinkOptions): Promise<Link> {
  const redis = await connectLater(options)
  const subscriber = await connectLater(options)
  const gauge = createGauge()
  const report = oncePerOutage(options.onError, gauge)
  for (const connection of [redis, subscriber]) {
    connection.on('error', report)
    connection.on('close', () => gauge.set('down'))
  }
  const check = createCheck(redis, subscriber, options.listeners)
  const look = async (): Promise<void> => gauge.set(await check())
  for (const connection of [redis, subscriber]) connection.on('ready', () => void look())
  subscriber.on('message', options.listeners.deliver)
  await Promise.all([redis, subscriber].map((each) => each.connect().catch(() => undefined)))
  await look()
  const heartbeat = setInterval(() => void look(), HEARTBEAT_MS).unref()

  return {
    subscriber,
    call: async (command) => {
      if (gauge.status() === 'down') throw stateUnavailable('redis does not answer')
      try {
        return await command(redis)
      } catch (error) {
        if (isTimeout(error)) gauge.set('down')
        throw stateUnavailable('redis did not carry out a command', error)
      }
    },
    onStatus: gauge.onStatus,
    close: async () => {
      clearInterval(heartbeat)
      redis.disconnect()
      subscriber.disconnect()
    },
  }
}

/** Both connections try again every second or so: the same error would be told as often. */
function oncePerOutage(onError: (error: unknown) => void, gauge: Gauge): (error: unknown) => void {
  let isTold = false
  gauge.onStatus((status) => {
    if (status === 'ok') isTold = false
  })
  return (error) => {
    if (!isTold) onError(error)
    isTold = true
  }
}

/** Asks both connections; one that came up again first gets its subscriptions back, so that
 * whoever hears `ok` misses nothing from then on. */
function createCheck(
  redis: Redis,
  subscriber: Redis,
  listeners: Listeners,
): () => Promise<StateStatus> {
  let subscribed = false
  subscriber.on('close', () => {
    subscribed = false
  })
  const resubscribe = async (): Promise<void> => {
    const channels = listeners.channels()
    if (channels.length > 0) await subscriber.subscribe(...channels)
    subscribed = true
  }
  const isReady = (): boolean => redis.status === 'ready' && subscriber.status === 'ready'
  return async () => {
    if (!isReady()) return 'down'
    try {
      await Promise.all([redis.ping(), subscribed ? subscriber.ping() : resubscribe()])
    } catch {
      return 'down'
    }
    return isReady() ? 'ok' : 'down'
  }
}

async function connectLater({ url, commandTimeoutMs }: LinkOptions): Promise<Redis> {
  // who has no Redis does without its client
  const { Redis } = await import('ioredis')
  const options: RedisOptions = {
    lazyConnect: true,
    connectTimeout: 2_000,
    commandTimeout: commandTimeoutMs,
    // a server that stands still is reconnected to; twice the timeout, so that the command's
    // own comes first
    socketTimeout: 2 * commandTimeoutMs,
    keepAlive: 10_000,
    enableOfflineQueue: false,
    // a command whose fate is unknown is never sent again: counting twice would be worse
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // redis.ts subscribes again by itself, also to what was asked for while it was away
    autoResubscribe: false,
    retryStrategy: (attempts) => Math.min(50 * 2 ** Math.min(attempts, 6), 2_000),
    disableClientInfo: true,
  }
  return new Redis(url, options)
}

const isTimeout = (error: unknown): boolean =>
  error instanceof Error && error.message === 'Command timed out'

interface Gauge {
  readonly set: (status: StateStatus) => void
  readonly status: () => StateStatus
  readonly onStatus: (listener: (status: StateStatus) => void) => () => void
}

function createGauge(): Gauge {
  let current: StateStatus = 'down'
  const listeners = new Set<(status: StateStatus) => void>()
  return {
    set: (status) => {
      if (status === current) return
      current = status
      for (const listener of listeners) listener(status)
    },
    status: () => current,
    onStatus: (listener) => {
      const own = (status: StateStatus): void => listener(status)
      listeners.add(own)
      listener(current)
      return () => listeners.delete(own)
    },
  }
}
