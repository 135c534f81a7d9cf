import { LRUCache } from 'lru-cache'
import { spend, type WindowLog } from './window.js'
import { createListeners, type Listeners } from './listeners.js'
import { createTurns } from './turns.js'
import type { Lease, State } from './state.js'

interface InProcessOptions {
  /** told when a subscriber throws */
  readonly onError: (error: unknown) => void
  /** ms, never 0, never backwards; default the system's time at the start and steady from there */
  readonly nowMs?: () => number
  /** bytes of keys and values kept at most; the least recently used go first. Default 64 MiB */
  readonly maxBytes?: number
  /** limit windows kept at most; one that is pushed out starts afresh. Default 100,000 */
  readonly maxWindows?: number
  /** how long a lock is waited for; default 10 s */
  readonly lockWaitMs?: number
}

const MAX_WAITING = 1_000

/** The state of a single instance: bounded memory, gone with the process. */
export function createInProcessState(options: InProcessOptions): State {
  const nowMs = options.nowMs ?? (() => performance.timeOrigin + performance.now())
  const values = createValues(options.maxBytes ?? 64 * 1024 * 1024, nowMs)
  const windows = createWindows(options.maxWindows ?? 100_000, nowMs)
  const listeners = createListeners(options.onError)
  const locks = createLocks(options.lockWaitMs ?? 10_000, nowMs)
  return {
    kind: 'in-process',
    ...values,
    ...windows,
    ...createSignals(listeners),
    ...locks,
    onStatus: (listener) => {
      listener('ok')
      return () => undefined
    },
    ping: async () => 0,
    close: async () => {
      listeners.clear()
    },
  }
}

type Values = Pick<State, 'get' | 'set' | 'setIfAbsent' | 'compareAndSet' | 'take' | 'delete'>

function createValues(maxBytes: number, nowMs: () => number): Values {
  const entries = new LRUCache<string, string>({
    maxSize: maxBytes,
    // two bytes a character and what an entry of the cache takes beside it
    sizeCalculation: (value, key) => 2 * (key.length + value.length) + 200,
    ttl: 1,
    ttlResolution: 0,
    perf: { now: nowMs },
  })
  return {
    get: async (key) => entries.get(key) ?? null,
    set: async (key, value, ttlMs) => {
      entries.set(key, value, { ttl: ttlMs })
    },
    setIfAbsent: async (key, value, ttlMs) => {
      if (entries.has(key)) return false
      entries.set(key, value, { ttl: ttlMs })
      return true
    },
    compareAndSet: async (key, expected, next, ttlMs) => {
      if (entries.get(key) !== expected) return false
      entries.set(key, next, { ttl: ttlMs })
      return true
    },
    take: async (key) => {
      const value = entries.get(key) ?? null
      entries.delete(key)
      return value
    },
    delete: async (key) => {
      entries.delete(key)
    },
  }
}

function createWindows(max: number, nowMs: () => number): Pick<State, 'consume'> {
  let made: LRUCache<string, WindowLog> | null = null
  const make = (): LRUCache<string, WindowLog> =>
    new LRUCache({ max, ttl: 1, ttlResolution: 0, perf: { now: nowMs } })
  return {
    consume: async (key, limit, windowS, cost = 1) => {
      // takes all its room at once: not before somebody asks
      const logs = (made ??= make())
      const log = logs.get(key) ?? []
      const windowMs = Math.ceil(windowS * 1000)
      const verdict = spend(log, { nowMs: nowMs(), limit, windowMs, cost })
      if (verdict.allowed) logs.set(key, log, { ttl: windowMs })
      return verdict
    },
  }
}

function createSignals(listeners: Listeners): Pick<State, 'publish' | 'subscribe'> {
  return {
    publish: async (channel, message) => {
      setImmediate(listeners.deliver, channel, message)
    },
    subscribe: async (channel, listener) => listeners.add(channel, listener),
  }
}

function createLocks(waitMs: number, nowMs: () => number): Pick<State, 'withLock'> {
  const turns = createTurns({ waitMs, maxWaiting: MAX_WAITING })
  let lastFence = 0
  return {
    withLock: async (key, _ttlMs, work) => {
      const release = await turns.acquire(key)
      // microseconds of the clock, so that it grows across restarts too
      lastFence = Math.max(lastFence + 1, Math.floor(nowMs() * 1000))
      const lease: Lease = { fence: lastFence, signal: new AbortController().signal }
      try {
        return await work(lease)
      } finally {
        release()
      }
    },
  }
}
