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
  /** Batches are stored in the order of their numbers. */
  readonly no: number
  readonly batch: ListenerBody
  readonly resolve: (result: BodyResult) => void
  readonly reject: (cause: unknown) => void
}

/** Limit of the batches that are not durable yet. A second at 30 MB/s. */
const MAX_BYTES = 32 * 1024 * 1024
/** The memory of a batch beside its bytes. A client may send a batch for each record. */
const JOB_BYTES = 2048
/** Batches that the pipeline has at once. What waits here takes no part in the work of its event loop. */
const MAX_RUNNING = 64
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
  #lastNo = 0
  #running = 0
  /** After the pipeline refused a batch nothing is begun until the timer. */
  #isRefused = false
  #bytes = 0
  #isFull = false
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(deps: IntakeDeps) {
    this.#deps = deps
  }

  /** Bytes of the batches that are not durable yet, with what each takes beside them. */
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
    const bytes = batch.bytes.length + JOB_BYTES
    this.#count(bytes)
    const done = new Promise<BodyResult>((resolve, reject) => {
      this.#lastNo++
      this.#waiting.push({ no: this.#lastNo, batch, resolve, reject })
      this.#drain()
    })
    return done.finally(() => this.#count(-bytes))
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
      if (this.#isRefused || this.#running >= MAX_RUNNING) return
      const { listeners } = this.#deps
      const isWelcome = listeners.key() === null || listeners.hasRoom(job.batch.bytes.length)
      if (!isWelcome) return this.#later(RETRY_MS)
      this.#waiting.shift()
      void this.#run(job)
    }
  }

  async #run(job: Job): Promise<void> {
    this.#running++
    try {
      job.resolve(await this.#deps.listeners.submit(job.batch))
    } catch (error) {
      const mayRetry = error instanceof AppError && RETRIED.has(error.code) && !this.#isClosed
      if (!mayRetry) return job.reject(error)
      if (error.code !== 'overloaded') this.#deps.onError(error)
      this.#putBack(job)
      this.#isRefused = true
      this.#later(FAILED_MS)
    } finally {
      this.#running--
      this.#drain()
    }
  }

  #putBack(job: Job): void {
    const place = this.#waiting.findIndex(({ no }) => no > job.no)
    this.#waiting.splice(place < 0 ? this.#waiting.length : place, 0, job)
  }

  #later(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.#isRefused = false
      this.#drain()
    }, ms)
  }
}

const RETRIED: ReadonlySet<string> = new Set(['overloaded', 'dependency_unavailable'])

const stopped = (): AppError => new AppError('overloaded', 'the service is stopping')
