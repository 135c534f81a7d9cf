import type { KpiCache } from './kpi-cache.js'

/** The connected clients. */
export interface KpiSockets {
  readonly size: number
  /** Sends a text to all of them. */
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
  /** between two snapshots at least; default 1000 */
  readonly intervalMs?: number
  /** Called when a snapshot cannot be computed or a signal not be sent; both are tried again. */
  readonly onError: (error: unknown) => void
}

export interface KpiPush<Sockets extends KpiSockets = KpiSockets> {
  readonly sockets: Sockets
  /** A batch was written: clients of every instance get a fresh snapshot within about a second. */
  onWritten(): void
  /**
   * Something was corrected or deleted.
   *
   * @returns once nobody is served a snapshot from before
   */
  onChanged(): Promise<void>
  close(): void
}

const CHANNEL = 'kpi:changed'
/** After a failure the store is left alone for so many intervals. */
const RETRY_INTERVALS = 5

export async function createKpiPush<Sockets extends KpiSockets>(
  parts: KpiPushDeps<Sockets>,
): Promise<KpiPush<Sockets>> {
  const push = new Push(parts)
  await push.listen()
  return push
}

/** idle ─signal, with clients─▶ due ─timer─▶ computing ─▶ idle, or due when signalled meanwhile */
class Push<Sockets extends KpiSockets> implements KpiPush<Sockets> {
  readonly sockets: Sockets
  readonly #parts: KpiPushDeps<Sockets>
  readonly #intervalMs: number
  readonly #ends: (() => void)[] = []
  /** Something changed since the last computation began. */
  #isDirty = false
  #isComputing = false
  #isClosed = false
  #timer: NodeJS.Timeout | null = null
  #notBeforeMs = 0
  /** the snapshot that every client has received */
  #lastText = ''
  #publications = 0

  constructor(parts: KpiPushDeps<Sockets>) {
    this.#parts = parts
    this.sockets = parts.openSockets((client) => this.#greet(client))
    this.#intervalMs = parts.intervalMs ?? 1000
  }

  async listen(): Promise<void> {
    const { signals } = this.#parts
    this.#ends.push(await signals.subscribe(CHANNEL, () => this.#signal()))
    // Signals may have been lost while the connection was down.
    const end = signals.onStatus((status) => {
      if (status === 'ok') this.#signal()
    })
    this.#ends.push(end)
  }

  onWritten(): void {
    void this.#announce(() => this.#parts.cache.noteWritten())
  }

  onChanged(): Promise<void> {
    return this.#announce(() => this.#parts.cache.invalidate())
  }

  /** Sends a new client its first snapshot. */
  async #greet(client: KpiClient): Promise<void> {
    const publications = this.#publications
    // Changes without a client are in this snapshot, so the first client receives it once.
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

  /** Never rejects: while the state does not answer it serves no older snapshot either. */
  async #announce(mark: () => Promise<void>): Promise<void> {
    try {
      await mark()
      await this.#parts.signals.publish(CHANNEL, '')
    } catch (error) {
      this.#parts.onError(error)
    }
    this.#signal()
  }

  /** A client may have missed a snapshot that was newer than its first. */
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
      this.#parts.onError(error)
    }
    this.#isComputing = false
    this.#schedule()
  }

  async #current(): Promise<string> {
    try {
      return await this.#parts.cache.current()
    } catch (error) {
      this.#isDirty = true
      throw error
    }
  }

  #publish(text: string): void {
    if (this.#isClosed || text === this.#lastText) return
    this.#lastText = text
    this.#publications++
    this.sockets.publish(text)
  }
}

const toMessage = (payload: string): string => `{"type":"kpi:snapshot","payload":${payload}}`
