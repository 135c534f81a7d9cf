import { setTimeout as sleep } from 'node:timers/promises'

import { AppError } from '../../model/errors.js'
import type { BodyResult } from '../block.js'
import type { ListenerBody, Listeners } from '../listener.js'

export interface IntakeDeps {
  readonly listeners: Pick<Listeners, 'key' | 'hasRoom' | 'submit'>
  /** Called with true when nobody should be read any more, and with false when it may go on. */
  readonly onFull: (isFull: boolean) => void
  readonly onError: (error: unknown) => void
}

/** A connection, or what sends datagrams from one address. */
export interface Sender {
  readonly id: string
  /** The client's IPv4 address, or the /64 network of its IPv6 address. All senders of a network share one quota of workers and memory. */
  readonly network: string
  /** Called with true when no more of it should be read, and with false when it may go on. */
  readonly pause: (isPaused: boolean) => void
}

interface Share {
  readonly sender: Sender
  /** In the order of their numbers. */
  readonly waiting: Job[]
  /** Of all its batches that are not durable yet. */
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

/** What the senders share of the batches that are not durable yet. A second at 30 MB/s. */
const SHARED_BYTES = 32 * 1024 * 1024
/** Above it no sender is read. A single read of a sender may bring several MiB of tiny batches beyond its share. */
const MAX_BYTES = 2 * SHARED_BYTES
/** What a batch takes beside its bytes. A client may send one for each record. */
const JOB_BYTES = 2048
/** Limit of the batches that the pipeline works on at once. The others wait here and cost it no CPU. */
const MAX_RUNNING = 64
const RETRY_MS = 25
/** Delay after the disk or the workers failed. */
const FAILED_MS = 500

/**
 * Takes the batches of all listeners to the pipeline. Their senders can't be told to come again, so a batch waits here until the
 * pipeline has room. A sender that has more than twice as much here as is free is not read meanwhile, and the senders take
 * turns, so that one that floods does not hold up the others.
 */
export class Intake {
  readonly #deps: IntakeDeps
  /** The senders with batches here. */
  readonly #shares = new Map<string, Share>()
  /** Those of them with batches that wait; the next turn is that of the first. */
  readonly #waiting = new Set<Share>()
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
  submit(batch: ListenerBody, sender: Sender): Promise<BodyResult> {
    const bytes = batch.bytes.length + JOB_BYTES
    const share = this.#shareOf(sender)
    this.#count(share, bytes)
    const done = new Promise<BodyResult>((resolve, reject) => {
      this.#lastNo++
      share.waiting.push({ no: this.#lastNo, batch, share, resolve, reject })
      this.#waiting.add(share)
      // While the timer runs, senders wait for room. To try all of them at each batch would be slow.
      if (this.#timer === null) this.#drain()
    })
    return done.finally(() => this.#count(share, -bytes))
  }

  /** Waits until all batches are durable, and gives up the others at the deadline. */
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

  /** Between two limits a pause stays as it is, so that it does not change with each batch. */
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
        // Its network has used up its share; senders of other networks may have room.
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
