import { setTimeout as sleep } from 'node:timers/promises'
import { ADMIN } from '../support/service.js'
import { FORGOTTEN_MS, type Promptness } from './promptness.js'
import { askHealth } from './watch.js'

const PAUSE_MS = 250
const PATHS = [
  '/api/logs/meta/timeseries?window=30d&granularity=day',
  '/api/logs?limit=20',
  '/api/analytics/severity-breakdown?window=30d',
  '/api/sources',
]
const BUSY = [429, 503]

/** Sends requests to a service through every fault, and records wrong and late replies. */
export class Asker {
  /** Replies that must never occur. */
  readonly problems: string[] = []
  /** The number of replies by status. */
  readonly statuses = new Map<number, number>()
  readonly #api: () => string
  readonly #promptness: Promptness
  readonly #stop = new AbortController()
  readonly #running: Promise<unknown>
  #token: string | null = null

  /** @param api called for each request, because the address changes with a restart */
  constructor(api: () => string, promptness: Promptness) {
    this.#api = api
    this.#promptness = promptness
    this.#running = Promise.all([this.#askOn(), this.#watchOn()])
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #askOn(): Promise<void> {
    for (let i = 0; !this.#stop.signal.aborted; i++) {
      await this.#ask(PATHS[i % PATHS.length] ?? '/')
      await sleep(PAUSE_MS)
    }
  }

  /** The health reply must be in time and agree with its status code. */
  async #watchOn(): Promise<void> {
    for (; !this.#stop.signal.aborted; await sleep(PAUSE_MS))
      await askHealth(this.#api(), this.#promptness).catch((error: unknown) =>
        this.problems.push(String(error)),
      )
  }

  async #ask(path: string): Promise<void> {
    try {
      if (this.#token === null) await this.#logIn()
      if (this.#token === null) return
      const headers = { authorization: `Bearer ${this.#token}` }
      const reply = await this.#send(path, { headers })
      if (reply.status === 401) this.#token = null
      else if (reply.status !== 200) this.#refused(path, reply)
    } catch (error) {
      // A fault may close the port or the connection.
      if (error instanceof TypeError) return
      this.problems.push(`${path}: ${String(error)}`)
    }
  }

  async #logIn(): Promise<void> {
    const path = '/api/auth/login'
    const reply = await this.#send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(ADMIN),
    })
    if (reply.status !== 200) return this.#refused(path, reply)
    this.#token = (JSON.parse(reply.text) as { readonly access_token: string }).access_token // its contract
  }

  #refused(path: string, { status, text, headers }: Answer): void {
    const isTooBusy = BUSY.includes(status) && headers.get('retry-after') !== null
    if (!isTooBusy) this.problems.push(`${path} answered ${status} ${text.slice(0, 200)}`)
  }

  async #send(path: string, init: RequestInit): Promise<Answer> {
    const signal = AbortSignal.timeout(FORGOTTEN_MS)
    const startedMs = performance.now()
    try {
      const reply = await fetch(this.#api() + path, { ...init, signal })
      const { status, headers } = reply
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
      return { status, headers, text: await reply.text() }
    } finally {
      const late = this.#promptness.judge('answer', startedMs)
      if (late !== null) this.problems.push(`${path} ${late}`)
    }
  }
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}
