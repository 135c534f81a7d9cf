/*
 * Pushes KPI snapshots to the WebSockets of every instance.
 *
 * A stored batch, a correction or a deletion changes the versions of the cache (kpi-cache.ts) and publishes a signal to
 * all instances. An instance with clients then takes the current snapshot from the cache, at most once per interval, and
 * sends it to its clients when it differs from the last one in more than its time. A new client gets a snapshot at once. Signals may be lost
 * during an outage of the shared state, so the end of an outage counts as a signal.
 */
import type { KpiCache } from './kpi-cache.js'

/** The connected clients. */
export interface KpiSockets {
  readonly size: number
  publish(text: string): void
}

interface KpiClient {
  send(text: string): unknown
}

/** Signals between instances. */
export interface KpiSignals {
  publish(channel: string, message: string): Promise<void>
  subscribe(channel: string, listener: (message: string) => void): Promise<() => void>
  onStatus(listener: (status: 'ok' | 'down') => void): () => void
}

export interface KpiPushDeps<Sockets extends KpiSockets> {
  readonly cache: KpiCache
  /** Opens the sockets; each new client is passed to `greet`. */
  readonly openSockets: (greet: (client: KpiClient) => Promise<void>) => Sockets
  readonly signals: KpiSignals
  /** Default: 1000. */
  readonly intervalMs?: number
  /** Called when a snapshot cannot be computed or a signal cannot be sent; both are tried again. */
  readonly onError: (error: unknown) => void
}

export interface KpiPush<Sockets extends KpiSockets = KpiSockets> {
  readonly sockets: Sockets
  /** After a stored batch, the clients of every instance get a new snapshot within about a second. */
  onWritten(): void
  /**
   * To be called after a correction or a deletion.
   *
   * @returns when the cache no longer serves an older snapshot
   */
  onChanged(): Promise<void>
  close(): void
}

/** Signals of a stored batch, a correction or a deletion. */
export const KPI_CHANNEL = 'kpi:changed'
/** Intervals without a query after a failed one, so that ClickHouse can recover. */
const RETRY_INTERVALS = 5

export async function createKpiPush<Sockets extends KpiSockets>(
  deps: KpiPushDeps<Sockets>,
): Promise<KpiPush<Sockets>> {
  const push = new Push(deps)
  await push.listen()
  return push
}

/** States: idle ─signal, with clients─▶ due ─timer─▶ computing ─▶ idle, or due after a further signal. */
class Push<Sockets extends KpiSockets> implements KpiPush<Sockets> {
  readonly sockets: Sockets
  readonly #deps: KpiPushDeps<Sockets>
  readonly #intervalMs: number
  readonly #ends: (() => void)[] = []
  /** A signal arrived since the last computation began. */
  #isDirty = false
  #isComputing = false
  #isClosed = false
  #timer: NodeJS.Timeout | null = null
  #notBeforeMs = 0
  /** The last snapshot that every client has received. */
  #lastText = ''
  #publications = 0

  constructor(deps: KpiPushDeps<Sockets>) {
    this.#deps = deps
    this.sockets = deps.openSockets((client) => this.#greet(client))
    this.#intervalMs = deps.intervalMs ?? 1000
  }

  async listen(): Promise<void> {
    const { signals } = this.#deps
    this.#ends.push(await signals.subscribe(KPI_CHANNEL, () => this.#signal()))
    // Signals may have been lost while the connection was down.
    const end = signals.onStatus((status) => {
      if (status === 'ok') this.#signal()
    })
    this.#ends.push(end)
  }

  onWritten(): void {
    void this.#announce(() => this.#deps.cache.noteWritten())
  }

  onChanged(): Promise<void> {
    return this.#announce(() => this.#deps.cache.invalidate())
  }

  /** Sends a new client its first snapshot. */
  async #greet(client: KpiClient): Promise<void> {
    const publications = this.#publications
    // This snapshot contains all earlier changes, so the first client needs no second one.
    if (this.sockets.size <= 1) this.#isDirty = false
    const text = toMessage(await this.#current())
    if (this.sockets.size <= 1) this.#lastText = text
    client.send(text)
    if (publications !== this.#publications) this.#sendAgain()
    this.#schedule()
  }

  close(): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    for (const end of this.#ends) end()
  }

  /**
   * Publishes a change. Never rejects: during an outage of the shared state the cache serves no
   * stored snapshot, so none is too old.
   */
  async #announce(changeVersion: () => Promise<void>): Promise<void> {
    try {
      await changeVersion()
      await this.#deps.signals.publish(KPI_CHANNEL, '')
    } catch (error) {
      this.#deps.onError(error)
    }
    this.#signal()
  }

  /** A client that connected during a push may have missed a snapshot newer than its first one. */
  #sendAgain(): void {
    this.#lastText = ''
    this.#isDirty = true
  }

  #signal(): void {
    this.#isDirty = true
    this.#schedule()
  }

  #schedule(): void {
    const isBusy = this.#isClosed || this.#isComputing || this.#timer !== null
    if (isBusy || !this.#isDirty || this.sockets.size === 0) return
    const waitMs = Math.max(0, this.#notBeforeMs - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#push()
    }, waitMs).unref()
  }

  async #push(): Promise<void> {
    this.#isDirty = false
    this.#isComputing = true
    this.#notBeforeMs = performance.now() + this.#intervalMs
    try {
      this.#publish(toMessage(await this.#current()))
    } catch (error) {
      this.#notBeforeMs = performance.now() + this.#intervalMs * RETRY_INTERVALS
      this.#deps.onError(error)
    }
    this.#isComputing = false
    this.#schedule()
  }

  async #current(): Promise<string> {
    try {
      return await this.#deps.cache.current()
    } catch (error) {
      this.#isDirty = true
      throw error
    }
  }

  #publish(text: string): void {
    if (this.#isClosed || withoutTime(text) === withoutTime(this.#lastText)) return
    this.#lastText = text
    this.#publications++
    this.sockets.publish(text)
  }
}

const withoutTime = (text: string): string => text.replace(/,"computed_at":"[^"]*"\}+$/, '')

const toMessage = (payload: string): string => `{"type":"kpi:snapshot","payload":${payload}}`
