import { randomUUID } from 'node:crypto'

import type { State } from './state.js'
import { DAY_MS } from '../model/time.js'

/** How this instance and the others know of each other's changes. */
export interface Following {
  /**
   * Resolves when everything that was stored anywhere before the call is known here, as far as the shared
   * state can tell. Never rejects: while the state or ClickHouse is away, or too slow for who waits for an
   * answer, what is known has to do.
   */
  current(): Promise<void>
  /** What is stored must become known elsewhere: resolves when `current` of the others notices it. Never rejects. */
  changed(): Promise<void>
  /** Resolves when what was stored anywhere before the call is known here. @throws what kept it from being read */
  look(): Promise<void>
  /** Has a look take over something else too. */
  add(read: () => Promise<void>): void
  /** when the last look that succeeded began, ms of the steady clock */
  readonly knownSinceMs: number
  close(): Promise<void>
}

export interface FollowingParts {
  readonly state: Pick<
    State,
    'get' | 'set' | 'setIfAbsent' | 'compareAndSet' | 'publish' | 'subscribe' | 'onStatus'
  >
  readonly onError: (error: unknown) => void
  /** ms between two looks that nobody asked for; signals may be lost. Default 3000 */
  readonly everyMs?: number
}

const CHANNEL = 'changed'
/** a random text that changes with whatever others must take over */
const MARK = 'changed:mark'
const MARK_TTL_MS = DAY_MS
const EVERY_MS = 3_000
/** after a look that failed, those who want to be current are not kept waiting for the next one */
const LEAVE_ALONE_MS = 5_000
/** a request has 30 s for everything: so long it waits for what others changed, at most */
const CURRENT_MS = 10_000

export async function createFollowing(parts: FollowingParts): Promise<Following> {
  const follower = new Follower(parts)
  await follower.begin()
  return follower
}

/** For the only instance there is. */
export const followingNobody: Following = {
  current: () => Promise.resolve(),
  changed: () => Promise.resolve(),
  look: () => Promise.resolve(),
  add: () => undefined,
  get knownSinceMs() {
    return performance.now()
  },
  close: () => Promise.resolve(),
}

class Follower implements Following {
  knownSinceMs = Number.NEGATIVE_INFINITY
  readonly #parts: FollowingParts
  readonly #self = randomUUID()
  readonly #ends: (() => void)[] = []
  readonly #reads: (() => Promise<void>)[] = []
  /** the mark under which everything is known here, null when there was none */
  #known: string | null = ''
  /** of the last look, while none has succeeded since */
  #failedAtMs = Number.NEGATIVE_INFINITY
  /** looks follow one another; who comes while one is under way waits for the next */
  #running: Promise<unknown> = Promise.resolve()
  #next: Promise<void> | null = null
  #nextLook: Promise<void> | null = null
  #telling: Promise<unknown> = Promise.resolve()
  #nextTold: Promise<void> | null = null

  constructor(parts: FollowingParts) {
    this.#parts = parts
  }

  async begin(): Promise<void> {
    const { state, everyMs = EVERY_MS } = this.#parts
    const end = await state.subscribe(CHANNEL, (origin) => {
      if (origin !== this.#self) void this.current()
    })
    // what was announced while nothing could be heard is read when it can
    const endStatus = state.onStatus((status) => {
      if (status === 'ok') void this.current()
    })
    const timer = setInterval(() => void this.look().catch(() => undefined), everyMs).unref()
    this.#ends.push(end, endStatus, () => clearInterval(timer))
  }

  add(read: () => Promise<void>): void {
    this.#reads.push(read)
    this.#known = ''
    this.knownSinceMs = Number.NEGATIVE_INFINITY
  }

  current(): Promise<void> {
    if (this.#next !== null) return this.#next
    const compared = this.#running.then(() => this.#compare())
    this.#next = atMost(compared, CURRENT_MS)
    this.#running = compared
    return this.#next
  }

  look(): Promise<void> {
    if (this.#nextLook !== null) return this.#nextLook
    const looked = this.#running.then(() => {
      this.#nextLook = null
      return this.#read()
    })
    this.#nextLook = looked
    this.#running = looked.catch(() => undefined)
    return looked
  }

  changed(): Promise<void> {
    if (this.#nextTold !== null) return this.#nextTold
    const told = this.#telling.then(() => this.#tell()).catch(this.#parts.onError)
    this.#nextTold = told
    this.#telling = told
    return told
  }

  async close(): Promise<void> {
    for (const end of this.#ends) end()
    await this.#running
    await this.#telling
  }

  /** Never rejects. */
  async #compare(): Promise<void> {
    this.#next = null
    if (performance.now() - this.#failedAtMs < LEAVE_ALONE_MS) return
    try {
      const mark = await this.#parts.state.get(MARK)
      if (mark === this.#known) return
      await this.#read()
      this.#known = mark
    } catch {
      // what is known has to do; `#read` has told of it, and the state tells of itself
    }
  }

  async #read(): Promise<void> {
    const startedMs = performance.now()
    try {
      await Promise.all(this.#reads.map((read) => read()))
    } catch (error) {
      // once an outage
      if (this.#failedAtMs === Number.NEGATIVE_INFINITY) this.#parts.onError(error)
      this.#failedAtMs = performance.now()
      throw error
    }
    this.#failedAtMs = Number.NEGATIVE_INFINITY
    this.knownSinceMs = startedMs
  }

  async #tell(): Promise<void> {
    this.#nextTold = null
    const { state } = this.#parts
    const mark = randomUUID()
    // who knows everything else knows its own change too, and need not read it
    const isAhead =
      this.#known === null
        ? await state.setIfAbsent(MARK, mark, MARK_TTL_MS)
        : await state.compareAndSet(MARK, this.#known, mark, MARK_TTL_MS)
    if (isAhead) this.#known = mark
    else await state.set(MARK, mark, MARK_TTL_MS)
    await state.publish(CHANNEL, this.#self)
  }
}

/** Resolves with the work, or without it when that takes too long. */
async function atMost(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, late])
  clearTimeout(timer)
}
