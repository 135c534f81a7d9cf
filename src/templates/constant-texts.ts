import { toConstantText } from '../model/stored-message.js'
import type { TemplateRegistry } from './registry.js'
import { VALUE } from './template-text.js'

/** Templates with greater numbers have no constant text, so their messages are stored whole. */
const MAX_TEMPLATES = 1 << 17
/** The size of the memory for texts. Pages that are never written take no memory. */
const TEXT_BYTES = 32 * 1024 * 1024
const HEAD_INTS = MAX_TEMPLATES + 1
const LENGTH_BYTES = 4

const encoder = new TextEncoder()

/**
 * Template number → constant text in shared memory of a fixed size, with one writer thread and many readers. Texts
 * are only appended, and the address of a template's newest text is written last, so a reader always finds a
 * complete text. When the memory is full, the texts of templates do not change any more.
 */
export class ConstantTexts {
  readonly buffer: SharedArrayBuffer
  /**
   * Offset of each template's text, 0 = none. The first element is the generation of the texts, the last one the offset
   * for the next text.
   */
  readonly #places: Int32Array
  readonly #bytes: Uint8Array
  /** The thread's cache of texts, with their offsets. */
  readonly #found: ({ readonly at: number; readonly text: Uint8Array } | undefined)[] = []
  /** The generation of `#found`. */
  #generation = 0

  /** @param buffer from the `buffer` of a table made by `create` */
  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer
    this.#places = new Int32Array(buffer, 0, HEAD_INTS)
    this.#bytes = new Uint8Array(buffer)
  }

  static create(textBytes = TEXT_BYTES): ConstantTexts {
    return new ConstantTexts(new SharedArrayBuffer(HEAD_INTS * LENGTH_BYTES + textBytes))
  }

  /** Changes when templates are renumbered. */
  get generation(): number {
    return Atomics.load(this.#places, 0)
  }

  /** @returns no bytes when there is no text; the same array until the text changes */
  get(no: number): Uint8Array {
    const at = no > 0 && no < MAX_TEMPLATES ? Atomics.load(this.#places, no) : 0
    if (at === 0) return EMPTY
    const { generation } = this
    if (generation !== this.#generation) this.#found.length = 0
    this.#generation = generation
    const found = this.#found[no]
    if (found?.at === at) return found.text
    const start = at + LENGTH_BYTES
    const text = this.#bytes.subarray(start, start + this.#lengthAt(at))
    this.#found[no] = { at, text }
    return text
  }

  /** Stores the constant text of every numbered template. Only the single writer may call it. */
  watch(templates: TemplateRegistry): void {
    templates.onRenumber(() => this.clear())
    templates.onChange((changes) => {
      for (const { no, text } of changes) this.put(no, toConstantText(text.split(VALUE)))
    })
  }

  /** Stores a constant text. Only the single writer may call it. */
  put(no: number, constantText: string): void {
    if (no <= 0 || no >= MAX_TEMPLATES) return
    const text = encoder.encode(constantText)
    if (Buffer.compare(text, this.get(no)) === 0) return
    const at = Math.max(this.#places[MAX_TEMPLATES] ?? 0, HEAD_INTS * LENGTH_BYTES)
    const end = at + LENGTH_BYTES + text.length
    if (end > this.#bytes.length) return
    new DataView(this.buffer).setUint32(at, text.length, true)
    this.#bytes.set(text, at + LENGTH_BYTES)
    this.#places[MAX_TEMPLATES] = end
    Atomics.store(this.#places, no, at)
  }

  /** Removes all texts. Only the single writer may call it, while there are no readers. */
  clear(): void {
    this.#places.fill(0, 1)
    Atomics.add(this.#places, 0, 1)
  }

  #lengthAt(at: number): number {
    return new DataView(this.buffer).getUint32(at, true)
  }
}

const EMPTY = new Uint8Array(0)
