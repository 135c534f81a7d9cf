/** entries looked at per bucket of one message: only times that run backwards by milliseconds make more */
const MAX_CHAIN = 64
const FORGOTTEN = -1
/** numbers of an entry in its chain, and which is which */
const [WIDTH, HI, NEXT, BACK] = [4, 1, 2, 3]

/**
 * Remembers the first occurrence of each event: a message is a repeat when its hash is known and its time
 * lies in [first, first + window). Two look-ups answer that, because an event that a time belongs to began
 * in the same window-wide step of time or in the one before.
 *
 * Bounded: when full, the entry that was added first makes room, and a later repeat of it is a new event.
 */
export class DedupWindow {
  readonly #windowMs: number
  readonly #maxEntries: number
  #capacity: number
  #count = 0
  #next = 0
  #heads: Int32Array
  /** of an entry: its two hashes, the next in its chain and the one before it, -1 = none. In one cache line */
  #chains: Int32Array
  #firsts: Float64Array
  #ids: Float64Array
  #owners: Int32Array
  #priorities: Uint8Array
  readonly #seen = new Int32Array(1)

  constructor(windowMs: number, maxEntries: number) {
    this.#windowMs = windowMs
    this.#maxEntries = maxEntries
    this.#capacity = Math.min(4096, maxEntries)
    this.#heads = emptyHeads(this.#capacity)
    this.#chains = new Int32Array(this.#capacity * WIDTH)
    this.#firsts = new Float64Array(this.#capacity)
    this.#ids = new Float64Array(this.#capacity)
    this.#owners = new Int32Array(this.#capacity)
    this.#priorities = new Uint8Array(this.#capacity)
  }

  get size(): number {
    return this.#count
  }

  /** @returns the entry of the event this message repeats, or -1 */
  find(lo: number, hi: number, timeMs: number): number {
    const step = Math.floor(timeMs / this.#windowMs)
    const entry = this.#findIn(this.#bucket(lo, hi, step), lo, hi, timeMs)
    return entry >= 0 ? entry : this.#findIn(this.#bucket(lo, hi, step - 1), lo, hi, timeMs)
  }

  /**
   * Reads ahead what `find` and `add` will need for messages. They look at places all over the memory, each
   * only after the last one is decided; here the processor fetches many at a time.
   * bench/micro/sequencer.bench.ts
   *
   * @param hashes two per message
   */
  readAhead(hashes: Int32Array, tsMs: Float64Array): void {
    let seen = 0
    for (let i = 0; i < tsMs.length; i++) {
      const step = Math.floor((tsMs[i] ?? 0) / this.#windowMs)
      const bucket = this.#bucket(hashes[i * 2] ?? 0, hashes[i * 2 + 1] ?? 0, step)
      const entry = this.#heads[bucket] ?? -1
      const other = this.#heads[bucket ^ 1] ?? -1
      if (entry >= 0) seen ^= this.#chains[entry * WIDTH] ?? 0
      if (other >= 0) seen ^= this.#chains[other * WIDTH] ?? 0
    }
    // what nobody uses is not read
    this.#seen[0] = seen
  }

  idAt(entry: number): number {
    return this.#ids[entry] ?? 0
  }

  priorityAt(entry: number): number {
    return this.#priorities[entry] ?? 0
  }

  /** @param key.owner number of the source, at least 0, for `forget` */
  add(key: {
    readonly lo: number
    readonly hi: number
    readonly firstMs: number
    readonly id: number
    readonly owner: number
    readonly priority: number
  }): void {
    if (this.#count === this.#capacity) this.#makeRoom()
    const entry = this.#next
    this.#next = (entry + 1) % this.#capacity
    this.#count++
    this.#chains[entry * WIDTH] = key.lo
    this.#chains[entry * WIDTH + HI] = key.hi
    this.#firsts[entry] = key.firstMs
    this.#ids[entry] = key.id
    this.#owners[entry] = key.owner
    this.#priorities[entry] = key.priority
    this.#link(entry)
  }

  /** Repeats of event `id` are counted under another priority from here on. */
  setPriority(id: number, priority: number): void {
    for (let entry = 0; entry < this.#capacity; entry++)
      if (this.#ids[entry] === id) this.#priorities[entry] = priority
  }

  /** No later message joins an event of this source. */
  forget(owner: number): void {
    for (let entry = 0; entry < this.#capacity; entry++)
      if (this.#owners[entry] === owner) this.#owners[entry] = FORGOTTEN
  }

  clear(): void {
    this.#heads.fill(-1)
    this.#ids.fill(0)
    this.#owners.fill(0)
    this.#count = 0
    this.#next = 0
  }

  #findIn(bucket: number, lo: number, hi: number, timeMs: number): number {
    let entry = this.#heads[bucket] ?? -1
    for (let walked = 0; entry >= 0 && walked < MAX_CHAIN; walked++) {
      const at = entry * WIDTH
      // the hash first: most entries of a chain are other messages, and each array costs a cache line
      if (this.#chains[at] === lo && this.#chains[at + HI] === hi && this.#isOf(entry, timeMs))
        return entry
      entry = this.#chains[at + NEXT] ?? -1
    }
    return -1
  }

  #isOf(entry: number, timeMs: number): boolean {
    const first = this.#firsts[entry] ?? 0
    return timeMs >= first && timeMs < first + this.#windowMs && this.#owners[entry] !== FORGOTTEN
  }

  /** A step and the one before lie side by side, mostly in one cache line: both are looked at. */
  #bucket(lo: number, hi: number, step: number): number {
    const h = lo ^ Math.imul(hi, 0x9e3779b1) ^ Math.imul(Math.floor(step / 16) | 0, 0x85ebca6b)
    return ((h ^ (h >>> 15)) & (this.#heads.length - 1)) ^ (step & 1)
  }

  #bucketOf(entry: number): number {
    return this.#bucket(
      this.#chains[entry * WIDTH] ?? 0,
      this.#chains[entry * WIDTH + HI] ?? 0,
      Math.floor((this.#firsts[entry] ?? 0) / this.#windowMs),
    )
  }

  #link(entry: number): void {
    const bucket = this.#bucketOf(entry)
    const next = this.#heads[bucket] ?? -1
    if (next >= 0) this.#chains[next * WIDTH + BACK] = entry
    this.#chains[entry * WIDTH + NEXT] = next
    this.#chains[entry * WIDTH + BACK] = -1
    this.#heads[bucket] = entry
  }

  #makeRoom(): void {
    if (this.#capacity < this.#maxEntries) this.#grow()
    else this.#dropOldest()
  }

  #dropOldest(): void {
    const oldest = this.#next
    const next = this.#chains[oldest * WIDTH + NEXT] ?? -1
    const back = this.#chains[oldest * WIDTH + BACK] ?? -1
    if (back >= 0) this.#chains[back * WIDTH + NEXT] = next
    else this.#heads[this.#bucketOf(oldest)] = next
    if (next >= 0) this.#chains[next * WIDTH + BACK] = back
    this.#count--
  }

  #grow(): void {
    const capacity = Math.min(this.#capacity * 2, this.#maxEntries)
    this.#chains = widen(this.#chains, new Int32Array(capacity * WIDTH))
    this.#firsts = widen(this.#firsts, new Float64Array(capacity))
    this.#ids = widen(this.#ids, new Float64Array(capacity))
    this.#owners = widen(this.#owners, new Int32Array(capacity))
    this.#priorities = widen(this.#priorities, new Uint8Array(capacity))
    this.#heads = emptyHeads(capacity)
    this.#next = this.#count
    this.#capacity = capacity
    for (let entry = 0; entry < this.#count; entry++) this.#link(entry)
  }
}

const emptyHeads = (capacity: number): Int32Array =>
  new Int32Array(2 ** Math.ceil(Math.log2(capacity * 2))).fill(-1)

function widen<T extends { set(source: ArrayLike<number>): void }>(
  from: ArrayLike<number>,
  to: T,
): T {
  to.set(from)
  return to
}
