import { Kernel, NO_IMPORTS } from '../wasm/kernel.js'
import { MAX_TOKENS, TOKEN_INTS, TOKEN_SLACK } from '../wasm/layout.js'

/** The scanner hashes words with FNV-1a. */
export const FNV_SEED = 0x811c9dc5 | 0
export const FNV_PRIME = 0x01000193

const kernel = new Kernel(NO_IMPORTS)

export const tokenArray = (): Int32Array => new Int32Array((MAX_TOKENS + TOKEN_SLACK) * TOKEN_INTS)

/** Messages in WebAssembly's memory, where they are scanned. */
export class MessageBytes {
  readonly #kernel = new Kernel(NO_IMPORTS)
  #at = 0

  /** Replaces the bytes that were loaded before. */
  load(bytes: Uint8Array): void {
    this.#at = this.#kernel.calls.scratchAt(bytes.length)
    this.#kernel.bytes.set(bytes, this.#at)
  }

  /**
   * Writes the signature of a message to out[0..1]: a hash of its words and punctuation with values masked.
   * Messages with equal signatures belong to the same template. out[0] is never 0.
   */
  // oxlint-disable-next-line max-params -- numbers, not an object per message
  signature(start: number, end: number, seedLo: number, seedHi: number, out: Int32Array): void {
    const { calls } = this.#kernel
    calls.signatureOf(this.#at + start, end - start, seedLo, seedHi)
    out[0] = calls.signatureLo.value
    out[1] = calls.signatureHi.value
  }
}

/**
 * Lists the tokens of a message; see `TOKEN_INTS`.
 * @returns the number of tokens
 */
export function scanTokens(bytes: Uint8Array, tokens: Int32Array): number {
  const count = kernel.calls.scanTokens(place(bytes), bytes.length)
  const found = kernel.words32(kernel.calls.tokensAt(), count * TOKEN_INTS)
  tokens.set(found)
  return count
}

function place(bytes: Uint8Array): number {
  const at = kernel.calls.scratchAt(bytes.length)
  kernel.bytes.set(bytes, at)
  return at
}

/** A 52-bit hash. */
export function hashOfText(text: string): number {
  let lo = FNV_SEED
  let hi = 0x2545f491
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    lo = Math.imul(lo ^ c, FNV_PRIME)
    hi = Math.imul(hi ^ c, 0x85ebca6b) ^ (hi >>> 13)
  }
  return (lo >>> 0) + (hi & 0xfffff) * 0x100000000
}
