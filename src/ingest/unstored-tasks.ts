interface UnstoredTask {
  readonly sinceMs: number
  /** Its record in the WAL, once that is durable. */
  seq: number | null
  /** Messages in the record. */
  messages: number
}

/** When each task was taken up of which something may not be in ClickHouse yet. It is bounded by the WAL. */
export class UnstoredTasks {
  /** The durable ones stand in the order of their records. */
  readonly #tasks = new Set<UnstoredTask>()
  readonly #oldestSeq: () => number

  /** @param oldestSeq the oldest record that is not in ClickHouse, Infinity without one */
  constructor(oldestSeq: () => number) {
    this.#oldestSeq = oldestSeq
  }

  /** How long ago the oldest was taken up; 0 without one. */
  get oldestMs(): number {
    this.#forgetStored()
    const nowMs = performance.now()
    let sinceMs = nowMs
    for (const task of this.#tasks) sinceMs = Math.min(sinceMs, task.sinceMs)
    return nowMs - sinceMs
  }

  /** Messages that are durable and not in ClickHouse yet. */
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

  /** The task is over. What is durable is kept until it is stored. */
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
