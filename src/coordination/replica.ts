import { randomUUID } from 'node:crypto'

import type { State } from './state.js'
import { DAY_MS } from '../model/time.js'

/**
 * This instance's replica of the records in ClickHouse, updated with the changes of other instances. Each
 * change sets a new generation in the shared state and publishes a message; a replica that finds another
 * generation than its own reads what was stored since. Messages and generations may be lost, so it also reads
 * every few seconds.
 */
export interface Replica {
  /**
   * Resolves when everything that was stored anywhere before the call is known here, as far as the shared
   * state shows it. Never rejects: while the state or ClickHouse is down or too slow, callers go on with what
   * is known.
   */
  refresh(): Promise<void>
  /** Announces a change; resolves when `refresh` of the other instances finds it. Never rejects. */
  notify(): Promise<void>
  /** Resolves when everything that was stored before the call is known here. @throws the error of a read */
  catchUp(): Promise<void>
  /** Adds a function that every catch-up calls. */
  onCatchUp(read: () => Promise<void>): void
  /** When the last successful catch-up began, by `performance.now`. */
  readonly caughtUpAtMs: number
  close(): Promise<void>
}

interface ReplicaDeps {
  readonly state: Pick<
    State,
    'get' | 'set' | 'setIfAbsent' | 'compareAndSet' | 'publish' | 'subscribe' | 'onStatus'
  >
  readonly onError: (error: unknown) => void
  /** Milliseconds between two periodic catch-ups. Default 3000. */
  readonly everyMs?: number
}

const CHANNEL = 'changed'
/** A random text that every change replaces. */
const GENERATION = 'changed:generation'
const GENERATION_TTL_MS = DAY_MS
const EVERY_MS = 3_000
/** For this long after a failed catch-up, `refresh` returns without one. */
const FAILED_PAUSE_MS = 5_000
/** A request has 30 s in all; it waits this long for the changes of others. */
const REFRESH_MS = 10_000

export async function createReplica(deps: ReplicaDeps): Promise<Replica> {
  const replica = new FollowingReplica(deps)
  await replica.begin()
  return replica
}

/** The replica of a single instance, which nothing else changes. */
export const singleReplica: Replica = {
  refresh: () => Promise.resolve(),
  notify: () => Promise.resolve(),
  catchUp: () => Promise.resolve(),
  onCatchUp: () => undefined,
  get caughtUpAtMs() {
    return performance.now()
  },
  close: () => Promise.resolve(),
}

class FollowingReplica implements Replica {
  caughtUpAtMs = Number.NEGATIVE_INFINITY
  readonly #deps: ReplicaDeps
  readonly #self = randomUUID()
  readonly #ends: (() => void)[] = []
  readonly #reads: (() => Promise<void>)[] = []
  /** The generation up to which everything is known here; null when there was none. */
  #known: string | null = ''
  /** When the last catch-up failed; -Infinity after a success. */
  #failedAtMs = Number.NEGATIVE_INFINITY
  /** Catch-ups follow one another; a call during one waits for the next. */
  #running: Promise<unknown> = Promise.resolve()
  #next: Promise<void> | null = null
  #nextCatchUp: Promise<void> | null = null
  #notifying: Promise<unknown> = Promise.resolve()
  #nextNotified: Promise<void> | null = null

  constructor(deps: ReplicaDeps) {
    this.#deps = deps
  }

  async begin(): Promise<void> {
    const { state, everyMs = EVERY_MS } = this.#deps
    const end = await state.subscribe(CHANNEL, (origin) => {
      if (origin !== this.#self) void this.refresh()
    })
    // Messages during an outage of the state are lost.
    const endStatus = state.onStatus((status) => {
      if (status === 'ok') void this.refresh()
    })
    const timer = setInterval(() => void this.catchUp().catch(() => undefined), everyMs).unref()
    this.#ends.push(end, endStatus, () => clearInterval(timer))
  }

  onCatchUp(read: () => Promise<void>): void {
    this.#reads.push(read)
    this.#known = ''
    this.caughtUpAtMs = Number.NEGATIVE_INFINITY
  }

  refresh(): Promise<void> {
    if (this.#next !== null) return this.#next
    const compared = this.#running.then(() => this.#compare())
    this.#next = atMost(compared, REFRESH_MS)
    this.#running = compared
    return this.#next
  }

  catchUp(): Promise<void> {
    if (this.#nextCatchUp !== null) return this.#nextCatchUp
    const caughtUp = this.#running.then(() => {
      this.#nextCatchUp = null
      return this.#read()
    })
    this.#nextCatchUp = caughtUp
    this.#running = caughtUp.catch(() => undefined)
    return caughtUp
  }

  notify(): Promise<void> {
    if (this.#nextNotified !== null) return this.#nextNotified
    const notified = this.#notifying.then(() => this.#publish()).catch(this.#deps.onError)
    this.#nextNotified = notified
    this.#notifying = notified
    return notified
  }

  async close(): Promise<void> {
    for (const end of this.#ends) end()
    await this.#running
    await this.#notifying
  }

  /** Never rejects. */
  async #compare(): Promise<void> {
    this.#next = null
    if (performance.now() - this.#failedAtMs < FAILED_PAUSE_MS) return
    try {
      const generation = await this.#deps.state.get(GENERATION)
      if (generation === this.#known) return
      await this.#read()
      this.#known = generation
    } catch {
      // `#read` has reported its error, and the state reports its own.
    }
  }

  async #read(): Promise<void> {
    const startedMs = performance.now()
    try {
      await Promise.all(this.#reads.map((read) => read()))
    } catch (error) {
      // Reported once per outage.
      if (this.#failedAtMs === Number.NEGATIVE_INFINITY) this.#deps.onError(error)
      this.#failedAtMs = performance.now()
      throw error
    }
    this.#failedAtMs = Number.NEGATIVE_INFINITY
    this.caughtUpAtMs = startedMs
  }

  async #publish(): Promise<void> {
    this.#nextNotified = null
    const { state } = this.#deps
    const next = randomUUID()
    // An instance that has read everything else need not read its own change.
    const isUpToDate =
      this.#known === null
        ? await state.setIfAbsent(GENERATION, next, GENERATION_TTL_MS)
        : await state.compareAndSet(GENERATION, this.#known, next, GENERATION_TTL_MS)
    if (isUpToDate) this.#known = next
    else await state.set(GENERATION, next, GENERATION_TTL_MS)
    await state.publish(CHANNEL, this.#self)
  }
}

/** Resolves when the work is done, or after the time. */
async function atMost(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, late])
  clearTimeout(timer)
}
