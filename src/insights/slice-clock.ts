/** this thread also takes messages: it is given back this often */
const SLICE_MS = 8

interface Budget {
  readonly insightsIntervalSeconds: number
  /** of one core */
  readonly insightsCpuPct: number
}

/** Until the next look: longer than the setting when looks take more than their share of the processor. */
export const pauseAfter = (
  costMs: number,
  { insightsIntervalSeconds, insightsCpuPct }: Budget,
): number => Math.max(insightsIntervalSeconds * 1000, (costMs * 100) / insightsCpuPct)

/** Counts what a run takes, and gives the thread back when a slice is used up. */
export class SliceClock {
  #startedAt = performance.now()
  #ownMs = 0
  #waitedMs = 0
  readonly #signals: readonly AbortSignal[]

  /** @param signals any of them ends the run */
  constructor(signals: readonly AbortSignal[]) {
    this.#signals = signals
  }

  /** What is waited for is ClickHouse's time. */
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

  /** @returns ms, of this thread and of ClickHouse */
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
