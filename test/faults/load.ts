import { setTimeout as sleep } from 'node:timers/promises'
import { INGEST_KEY } from '../support/service.js'
import type { Ledger, Outcome } from './ledger.js'
import { FORGOTTEN_MS, type Promptness } from './promptness.js'

/** The longest pause between two bodies to a closed port. */
const GONE_MS = 150

export interface LoadOptions {
  readonly ledger: Ledger
  readonly random: () => number
  readonly promptness: Promptness
  /** The collectors, used in turn; called for each body, because an address changes with a restart. */
  readonly collectors: () => readonly string[]
  readonly senders: number
  /** The longest pause between two bodies of a sender. */
  readonly pauseMs: number
}

/** Senders that go on through every fault, and record the replies. */
export class Load {
  /** Replies that must never occur. */
  readonly problems: string[] = []
  readonly statuses = new Map<string, number>()
  readonly #options: LoadOptions
  readonly #stop = new AbortController()
  readonly #running: Promise<void>[]
  #isPaused = false
  /** Whether the port is closed. */
  #isGone = false

  constructor(options: LoadOptions) {
    this.#options = options
    this.#running = Array.from({ length: options.senders }, () => this.#send())
  }

  /** Pauses or resumes the senders; requests in flight go on. */
  pause(isPaused: boolean): void {
    this.#isPaused = isPaused
  }

  /** Resolves when every request in flight has its reply; called while the load is paused. */
  async untilSettled(): Promise<void> {
    while (!this.#options.ledger.isSettled) await sleep(10)
  }

  /** Resolves when every sender has its last reply. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#running)
  }

  /** Waits until a body sent after this call is acknowledged. @returns false after the limit */
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
    // The outcome is unknown when a deadline has replied for a slow handler.
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
