import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../lib/backoff.js'
import { AppError } from '../model/errors.js'
import type { Store } from '../clickhouse/client.js'
import { isDataError } from '../clickhouse/failure.js'

export interface EntityRow {
  readonly kind: string
  readonly id: string
  readonly version: number
  readonly is_deleted: 0 | 1
  /** JSON. */
  readonly doc: string
}

interface Waiter {
  readonly row: EntityRow
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

const TRIES = 3
const TRY_TIMEOUT_MS = 10_000
const RETRY_BACKOFF = { baseMs: 100, maxMs: 1_000 }

/** Inserts entity rows; those that are written during an insert go out together with the next one. */
export class EntityWriter {
  readonly #store: Store
  #waiting: Waiter[] = []
  #running: Promise<void> | null = null

  constructor(store: Store) {
    this.#store = store
  }

  /**
   * Resolves when the row is on disk.
   *
   * @throws AppError('dependency_unavailable') when the outcome is unknown: the row may be there
   */
  write(row: EntityRow): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, resolve, reject })
      this.#running ??= this.#run()
    })
  }

  /** Resolves when no insert is under way. */
  async idle(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    // The rows of one cycle of the event loop make one insert.
    await new Promise((done) => setImmediate(done))
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      await this.#writeAll(batch)
    }
    this.#running = null
  }

  /** Inserts the rows together, or one by one when ClickHouse refuses them, so that bad rows fail alone. */
  async #writeAll(batch: readonly Waiter[]): Promise<void> {
    try {
      await this.#insert(batch.map(({ row }) => row))
      for (const { resolve } of batch) resolve()
    } catch (error) {
      if (isDataError(error) && batch.length > 1) {
        const middle = batch.length >>> 1
        await this.#writeAll(batch.slice(0, middle))
        await this.#writeAll(batch.slice(middle))
        return
      }
      for (const { reject } of batch) reject(error)
    }
  }

  async #insert(rows: readonly EntityRow[]): Promise<void> {
    const settings = { insert_deduplicate: 1, insert_deduplication_token: randomUUID() } as const
    for (let tries = 1; ; tries++) {
      try {
        await this.#store.insertRows('entities', rows, { settings, timeoutMs: TRY_TIMEOUT_MS })
        return
      } catch (error) {
        const isPassing = error instanceof AppError && error.code === 'dependency_unavailable'
        if (!isPassing || tries === TRIES) throw error
        await sleep(backoffMs(tries, RETRY_BACKOFF))
      }
    }
  }
}
