export interface Rounds {
  start(): void
  /** Resolves when the current round has ended. */
  close(): Promise<void>
}

interface RoundsOptions {
  readonly work: () => Promise<void>
  /** The time until the first round. */
  readonly firstMs: number
  /** The pause between two rounds. */
  readonly pauseMs: number
  readonly onError: (error: unknown) => void
}

/** Runs some work periodically. */
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
