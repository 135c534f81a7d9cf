import { setTimeout as sleep } from 'node:timers/promises'

import { AppError } from '../../model/errors.js'
import type { BodyResult } from '../block.js'
import type { ListenerBody, Listeners } from '../listener.js'

export interface IntakeDeps {
  readonly listeners: Pick<Listeners, 'key' | 'hasRoom' | 'submit'>
  /** Called with true when no more should be read, and with false when it may go on. */
  readonly onFull: (isFull: boolean) => void
  readonly onError: (error: unknown) => void
}

interface Job {
  readonly batch: ListenerBody
  readonly resolve: (result: BodyResult) => void
  readonly reject: (cause: unknown) => void
}

/** Limit of the batches that are not durable yet. A second at 30 MB/s. */
const MAX_BYTES = 32 * 1024 * 1024
const RETRY_MS = 25
/** Delay after the disk or the workers failed. */
const FAILED_MS = 500

/**
 * Takes the batches of all listeners to the pipeline. Their senders can't be told to come again, so a batch waits here until the
 * pipeline has room, and nothing more is read while too much waits.
 */
export class Intake {
  readonly #deps: IntakeDeps
  readonly #waiting: Job[] = []
  #bytes = 0
  #isFull = false
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(deps: IntakeDeps) {
    this.#deps = deps
  }

  /** Bytes of the batches that are not durable yet. */
  get bytes(): number {
    return this.#bytes
  }

  get isFull(): boolean {
    return this.#isFull
  }

  /**
   * @returns once the batch is durable
   * @throws AppError when it can't be stored at all, or not before the end
   */
  submit(batch: ListenerBody): Promise<BodyResult> {
    this.#count(batch.bytes.length)
    const done = new Promise<BodyResult>((resolve, reject) => {
      this.#waiting.push({ batch, resolve, reject })
      this.#drain()
    })
    return done.finally(() => this.#count(-batch.bytes.length))
  }

  /** Waits until all batches are durable, and gives up the others at the deadline. */
  async settle(deadlineMs: number): Promise<void> {
    const untilMs = Date.now() + deadlineMs
    while (this.#bytes > 0 && Date.now() < untilMs) await sleep(RETRY_MS)
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    for (const { reject } of this.#waiting.splice(0)) reject(stopped())
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    // Between the two limits it stays as it is, so that it does not change with each batch.
    const isFull = this.#bytes > (this.#isFull ? MAX_BYTES / 2 : MAX_BYTES)
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    this.#deps.onFull(isFull)
  }

  #drain(): void {
    for (let job = this.#waiting[0]; job !== undefined; job = this.#waiting[0]) {
      const { listeners } = this.#deps
      const isWelcome = listeners.key() === null || listeners.hasRoom(job.batch.bytes.length)
      if (!isWelcome) return this.#later(RETRY_MS)
      this.#waiting.shift()
      void this.#run(job)
    }
  }

  async #run(job: Job): Promise<void> {
    try {
      job.resolve(await this.#deps.listeners.submit(job.batch))
    } catch (error) {
      const mayRetry = error instanceof AppError && RETRIED.has(error.code) && !this.#isClosed
      if (!mayRetry) return job.reject(error)
      if (error.code !== 'overloaded') this.#deps.onError(error)
      this.#waiting.unshift(job)
      this.#later(FAILED_MS)
    }
  }

  #later(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.#drain()
    }, ms)
  }
}

const RETRIED: ReadonlySet<string> = new Set(['overloaded', 'dependency_unavailable'])

const stopped = (): AppError => new AppError('overloaded', 'the service is stopping')
