import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../lib/backoff.js'
import { AppError } from '../model/errors.js'
import type { Store } from '../clickhouse/client.js'
import type { LogAt } from '../telemetry/log.js'
import { statement } from '../clickhouse/statement.js'

export interface EventIdOptions {
  readonly log: LogAt<'debug' | 'info' | 'warn'>
  /** Runs `work` while no other instance reserves ids. A lost lock is harmless: each block gets one owner at most. */
  readonly exclusive: <T>(work: () => Promise<T>) => Promise<T>
  /**
   * Ids in a block. At least half a block is always reserved, so that ingestion outlives an outage of
   * ClickHouse; each start uses up one block. Default 2^26: 33 M ids reserved, and 134 M starts until 2^53.
   */
  readonly blockSize?: number
}

/** Event ids: each is greater than every id this instance has given out, and no two are equal. */
export interface EventIds {
  /** @throws AppError('dependency_unavailable') when `remaining` is 0 */
  take(): number
  /** Ids that can be taken without waiting for ClickHouse. */
  readonly remaining: number
  /** Stops reserving. */
  close(): void
}

/** The ids from `at` up to, not including, `end`. */
interface Block {
  at: number
  readonly end: number
}

const DEFAULT_BLOCK_SIZE = 2 ** 26
const TRIES = 20
const RETRY_BACKOFF = { baseMs: 20, maxMs: 1_000 }
const REFILL_BACKOFF = { baseMs: 200, maxMs: 10_000 }

const nextIdSql = statement<Record<string, never>, { readonly id: number }>('next_event_id')
const ownersSql = statement<
  { readonly first_id: number; readonly end_id: number },
  { readonly owner: string }
>('id_block_owners')

/**
 * Reserves a block of ids, and further ones in the background as they are used up.
 *
 * @throws AppError('dependency_unavailable') when ClickHouse does not confirm the first block
 */
export async function reserveEventIds(store: Store, options: EventIdOptions): Promise<EventIds> {
  return new ReservedIds(store, options, await reserveBlock(store, options))
}

class ReservedIds implements EventIds {
  readonly #store: Store
  readonly #options: EventIdOptions
  readonly #closing = new AbortController()
  readonly #refillBelow: number
  #current: Block
  #next: Block | null = null
  #isRefilling = false

  constructor(store: Store, options: EventIdOptions, first: Block) {
    this.#store = store
    this.#options = options
    this.#current = first
    this.#refillBelow = (first.end - first.at) / 2
  }

  get remaining(): number {
    const { at, end } = this.#current
    return end - at + (this.#next === null ? 0 : this.#next.end - this.#next.at)
  }

  take(): number {
    if (this.#current.at === this.#current.end) {
      if (this.#next === null) throw unavailable('no event ids are left until ClickHouse answers')
      this.#current = this.#next
      this.#next = null
    }
    const id = this.#current.at
    this.#current.at = id + 1
    if (this.#next === null && this.#current.end - id <= this.#refillBelow) void this.#refill()
    return id
  }

  close(): void {
    this.#closing.abort()
  }

  async #refill(): Promise<void> {
    const { signal } = this.#closing
    if (this.#isRefilling) return
    this.#isRefilling = true
    for (let failures = 1; this.#next === null && !signal.aborted; failures++) {
      try {
        this.#next = await reserveBlock(this.#store, this.#options)
      } catch {
        const { remaining } = this
        this.#options.log.warn({ remaining }, 'cannot reserve event ids yet')
        await sleep(backoffMs(failures, REFILL_BACKOFF), undefined, { signal }).catch(() => {})
      }
    }
    this.#isRefilling = false
  }
}

const unavailable = (message: string): AppError =>
  new AppError('dependency_unavailable', message, {
    details: { dependency: 'clickhouse' },
    retryAfterS: 5,
  })

/**
 * Takes the ids after the greatest ever reserved. The block belongs to this instance only when it is the sole
 * owner written for it: of two that chose the same ids at the same time, at most one is.
 */
async function reserveBlock(store: Store, options: EventIdOptions): Promise<Block> {
  const size = options.blockSize ?? DEFAULT_BLOCK_SIZE
  for (let tries = 1; tries <= TRIES; tries++) {
    const block = await options.exclusive(() => claimBlock(store, size))
    if (block !== null) return block
    await sleep(backoffMs(tries, RETRY_BACKOFF))
  }
  throw unavailable('cannot reserve event ids: too many instances try at once')
}

async function claimBlock(store: Store, size: number): Promise<Block | null> {
  const [next] = await store.query(nextIdSql, {})
  const at = next?.id ?? 1
  const end = at + size
  if (!Number.isSafeInteger(end)) throw new Error(`bug: event id ${end} exceeds 2^53-1`)
  const owner = randomUUID()
  await store.insertRows('id_blocks', [{ first_id: at, end_id: end, owner }])
  const owners = await store.query(ownersSql, { first_id: at, end_id: end })
  return owners.length === 1 && owners[0]?.owner === owner ? { at, end } : null
}
