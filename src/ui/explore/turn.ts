/** Counting waits until the newest rows are painted, because the two would compete for the CPU. */
export interface Turn {
  readonly wait: Promise<void>
  /** The newest rows are painted. */
  end(): void
}

/** Rows that take longer are not waited for. */
const LONGEST_MS = 1000

export function newTurn(): Turn {
  let end = (): void => undefined
  const wait = new Promise<void>((done) => {
    end = done
    setTimeout(done, LONGEST_MS)
  })
  return { wait, end }
}
