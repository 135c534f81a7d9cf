import { setTimeout as sleep } from 'node:timers/promises'
import { INGEST_KEY } from '../support/service.js'
import type { Ledger, Outcome } from './ledger.js'
import { FORGOTTEN_MS, type Promptness } from './promptness.js'

/** between two bodies to a service that is not there, at most */
const GONE_MS = 150

export interface LoadOptions {
  readonly ledger: Ledger
  readonly random: () => number
  readonly promptness: Promptness
  /** the collectors to send to, by turns; asked for each body, for a service that was started again moves */
  readonly collectors: () => readonly string[]
  readonly senders: number
  /** between two bodies of a sender, at most */
  readonly pauseMs: number
}

/** Senders that go on through every fault, and write down what they were told. */
export class Load {
  /** what no sender may ever see */
  readonly problems: string[] = []
  readonly statuses = new Map<string, number>()
  readonly #options: LoadOptions
  readonly #stop = new AbortController()
  readonly #running: Promise<void>[]
  #isPaused = false
  /** nobody listens there */
  #isGone = false

  constructor(options: LoadOptions) {
    this.#options = options
    this.#running = Array.from({ length: options.senders }, () => this.#send())
  }

  /** Sends nothing more until told to; what is in the air goes on. */
  pause(isPaused: boolean): void {
    this.#isPaused = isPaused
  }

  /** Resolves when every body that was begun has its answer; to be called while it is paused. */
  async untilSettled(): Promise<void> {
    while (!this.#options.ledger.isSettled) await sleep(10)
  }

  /** Resolves when every sender has its last answer. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#running)
  }

  /** Resolves when a body that was begun after this call is acknowledged. */
  async untilTaken(limitMs: number): Promise<boolean> {
    const { ledger } = this.#options
    const [from, until] = [ledger.size, Date.now() + limitMs]
    for (; Date.now() < until; await sleep(20))
      for (let no = from; no < ledger.size; no++)
        if (ledger.outcomeOf(no) === 'acknowledged') return true
    return false
  }

  async #send(): Promise<void> {
    const { ledger, random, collectors, pauseMs } = this.#options
    while (!this.#stop.signal.aborted) {
      const urls = collectors()
      const url = urls[Math.floor(random() * urls.length)]
      if (url !== undefined && !this.#isPaused) {
        const body = ledger.next()
        this.#isGone = false
        ledger.settle(body.no, await this.#sendOne(url, body))
      }
      await sleep(random() * (this.#isGone ? GONE_MS : pauseMs))
    }
  }

  async #sendOne(url: string, body: ReturnType<Ledger['next']>): Promise<Outcome> {
    const startedMs = performance.now()
    try {
      const reply = await fetch(`${url}/ingest`, {
        method: 'POST',
        headers: { authorization: `Bearer ${INGEST_KEY}` },
        body: body.text,
        signal: AbortSignal.timeout(FORGOTTEN_MS),
      })
      this.#note(String(reply.status))
      if (reply.status !== 202) return await this.#refused(reply)
      const { accepted, rejected } = (await reply.json()) as { accepted: number; rejected: number } // its contract
      if (accepted !== body.messages || rejected !== body.broken)
        this.problems.push(`body ${body.no}: ${accepted} accepted, ${rejected} rejected`)
      return 'acknowledged'
    } catch (error) {
      return this.#cutOff(error)
    } finally {
      const late = this.#options.promptness.judge('answer', startedMs)
      if (late !== null) this.problems.push(`body ${body.no} ${late}`)
    }
  }

  async #refused(reply: Response): Promise<Outcome> {
    const text = await reply.text()
    const isTooBusy = reply.status === 429 || reply.status === 503
    if (!isTooBusy) this.problems.push(`answered ${reply.status} ${text.slice(0, 200)}`)
    if (isTooBusy && reply.headers.get('retry-after') === null)
      this.problems.push(`${reply.status} without Retry-After`)
    // who answered for a handler that took too long does not know what it will do yet
    return text.includes('timeout_ms') ? 'unknown' : 'refused'
  }

  #cutOff(error: unknown): Outcome {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
    this.#note(code)
    this.#isGone = code === 'ECONNREFUSED'
    return this.#isGone ? 'refused' : 'unknown'
  }

  #note(status: string): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
  }
}
