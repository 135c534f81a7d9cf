/** Delays counting until the newest rows are painted, because both would compete for the CPU. */
export interface FirstPaint {
  readonly wait: Promise<void>
  /** Called when the newest rows are painted. */
  end(): void
}

/** The longest wait for the rows. */
const LONGEST_MS = 1000

export function newFirstPaint(): FirstPaint {
  let end = (): void => undefined
  const wait = new Promise<void>((done) => {
    end = done
    setTimeout(done, LONGEST_MS)
  })
  return { wait, end }
}
