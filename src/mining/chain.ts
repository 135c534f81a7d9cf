import {
  byteAt,
  CLASS,
  colonHexEnd,
  DIGIT_BIT,
  HIGH_BIT,
  isHostName,
  JOINER,
  NOT_HEX_BIT,
  pathEnd,
  scriptChange,
  SPACE,
  WORD,
} from './bytes.js'
import { FNV_PRIME, FNV_SEED, isDigit, MAX_WORD_BYTES, TOKEN, TOKEN_STRIDE } from './token.js'

/** A chain of more parts is a value. */
const MAX_PARTS = 24

const DASH = 1
const DOT = 2
const SLASH = 4
const AT = 8

function joinBit(c: number): number {
  if (c === 46) return DOT
  if (c === 45) return DASH
  if (c === 47) return SLASH
  return c === 64 ? AT : 16
}

function hashBytes(bytes: Uint8Array, from: number, to: number): number {
  let h = FNV_SEED
  for (let i = from; i < to; i++) h = Math.imul(h ^ (bytes[i] ?? 0), FNV_PRIME)
  return h
}

/**
 * Reads a word or a chain of words and numbers joined by `.`, `-`, `/`, `@`, `#` or `\`
 * (`10.0.0.1:80`, `node-7`, `java.io.IOException`, `core.2275`), and decides what it is: one token,
 * or words and values that stand for themselves. Used again for every chain.
 */
export class Chain {
  /** tokens of the chain, `TOKEN_STRIDE` numbers each; `count` of them */
  readonly tokens = new Int32Array((MAX_PARTS + 2) * TOKEN_STRIDE)
  count = 0
  /** index behind the chain */
  end = 0
  #bytes: Uint8Array = new Uint8Array(0)
  #from = 0
  #limit = 0
  #parts = 0
  #valueParts = 0
  /** parts of digits only */
  #plainParts = 0
  /** parts without digits that are not hexadecimal either */
  #mixedParts = 0
  #digits = 0
  #joined = 0
  #slashes = 0
  /** the first part is a value */
  #opens = false

  /** Reads the chain whose first byte, of a word, is at `from`. */
  read(bytes: Uint8Array, from: number, limit: number): void {
    this.#bytes = bytes
    this.#from = from
    this.#limit = limit
    this.#parts = 0
    this.#valueParts = 0
    this.#plainParts = 0
    this.#mixedParts = 0
    this.#digits = 0
    this.#joined = 0
    this.#slashes = 0
    this.#opens = false
    this.count = 0
    const hash = this.#readParts()
    let kind = this.#valueByContext()
    if (kind === 0) kind = this.#judge()
    if (kind === 0) return
    if (kind >= TOKEN.value) kind = this.#takeColons(kind)
    this.count = 0
    const whole = this.#valueParts > 0 ? hashBytes(bytes, from, this.end) : hash
    this.#push(kind, from, this.end, kind < TOKEN.value ? whole : 0)
  }

  /** Splits the chain. @returns the hash of the words behind the last value */
  // oxlint-disable-next-line max-lines-per-function, complexity -- hot path (bench/micro/mining.bench.ts)
  #readParts(): number {
    const bytes = this.#bytes
    const limit = this.#limit
    // module bindings are looked up at each use
    const classes = CLASS
    const prime = FNV_PRIME
    const seed = FNV_SEED
    const digitBit = DIGIT_BIT
    const notHexBit = NOT_HEX_BIT
    const highBit = HIGH_BIT
    const wordClass = WORD
    const joinerClass = JOINER
    let i = this.#from
    let c = bytes[i] ?? 0
    let cls = classes[c] ?? 0
    let h = seed
    let segment = i
    let segmentHash = h
    for (;;) {
      const from = i
      const first = cls & digitBit
      let digits = 0
      let bits = 0
      do {
        h = Math.imul(h ^ c, prime)
        digits += cls & digitBit
        bits |= cls
        i++
        c = i < limit ? (bytes[i] ?? 0) : 0
        cls = classes[c] ?? 0
      } while (cls >= wordClass)
      if ((bits & highBit) !== 0 && digits > 0) {
        const change = scriptChange(bytes, from, i)
        if (change < i) {
          h = hashBytes(bytes, from, change)
          digits = first === 0 ? 0 : change - from
          i = change
          cls = SPACE
        }
      }
      this.#countPart(digits, i - from, (bits & notHexBit) !== 0)
      if (first !== 0 || digits >= 2 || (i - from >= 8 && (bits & notHexBit) === 0)) {
        this.#opens ||= this.#parts === 1
        if (from > segment) this.#push(TOKEN.word, segment, from - 1, segmentHash)
        this.#pushValue(from, i)
        segment = i + 1
        h = seed
      }
      if (cls !== joinerClass || i + 1 >= limit || this.#parts >= MAX_PARTS) break
      const next = bytes[i + 1] ?? 0
      if ((classes[next] ?? 0) < wordClass) break
      this.#joined |= joinBit(c)
      if (c === 47 || c === 92) this.#slashes++
      segmentHash = h
      if (h !== seed) h = Math.imul(h ^ c, prime)
      i++
      c = next
      cls = classes[c] ?? 0
    }
    if (i > segment) this.#push(TOKEN.word, segment, i, h)
    this.end = i
    return h
  }

  #countPart(digits: number, length: number, notHex: boolean): void {
    this.#parts++
    this.#digits += digits
    if (digits === length) this.#plainParts++
    if (digits === 0 && (notHex || length < 2 || this.#parts === 1)) this.#mixedParts++
  }

  #pushValue(from: number, to: number): void {
    this.#valueParts++
    const last = (this.count - 1) * TOKEN_STRIDE
    const { tokens } = this
    const joins = this.count > 0 && tokens[last] === TOKEN.value && tokens[last + 2] === from - 1
    // 1.2 among words is one value
    if (joins && this.#bytes[from - 1] === 46) tokens[last + 2] = to
    else this.#push(TOKEN.value, from, to, 0)
  }

  // oxlint-disable-next-line max-params -- the numbers of a token
  #push(kind: number, from: number, to: number, hash: number): void {
    const at = this.count * TOKEN_STRIDE
    this.tokens[at] = kind
    this.tokens[at + 1] = from
    this.tokens[at + 2] = to
    this.tokens[at + 3] = hash
    this.count++
  }

  /** What follows the chain makes it a value (URL, path, address) or a name (`x1=`, `a12::b`). */
  #valueByContext(): number {
    const c = this.#byte(this.end)
    if (c === 47) return this.#opensPath() ? this.#takePath() : 0
    const named = this.#digits > 0 && !isDigit(this.#byte(this.#from))
    if (c === 61) return named && this.#byte(this.end + 1) !== 61 ? TOKEN.word : 0
    return c === 58 ? this.#valueByColon(named) : 0
  }

  /** the byte at `i`, 0 behind the limit */
  #byte(i: number): number {
    return i < this.#limit ? byteAt(this.#bytes, i) : 0
  }

  /** com.app/.Activity, ~/file */
  #opensPath(): boolean {
    if (this.#byte(this.end + 1) === 46 && this.#parts > 1) return true
    return this.end - this.#from === 1 && this.#byte(this.#from) === 126
  }

  #valueByColon(named: boolean): number {
    const { end } = this
    const next = this.#byte(end + 1)
    const behind = this.#byte(end + 2)
    if (next === 47 && behind === 47) return this.#takePath()
    if (next === 92 && end - this.#from === 1) return this.#takePath()
    if (next === 58 && named) return ((CLASS[behind] ?? 0) & NOT_HEX_BIT) === 0 ? 0 : TOKEN.word
    if (this.#parts !== 1 || end - this.#from > 4) return 0
    const stop = colonHexEnd(this.#bytes, this.#from, this.#limit)
    if (stop <= end) return 0
    this.end = stop
    return TOKEN.value
  }

  #takePath(): number {
    this.end = pathEnd(this.#bytes, this.end, this.#limit)
    return TOKEN.value
  }

  /** Decides on the chain as a whole: a token kind, or 0 when its parts stand for themselves. */
  #judge(): number {
    if (this.end - this.#from > MAX_WORD_BYTES || this.#parts >= MAX_PARTS) return TOKEN.value
    if (this.#parts > 1) {
      const whole = this.#judgeJoined()
      if (whole !== 0) return whole
    } else if (this.#valueParts === 1) return TOKEN.value
    if (this.#valueParts === 0) return this.#digits > 0 ? TOKEN.soft : TOKEN.word
    if (this.#mixedParts > 0) return (this.#joined & DASH) !== 0 ? TOKEN.value : 0
    return this.#isShare() ? 0 : TOKEN.value
  }

  /** 12/40 */
  #isShare(): boolean {
    return this.#joined === SLASH && this.#parts === 2 && this.#plainParts === 2
  }

  #judgeJoined(): number {
    if (this.#isAddress()) return TOKEN.value
    if (this.#isDate()) return TOKEN.date
    return this.#slashes >= 2 && this.#mixedParts > 0 ? TOKEN.value : 0
  }

  /** a@b.c, www.example.com, p1234.example.info */
  #isAddress(): boolean {
    if ((this.#joined & DOT) === 0) return false
    if ((this.#joined & AT) !== 0 || isHostName(this.#bytes, this.#from, this.end)) return true
    return this.#opens && this.#joined === DOT && this.#mixedParts >= 2
  }

  /** 2025-11-12, 12/11/2025, 12/Nov/2025 */
  #isDate(): boolean {
    if (this.#parts !== 3 || (this.#joined !== SLASH && this.#joined !== DASH)) return false
    return this.#plainParts === 3 || (this.#plainParts === 2 && this.#mixedParts === 1)
  }

  /** host:port, 15:42:50, path:line */
  #takeColons(kind: number): number {
    const bytes = this.#bytes
    const number = this.#plainParts === 1 && this.#parts === 1
    let i = this.end
    let found = kind
    while (i + 1 < this.#limit && bytes[i] === 58 && isDigit(bytes[i + 1] ?? 0)) {
      if (number) found = TOKEN.time
      i++
      while (i < this.#limit && this.#isNumberByte(i)) i++
    }
    this.end = i
    return found
  }

  #isNumberByte(i: number): boolean {
    const c = this.#byte(i)
    return (CLASS[c] ?? 0) >= WORD || (c === 46 && isDigit(this.#byte(i + 1)))
  }
}
