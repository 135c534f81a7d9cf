export interface PacedOptions {
  /** The shortest time between the beginnings of two runs. */
  readonly intervalMs: number
  /** Runs take at most this share of the time, as long as no run is delayed by more than `failedMs`. */
  readonly share: number
  /** The pause after a run that failed. */
  readonly failedMs: number
  readonly work: () => Promise<void>
  readonly onError: (error: unknown) => void
}

/** Runs work after signals, one run at a time. All signals of an interval start one run. */
export interface Paced {
  signal(): void
  close(): void
}

/** States: idle ─signal─▶ due ─timer─▶ running ─▶ idle, or due after a further signal. */
export function createPaced(options: PacedOptions): Paced {
  const { intervalMs, share, failedMs, work, onError } = options
  let isWanted = false
  let isRunning = false
  let isClosed = false
  let timer: NodeJS.Timeout | null = null
  let notBeforeMs = 0

  const run = async (): Promise<void> => {
    timer = null
    isWanted = false
    isRunning = true
    const startedMs = performance.now()
    try {
      await work()
      const restMs = Math.min((performance.now() - startedMs) / share, failedMs)
      notBeforeMs = startedMs + Math.max(intervalMs, restMs)
    } catch (error) {
      isWanted = true
      notBeforeMs = performance.now() + failedMs
      onError(error)
    }
    isRunning = false
    schedule()
  }
  const schedule = (): void => {
    if (isClosed || isRunning || timer !== null || !isWanted) return
    const waitMs = Math.max(0, notBeforeMs - performance.now())
    timer = setTimeout(() => void run(), waitMs).unref()
  }
  return {
    signal: () => {
      isWanted = true
      schedule()
    },
    close: () => {
      isClosed = true
      if (timer !== null) clearTimeout(timer)
    },
  }
}
