import * as layout from '../wasm/layout.js'
import { Kernel, NO_IMPORTS } from '../wasm/kernel.js'

/**
 * Rows of a batch. The caller writes hashes, times and owners; after `lookUp`, `begins` says which rows began an
 * event, and for these the caller writes `ids` and `priorities`.
 */
export interface WindowBatch {
  /** Two per row. */
  readonly hashes: Int32Array
  readonly tsMs: Float64Array
  /** Number of the source, for `forget`. */
  readonly owners: Uint32Array
  /** 1 = the row began an event. */
  readonly begins: Uint8Array
  readonly ids: Float64Array
  readonly priorities: Uint8Array
  /** The ids of all rows after `settle`, little-endian. */
  readonly idBytes: Uint8Array
}

/**
 * Remembers the first occurrence of each event: a message is a repeat when its hash is known and its time
 * lies in [first, first + window). Two look-ups answer that, because an event that a time belongs to began
 * in the same window-wide step of time or in the one before.
 *
 * Bounded: when the window is full, its oldest entry is evicted, and a later repeat of that event is a new event.
 *
 * The calls of a batch: `batch`, write the keys of the rows, `lookUp`, write ids and priorities of the rows that
 * began an event, `settle`. The memory is WebAssembly's and grows with the number of entries.
 */
export class DedupWindow {
  readonly #kernel = new Kernel(NO_IMPORTS)
  readonly #rows: number
  #batch: WindowBatch

  /** @param maxTurns entries after which turns are counted anew; they fit 32 bits */
  constructor(windowMs: number, maxEntries: number, maxTurns = 2 ** 31 - 1) {
    const { calls } = this.#kernel
    calls.openWindow(windowMs, maxEntries, maxTurns)
    this.#rows = calls.windowBatch()
    this.#batch = this.#views()
  }

  /** Number of events in the window. */
  get size(): number {
    return this.#kernel.calls.windowSize()
  }

  /** The most rows of a batch. */
  get batchRows(): number {
    return this.#rows
  }

  /** Begins a batch; its arrays are valid until the next one. */
  batch(): WindowBatch {
    this.#kernel.calls.reserveWindow()
    const { buffer } = this.#kernel.calls.memory
    if (this.#batch.idBytes.buffer !== buffer) this.#batch = this.#views()
    return this.#batch
  }

  /** @returns how many of the batch's rows began an event */
  lookUp(rows: number): number {
    return this.#kernel.calls.lookUpRows(rows)
  }

  /** Copies ids and priorities of the rows that began an event to the rows that repeat one. */
  settle(rows: number): void {
    this.#kernel.calls.settleRows(rows)
  }

  /** Later repeats of event `id` are counted under this priority. */
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
      hashes: new Int32Array(buffer, windowAt(layout.WINDOW_HASHES), rows * 2),
      tsMs: new Float64Array(buffer, windowAt(layout.WINDOW_TIMES), rows),
      owners: new Uint32Array(buffer, windowAt(layout.WINDOW_OWNERS), rows),
      begins: new Uint8Array(buffer, windowAt(layout.WINDOW_BEGINS), rows),
      ids: new Float64Array(buffer, windowAt(layout.WINDOW_IDS), rows),
      priorities: new Uint8Array(buffer, windowAt(layout.WINDOW_PRIORITIES), rows),
      idBytes: new Uint8Array(buffer, windowAt(layout.WINDOW_IDS), rows * 8),
    }
  }
}
