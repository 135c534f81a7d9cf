/** A run yields the event loop this often, because the thread also serves requests. */
const SLICE_MS = 8

interface Budget {
  readonly insightsIntervalSeconds: number
  /** The share of one core in per cent. */
  readonly insightsCpuPct: number
}

/** Ms until the next run: longer than the interval where runs would exceed their share of a core. */
export const pauseAfter = (
  costMs: number,
  { insightsIntervalSeconds, insightsCpuPct }: Budget,
): number => Math.max(insightsIntervalSeconds * 1000, (costMs * 100) / insightsCpuPct)

/** Measures the time of a run and yields the thread when a slice is used up. */
export class SliceClock {
  #startedAt = performance.now()
  #ownMs = 0
  #waitedMs = 0
  readonly #signals: readonly AbortSignal[]

  /** @param signals any of them aborts the run */
  constructor(signals: readonly AbortSignal[]) {
    this.#signals = signals
  }

  /** Waits for ClickHouse and counts the wait as its time. */
  async wait<T>(work: Promise<T>): Promise<T> {
    this.#stop()
    const from = performance.now()
    const result = await work
    this.#waitedMs += performance.now() - from
    this.#startedAt = performance.now()
    this.#endIfAborted()
    return result
  }

  async pause(): Promise<void> {
    if (performance.now() - this.#startedAt < SLICE_MS) return
    this.#stop()
    await new Promise((resolve) => setImmediate(resolve))
    this.#endIfAborted()
    this.#startedAt = performance.now()
  }

  /** @returns ms of this thread and of ClickHouse */
  totalMs(): number {
    this.#stop()
    return this.#ownMs + this.#waitedMs
  }

  #stop(): void {
    this.#ownMs += performance.now() - this.#startedAt
    this.#startedAt = performance.now()
  }

  #endIfAborted(): void {
    for (const signal of this.#signals) signal.throwIfAborted()
  }
}
