/** Random per process, set once: who does not know them can't aim for equal hashes. */
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
  let at = from
  const last = from + length
  if (length >= 32) {
    // two at a time: each step waits for the one before it
    let other = h ^ 0xa0761d6478bd642f
    for (; at + 16 <= last; at += 16) {
      h = mix(h, load<u64>(at))
      other = mix(other, load<u64>(at, 8))
    }
    h = mix(h, other)
  }
  for (; at + 8 <= last; at += 8) h = mix(h, load<u64>(at))
  const left = <u64>(last - at)
  // what lies behind the range is readable, and shifted out
  if (left > 0) h = mix(h, load<u64>(at) & ((<u64>1 << (left * 8)) - 1))
  return h
}

/** Mixes all bits into all bits, at the end. */
@inline
export function finish(h: u64): u64 {
  let x = (h ^ (h >> 32)) * 0xd6e8feb86659fd93
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93
  return x ^ (x >> 32)
}
