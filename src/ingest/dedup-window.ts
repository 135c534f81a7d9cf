import { Kernel, NO_QUESTIONS } from '../wasm/kernel.js'

/**
 * Rows of a batch. The first three are what they are told by; `begins` says which of them began an event, and
 * for these `ids` and `priorities` are to be written.
 */
export interface WindowBatch {
  /** two per row */
  readonly hashes: Int32Array
  readonly tsMs: Float64Array
  /** number of the source, at least 0, for `forget` */
  readonly owners: Uint32Array
  /** 1 = began an event */
  readonly begins: Uint8Array
  readonly ids: Float64Array
  readonly priorities: Uint8Array
  /** the ids of all rows once they are settled, little-endian */
  readonly idBytes: Uint8Array
}

/** Places of a batch's arrays, see `hot/assembly/window.ts`. */
const [HASHES, TIMES, OWNERS, IDS, BEGINS, PRIORITIES] = [0, 1, 2, 3, 4, 5]

/**
 * Remembers the first occurrence of each event: a message is a repeat when its hash is known and its time
 * lies in [first, first + window). Two look-ups answer that, because an event that a time belongs to began
 * in the same window-wide step of time or in the one before.
 *
 * Bounded: when full, the entry that was added first makes room, and a later repeat of it is a new event.
 *
 * A batch goes: `batch`, fill in what the rows are told by, `lookUp`, fill in ids and priorities of those that
 * begin, `settle`. The memory is WebAssembly's, and grows with what it holds.
 */
export class DedupWindow {
  readonly #kernel = new Kernel(NO_QUESTIONS)
  readonly #rows: number
  #batch: WindowBatch

  /** @param maxTurns entries after which turns are counted anew; they fit 32 bits */
  constructor(windowMs: number, maxEntries: number, maxTurns = 2 ** 31 - 1) {
    const { calls } = this.#kernel
    calls.openWindow(windowMs, maxEntries, maxTurns)
    this.#rows = calls.windowBatch()
    this.#batch = this.#views()
  }

  /** Events that are remembered. */
  get size(): number {
    return this.#kernel.calls.windowSize()
  }

  /** Rows of a batch at most. */
  get batchRows(): number {
    return this.#rows
  }

  /** Begins a batch; its arrays are good until the next one. */
  batch(): WindowBatch {
    this.#kernel.calls.windowRoom()
    const { buffer } = this.#kernel.calls.memory
    if (this.#batch.idBytes.buffer !== buffer) this.#batch = this.#views()
    return this.#batch
  }

  /** @returns how many of the batch's rows began an event */
  lookUp(rows: number): number {
    return this.#kernel.calls.lookUpRows(rows)
  }

  /** Takes ids and priorities of the rows that began an event, and gives them to the rows that repeat one. */
  settle(rows: number): void {
    this.#kernel.calls.settleRows(rows)
  }

  /** Repeats of event `id` are counted under another priority from here on. */
  setPriority(id: number, priority: number): void {
    this.#kernel.calls.setWindowPriority(id, priority)
  }

  /** No later message joins an event of this source. */
  forget(owner: number): void {
    this.#kernel.calls.forgetOwner(owner)
  }

  clear(): void {
    this.#kernel.calls.clearWindow()
  }

  #views(): WindowBatch {
    const { memory, windowAt } = this.#kernel.calls
    const { buffer } = memory
    const rows = this.#rows
    return {
      hashes: new Int32Array(buffer, windowAt(HASHES), rows * 2),
      tsMs: new Float64Array(buffer, windowAt(TIMES), rows),
      owners: new Uint32Array(buffer, windowAt(OWNERS), rows),
      begins: new Uint8Array(buffer, windowAt(BEGINS), rows),
      ids: new Float64Array(buffer, windowAt(IDS), rows),
      priorities: new Uint8Array(buffer, windowAt(PRIORITIES), rows),
      idBytes: new Uint8Array(buffer, windowAt(IDS), rows * 8),
    }
  }
}
