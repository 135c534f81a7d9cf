import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  acquireScript,
  compareAndSetScript,
  consumeScript,
  releaseScript,
  renewScript,
  run,
} from './redis-scripts.js'
import { createListeners, type Listeners } from './listeners.js'
import { openLink, type Link } from './redis-link.js'
import { stateUnavailable, type State } from './state.js'
import { createTurns } from './turns.js'
import { mergeSpanMs } from './window.js'

interface RedisStateOptions {
  /** redis:// or rediss://, with user, password and database as usual */
  readonly url: string
  /** put before every key and channel */
  readonly keyPrefix: string
  /** told about a lost connection, once per outage, and about subscribers that throw */
  readonly onError: (error: unknown) => void
  /** how long Redis may take for one command; default 1 s */
  readonly commandTimeoutMs?: number
  /** how long a lock is waited for; default 10 s */
  readonly lockWaitMs?: number
}

const MAX_WAITING = 1_000

/** The state that instances share. Needs Redis 6.2 or newer, one server (no Redis Cluster).
 * Resolves without a connection too; then its status is down until there is one. */
export async function createRedisState(options: RedisStateOptions): Promise<State> {
  const { url, onError, keyPrefix, commandTimeoutMs = 1_000 } = options
  const listeners = createListeners(onError)
  const link = await openLink({ url, onError, commandTimeoutMs, listeners })
  const keyOf = (key: string): string => keyPrefix + key
  return {
    kind: 'redis',
    ...createValues(link, keyOf),
    ...createWindows(link, keyOf),
    ...createSignals(link, keyOf, listeners),
    ...createLocks(link, keyOf, options.lockWaitMs ?? 10_000),
    onStatus: link.onStatus,
    ping: async () => {
      const startedMs = performance.now()
      await link.call((redis) => redis.ping())
      return performance.now() - startedMs
    },
    close: link.close,
  }
}

type KeyOf = (key: string) => string
type Values = Pick<State, 'get' | 'set' | 'setIfAbsent' | 'compareAndSet' | 'take' | 'delete'>

const createValues = ({ call }: Link, keyOf: KeyOf): Values => ({
  get: (key) => call((redis) => redis.get(keyOf(key))),
  set: async (key, value, ttlMs) => {
    await call((redis) => redis.set(keyOf(key), value, 'PX', ttlMs))
  },
  setIfAbsent: async (key, value, ttlMs) =>
    (await call((redis) => redis.set(keyOf(key), value, 'PX', ttlMs, 'NX'))) === 'OK',
  compareAndSet: async (key, expected, next, ttlMs) => {
    const args = [expected, next, ttlMs]
    return (await call((redis) => run(redis, compareAndSetScript, [keyOf(key)], args))) === 1
  },
  take: (key) => call((redis) => redis.getdel(keyOf(key))),
  delete: async (key) => {
    await call((redis) => redis.del(keyOf(key)))
  },
})

function createWindows({ call }: Link, keyOf: KeyOf): Pick<State, 'consume'> {
  return {
    consume: async (key, limit, windowS, cost = 1) => {
      const windowMs = Math.ceil(windowS * 1000)
      const args = [limit, windowMs, cost, mergeSpanMs(limit, windowMs)]
      const reply = await call((redis) => run(redis, consumeScript, [keyOf(key)], args))
      const [allowed, remaining, waitMs] = Array.isArray(reply) ? reply.map(Number) : []
      if (allowed === 1) return { allowed: true, remaining: remaining ?? 0, retryAfterS: 0 }
      const retryAfterS = Math.max(1, Math.ceil((waitMs ?? windowMs) / 1000))
      return { allowed: false, remaining: 0, retryAfterS }
    },
  }
}

function createSignals(
  { call, subscriber }: Link,
  keyOf: KeyOf,
  listeners: Listeners,
): Pick<State, 'publish' | 'subscribe'> {
  // what fails here is made up for when the connection is ready again: see `resubscribe`
  const ask = async (verb: 'subscribe' | 'unsubscribe', channel: string): Promise<void> => {
    if (subscriber.status === 'ready') await subscriber[verb](channel).catch(() => undefined)
  }
  return {
    publish: async (channel, message) => {
      await call((redis) => redis.publish(keyOf(channel), message))
    },
    subscribe: async (name, listener) => {
      const channel = keyOf(name)
      const end = listeners.add(channel, listener)
      await ask('subscribe', channel)
      return () => {
        if (end()) void ask('unsubscribe', channel)
      }
    },
  }
}

function createLocks({ call }: Link, keyOf: KeyOf, waitMs: number): Pick<State, 'withLock'> {
  // within the process waiters queue up here, so that one of them at a time asks Redis
  const turns = createTurns({ waitMs, maxWaiting: MAX_WAITING })

  const acquire = async (
    keys: readonly string[],
    owner: string,
    ttlMs: number,
  ): Promise<number> => {
    const untilMs = performance.now() + waitMs
    for (let attempt = 0; performance.now() < untilMs; attempt++) {
      const fence = await call((redis) => run(redis, acquireScript, keys, [owner, ttlMs]))
      if (typeof fence === 'string') return Number(fence)
      await delay(Math.random() * Math.min(10 * 2 ** Math.min(attempt, 4), 100))
    }
    throw stateUnavailable(`lock not free within ${waitMs} ms`)
  }

  return {
    withLock: async (name, ttlMs, work) => {
      const endTurn = await turns.acquire(name)
      const keys = [keyOf(`lock:${name}`), keyOf('lock-fence')]
      const owner = randomUUID()
      const lost = new AbortController()
      try {
        const fence = await acquire(keys, owner, ttlMs)
        const renewal = keepRenewed(ttlMs, lost, async () => {
          const args = [owner, ttlMs]
          return (await call((redis) => run(redis, renewScript, keys.slice(0, 1), args))) === 1
        })
        try {
          return await work({ fence, signal: lost.signal })
        } finally {
          clearInterval(renewal)
          // when this fails the time to live ends the lock
          await call((redis) => run(redis, releaseScript, keys.slice(0, 1), [owner])).catch(
            () => undefined,
          )
        }
      } finally {
        endTurn()
      }
    },
  }
}

/** Renews three times in a lifetime; a renewal that is refused, or fails until the lifetime is
 * over, means that the lock is lost. */
function keepRenewed(
  ttlMs: number,
  lost: AbortController,
  renew: () => Promise<boolean>,
): NodeJS.Timeout {
  let aliveUntilMs = performance.now() + ttlMs
  const turn = async (): Promise<void> => {
    const sentMs = performance.now()
    try {
      if (await renew()) aliveUntilMs = sentMs + ttlMs
      else lost.abort()
    } catch {
      if (performance.now() >= aliveUntilMs) lost.abort()
    }
  }
  return setInterval(() => void turn(), ttlMs / 3).unref()
}
