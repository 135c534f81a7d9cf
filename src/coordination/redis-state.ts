import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  compareAndSetScript,
  consumeScript,
  releaseScript,
  renewScript,
  run,
} from './redis-scripts.js'
import { createListeners, type Listeners } from './listeners.js'
import { openLink, type Link } from './redis-link.js'
import { stateUnavailable, type State } from './state.js'
import { createLocalLocks } from './local-locks.js'
import { mergeSpanMs } from './sliding-window.js'

interface RedisStateOptions {
  /** With the scheme redis or rediss, and optionally user, password and database. */
  readonly url: string
  /** The prefix of every key and channel. */
  readonly keyPrefix: string
  /** Called for a lost connection, once per outage and reason, and for a subscriber that throws. */
  readonly onError: (error: unknown) => void
  /** The longest time for one command; default 1 s. */
  readonly commandTimeoutMs?: number
  /** The longest wait for a lock; default 10 s. */
  readonly lockWaitMs?: number
}

/**
 * Opens the state that instances share. Needs Redis 6.2 or newer, one server (no Redis Cluster). Resolves
 * without a connection too; the status is down until there is one.
 */
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
type Values = Pick<State, 'get' | 'set' | 'setIfAbsent' | 'compareAndSet' | 'delete'>

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
  // `resubscribe` of redis-link.ts makes up for a failure when the connection is ready again.
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
  // Waiters of this process queue up here, so that only one of them polls Redis.
  const local = createLocalLocks(waitMs)

  const acquire = async (key: string, owner: string, ttlMs: number): Promise<void> => {
    const untilMs = performance.now() + waitMs
    for (let attempt = 0; performance.now() < untilMs; attempt++) {
      if ((await call((redis) => redis.set(key, owner, 'PX', ttlMs, 'NX'))) === 'OK') return
      await delay(Math.random() * Math.min(10 * 2 ** Math.min(attempt, 4), 100))
    }
    throw stateUnavailable(`another one was not done within ${waitMs} ms`)
  }

  return {
    withLock: async (name, ttlMs, work) => {
      const releaseLocal = await local.acquire(name)
      const key = keyOf(`lock:${name}`)
      const owner = randomUUID()
      try {
        await acquire(key, owner, ttlMs)
        const lost = new AbortController()
        const renewal = keepRenewed(ttlMs, lost, async () => {
          return (await call((redis) => run(redis, renewScript, [key], [owner, ttlMs]))) === 1
        })
        try {
          return await work({ signal: lost.signal })
        } finally {
          clearInterval(renewal)
          // When this fails the lock expires.
          await call((redis) => run(redis, releaseScript, [key], [owner])).catch(() => undefined)
        }
      } finally {
        releaseLocal()
      }
    },
  }
}

/**
 * Renews a lock three times in its lifetime. The lock is lost when a renewal is refused, or when renewals fail
 * until the lifetime is over.
 */
function keepRenewed(
  ttlMs: number,
  lost: AbortController,
  renew: () => Promise<boolean>,
): NodeJS.Timeout {
  let aliveUntilMs = performance.now() + ttlMs
  const attempt = async (): Promise<void> => {
    const sentMs = performance.now()
    try {
      if (await renew()) aliveUntilMs = sentMs + ttlMs
      else lost.abort()
    } catch {
      if (performance.now() >= aliveUntilMs) lost.abort()
    }
  }
  return setInterval(() => void attempt(), ttlMs / 3).unref()
}
