interface UnstoredTask {
  readonly sinceMs: number
  /** The number of its record in the WAL, once that is durable. */
  seq: number | null
  /** Messages in the record. */
  messages: number
}

/**
 * The tasks of which something may not be in ClickHouse yet, with the times of their beginning.
 * Their number is bounded by the WAL.
 */
export class UnstoredTasks {
  /** Durable tasks are in the order of their records. */
  readonly #tasks = new Set<UnstoredTask>()
  readonly #oldestSeq: () => number

  /** @param oldestSeq the oldest record that is not in ClickHouse, Infinity for none */
  constructor(oldestSeq: () => number) {
    this.#oldestSeq = oldestSeq
  }

  /** The age of the oldest task; 0 without one. */
  get oldestMs(): number {
    this.#forgetStored()
    const nowMs = performance.now()
    let sinceMs = nowMs
    for (const task of this.#tasks) sinceMs = Math.min(sinceMs, task.sinceMs)
    return nowMs - sinceMs
  }

  /** The number of messages that are durable and not in ClickHouse yet. */
  get messages(): number {
    this.#forgetStored()
    let sum = 0
    for (const task of this.#tasks) sum += task.messages
    return sum
  }

  begin(): UnstoredTask {
    const task: UnstoredTask = { sinceMs: performance.now(), seq: null, messages: 0 }
    this.#tasks.add(task)
    return task
  }

  durable(task: UnstoredTask, seq: number, messages: number): void {
    this.#tasks.delete(task)
    task.seq = seq
    task.messages = messages
    this.#tasks.add(task)
    this.#forgetStored()
  }

  /** Ends a task. A durable one is kept until it is stored. */
  end(task: UnstoredTask): void {
    if (task.seq === null) this.#tasks.delete(task)
  }

  #forgetStored(): void {
    const oldest = this.#oldestSeq()
    for (const task of this.#tasks) {
      if (task.seq === null) continue
      if (task.seq >= oldest) return
      this.#tasks.delete(task)
    }
  }
}
