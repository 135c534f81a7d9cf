import { MAX_TOKENS } from '../wasm/layout.js'
import { TRAIT, type MaskedMessage } from './masked-message.js'
import { coversWide, isWide, joinValues, mergeGaps, VALUE } from './template-text.js'

/** With fewer fixed words, a word in the position of a value is not taken for a value. */
const FIXED_FOR_WORDS = 3

interface TemplateName {
  readonly no: number
  readonly id: string
  readonly source: string
  /** When its first message was mined, in microseconds since 1970. */
  readonly born: number
}

/** One template of one source: constant words and the texts of the gaps between them (see `MaskedMessage`). */
export class Template {
  readonly no: number
  readonly id: string
  readonly source: string
  /** The earliest time on any instance. */
  born: number
  /** The number of different rows that other instances stored. */
  disputes = 0
  /** Number of the older template that it was merged into; 0 for none. */
  redirect = 0
  words: Int32Array
  /** The hash of a layout that the gap covers, by gap. */
  gapHashes: Int32Array
  /** Number of words that evidence made values, by gap. */
  holes: Uint16Array
  /** The most words of a message that may be values, `holes` included, by gap. */
  maxWords: Uint16Array
  /** 1 = any words may be values, 2 = any that are no keys, by gap. */
  wide: Uint8Array
  /** Bits of `TRAIT`, by word. */
  traits: Uint16Array
  #wordTexts: string[]
  #gaps: string[]
  #text = ''

  constructor(name: TemplateName, message: MaskedMessage) {
    this.no = name.no
    this.id = name.id
    this.source = name.source
    this.born = name.born
    const n = message.count
    this.words = message.words.slice(0, n)
    this.gapHashes = message.gapHashes.slice(0, n + 1)
    this.holes = new Uint16Array(n + 1)
    this.maxWords = new Uint16Array(n + 1)
    this.wide = new Uint8Array(n + 1)
    this.traits = Uint16Array.from({ length: n }, (_, k) => message.traits(k))
    this.#setAside(message)
    this.#wordTexts = Array.from({ length: n }, (_, k) => message.wordText(k))
    this.#gaps = Array.from({ length: n + 1 }, (_, k) => message.gapText(k))
    this.#countMaxWords()
  }

  /** Marks the words outside of the sentence, and its first word. */
  #setAside(message: MaskedMessage): void {
    const sentence = message.sentence()
    if (sentence === null) return
    const [from, to] = sentence
    this.traits = this.traits.map((trait, k) => {
      if (k < from || k >= to) return trait | TRAIT.aside
      return k === from && !message.hasValueBefore(k) ? trait | TRAIT.first : trait
    })
  }

  /** The number of words that distinguish its statement, without word `p`; -1 for a value. */
  wordsBeside(p: number): number {
    const { traits, words } = this
    if (((traits[p] ?? 0) & TRAIT.aside) !== 0) return words.length - 1
    const count = traits.filter((trait) => (trait & TRAIT.aside) === 0).length
    return p < 0 ? count : count - 1
  }

  get text(): string {
    if (this.#text === '') this.#text = this.#render()
    return this.#text
  }

  /** The order is the same on all instances. */
  isOlderThan(other: Template): boolean {
    return this.born < other.born || (this.born === other.born && this.id < other.id)
  }

  hasWordsOf(other: Template): boolean {
    const { words } = this
    return words.length === other.words.length && words.every((word, k) => word === other.words[k])
  }

  /** Whether gap `k` contains a value that is no soft word. */
  hasValue(k: number): boolean {
    return this.gap(k).includes(VALUE)
  }

  /** Allows words as values in every gap of a template of which only the text is stored. */
  openAllGaps(words = 1): void {
    for (const [k, gap] of this.#gaps.entries()) this.holes[k] = words * countValues(gap)
    this.#countMaxWords()
  }

  hasHoleOf(words: number): boolean {
    return this.holes.some((most) => most >= words)
  }

  /** Allows words as values in gap `k`. */
  openGap(k: number): void {
    this.holes[k] = Math.max(1, this.holes[k] ?? 0)
    this.#countMaxWords()
  }

  gap(k: number): string {
    return this.#gaps[k] ?? ''
  }

  /** Generalises gap `k` so that it covers `layout` too. @returns true when the text changed */
  cover(k: number, layout: string, hash: number): boolean {
    const gap = this.gap(k)
    const merged = this.covers(k, layout) ? gap : mergeGaps(gap, layout)
    this.gapHashes[k] = hash
    if (merged === gap) return false
    this.#gaps[k] = merged
    this.#countMaxWords()
    this.#text = ''
    return true
  }

  /** Number of quotes outside of words and values. */
  get quotes(): number {
    return this.#gaps.reduce((sum, gap) => sum + countQuotes(gap), 0)
  }

  get count(): number {
    return this.words.length
  }

  isKey(k: number): boolean {
    return ((this.traits[k] ?? 0) & TRAIT.key) !== 0
  }

  isVerb(k: number): boolean {
    return ((this.traits[k] ?? 0) & TRAIT.verb) !== 0
  }

  /** The text of the gap that results when the words from `first` up to `last` (excluded) are values. */
  gapTextOver(first: number, last: number): string {
    let text = this.gap(first)
    for (let k = first; k < last; k++) text += VALUE + this.gap(k + 1)
    return joinValues(text)
  }

  /** Whether gap `k` covers `layout` without a change. */
  covers(k: number, layout: string): boolean {
    const gap = this.gap(k)
    return (this.wide[k] ?? 0) > 0 ? coversWide(gap, layout) : mergeGaps(gap, layout) === gap
  }

  /** The gaps when word `p` is a value; the present ones for -1. */
  gapsOver(p: number): readonly string[] {
    if (p < 0) return this.#gaps
    // A number and its unit are one value.
    const before = this.isUnit(p) ? this.gap(p).trimEnd() : this.gap(p)
    const gap = joinValues(`${before}${VALUE}${this.gap(p + 1)}`)
    return [...this.#gaps.slice(0, p), gap, ...this.#gaps.slice(p + 2)]
  }

  /** Makes word `p` a value; when it is a unit, all units of the template. */
  openWord(p: number): void {
    const unit = this.isUnit(p)
    this.#open(p)
    const next = unit ? this.traits.findIndex((trait) => (trait & TRAIT.unit) !== 0) : -1
    if (next >= 0) this.openWord(next)
  }

  #open(p: number): void {
    this.#gaps = [...this.gapsOver(p)]
    this.#wordTexts.splice(p, 1)
    this.words = this.words.filter((_, k) => k !== p)
    this.traits = this.traits.filter((_, k) => k !== p)
    const hashes = [...this.gapHashes]
    hashes.splice(p, 2, 0)
    this.gapHashes = Int32Array.from(hashes)
    const holes = [...this.holes]
    holes.splice(p, 2, (holes[p] ?? 0) + (holes[p + 1] ?? 0) + 1)
    this.holes = Uint16Array.from(holes)
    this.maxWords = Uint16Array.from(holes)
    this.#countMaxWords()
    this.#text = ''
  }

  /** Copies the words and gaps of a more general text. @param words the most words of each value */
  rewrite(message: MaskedMessage, words: number): void {
    const other = new Template(this, message)
    other.openAllGaps(words)
    this.become(other)
  }

  /** Makes values of the words that another template lacks, and merges the gaps between the common words. */
  generalise(other: Template): void {
    const isFirst = this.text < other.text
    const pairs = commonWords(
      isFirst ? this.words : other.words,
      isFirst ? other.words : this.words,
    )
    const common = new Set(pairs.map(([a, b]) => (isFirst ? a : b)))
    for (let p = this.words.length - 1; p >= 0; p--) if (!common.has(p)) this.#open(p)
    let from = 0
    for (let k = 0; k <= pairs.length; k++) {
      const to = pairs[k]?.[isFirst ? 1 : 0] ?? other.words.length
      this.cover(k, other.gapTextOver(from, to), 0)
      this.holes[k] = Math.max(this.holes[k] ?? 0, to - from)
      from = to + 1
    }
    this.#countMaxWords()
  }

  isUnit(k: number): boolean {
    return ((this.traits[k] ?? 0) & (TRAIT.unit | TRAIT.measure)) !== 0
  }

  /** Merges the gaps of a template with the same words. */
  absorb(other: Template): void {
    for (let k = 0; k < this.gapHashes.length; k++) {
      if (this.gap(k) !== other.gap(k)) this.cover(k, other.gap(k), 0)
      this.holes[k] = Math.max(this.holes[k] ?? 0, other.holes[k] ?? 0)
    }
    this.#countMaxWords()
  }

  /** Copies the words and gaps of another template. */
  become(other: Template): void {
    this.words = other.words.slice()
    this.traits = other.traits.slice()
    this.gapHashes = other.gapHashes.slice()
    this.holes = other.holes.slice()
    this.maxWords = other.maxWords.slice()
    this.wide = other.wide.slice()
    this.#wordTexts = [...other.#wordTexts]
    this.#gaps = [...other.#gaps]
    this.#text = ''
    this.redirect = 0
  }

  /** Redirects to another template and frees everything except the text. */
  retire(redirect: number): void {
    this.#text = this.text
    this.redirect = redirect
    this.words = new Int32Array(0)
    this.traits = new Uint16Array(0)
    this.gapHashes = new Int32Array(0)
    this.holes = new Uint16Array(0)
    this.maxWords = new Uint16Array(0)
    this.wide = new Uint8Array(0)
    this.#wordTexts = []
    this.#gaps = []
  }

  /** With enough fixed words, a word in the position of a value is one, except at the beginning of the message. */
  #countMaxWords(): void {
    const fixed = this.words.length >= FIXED_FOR_WORDS
    const last = this.#gaps.length - 1
    this.wide = new Uint8Array(last + 1)
    for (const [k, gap] of this.#gaps.entries()) {
      const isOpen = (this.holes[k] ?? 0) > 0
      if ((fixed || isOpen) && isWide(gap, isOpen)) {
        this.wide[k] = gap.includes(`=${VALUE}`) ? 2 : 1
        this.maxWords[k] = MAX_TOKENS
        continue
      }
      this.maxWords[k] = Math.max(this.holes[k] ?? 0, fixed && k > 0 ? countValues(gap) : 0)
    }
  }

  #render(): string {
    let text = this.gap(0)
    for (const [k, word] of this.#wordTexts.entries()) text += word + this.gap(k + 1)
    return joinValues(text)
  }
}

/** Finds the longest common subsequence of two lists of words, as pairs of indexes. */
function commonWords(a: Int32Array, b: Int32Array): readonly (readonly [number, number])[] {
  const width = b.length + 1
  const best = new Uint16Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const skipped = Math.max(best[(i + 1) * width + j] ?? 0, best[i * width + j + 1] ?? 0)
      best[i * width + j] = a[i] === b[j] ? (best[(i + 1) * width + j + 1] ?? 0) + 1 : skipped
    }
  }
  const pairs: [number, number][] = []
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) pairs.push([i++, j++])
    else if ((best[(i + 1) * width + j] ?? 0) >= (best[i * width + j + 1] ?? 0)) i++
    else j++
  }
  return pairs
}

const countValues = (gap: string): number => gap.split(VALUE).length - 1

const countQuotes = (gap: string): number => gap.match(/["'`]/g)?.length ?? 0
