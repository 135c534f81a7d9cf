/** A task that waits for a thread to encode it again. */
interface Turn {
  readonly ms: number
  readonly begin: (end: () => void) => void
}

/**
 * Tracks the tasks at the encoding threads. An owner, or long tasks, may use all threads but one
 * (see `FairQueue`). This holds for repeated encodings too, which must not take the thread that is
 * left to others.
 */
export class ThreadSlots {
  readonly #threads: number
  readonly #longMs: number
  #active = 0
  /** The number of tasks that take longer than `longMs`. */
  #long = 0
  readonly #waiting: Turn[] = []

  /** @param threads the most threads for long tasks */
  constructor(threads: number, longMs: number) {
    this.#threads = threads
    this.#longMs = longMs
  }

  get hasFree(): boolean {
    return this.#active <= this.#threads
  }

  /** Whether the free threads are reserved for short tasks. */
  get isShort(): boolean {
    return this.#long >= this.#threads
  }

  /** Begins a task. @param ms its estimated time @returns called at its end */
  begin(ms: number): () => void {
    const isLong = ms > this.#longMs
    this.#active++
    if (isLong) this.#long++
    return () => {
      this.#active--
      if (isLong) this.#long--
    }
  }

  /** Resolves when a thread is free for a repeated encoding; `serve` must be called then. */
  again(ms: number): Promise<() => void> {
    return new Promise((begin) => this.#waiting.push({ ms, begin }))
  }

  /** Begins the repeated encodings that wait for a thread, before any new task. */
  serve(): void {
    while (this.hasFree) {
      const at = this.#waiting.findIndex(({ ms }) => !this.isShort || ms <= this.#longMs)
      const [turn] = at < 0 ? [] : this.#waiting.splice(at, 1)
      if (turn === undefined) return
      turn.begin(this.begin(turn.ms))
    }
  }
}
