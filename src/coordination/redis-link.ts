import type { Redis, RedisOptions } from 'ioredis'
import type { Listeners } from './listeners.js'
import { stateUnavailable, type StateStatus } from './state.js'

interface LinkOptions {
  /** With the scheme redis or rediss. */
  readonly url: string
  readonly commandTimeoutMs: number
  /** Called when a connection fails, once per outage and reason. */
  readonly onError: (error: unknown) => void
  /** The listeners for the messages that the subscriber receives. */
  readonly listeners: Listeners
}

/**
 * The connections to Redis, and whether it answers.
 * ok ─closed, or a command timed out─▶ down;  down ─both connections answer─▶ ok
 * While down, commands are refused at once: nothing queues up behind a silent server.
 */
export interface Link {
  /** @throws AppError dependency_unavailable for every failure */
  readonly call: <T>(command: (redis: Redis) => Promise<T>) => Promise<T>
  /** The connection that only subscribes. */
  readonly subscriber: Redis
  readonly onStatus: (listener: (status: StateStatus) => void) => () => void
  readonly close: () => Promise<void>
}

/** Time between two checks of the connections; also how long a recovery may go unnoticed. */
const HEARTBEAT_MS = 1_000

/** Resolves when the first attempt to connect has succeeded or failed; the attempts continue. */
export async function openLink(options: LinkOptions): Promise<Link> {
  const redis = await connectLater(options)
  const subscriber = await connectLater(options)
  const status = createStatusCell()
  const report = oncePerOutage(options.onError, status)
  for (const connection of [redis, subscriber]) {
    connection.on('error', report)
    connection.on('close', () => status.set('down'))
  }
  const check = createCheck(redis, subscriber, options.listeners)
  const update = async (): Promise<void> => status.set(await check())
  for (const connection of [redis, subscriber]) connection.on('ready', () => void update())
  subscriber.on('message', options.listeners.deliver)
  await Promise.all([redis, subscriber].map((each) => each.connect().catch(() => undefined)))
  await update()
  const heartbeat = setInterval(() => void update(), HEARTBEAT_MS).unref()

  return {
    subscriber,
    call: async (command) => {
      if (status.get() === 'down') throw stateUnavailable('redis does not answer')
      try {
        return await command(redis)
      } catch (error) {
        if (isTimeout(error)) status.set('down')
        throw stateUnavailable('redis did not carry out a command', error)
      }
    },
    onStatus: status.onStatus,
    close: async () => {
      clearInterval(heartbeat)
      redis.disconnect()
      subscriber.disconnect()
    },
  }
}

/** Reports an error once per outage and reason, because both connections retry about every second. */
function oncePerOutage(
  onError: (error: unknown) => void,
  status: StatusCell,
): (error: Error) => void {
  const reported = new Set<string>()
  status.onStatus((current) => {
    if (current === 'ok') reported.clear()
  })
  return (error) => {
    if (reported.has(error.message)) return
    reported.add(error.message)
    onError(error)
  }
}

/**
 * Pings both connections. A reconnected subscriber subscribes again first, so that no message is
 * missed once the status is `ok`.
 */
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
  // Loaded on use, because a service without Redis does not need the client. In a bundle a CommonJS
  // package that is imported later has only a default export.
  const {
    default: { Redis },
  } = await import('ioredis')
  const options: RedisOptions = {
    lazyConnect: true,
    connectTimeout: 2_000,
    commandTimeout: commandTimeoutMs,
    // A server that hangs is reconnected to. Twice the timeout, so that the command's own comes first.
    socketTimeout: 2 * commandTimeoutMs,
    keepAlive: 10_000,
    enableOfflineQueue: false,
    // A command whose outcome is unknown is never sent again: counting twice would be worse.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // `resubscribe` does this, also for channels that were added during an outage.
    autoResubscribe: false,
    retryStrategy: (attempts) => Math.min(50 * 2 ** Math.min(attempts, 6), 2_000),
    disableClientInfo: true,
  }
  return new Redis(url, options)
}

const isTimeout = (error: unknown): boolean =>
  error instanceof Error && error.message === 'Command timed out'

interface StatusCell {
  readonly set: (status: StateStatus) => void
  readonly get: () => StateStatus
  readonly onStatus: (listener: (status: StateStatus) => void) => () => void
}

function createStatusCell(): StatusCell {
  let current: StateStatus = 'down'
  const listeners = new Set<(status: StateStatus) => void>()
  return {
    set: (status) => {
      if (status === current) return
      current = status
      for (const listener of listeners) listener(status)
    },
    get: () => current,
    onStatus: (listener) => {
      const own = (status: StateStatus): void => listener(status)
      listeners.add(own)
      listener(current)
      return () => listeners.delete(own)
    },
  }
}
