export interface Rounds {
  start(): void
  /** Resolves when the round under way has ended. */
  close(): Promise<void>
}

interface RoundsOptions {
  readonly work: () => Promise<void>
  /** Until the first one. */
  readonly firstMs: number
  /** From the end of one to the next. */
  readonly pauseMs: number
  readonly onError: (error: unknown) => void
}

/** Does some work again and again. */
export function createRounds({ work, firstMs, pauseMs, onError }: RoundsOptions): Rounds {
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  const plan = (waitMs: number): void => {
    timer = setTimeout(() => {
      running = work()
        .catch(onError)
        .finally(() => {
          if (timer !== undefined) plan(pauseMs)
        })
    }, waitMs).unref()
  }
  return {
    start: () => plan(firstMs),
    close: async () => {
      clearTimeout(timer)
      timer = undefined
      await running
    },
  }
}
