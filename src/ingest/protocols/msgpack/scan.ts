/** The progress of reading a value of MessagePack. */
export interface Scan {
  /** The offset of the next part. */
  at: number
  /** The number of values that are still to come. */
  left: number
  /** The number of values that were read. */
  values: number
}

export const startScan = (at: number): Scan => ({ at, left: 1, values: 0 })

/** The size of values by first byte, from 0xc0 to 0xdf; 0 = reserved, -1 = the value has a length. */
const FIXED = [
  1, 0, 1, 1, -1, -1, -1, -1, -1, -1, 5, 9, 2, 3, 5, 9, 2, 3, 5, 9, 3, 4, 6, 10, 18, -1, -1, -1, -1,
  -1, -1, -1,
] as const
/** For values with a length, by first byte: the bytes of the length, and those between it and the content. */
const SIZED: Readonly<Record<number, readonly [length: number, extra: number]>> = {
  0xc4: [1, 0],
  0xc5: [2, 0],
  0xc6: [4, 0],
  0xc7: [1, 1],
  0xc8: [2, 1],
  0xc9: [4, 1],
  0xd9: [1, 0],
  0xda: [2, 0],
  0xdb: [4, 0],
  0xdc: [2, 0],
  0xdd: [4, 0],
  0xde: [2, 0],
  0xdf: [4, 0],
}

/**
 * Continues to read a value, skipping content. It can be called again when more bytes have come, so
 * a value takes time in proportion to its size, whatever the chunks.
 *
 * @returns whether the value ends before `to`; null for bytes that are not MessagePack
 */
export function scanOn(bytes: Buffer, scan: Scan, to: number): boolean | null {
  while (scan.left > 0) {
    const head = headAt(bytes, scan.at, to)
    if (head === null || head === 'more') return head === null ? null : false
    // A long text is skipped only when all of it is there.
    if (scan.at + head.bytes > to) return false
    scan.at += head.bytes
    scan.left += head.items - 1
    scan.values += 1
  }
  return true
}

interface Head {
  /** The bytes of the value without its items. */
  readonly bytes: number
  /** The number of values that follow and belong to it. */
  readonly items: number
}

/**
 * @returns null for bytes that are not MessagePack, `more` when the value's length is not there yet
 */
function headAt(bytes: Buffer, at: number, to: number): Head | null | 'more' {
  if (at >= to) return 'more'
  const first = bytes[at] ?? 0
  if (first < 0x80 || first >= 0xe0) return { bytes: 1, items: 0 }
  if (first < 0x90) return { bytes: 1, items: (first & 15) * 2 }
  if (first < 0xa0) return { bytes: 1, items: first & 15 }
  if (first < 0xc0) return { bytes: 1 + (first & 31), items: 0 }
  const fixed = FIXED[first - 0xc0] ?? 0
  if (fixed >= 0) return fixed === 0 ? null : { bytes: fixed, items: 0 }
  return sizedHeadAt(bytes, at, to)
}

function sizedHeadAt(bytes: Buffer, at: number, to: number): Head | 'more' {
  const first = bytes[at] ?? 0
  const [length, extra] = SIZED[first] ?? [0, 0]
  if (at + 1 + length > to) return 'more'
  const count = bytes.readUIntBE(at + 1, length)
  if (first < 0xdc) return { bytes: 1 + length + extra + count, items: 0 }
  return { bytes: 1 + length, items: first < 0xde ? count : count * 2 }
}

/** @returns the offset after the value, -1 when it is incomplete */
function endOfValue(bytes: Buffer, at: number): number {
  const scan = startScan(at)
  return scanOn(bytes, scan, bytes.length) === true ? scan.at : -1
}

export interface ArrayHead {
  /** The offset of the first item. */
  readonly from: number
  readonly items: number
}

/** @returns null for anything but an array */
export function arrayAt(bytes: Buffer, at: number): ArrayHead | null {
  const first = bytes[at] ?? 0
  if (first >= 0x90 && first <= 0x9f) return { from: at + 1, items: first & 15 }
  if (first === 0xdc && at + 3 <= bytes.length)
    return { from: at + 3, items: bytes.readUInt16BE(at + 1) }
  if (first === 0xdd && at + 5 <= bytes.length)
    return { from: at + 5, items: bytes.readUInt32BE(at + 1) }
  return null
}

/**
 * Splits an array into its items.
 *
 * @returns null for other values, and for an array of more items than `most`
 */
export function partsOf(bytes: Buffer, most: number): readonly Buffer[] | null {
  const head = arrayAt(bytes, 0)
  if (head === null || head.items > most) return null
  const parts: Buffer[] = []
  let at = head.from
  for (let i = 0; i < head.items; i++) {
    const end = endOfValue(bytes, at)
    if (end === -1) return null
    parts.push(bytes.subarray(at, end))
    at = end
  }
  return parts
}

/** The first bytes of texts, byte strings and arrays with a separate length. */
const BYTES: ReadonlySet<number> = new Set([0xc4, 0xc5, 0xc6, 0xd9, 0xda, 0xdb])
const ARRAYS: ReadonlySet<number> = new Set([0xdc, 0xdd])

interface Content {
  readonly kind: 'bytes' | 'array'
  readonly bytes: Buffer
}

/** The content of a text or of bytes, or the items of an array; null for anything else. */
export function contentOf(value: Buffer): Content | null {
  const first = value[0] ?? 0
  if (first >= 0x90 && first < 0xa0) return { kind: 'array', bytes: value.subarray(1) }
  if (first >= 0xa0 && first < 0xc0) return { kind: 'bytes', bytes: value.subarray(1) }
  const [length = 0] = SIZED[first] ?? []
  if (BYTES.has(first)) return { kind: 'bytes', bytes: value.subarray(1 + length) }
  return ARRAYS.has(first) ? { kind: 'array', bytes: value.subarray(1 + length) } : null
}
