/** entries looked at per bucket of one message: only times that run backwards by milliseconds make more */
const MAX_CHAIN = 64
const FORGOTTEN = -1
/** numbers of an entry: its two hashes, the turn before it in its chain and its owner; in one cache line */
const [WIDTH, HI, BEFORE, OWNER] = [4, 1, 2, 3]
/** steps whose buckets lie side by side */
const RUN = 16
/**
 * Remembers the first occurrence of each event: a message is a repeat when its hash is known and its time
 * lies in [first, first + window). Two look-ups answer that, because an event that a time belongs to began
 * in the same window-wide step of time or in the one before.
 *
 * Bounded: when full, the entry that was added first makes room, and a later repeat of it is a new event.
 *
 * Entries lie in a ring, chained from the newest to the oldest of a bucket as in the match finder of DEFLATE
 * (zlib's deflate.c): a chain ends where it leads to a turn that the ring has gone past, so nothing is unlinked.
 */
export class DedupWindow {
  readonly #windowMs: number
  readonly #maxEntries: number
  readonly #maxTurns: number
  readonly #seen = new Int32Array(1)
  #capacity: number
  #count = 0
  /** the turn of the next entry; it lies at the remainder by the capacity */
  #turn = 0
  /** of each bucket, the turn of its newest entry */
  #heads: Int32Array
  #entries: Int32Array
  #firsts: Float64Array
  #ids: Float64Array
  #priorities: Uint8Array

  /** @param maxTurns entries after which turns are counted anew; they fit 32 bits */
  constructor(windowMs: number, maxEntries: number, maxTurns = 2 ** 31 - 1) {
    this.#maxTurns = maxTurns
    this.#windowMs = windowMs
    this.#maxEntries = maxEntries
    this.#capacity = Math.min(4096, maxEntries)
    this.#heads = emptyHeads(this.#capacity)
    this.#entries = new Int32Array(this.#capacity * WIDTH)
    this.#firsts = new Float64Array(this.#capacity)
    this.#ids = new Float64Array(this.#capacity)
    this.#priorities = new Uint8Array(this.#capacity)
  }

  get size(): number {
    return this.#count
  }

  /** @returns the entry of the event this message repeats, or -1 */
  find(lo: number, hi: number, timeMs: number): number {
    const step = Math.floor(timeMs / this.#windowMs)
    const bucket = this.#bucket(lo, hi, step)
    const entry = this.#findIn(bucket, lo, hi, timeMs)
    if (entry >= 0) return entry
    const before = step % RUN === 0 ? this.#bucket(lo, hi, step - 1) : bucket ^ 1
    return this.#findIn(before, lo, hi, timeMs)
  }

  /**
   * Reads ahead what `find` and `add` will need for messages. They look at places all over the memory, each
   * only after the last one is decided; here the processor fetches many at a time.
   * bench/micro/sequencer.bench.ts
   *
   * @param messages.hashes two per message
   */
  readAhead(
    { hashes, tsMs }: { readonly hashes: Int32Array; readonly tsMs: Float64Array },
    from: number,
    to: number,
  ): void {
    let seen = 0
    for (let i = from; i < to && i < tsMs.length; i++) {
      const step = Math.floor((tsMs[i] ?? 0) / this.#windowMs)
      const bucket = this.#bucket(hashes[i * 2] ?? 0, hashes[i * 2 + 1] ?? 0, step)
      const entry = this.#entryOf(this.#heads[bucket] ?? -1)
      const other = this.#entryOf(this.#heads[bucket ^ 1] ?? -1)
      if (entry >= 0) seen ^= this.#entries[entry * WIDTH] ?? 0
      if (other >= 0) seen ^= this.#entries[other * WIDTH] ?? 0
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
    if (this.#count === this.#capacity && this.#capacity < this.#maxEntries)
      this.#move(Math.min(this.#capacity * 2, this.#maxEntries))
    else if (this.#turn === this.#maxTurns) this.#move(this.#capacity)
    const entry = this.#turn % this.#capacity
    this.#entries[entry * WIDTH] = key.lo
    this.#entries[entry * WIDTH + HI] = key.hi
    this.#entries[entry * WIDTH + OWNER] = key.owner
    this.#firsts[entry] = key.firstMs
    this.#ids[entry] = key.id
    this.#priorities[entry] = key.priority
    this.#link(entry)
    if (this.#count < this.#capacity) this.#count++
  }

  /** Repeats of event `id` are counted under another priority from here on. */
  setPriority(id: number, priority: number): void {
    for (let entry = 0; entry < this.#capacity; entry++)
      if (this.#ids[entry] === id) this.#priorities[entry] = priority
  }

  /** No later message joins an event of this source. */
  forget(owner: number): void {
    for (let at = OWNER; at < this.#entries.length; at += WIDTH)
      if (this.#entries[at] === owner) this.#entries[at] = FORGOTTEN
  }

  clear(): void {
    this.#heads.fill(-1)
    this.#ids.fill(0)
    this.#count = 0
    this.#turn = 0
  }

  #findIn(bucket: number, lo: number, hi: number, timeMs: number): number {
    let entry = this.#entryOf(this.#heads[bucket] ?? -1)
    for (let walked = 0; entry >= 0 && walked < MAX_CHAIN; walked++) {
      const at = entry * WIDTH
      // the hash first: most entries of a chain are other messages, and each array costs a cache line
      if (this.#entries[at] === lo && this.#entries[at + HI] === hi && this.#isOf(entry, timeMs))
        return entry
      entry = this.#entryOf(this.#entries[at + BEFORE] ?? -1)
    }
    return -1
  }

  /** @returns -1 when the ring has gone past this turn */
  #entryOf(turn: number): number {
    return turn < 0 || turn < this.#turn - this.#count ? -1 : turn % this.#capacity
  }

  #isOf(entry: number, timeMs: number): boolean {
    const first = this.#firsts[entry] ?? 0
    return (
      timeMs >= first &&
      timeMs < first + this.#windowMs &&
      this.#entries[entry * WIDTH + OWNER] !== FORGOTTEN
    )
  }

  /** A step and the one before it differ in the last bit, but for the first of a run. */
  #bucket(lo: number, hi: number, step: number): number {
    const h = lo ^ Math.imul(hi, 0x9e3779b1) ^ Math.imul(Math.floor(step / RUN) | 0, 0x85ebca6b)
    return ((h ^ (h >>> 15)) & (this.#heads.length - 1)) ^ (step & 1)
  }

  #link(entry: number): void {
    const at = entry * WIDTH
    const bucket = this.#bucket(
      this.#entries[at] ?? 0,
      this.#entries[at + HI] ?? 0,
      Math.floor((this.#firsts[entry] ?? 0) / this.#windowMs),
    )
    this.#entries[at + BEFORE] = this.#heads[bucket] ?? -1
    this.#heads[bucket] = this.#turn++
  }

  /** Chains the entries anew, from turn 0 on, in arrays of another capacity. */
  #move(capacity: number): void {
    const oldest = this.#turn - this.#count
    const order = Int32Array.from({ length: this.#count }, (_, i) => (oldest + i) % this.#capacity)
    const [entries, firsts, ids, priorities] = [
      this.#entries,
      this.#firsts,
      this.#ids,
      this.#priorities,
    ]
    this.#entries = new Int32Array(capacity * WIDTH)
    this.#firsts = new Float64Array(capacity)
    this.#ids = new Float64Array(capacity)
    this.#priorities = new Uint8Array(capacity)
    this.#heads = emptyHeads(capacity)
    this.#capacity = capacity
    this.#turn = 0
    order.forEach((from, to) => {
      this.#entries.set(entries.subarray(from * WIDTH, (from + 1) * WIDTH), to * WIDTH)
      this.#firsts[to] = firsts[from] ?? 0
      this.#ids[to] = ids[from] ?? 0
      this.#priorities[to] = priorities[from] ?? 0
      this.#link(to)
    })
  }
}

const emptyHeads = (capacity: number): Int32Array =>
  new Int32Array(2 ** Math.ceil(Math.log2(capacity * 2))).fill(-1)
