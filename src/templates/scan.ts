import { Kernel, NO_QUESTIONS } from '../wasm/kernel.js'
import { FNV_PRIME, FNV_SEED, TOKEN_STRIDE } from './token.js'

/** A message is scanned this far; the rest is one value. */
export const MAX_SCAN_BYTES = 8192
/** Tokens of a message; the rest is one value. */
export const MAX_TOKENS = 256
/** A chain adds several tokens at once. */
const TOKEN_SLACK = 32

const MIX_LO = 0x9e3779b1 | 0
const MIX_HI = 0x85ebca77 | 0

const kernel = new Kernel(NO_QUESTIONS)

/** A token array for `scanTokens`. */
export const tokenArray = (): Int32Array =>
  new Int32Array((MAX_TOKENS + TOKEN_SLACK) * TOKEN_STRIDE)

/** Writes the seed of a source to out[0..1]; equal shapes of two sources then differ. */
export function sourceSeed(name: string, out: Int32Array): void {
  let lo = FNV_SEED
  let hi = MIX_HI
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    lo = Math.imul(lo ^ code, FNV_PRIME)
    hi = Math.imul(hi ^ code, MIX_LO)
    hi ^= hi >>> 15
  }
  out[0] = avalanche(lo)
  out[1] = avalanche(hi ^ lo)
}

/** Bytes of messages that lie where they are scanned. */
export class MessageBytes {
  readonly #kernel = new Kernel(NO_QUESTIONS)
  #at = 0

  /** Replaces what was loaded before. */
  load(bytes: Uint8Array): void {
    this.#at = this.#kernel.calls.scratchAt(bytes.length)
    this.#kernel.bytes.set(bytes, this.#at)
  }

  /**
   * Writes the hash of a message's shape (its words and punctuation, values masked) to out[0..1].
   * Equal shapes belong to the same template. out[0] is never 0.
   */
  // oxlint-disable-next-line max-params -- numbers, not an object per message
  shape(start: number, end: number, seedLo: number, seedHi: number, out: Int32Array): void {
    const { calls } = this.#kernel
    calls.shapeOf(this.#at + start, end - start, seedLo, seedHi)
    out[0] = calls.shapeLo.value
    out[1] = calls.shapeHi.value
  }
}

/**
 * Lists the tokens of a message; see `TOKEN_STRIDE`.
 * @returns the number of tokens
 */
export function scanTokens(bytes: Uint8Array, tokens: Int32Array): number {
  const count = kernel.calls.scanTokens(place(bytes), bytes.length)
  const found = kernel.words32(kernel.calls.tokensAt(), count * TOKEN_STRIDE)
  tokens.set(found)
  return count
}

function place(bytes: Uint8Array): number {
  const at = kernel.calls.scratchAt(bytes.length)
  kernel.bytes.set(bytes, at)
  return at
}

function avalanche(hash: number): number {
  let h = Math.imul(hash ^ (hash >>> 16), 0x7feb352d)
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b)
  return h ^ (h >>> 16)
}
