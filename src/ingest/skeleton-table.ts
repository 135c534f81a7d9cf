/** Numbers of templates; a template beyond has no skeleton here. */
const MAX_TEMPLATES = 1 << 17
/** A generous text for each template; the pages of it that are never written take no memory. */
const TEXT_BYTES = 32 * 1024 * 1024
const HEAD_INTS = MAX_TEMPLATES + 1
const LENGTH_BYTES = 4

const encoder = new TextEncoder()

/**
 * Template number → skeleton in shared memory: one writer thread, many readers, fixed size. Texts are only
 * added, and where the newest of a template is, is written last: what a reader finds is whole, and stays.
 * When there is no more room, templates keep the skeleton they have.
 */
export class SkeletonTable {
  readonly buffer: SharedArrayBuffer
  /** where the text of each template begins, 0 = none; the last is where the next one goes */
  readonly #places: Int32Array
  readonly #bytes: Uint8Array
  /** of each template that was asked for, its place then and the text there */
  readonly #found: ({ readonly at: number; readonly text: Uint8Array } | undefined)[] = []

  /** @param buffer from the `buffer` of a table made by `create` */
  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer
    this.#places = new Int32Array(buffer, 0, HEAD_INTS)
    this.#bytes = new Uint8Array(buffer)
  }

  static create(textBytes = TEXT_BYTES): SkeletonTable {
    return new SkeletonTable(new SharedArrayBuffer(HEAD_INTS * LENGTH_BYTES + textBytes))
  }

  /** @returns the skeleton's bytes, none when there is no skeleton; the same array as long as it is the same */
  get(no: number): Uint8Array {
    const at = no > 0 && no < MAX_TEMPLATES ? Atomics.load(this.#places, no) : 0
    if (at === 0) return EMPTY
    const found = this.#found[no]
    if (found?.at === at) return found.text
    const start = at + LENGTH_BYTES
    const text = this.#bytes.subarray(start, start + this.#lengthAt(at))
    this.#found[no] = { at, text }
    return text
  }

  /** For the one writer only. */
  put(no: number, skeleton: string): void {
    if (no <= 0 || no >= MAX_TEMPLATES) return
    const text = encoder.encode(skeleton)
    if (Buffer.compare(text, this.get(no)) === 0) return
    const at = Math.max(this.#places[MAX_TEMPLATES] ?? 0, HEAD_INTS * LENGTH_BYTES)
    const end = at + LENGTH_BYTES + text.length
    if (end > this.#bytes.length) return
    new DataView(this.buffer).setUint32(at, text.length, true)
    this.#bytes.set(text, at + LENGTH_BYTES)
    this.#places[MAX_TEMPLATES] = end
    Atomics.store(this.#places, no, at)
  }

  #lengthAt(at: number): number {
    return new DataView(this.buffer).getUint32(at, true)
  }
}

const EMPTY = new Uint8Array(0)
