import { ByteBuffer } from '../lib/byte-buffer.js'
import type { MissBlock } from './block.js'

/** The signatures of a block that no thread knows, each once, and the rows that have them. */
export class MissList {
  readonly #bySignature = new Map<number, Map<number, number>>()
  #signatures: number[] = []
  readonly #bytes = new ByteBuffer(4096)
  #ends: number[] = []
  #sources: number[] = []
  #readyMade: number[] = []
  #rows: number[] = []
  #missOfRow: number[] = []

  add(
    lo: number,
    hi: number,
    text: Uint8Array,
    at: { readonly sourceIndex: number; readonly readyMade: boolean; readonly row: number },
  ): void {
    const byHi = this.#bySignature.get(lo) ?? new Map<number, number>()
    this.#bySignature.set(lo, byHi)
    let miss = byHi.get(hi)
    if (miss === undefined) {
      miss = this.#ends.length
      byHi.set(hi, miss)
      this.#signatures.push(lo, hi)
      this.#bytes.append(text)
      this.#ends.push(this.#bytes.length)
      this.#sources.push(at.sourceIndex)
      this.#readyMade.push(at.readyMade ? 1 : 0)
    }
    this.#rows.push(at.row)
    this.#missOfRow.push(miss)
  }

  finish(): MissBlock | null {
    if (this.#ends.length === 0) return null
    return {
      signatures: Int32Array.from(this.#signatures),
      bytes: this.#bytes.copy(),
      ends: Uint32Array.from(this.#ends),
      sourceIndexes: Uint32Array.from(this.#sources),
      readyMade: Uint8Array.from(this.#readyMade),
      rows: Uint32Array.from(this.#rows),
      missOfRow: Uint32Array.from(this.#missOfRow),
    }
  }

  clear(): void {
    this.#bySignature.clear()
    this.#signatures = []
    this.#bytes.clear()
    this.#ends = []
    this.#sources = []
    this.#readyMade = []
    this.#rows = []
    this.#missOfRow = []
  }
}
