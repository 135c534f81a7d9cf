/** Delays counting until the newest rows are painted, because both would compete for the CPU. */
export interface Turn {
  readonly wait: Promise<void>
  /** Called when the newest rows are painted. */
  end(): void
}

/** The longest wait for the rows. */
const LONGEST_MS = 1000

export function newTurn(): Turn {
  let end = (): void => undefined
  const wait = new Promise<void>((done) => {
    end = done
    setTimeout(done, LONGEST_MS)
  })
  return { wait, end }
}
