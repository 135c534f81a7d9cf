/**
 * Reads columns of ClickHouse's Native format, for answers of millions of numbers: no text, no object a row.
 * Source: the Native format of ClickHouse's documentation; an Array column is its ends, then all items.
 */
export type Numbers = Uint16Array | Int32Array | Uint32Array | Float64Array

export type NativeColumn =
  | { readonly kind: 'text'; readonly values: readonly string[] }
  | { readonly kind: 'ids'; readonly values: BigUint64Array }
  | { readonly kind: 'numbers'; readonly values: Numbers }
  | {
      readonly kind: 'lists'
      /** of each row the index after its last item */
      readonly ends: Float64Array
      readonly items: Numbers
    }

export interface NativeRows {
  readonly rows: number
  readonly columns: ReadonlyMap<string, NativeColumn>
}

const NUMBERS = {
  UInt16: Uint16Array,
  Int32: Int32Array,
  UInt32: Uint32Array,
  Float64: Float64Array,
} as const

/** @throws Error `bug:` on a type that is not read here, RangeError when the bytes end too early */
export function readNative(bytes: Uint8Array): readonly NativeRows[] {
  const input = new Input(bytes)
  const blocks: NativeRows[] = []
  while (!input.isAtEnd()) {
    const width = input.varint()
    const rows = input.varint()
    const columns = new Map<string, NativeColumn>()
    for (let i = 0; i < width; i++) {
      const name = input.text()
      columns.set(name, readColumn(input, input.text(), rows))
    }
    if (rows > 0) blocks.push({ rows, columns })
  }
  return blocks
}

function readColumn(input: Input, type: string, rows: number): NativeColumn {
  if (type === 'String')
    return { kind: 'text', values: Array.from({ length: rows }, () => input.text()) }
  if (type === 'UInt64') return { kind: 'ids', values: new BigUint64Array(input.bytes(rows * 8)) }
  const list = /^Array\((\w+)\)$/.exec(type)?.[1]
  if (list === undefined) return { kind: 'numbers', values: readNumbers(input, type, rows) }
  const words = new Uint32Array(input.bytes(rows * 8))
  const ends = new Float64Array(rows)
  for (let row = 0; row < rows; row++)
    ends[row] = (words[2 * row] ?? 0) + (words[2 * row + 1] ?? 0) * 2 ** 32
  return { kind: 'lists', ends, items: readNumbers(input, list, ends.at(-1) ?? 0) }
}

function readNumbers(input: Input, type: string, count: number): Numbers {
  if (!isNumberType(type)) throw new Error(`bug: a column of type ${type} is not read`)
  const Kind = NUMBERS[type]
  return new Kind(input.bytes(count * Kind.BYTES_PER_ELEMENT))
}

const isNumberType = (type: string): type is keyof typeof NUMBERS => type in NUMBERS

class Input {
  readonly #bytes: Uint8Array
  readonly #decoder = new TextDecoder()
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  varint(): number {
    let [value, factor] = [0, 1]
    for (;;) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined) throw new RangeError('an answer in Native format ends too early')
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
      factor *= 0x80
    }
  }

  text(): string {
    const length = this.varint()
    return this.#decoder.decode(this.#take(length))
  }

  /** A copy, so that numbers in it lie where typed arrays want them. */
  bytes(length: number): ArrayBuffer {
    const copy = new ArrayBuffer(length)
    new Uint8Array(copy).set(this.#take(length))
    return copy
  }

  #take(length: number): Uint8Array {
    const to = this.#at + length
    if (to > this.#bytes.length) throw new RangeError('an answer in Native format ends too early')
    const part = this.#bytes.subarray(this.#at, to)
    this.#at = to
    return part
  }
}
