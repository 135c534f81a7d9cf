const C1 = 0xcc9e2d51
const C2 = 0x1b873593
const D1 = 0x239b961b
const D2 = 0xab0e9789

const mix = (h: number): number => {
  let x = h ^ (h >>> 16)
  x = Math.imul(x, 0x85ebca6b)
  x ^= x >>> 13
  x = Math.imul(x, 0xc2b2ae35)
  return x ^ (x >>> 16)
}

/**
 * Two seeded 32-bit hashes of a byte range in one pass; not cryptographic, so the seeds are random per
 * process wherever a sender could gain from a collision.
 *
 * @param out receives the hashes in out[0] and out[1]; their content on entry is the seed
 * Source: the block and final mixing of MurmurHash3 (A. Appleby), run as two lanes with two constant sets.
 */
export function hashBytes(bytes: Uint8Array, start: number, end: number, out: Int32Array): void {
  let a = out[0] ?? 0
  let b = out[1] ?? 0
  let i = start
  for (const last = end - 3; i < last; i += 4) {
    const k =
      (bytes[i] ?? 0) |
      ((bytes[i + 1] ?? 0) << 8) |
      ((bytes[i + 2] ?? 0) << 16) |
      ((bytes[i + 3] ?? 0) << 24)
    let x = Math.imul(k, C1)
    a ^= Math.imul((x << 15) | (x >>> 17), C2)
    a = (Math.imul((a << 13) | (a >>> 19), 5) + 0xe6546b64) | 0
    x = Math.imul(k, D1)
    b ^= Math.imul((x << 17) | (x >>> 15), D2)
    b = (Math.imul((b << 15) | (b >>> 17), 5) + 0x561ccd1b) | 0
  }
  let tail = 0
  for (let shift = 0; i < end; i++, shift += 8) tail |= (bytes[i] ?? 0) << shift
  a ^= Math.imul(tail, C1)
  b ^= Math.imul(tail, D1)
  out[0] = mix(a ^ (end - start))
  out[1] = mix(b ^ (end - start) ^ D2)
}

/** Folds two more numbers into a running pair of hashes. */
export function mixInto(out: Int32Array, first: number, second: number): void {
  out[0] = mix(Math.imul(out[0] ?? 0, 0x9e3779b1) ^ first)
  out[1] = mix(Math.imul(out[1] ?? 0, 0x85ebca77) ^ second)
}
