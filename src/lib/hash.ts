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

const SEED_LO = 0x5bd1e995
const SEED_HI = 0x1b873593

/**
 * The hash of 64 bits of all JavaScript code: ids of templates, seeds of sources, signatures of
 * templates that producers sent. It is not cryptographic: values that a client could forge (tokens,
 * keys, `dedup_key`) use SHA-256.
 *
 * Three modules have a hash of their own. The ingest kernel hashes messages and signatures eight
 * bytes at a time with a 64-bit multiplication, which JavaScript lacks (`wasm/assembly/hash.ts`).
 * The masking of messages hashes each word while it reads the word's bytes, with FNV-1a
 * (`templates/scan.ts`). The weights of the priority model are stored under FNV-1a buckets of their
 * words (`priority/words.ts`), which another hash would invalidate.
 *
 * @param out receives two hashes of 32 bits; its content on entry is the seed
 * Source: the block and final mixing of MurmurHash3 (A. Appleby), run as two lanes with two sets of constants.
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

const encoder = new TextEncoder()
/** A reused array for texts of usual length, which is cheaper than one array for each text. */
const scratch = new Uint8Array(4096)

/** The hash of a text as two numbers of 32 bits, the same in every process. */
export function hashText(text: string, out: Int32Array): void {
  // A character has three bytes at most.
  const bytes = text.length * 3 > scratch.length ? encoder.encode(text) : scratch
  const end = bytes === scratch ? encoder.encodeInto(text, scratch).written : bytes.length
  out[0] = SEED_LO
  out[1] = SEED_HI
  hashBytes(bytes, 0, end, out)
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const digits = (byte: number): string => HEX[byte & 0xff] ?? ''
/** It takes a sixth of the time of `toString(16)`, which matters on every miss of the miner. */
const hex = (part: number): string =>
  digits(part >>> 24) + digits(part >>> 16) + digits(part >>> 8) + digits(part)

const idHash = new Int32Array(2)

/** The hash of a text as 16 hex digits: an id that is the same after a restart. */
export function hashId(text: string): string {
  hashText(text, idHash)
  return hex(idHash[0] ?? 0) + hex(idHash[1] ?? 0)
}
