import {
  MAX_SCAN_BYTES,
  MAX_TOKENS,
  TOKEN_DATE,
  TOKEN_INTS,
  TOKEN_SIGNED,
  TOKEN_SOFT,
  TOKEN_TIME,
  TOKEN_VALUE,
  TOKEN_WORD,
} from '../wasm/layout.js'
import { FNV_PRIME, FNV_SEED, scanTokens, tokenArray } from './scan.js'
import { UNITS, VALUE } from './template-text.js'

const encoder = new TextEncoder()
// Decodes parts of a message, so U+FEFF at their beginning is no byte order mark.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

function hashText(text: string): number {
  let h = FNV_SEED
  for (const byte of encoder.encode(text)) h = Math.imul(h ^ byte, FNV_PRIME)
  return h
}

const hashes = (words: readonly string[]): ReadonlySet<number> => new Set(words.map(hashText))
const cases = (word: string): string[] => [
  word,
  word.toUpperCase(),
  word.charAt(0).toUpperCase() + word.slice(1),
]

const split = (list: string): string[] => list.split(' ')

const NONE = 0
const MONTH = 1
const WEEKDAY = 2
const ZONE = 3
/** A word that is always a value: a boolean, null and the usual accounts of systems. */
const VALUE_WORD = 4

/** Words that are values or parts of dates, by hash. */
const KINDS = new Map<number, number>()
const addKind = (kind: number, words: readonly string[]): void => {
  for (const word of words) KINDS.set(hashText(word), kind)
}
addKind(VALUE_WORD, [
  ...split('true false null root admin').flatMap(cases),
  ...split('nil undefined NaN None'),
])
addKind(
  MONTH,
  split(
    'jan feb mar apr may jun jul aug sep oct nov dec january february march april june july ' +
      'august september october november december',
  ).flatMap(cases),
)
addKind(
  WEEKDAY,
  split(
    'mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday',
  ).flatMap(cases),
)
addKind(ZONE, split('UTC GMT Z EST EDT CST CDT MST MDT PST PDT CET CEST BST IST JST AM PM am pm'))

const UNIT_WORDS = hashes(UNITS)
const MEASURES = hashes(split('byte bytes second seconds minute minutes hour hours'))
const HTTP = hashText('HTTP')
const MOZILLA = hashText('Mozilla')
const USER = hashText('user')
/** The names under which logfmt and JSON messages have their text. */
const SENTENCE = hashes(['msg', 'message'])
/** Words before `user` after which a user's name follows. */
const BEFORE_USER = hashes(['for', 'invalid', 'by', 'as'])

/** Includes the tokens of the last chain and the tail. */
const TOKENS = MAX_TOKENS + 40

const isBlank = (byte: number | undefined): boolean =>
  byte === 32 || (byte !== undefined && byte >= 9 && byte <= 13)

const isQuote = (byte: number | undefined): boolean => byte === 34 || byte === 39 || byte === 96

function trimmed(bytes: Uint8Array): Uint8Array {
  let from = 0
  let to = bytes.length
  while (to > from && isBlank(bytes[to - 1])) to--
  while (from < to && isBlank(bytes[from])) from++
  return to - from === bytes.length ? bytes : bytes.subarray(from, to)
}

/** The traits of a word as bits, which say how likely it is a value. */
export const TRAIT = {
  /** Ends in -ed or -ing: a verb, seldom a value. */
  verb: 1,
  /** Capitals only: a state or a constant. */
  capitals: 2,
  /** Contains `.`, `_`, `@`, `/`, `-` or inner capitals: a name. */
  name: 4,
  /** Alone in quotes. */
  quoted: 8,
  /** After `=`. */
  assigned: 16,
  /** Before `=`. */
  key: 32,
  /** A short unit after a number. */
  unit: 64,
  /** The first word of the message. */
  first: 128,
  /** The name of a unit after a number, such as `bytes`. */
  measure: 256,
  /** Outside of the sentence in `level=debug msg="..." id=5`. */
  aside: 512,
} as const

function wordTraits(word: string): number {
  let traits = 0
  if (/^(?=\w{6})\w+(?:ed|ing)$/.test(word)) traits |= TRAIT.verb
  if (/^[A-Z][A-Z_]+$/.test(word)) traits |= TRAIT.capitals
  if (/[._@/\-\\]|[a-z][A-Z]/.test(word)) traits |= TRAIT.name
  return traits
}

/** @param around the characters before and after a word */
function placeTraits(around: string): number {
  if (around.startsWith('=')) return TRAIT.assigned
  return around === '""' || around === "''" || around === '``' ? TRAIT.quoted : 0
}

/**
 * The masked form of one message: words and the gaps between them. Gap k is before word k, the last gap after the last
 * word; a gap consists of values, soft words (with one digit, such as `ssh2`), punctuation and blanks.
 * `wasm/assembly/scan.ts` finds the tokens; values that span several tokens, such as dates, are joined here. One
 * instance is reused for every message.
 */
export class MaskedMessage {
  /** Number of words. */
  count = 0
  readonly words = new Int32Array(TOKENS)
  readonly gapHashes = new Int32Array(TOKENS)
  /** Number of quotes outside of words and values. */
  quotes = 0
  /** Number of values and soft words in each gap. */
  readonly gapValues = new Uint16Array(TOKENS)
  #bytes: Uint8Array = new Uint8Array(0)
  /** The message when it is ASCII, so that its characters are at the offsets of its bytes; '' otherwise. */
  #ascii = ''
  #length = 0
  readonly #raw = tokenArray()
  #rawCount = 0
  #tokens = 0
  readonly #kind = new Uint8Array(TOKENS)
  readonly #from = new Int32Array(TOKENS)
  readonly #to = new Int32Array(TOKENS)
  readonly #hash = new Int32Array(TOKENS)
  /** Of `KINDS`. */
  readonly #known = new Uint8Array(TOKENS)
  /** Token index of each word, then the number of tokens. */
  readonly #wordToken = new Int32Array(TOKENS)

  read(message: Uint8Array): void {
    const bytes = trimmed(message)
    this.#bytes = bytes
    const text = decoder.decode(bytes)
    this.#ascii = text.length === bytes.length ? text : ''
    this.#rawCount = scanTokens(bytes, this.#raw)
    this.#length = bytes.length
    this.#take()
    this.#layOut()
  }

  wordText(k: number): string {
    const t = this.#wordToken[k] ?? 0
    return this.#slice(this.#from[t] ?? 0, this.#to[t] ?? 0)
  }

  /** The whole message with its values masked. */
  text(): string {
    return this.#masked(0, this.#tokens, false).trim()
  }

  gapText(k: number): string {
    return this.gapTextOver(k, k)
  }

  /** The text of the gap that results when the words from `first` up to `last` (excluded) are values. */
  gapTextOver(first: number, last: number): string {
    const [from, to] = this.#gapTokens(first, last)
    let text = this.#masked(from, to, true)
    if (first === 0) text = text.trimStart()
    return last === this.count ? text.trimEnd() : text
  }

  /** The text of some tokens and around them. @param inGap whether words are values */
  #masked(first: number, last: number, inGap: boolean): string {
    let text = ''
    let at = first === 0 ? 0 : (this.#to[first - 1] ?? 0)
    let isJoined = false
    for (let t = first; t < last; t++) {
      const kind = this.#kind[t]
      if (kind === TOKEN_SOFT || (kind === TOKEN_WORD && !inGap)) continue
      const between = this.#literal(at, this.#from[t] ?? 0)
      if (!isJoined || (between !== '' && between !== '.')) text += between + VALUE
      at = this.#to[t] ?? 0
      isJoined = true
    }
    return text + this.#literal(at, last < this.#tokens ? (this.#from[last] ?? 0) : this.#length)
  }

  /** The hash of the text of `gapTextOver`. */
  gapHashOver(first: number, last: number): number {
    const [from, to] = this.#gapTokens(first, last)
    let h = FNV_SEED
    let at = from === 0 ? 0 : (this.#to[from - 1] ?? 0)
    for (let t = from; t < to; t++) {
      h = this.#foldLiteral(h, at, this.#from[t] ?? 0)
      const value = this.#kind[t] === TOKEN_SOFT ? (this.#hash[t] ?? 0) : 0x1234567
      h = Math.imul(h ^ value, FNV_PRIME)
      h ^= h >>> 15
      at = this.#to[t] ?? 0
    }
    return this.#foldLiteral(h, at, to < this.#tokens ? (this.#from[to] ?? 0) : this.#length)
  }

  isSoft(k: number, index: number): boolean {
    return this.#kind[this.#gapTokens(k, k)[0] + index] === TOKEN_SOFT
  }

  hasValueBefore(k: number): boolean {
    return (this.gapValues[k] ?? 0) > 0
  }

  /** Whether word `k` is before `=`, so that it names a value. */
  isKey(k: number): boolean {
    const to = this.#to[this.#wordToken[k] ?? 0] ?? 0
    return this.#bytes[to] === 61 && to < this.#length && this.#bytes[to + 1] !== 61
  }

  /** The words of the sentence in logfmt or JSON, from the first up to the last (excluded); null for other messages. */
  sentence(): readonly [from: number, to: number] | null {
    for (let k = 0; k < this.count; k++) {
      if (!SENTENCE.has(this.words[k] ?? 0)) continue
      const open = this.#sentenceQuote(this.#to[this.#wordToken[k] ?? 0] ?? 0)
      if (open < 0) continue
      let end = open + 1
      while (end < this.#length && this.#bytes[end] !== 34) end += this.#bytes[end] === 92 ? 2 : 1
      let to = k + 1
      while (to < this.count && (this.#from[this.#wordToken[to] ?? 0] ?? 0) < end) to++
      return [k + 1, to]
    }
    return null
  }

  /** Where the quote of a sentence opens behind its name, as in `msg="` and `{"msg": "`; -1 for another word. */
  #sentenceQuote(at: number): number {
    if (this.#bytes[at] === 61) return this.#bytes[at + 1] === 34 ? at + 1 : -1
    if (this.#bytes[0] !== 123 || this.#bytes[at] !== 34 || this.#bytes[at + 1] !== 58) return -1
    const open = this.#bytes[at + 2] === 32 ? at + 3 : at + 2
    return this.#bytes[open] === 34 ? open : -1
  }

  isVerb(k: number): boolean {
    const to = this.#to[this.#wordToken[k] ?? 0] ?? 0
    if (to - (this.#from[this.#wordToken[k] ?? 0] ?? 0) < 6) return false
    const last = this.#bytes[to - 1]
    if (last === 100) return this.#bytes[to - 2] === 101
    return last === 103 && this.#bytes[to - 2] === 110 && this.#bytes[to - 3] === 105
  }

  /** The traits of word `k` as bits of `TRAIT`. */
  traits(k: number): number {
    const t = this.#wordToken[k] ?? 0
    const from = this.#from[t] ?? 0
    const to = this.#to[t] ?? 0
    const around = String.fromCharCode(this.#bytes[from - 1] ?? 0, this.#bytes[to] ?? 0)
    let traits = wordTraits(this.wordText(k)) | placeTraits(around)
    if (t === 0) traits |= TRAIT.first
    if (this.isKey(k)) traits |= TRAIT.key
    else if (this.#isUnit(t)) traits |= TRAIT.unit
    else if (this.#isMeasure(t)) traits |= TRAIT.measure
    return traits
  }

  /** Reads the scanner's tokens and joins those that are one value. */
  #take(): void {
    let n = 0
    for (let r = 0; r < this.#rawCount; r++) {
      const at = r * TOKEN_INTS
      const kind = this.#raw[at] ?? 0
      this.#from[n] = this.#raw[at + 1] ?? 0
      this.#to[n] = this.#raw[at + 2] ?? 0
      const hash = this.#raw[at + 3] ?? 0
      this.#hash[n] = hash
      this.#known[n] = kind === TOKEN_WORD ? (KINDS.get(hash) ?? NONE) : NONE
      this.#kind[n] = kind === TOKEN_WORD ? this.#wordKind(n) : kind
      if (this.#endsRequest(n)) {
        n--
        this.#to[n - 1] = this.#to[n + 1] ?? 0
      } else if (this.#continuesValue(n)) this.#to[n - 1] = this.#to[n] ?? 0
      else if (this.#endsBrowser(n)) r = this.#skipQuote(n++, r)
      else n++
    }
    this.#tokens = n
    this.#joinDates()
  }

  #wordKind(t: number): number {
    if (this.#known[t] === VALUE_WORD && this.#bytes[this.#to[t] ?? 0] !== 61) return TOKEN_VALUE
    return this.#isUserName(t) ? TOKEN_VALUE : TOKEN_WORD
  }

  /** Recognises `for user alice` and `invalid user bob`. */
  #isUserName(t: number): boolean {
    if (t < 2 || this.#hash[t - 1] !== USER) return false
    return BEFORE_USER.has(this.#hash[t - 2] ?? 0) && this.#oneBlank(t) && this.#oneBlank(t - 1)
  }

  /** Recognises `KB` in `5 KB`. */
  #isUnit(t: number): boolean {
    return t > 0 && this.#isValue(t - 1) && this.#isOf(UNIT_WORDS, t)
  }

  #isMeasure(t: number): boolean {
    return t > 0 && this.#isValue(t - 1) && this.#isOf(MEASURES, t)
  }

  #isOf(words: ReadonlySet<number>, t: number): boolean {
    return words.has(this.#hash[t] ?? 0) && this.#oneBlank(t)
  }

  /** Recognises `1190 bytes (1.16 KB)`, which is one value. */
  #isTwoAmounts(t: number): boolean {
    if (t + 3 >= this.#tokens || !this.#isValue(t) || !this.#isValue(t + 2)) return false
    if (!(this.#isMeasure(t + 1) || this.#isUnit(t + 1)) || !this.#isUnit(t + 3)) return false
    const open = this.#to[t + 1] ?? 0
    const isOpen = this.#bytes[open] === 32 && this.#bytes[open + 1] === 40
    return isOpen && this.#from[t + 2] === open + 2 && this.#bytes[this.#to[t + 3] ?? 0] === 41
  }

  #isValue(t: number): boolean {
    return (this.#kind[t] ?? 0) >= TOKEN_VALUE
  }

  #oneBlank(t: number): boolean {
    const to = this.#to[t - 1] ?? 0
    return this.#from[t] === to + 1 && this.#bytes[to] === 32
  }

  /** Recognises `HTTP/1.1` after the target of a request, which becomes part of that value: `"GET <*>"`. */
  #endsRequest(t: number): boolean {
    if (t < 2 || this.#kind[t] !== TOKEN_VALUE || this.#hash[t - 1] !== HTTP) return false
    const slash = this.#to[t - 1] ?? 0
    if (this.#bytes[slash] !== 47 || this.#from[t] !== slash + 1) return false
    return this.#isValue(t - 2) && this.#oneBlank(t - 1)
  }

  /** Recognises `<*>:<*>`, which is one value. */
  #continuesValue(t: number): boolean {
    if (t === 0 || !this.#isValue(t) || !this.#isValue(t - 1)) return false
    const colon = this.#to[t - 1] ?? 0
    return this.#from[t] === colon + 1 && this.#bytes[colon] === 58
  }

  /** Recognises `Mozilla/5.0`, which begins a user agent that ends at the closing quote. */
  #endsBrowser(t: number): boolean {
    return (
      t > 0 && this.#isValue(t) && this.#hash[t - 1] === MOZILLA && this.#kind[t - 1] === TOKEN_WORD
    )
  }

  /** Extends value `t` to the closing quote. @returns the last raw token in it */
  #skipQuote(t: number, raw: number): number {
    const close = this.#bytes.indexOf(34, this.#to[t])
    const end = close < 0 ? this.#length : close
    let r = raw
    while (r + 1 < this.#rawCount && (this.#raw[(r + 1) * TOKEN_INTS + 1] ?? 0) < end) r++
    this.#to[t] = Math.max(end, this.#raw[r * TOKEN_INTS + 2] ?? 0)
    return r
  }

  #dateWord(t: number): number {
    const known = this.#known[t] ?? NONE
    return this.#kind[t] === TOKEN_WORD && known !== VALUE_WORD ? known : NONE
  }

  /** Joins the parts of a date and time (`Fri Jul 01 08:16:53 PDT 2005`) into one value. */
  #joinDates(): void {
    let n = 0
    for (let t = 0; t < this.#tokens;) {
      const amounts = this.#isTwoAmounts(t)
      const stop = amounts ? t + 4 : this.#dateEnd(t)
      this.#kind[n] = stop > t + 1 ? TOKEN_VALUE : (this.#kind[t] ?? 0)
      this.#from[n] = this.#from[t] ?? 0
      this.#to[n] = (this.#to[Math.max(t, stop - 1)] ?? 0) + (amounts ? 1 : 0)
      this.#hash[n] = this.#hash[t] ?? 0
      this.#known[n] = this.#known[t] ?? NONE
      t = Math.max(t + 1, stop)
      n++
    }
    this.#tokens = n
  }

  /** Returns the index after the date that begins at token `t`, t + 1 or less when none does. */
  #dateEnd(t: number): number {
    if (!this.#opensDate(t)) return t
    let values = this.#isValue(t) ? 1 : 0
    let end = t + 1
    while (end < this.#tokens && this.#blanksBefore(end) && this.#continuesDate(end)) {
      if (this.#isValue(end)) values++
      end++
    }
    return values > 0 ? end : t
  }

  #opensDate(t: number): boolean {
    const word = this.#dateWord(t)
    if (word === MONTH || word === WEEKDAY || this.#kind[t] === TOKEN_DATE) return true
    // Such as `8 Nov 2025`.
    return (
      this.#kind[t] === TOKEN_VALUE && this.#dateWord(t + 1) === MONTH && this.#blanksBefore(t + 1)
    )
  }

  #continuesDate(t: number): boolean {
    const kind = this.#kind[t]
    if (kind === TOKEN_TIME || kind === TOKEN_DATE) return true
    const word = this.#dateWord(t)
    if (word !== NONE) return true
    // An offset from UTC.
    if (kind === TOKEN_SIGNED) return (this.#kind[t - 1] ?? 0) >= TOKEN_TIME
    if (kind !== TOKEN_VALUE) return false
    const before = this.#dateWord(t - 1)
    // A day after its month, a year after the time or the zone.
    return before !== NONE || this.#kind[t - 1] === TOKEN_TIME || this.#dateWord(t - 2) === MONTH
  }

  /** Whether only blanks and commas are between token `t` and the one before it. */
  #blanksBefore(t: number): boolean {
    if (t >= this.#tokens) return false
    for (let i = this.#to[t - 1] ?? 0; i < (this.#from[t] ?? 0); i++) {
      if (this.#bytes[i] !== 32 && this.#bytes[i] !== 44) return false
    }
    return true
  }

  #layOut(): void {
    let n = 0
    for (let t = 0; t < this.#tokens; t++) {
      if (this.#kind[t] !== TOKEN_WORD) continue
      this.words[n] = this.#hash[t] ?? 0
      this.#wordToken[n++] = t
    }
    this.count = n
    this.#wordToken[n] = this.#tokens
    this.quotes = this.#countQuotes()
    for (let k = 0; k <= n; k++) {
      const [from, to] = this.#gapTokens(k, k)
      this.gapValues[k] = to - from
      this.gapHashes[k] = this.gapHashOver(k, k)
    }
  }

  #countQuotes(): number {
    let quotes = 0
    let at = 0
    for (let t = 0; t <= this.#tokens; t++) {
      const end = t < this.#tokens ? (this.#from[t] ?? 0) : this.#length
      for (; at < end; at++) if (isQuote(this.#bytes[at])) quotes++
      if (t < this.#tokens) at = this.#to[t] ?? 0
    }
    return quotes
  }

  #gapTokens(first: number, last: number): [number, number] {
    return [first === 0 ? 0 : (this.#wordToken[first - 1] ?? 0) + 1, this.#wordToken[last] ?? 0]
  }

  #slice(from: number, to: number): string {
    return this.#ascii === ''
      ? decoder.decode(this.#bytes.subarray(from, to))
      : this.#ascii.slice(from, to)
  }

  #literal(from: number, to: number): string {
    if (to - from === 1 && this.#bytes[from] === 32) return ' '
    if (to - from > MAX_SCAN_BYTES) return ' '
    const text = this.#slice(from, to)
    return /[\t-\r]|\s\s|[\u0080-\uffff]/.test(text) ? text.replaceAll(/\s+/g, ' ') : text
  }

  #foldLiteral(hash: number, from: number, to: number): number {
    let h = hash
    let blank = false
    for (let i = from; i < to; i++) {
      const c = this.#bytes[i] ?? 0
      if (isBlank(c)) {
        blank = true
        continue
      }
      if (blank && i > 0) h = Math.imul(h ^ 32, FNV_PRIME)
      blank = false
      h = Math.imul(h ^ c, FNV_PRIME)
    }
    return blank ? Math.imul(h ^ 32, FNV_PRIME) : h
  }
}
