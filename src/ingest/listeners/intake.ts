import { setTimeout as sleep } from 'node:timers/promises'

import { AppError } from '../../model/errors.js'
import type { BodyResult } from '../block.js'
import type { ListenerBody, Listeners } from '../listener.js'

export interface IntakeDeps {
  readonly listeners: Pick<Listeners, 'key' | 'hasRoom' | 'submit'>
  /** Called with true when all reading is to stop, and with false when it may continue. */
  readonly onFull: (isFull: boolean) => void
  readonly onError: (error: unknown) => void
}

/** A TCP connection, or the sender of datagrams at one address. */
export interface Sender {
  readonly id: string
  /** The client's IPv4 address, or the /64 network of its IPv6 address. All senders of a network share one quota of workers and memory. */
  readonly network: string
  /** Called with true when reading from this sender is to stop, and with false when it may continue. */
  readonly pause: (isPaused: boolean) => void
}

interface Share {
  readonly sender: Sender
  /** The batches that wait, in the order of their numbers. */
  readonly waiting: Job[]
  /** The bytes of all batches that are not durable yet. */
  bytes: number
  isPaused: boolean
}

interface Job {
  /** The batches of a sender are stored in the order of their numbers. */
  readonly no: number
  readonly batch: ListenerBody
  readonly share: Share
  readonly resolve: (result: BodyResult) => void
  readonly reject: (cause: unknown) => void
}

/** The memory that the senders share for batches that are not durable yet. It is filled in a second at 30 MB/s. */
const SHARED_BYTES = 32 * 1024 * 1024
/** Above this, reading stops for all senders. A single read may bring several MiB of tiny batches beyond the sender's share. */
const MAX_BYTES = 2 * SHARED_BYTES
/** The memory of a batch beside its bytes. A client may send a batch for each record. */
const JOB_BYTES = 2048
/** The most batches that the pipeline works on at once. Waiting batches cost it no CPU. */
const MAX_RUNNING = 64
const RETRY_MS = 25
/** The pause after a failure of the disk or the workers. */
const FAILED_MS = 500

/**
 * Passes the batches of all listeners to the pipeline. Their senders cannot be told to retry, so a
 * batch waits here until the pipeline has room. Reading from a sender pauses while its batches take
 * more than twice the free memory, and senders are served in turn, so that one that floods does not
 * delay the others.
 */
export class Intake {
  readonly #deps: IntakeDeps
  /** The shares of senders with batches. */
  readonly #shares = new Map<string, Share>()
  /** The shares with waiting batches; the first is served next. */
  readonly #waiting = new Set<Share>()
  #lastNo = 0
  #running = 0
  /** Whether the pipeline refused a batch; then none is submitted until the timer fires. */
  #isRefused = false
  #bytes = 0
  #isFull = false
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(deps: IntakeDeps) {
    this.#deps = deps
  }

  /** The bytes of the batches that are not durable yet, including their overhead. */
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
  submit(batch: ListenerBody, sender: Sender): Promise<BodyResult> {
    const bytes = batch.bytes.length + JOB_BYTES
    const share = this.#shareOf(sender)
    this.#count(share, bytes)
    const done = new Promise<BodyResult>((resolve, reject) => {
      this.#lastNo++
      share.waiting.push({ no: this.#lastNo, batch, share, resolve, reject })
      this.#waiting.add(share)
      // While the timer runs, senders wait for room, because trying all of them at each batch would be slow.
      if (this.#timer === null) this.#drain()
    })
    return done.finally(() => this.#count(share, -bytes))
  }

  /** Waits until all batches are durable, and drops the rest at the deadline. */
  async settle(deadlineMs: number): Promise<void> {
    const untilMs = Date.now() + deadlineMs
    while (this.#bytes > 0 && Date.now() < untilMs) await sleep(RETRY_MS)
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    for (const { waiting } of this.#waiting)
      for (const { reject } of waiting.splice(0)) reject(stopped())
    this.#waiting.clear()
  }

  #shareOf(sender: Sender): Share {
    const known = this.#shares.get(sender.id)
    if (known !== undefined) return known
    const share = { sender, waiting: [], bytes: 0, isPaused: false }
    this.#shares.set(sender.id, share)
    return share
  }

  /** Pauses above one limit and resumes below another, so that the state does not change with each batch. */
  #count(share: Share, bytes: number): void {
    this.#bytes += bytes
    share.bytes += bytes
    if (share.bytes === 0) this.#shares.delete(share.sender.id)
    const free = Math.max(0, SHARED_BYTES - this.#bytes)
    const isPaused = share.bytes > (share.isPaused ? free : free * 2)
    if (isPaused !== share.isPaused) {
      share.isPaused = isPaused
      share.sender.pause(isPaused)
    }
    const isFull = this.#bytes > (this.#isFull ? MAX_BYTES / 2 : MAX_BYTES)
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    this.#deps.onFull(isFull)
  }

  #drain(): void {
    // A sender that is added again comes last.
    for (const share of this.#waiting) {
      const job = share.waiting[0]
      if (job === undefined || this.#isRefused || this.#running >= MAX_RUNNING) return
      const { listeners } = this.#deps
      const { network } = share.sender
      const isWelcome =
        listeners.key() === null || listeners.hasRoom(job.batch.bytes.length, network)
      if (!isWelcome) {
        // The network has used up its share; senders of other networks may still have room.
        this.#later(RETRY_MS)
        continue
      }
      share.waiting.shift()
      this.#waiting.delete(share)
      if (share.waiting.length > 0) this.#waiting.add(share)
      void this.#run(job)
    }
  }

  async #run(job: Job): Promise<void> {
    this.#running++
    try {
      job.resolve(await this.#deps.listeners.submit(job.batch, job.share.sender.network))
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
    const { waiting } = job.share
    const place = waiting.findIndex(({ no }) => no > job.no)
    waiting.splice(place < 0 ? waiting.length : place, 0, job)
    this.#waiting.add(job.share)
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
