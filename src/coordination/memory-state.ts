import { LRUCache } from 'lru-cache'
import { spend, type WindowLog } from './sliding-window.js'
import { createListeners, type Listeners } from './listeners.js'
import { createLocalLocks } from './local-locks.js'
import type { State } from './state.js'

interface InProcessOptions {
  /** Called when a subscriber throws. */
  readonly onError: (error: unknown) => void
  /** Monotonic and never 0. Default: the system time at the start plus the time since. */
  readonly nowMs?: () => number
  /** Most bytes of keys and values; the least recently used are evicted. Default 64 MiB. */
  readonly maxBytes?: number
  /** Most sliding windows; an evicted one starts empty. Default 100,000. */
  readonly maxWindows?: number
  /** The longest wait for a lock; default 10 s. */
  readonly lockWaitMs?: number
}

/** The state of a single instance: in bounded memory, lost with the process. */
export function createInProcessState(options: InProcessOptions): State {
  const nowMs = options.nowMs ?? (() => performance.timeOrigin + performance.now())
  const values = createValues(options.maxBytes ?? 64 * 1024 * 1024, nowMs)
  const windows = createWindows(options.maxWindows ?? 100_000, nowMs)
  const listeners = createListeners(options.onError)
  const locks = createLocalLocks(options.lockWaitMs ?? 10_000)
  return {
    kind: 'in-process',
    ...values,
    ...windows,
    ...createSignals(listeners),
    withLock: async (key, _ttlMs, work) => {
      const release = await locks.acquire(key)
      try {
        return await work({ signal: new AbortController().signal })
      } finally {
        release()
      }
    },
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

type Values = Pick<State, 'get' | 'set' | 'setIfAbsent' | 'compareAndSet' | 'delete'>

function createValues(maxBytes: number, nowMs: () => number): Values {
  const entries = new LRUCache<string, string>({
    maxSize: maxBytes,
    // Two bytes a character, and about 200 for the cache's own bookkeeping of an entry.
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
      // The cache allocates all its memory at once, so it is created by the first use.
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
