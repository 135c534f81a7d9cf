import { firstBytes } from './bytes'

/** Random per process, so that senders cannot construct collisions. */
let secret0: u64 = 0x9e3779b97f4a7c15
let secret1: u64 = 0xd6e8feb86659fd93

export function setSecrets(a: u64, b: u64): void {
  secret0 = a
  secret1 = b | 1
}

@inline
export function startHash(): u64 {
  return secret0
}

/**
 * One step over eight bytes. The halves are multiplied after a secret was mixed in, so that no difference of
 * two texts cancels out whatever the secret is; the rotated sum keeps all bits where a product is zero.
 * Source: the folded multiplication of wyhash (Wang Yi), with 32-bit halves, which is what WebAssembly has.
 */
@inline
export function mix(h: u64, word: u64): u64 {
  const a = h ^ word
  const b = a ^ secret1
  return ((a & 0xffffffff) ^ (secret0 >> 32)) * ((b >> 32) ^ (secret0 & 0xffffffff)) + rotl<u64>(a, 23) * 0x9e3779b97f4a7c15
}

/** Folds a range of bytes into a running hash; its length is part of it. */
export function hashRange(seed: u64, from: usize, length: usize): u64 {
  let h = mix(seed, <u64>length)
  const last = from + length
  if (length >= 16) {
    // Two chains of steps run side by side, because each step waits for the one before it. Their difference depends on
    // the secrets: otherwise senders could construct texts that make both equal, and all of these would have one hash.
    let other = mix(h, 0xa0761d6478bd642f)
    for (let at = from; at + 16 < last; at += 16) {
      h = mix(h, load<u64>(at))
      other = mix(other, load<u64>(at, 8))
    }
    // The last sixteen bytes may overlap those before them.
    return mix(mix(h, load<u64>(last - 16)), mix(other, load<u64>(last - 8)))
  }
  if (length >= 8) return mix(mix(h, load<u64>(from)), load<u64>(last - 8))
  // The bytes after the range are readable and masked.
  return length == 0 ? h : mix(h, load<u64>(from) & ((<u64>1 << (<u64>length * 8)) - 1))
}

/** Finishes a hash: each bit of the result depends on all bits. */
@inline
export function finish(h: u64): u64 {
  let x = (h ^ (h >> 32)) * 0xd6e8feb86659fd93
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93
  return x ^ (x >> 32)
}

const STEP: u64 = 0x9e3779b97f4a7c15

/**
 * One step of the hashes of signatures. The upper half is folded into the lower one, so that changes in the last bytes
 * of two words cannot cancel out.
 */
@inline
export function step(h: u64, next: u64): u64 {
  const product = (h ^ next) * STEP
  return product ^ (product >> 32)
}

/** Hashes a word of up to 16 bytes, none of which is zero. */
@inline
export function hashOfShort(from: usize, length: u32): u32 {
  const bytes = firstBytes(from, length)
  return <u32>step(step(0, v128.extract_lane<u64>(bytes, 0)), v128.extract_lane<u64>(bytes, 1))
}

/** Hashes a word of any length. */
export function hashOfWord(from: usize, length: u32): u32 {
  if (length <= 16) return hashOfShort(from, length)
  // The length is mixed first, so that the first byte cannot cancel out a difference in length.
  let h = step(0, length)
  const last = from + length - 8
  for (let at = from; at < last; at += 8) h = step(h, load<u64>(at))
  return <u32>step(h, load<u64>(last))
}

/** The hash of a name with one more ASCII character. Upper and lower case give the same hash. */
@inline
export function keyWith(key: u64, c: u32): u64 {
  return key * 0x100000001b3 + (c | 0x20)
}
