/** A task that waits for a thread once more. */
interface Turn {
  readonly ms: number
  readonly begin: (end: () => void) => void
}

/**
 * The tasks that the encoding threads have. There is one thread more than an owner or long tasks may use (see `FairQueue`), for a
 * task that is encoded again as well: what is encoded twice must not take the thread that is left to the others.
 */
export class Turns {
  readonly #threads: number
  readonly #longMs: number
  #active = 0
  /** Tasks that take longer than `longMs`. */
  #long = 0
  readonly #waiting: Turn[] = []

  /** @param threads that long tasks may use */
  constructor(threads: number, longMs: number) {
    this.#threads = threads
    this.#longMs = longMs
  }

  get hasFree(): boolean {
    return this.#active <= this.#threads
  }

  /** Whether the free threads are for tasks that don't take long. */
  get isShort(): boolean {
    return this.#long >= this.#threads
  }

  /** A task begins. @param ms the time that it is expected to need @returns called at its end */
  begin(ms: number): () => void {
    const isLong = ms > this.#longMs
    this.#active++
    if (isLong) this.#long++
    return () => {
      this.#active--
      if (isLong) this.#long--
    }
  }

  /** Resolves when a thread is free for a task that is encoded again; `serve` must be called then. */
  again(ms: number): Promise<() => void> {
    return new Promise((begin) => this.#waiting.push({ ms, begin }))
  }

  /** Begins those that wait for a thread, before any new task. */
  serve(): void {
    while (this.hasFree) {
      const at = this.#waiting.findIndex(({ ms }) => !this.isShort || ms <= this.#longMs)
      const [turn] = at < 0 ? [] : this.#waiting.splice(at, 1)
      if (turn === undefined) return
      turn.begin(this.begin(turn.ms))
    }
  }
}
