import * as layout from '../wasm/layout.js'
import { Kernel, NO_IMPORTS } from '../wasm/kernel.js'

/**
 * The columns of a batch. The caller writes hashes, times and owners; after `lookUp`, `begins` tells which rows are new
 * events, and for these the caller writes `ids` and `priorities`.
 */
export interface WindowBatch {
  /** Two per row. */
  readonly hashes: Int32Array
  readonly tsMs: Float64Array
  /** The number of the row's source, for `forget`. */
  readonly owners: Uint32Array
  /** 1 = the row is a new event. */
  readonly begins: Uint8Array
  readonly ids: Float64Array
  readonly priorities: Uint8Array
  /** The ids of all rows after `settle`, little-endian. */
  readonly idBytes: Uint8Array
}

/**
 * The first occurrence of each event: a message repeats an event when their hashes are equal and its time is in
 * [first, first + window). Time is divided into steps as long as the window, so an event that the message can repeat
 * began in the same step or in the one before, and two look-ups find it.
 *
 * Bounded: when the window is full, its oldest entry is evicted, and a later repeat of that event is a new event.
 *
 * The calls of a batch: `batch`, write the keys of the rows, `lookUp`, write ids and priorities of the new events,
 * `settle`. The memory is WebAssembly's and grows with the number of entries (wasm/assembly/window.ts).
 */
export class DedupWindow {
  readonly #kernel = new Kernel(NO_IMPORTS)
  readonly #rows: number
  #batch: WindowBatch

  /**
   * @param lastSerial the greatest serial number of an entry; they have 32 bits and are renumbered
   * above it
   */
  constructor(windowMs: number, maxEntries: number, lastSerial = 2 ** 31 - 1) {
    const { calls } = this.#kernel
    calls.openWindow(windowMs, maxEntries, lastSerial)
    this.#rows = calls.windowBatch()
    this.#batch = this.#views()
  }

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

  /** @returns the number of rows that are new events */
  lookUp(rows: number): number {
    return this.#kernel.calls.lookUpRows(rows)
  }

  /** Copies ids and priorities of the new events to the rows that repeat them. */
  settle(rows: number): void {
    this.#kernel.calls.settleRows(rows)
  }

  /** Sets the priority under which later repeats of an event are counted. */
  setPriority(id: number, priority: number): void {
    this.#kernel.calls.setWindowPriority(id, priority)
  }

  /** Prevents later messages from repeating events of this source. */
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
