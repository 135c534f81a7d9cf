import { align } from './align.js'
import { isEnough, type Evidence, type Seen } from './evidence.js'
import { Families, type LivingTemplates } from './families.js'
import { MaskedMessage, TRAIT } from './masked-message.js'
import { MAX_TOKENS } from '../wasm/layout.js'
import { Places } from './places.js'
import type { Template } from './template.js'
import { sameLayout, VALUE } from './template-text.js'

/** The numbered templates of all sources. */
export interface TemplateNumbers {
  /** @returns 0 at the limit of templates */
  create(source: string, message: MaskedMessage): number
  /** @returns the number of the template that was created with this text, 0 for none */
  find(source: string, message: MaskedMessage): number
  template(no: number): Template
  root(no: number): Template
  changed(no: number): void
}

/** The most words of a message for which evidence is collected; later words stay text. */
const MAX_HOLES = 40
const MAX_SEEN = 64
const HOLE = 0x3c6ef372
const encoder = new TextEncoder()
const rewritten = new MaskedMessage()

/**
 * The templates of one source. A message is resolved in three steps:
 *
 * 1. A template with the same words covers the message; gaps that look different are merged (template-text.ts).
 * 2. Else a template that allows words as values in some gaps may cover it (align.ts). If there are
 * several, the oldest is used.
 * 3. Else the message becomes a template. For each of its words, a hole in place of that word is evidence that is
 *    shared with the templates that have the same other words. When enough distinct words were seen in one hole
 *    (evidence.ts), it becomes a value, and templates with the same layout of gaps are merged into the oldest.
 *
 * Families and places (families.ts, places.ts) find values of several words, and values that vary
 * together.
 *
 * A template that became more general also absorbs the templates that it covers.
 */
export class SourceTemplates {
  readonly #name: string
  readonly #numbers: TemplateNumbers
  readonly #maxEvidence: number
  /** Template number by the hash of all words. */
  readonly #exact = new Map<number, number>()
  /** By first word: the templates that allow words as values, the oldest first. */
  readonly #open = new Map<number, number[]>()
  readonly #evidence = new Map<number, Evidence>()
  readonly #own: number[] = []
  readonly #families: Families
  readonly #places: Places
  /** For each gap of a template, the index of the message's word after it. */
  readonly #ends = new Uint16Array(MAX_TOKENS + 40)

  constructor(name: string, numbers: TemplateNumbers, maxEvidence: number) {
    this.#name = name
    this.#numbers = numbers
    this.#maxEvidence = maxEvidence
    const living: LivingTemplates = {
      root: (no) => numbers.root(no),
      rewrite: (template, text, words) => {
        rewritten.read(encoder.encode(text))
        template.rewrite(rewritten, words)
        return this.#place(template)
      },
    }
    this.#families = new Families(living)
    this.#places = new Places(living)
  }

  /** @returns 0 when no template covers the message and the limit of templates is reached */
  resolve(message: MaskedMessage): number {
    const key = wordsKey(message)
    const known = this.#exact.get(key)
    if (known !== undefined) {
      const root = this.#numbers.root(known)
      if (this.#cover(root, message)) return root.no
    }
    const open = this.#findOpen(message)
    if (open !== 0) return this.#bornAs(message)?.no ?? open
    const no = this.#numbers.create(this.#name, message)
    if (no === 0) return 0
    this.#exact.set(key, no)
    this.#own.push(no)
    this.#indexOpen(this.#numbers.root(no))
    this.#compare(this.#numbers.root(no))
    return this.#numbers.root(no).no
  }

  /** Adds a stored template. Of two with the same words, the first one is used. */
  adopt(template: Template): void {
    this.#own.push(template.no)
    const key = keyOf(template.words, template)
    if (!this.#exact.has(key)) this.#exact.set(key, template.no)
    this.#indexOpen(template)
  }

  /** Adds a template that another instance has made. */
  admit(template: Template): void {
    this.#own.push(template.no)
    const key = keyOf(template.words, template)
    const same = this.#exact.get(key)
    if (same === undefined) this.#exact.set(key, template.no)
    this.#indexOpen(template)
    if (template.text === VALUE) return
    const known = same === undefined ? this.#findCovering(template) : this.#numbers.root(same)
    if (known !== null && (known.hasWordsOf(template) || this.#covers(known, template)))
      this.#union(known, template)
    else this.#compare(this.#takeCovered(template))
  }

  /** Merges two templates that another instance has merged. */
  join(from: Template, into: Template): void {
    this.#union(this.#numbers.root(into.no), this.#numbers.root(from.no))
  }

  /** Swaps a merged template and its target if the target is younger. */
  putOldestFirst(template: Template): void {
    const root = this.#numbers.root(template.no)
    if (!template.isOlderThan(root)) return
    template.become(root)
    root.retire(template.no)
    this.#numbers.changed(root.no)
    this.#numbers.changed(template.no)
    this.#indexOpen(template)
  }

  /** Generalises a template until it also covers its row from another instance. */
  reread(template: Template, other: Template): void {
    if (template.text === other.text) return
    if (template.hasWordsOf(other)) template.absorb(other)
    else if (this.#covers(template, other)) return
    else if (this.#covers(other, template)) template.become(other)
    else template.generalise(other)
    this.#place(template)
  }

  /** A template that covers another one without a change. */
  #findCovering(other: Template): Template | null {
    for (const word of other.words.subarray(0, 3)) {
      for (const no of this.#open.get(word) ?? []) {
        const template = this.#numbers.template(no)
        const mayCover = template.redirect === 0 && template !== other
        if (mayCover && template.count < other.count && this.#covers(template, other))
          return template
      }
    }
    return null
  }

  #indexOpen(template: Template): void {
    if (!template.maxWords.some((most) => most > 0) || template.words.length === 0) return
    const first = template.words[0] ?? 0
    const list = this.#open.get(first)
    if (list === undefined) this.#open.set(first, [template.no])
    else if (!list.includes(template.no)) {
      const younger = list.findLastIndex((no) => !template.isOlderThan(this.#numbers.template(no)))
      list.splice(younger + 1, 0, template.no)
    }
  }

  /**
   * Makes a template cover a message with the same words, whose gaps may differ.
   * @returns false when the message has other words
   */
  #cover(template: Template, message: MaskedMessage): boolean {
    const ends = this.#ends
    if (!align(template, message, ends, true)) return false
    let changed = false
    let from = 0
    for (let k = 0; k < template.gapHashes.length; k++) {
      const to = ends[k] ?? 0
      const hash = from === to ? (message.gapHashes[to] ?? 0) : message.gapHashOver(from, to)
      if (template.gapHashes[k] !== hash) {
        changed = template.cover(k, message.gapTextOver(from, to), hash) || changed
      }
      from = to + 1
    }
    if (changed) {
      this.#indexOpen(template)
      this.#numbers.changed(template.no)
    }
    return true
  }

  /**
   * The template that was created with this text on any instance, if it still covers the message.
   */
  #bornAs(message: MaskedMessage): Template | null {
    const no = this.#numbers.find(this.#name, message)
    if (no === 0) return null
    const root = this.#numbers.root(no)
    return this.#cover(root, message) ? root : null
  }

  #findOpen(message: MaskedMessage): number {
    const tries = Math.min(3, message.count)
    for (let p = 0; p < tries; p++) {
      const list = this.#open.get(message.words[p] ?? 0)
      if (list === undefined) continue
      for (const no of list) {
        const template = this.#numbers.template(no)
        if (template.redirect === 0 && this.#fitsOpen(template, message)) return no
      }
    }
    return 0
  }

  /** Whether `template` covers the message without a change when some words are values. */
  #fitsOpen(template: Template, message: MaskedMessage): boolean {
    const ends = this.#ends
    if (template.words.length >= message.count || !align(template, message, ends, false)) {
      return false
    }
    let from = 0
    for (let k = 0; k < template.gapHashes.length; k++) {
      const to = ends[k] ?? 0
      if (!gapFits(template, message, k, [from, to])) return false
      from = to + 1
    }
    return true
  }

  /** Adds the words of a template to the evidence, and generalises when there is enough. */
  #compare(template: Template): void {
    const { no, words, traits } = template
    const due: Evidence[] = []
    const note = (key: number, hole: number, seen: Seen): void => {
      const beside = template.wordsBeside(seen.word === 0 ? -1 : hole)
      const evidence = this.#evidenceOf(key, hole, beside)
      if (evidence.seen.length >= MAX_SEEN) return
      if (seen.word !== 0 && evidence.seen.some(({ word }) => word === seen.word)) return
      evidence.seen.push(seen)
      if (isEnough(evidence.seen, evidence)) due.push(evidence)
    }
    const holes = Math.min(words.length, MAX_HOLES)
    for (let p = 0; p < holes; p++) {
      const trait = traits[p] ?? 0
      if ((trait & TRAIT.key) !== 0) continue
      note(holeKey(template, p, 1), p, { word: words[p] ?? 0, traits: trait, no })
    }
    for (let k = 0; k <= holes; k++) {
      if (template.hasValue(k)) note(holeKey(template, k, 0), k, { word: 0, traits: 0, no })
    }
    for (const evidence of due) this.#generalise(evidence)
    const root = this.#numbers.root(no)
    if (root !== template) return
    const { text } = root
    // A template whose text changed was compared again already.
    if (this.#families.note(root).text === text) this.#places.note(root)
  }

  #evidenceOf(key: number, hole: number, fixed: number): Evidence {
    const known = this.#evidence.get(key)
    if (known !== undefined) return known
    if (this.#evidence.size >= this.#maxEvidence) {
      // The oldest evidence is dropped first.
      for (const old of this.#evidence.keys()) {
        this.#evidence.delete(old)
        break
      }
    }
    const evidence: Evidence = { key, hole, fixed, seen: [] }
    this.#evidence.set(key, evidence)
    return evidence
  }

  /** Merges the templates that differ in one word only and have the same layout of gaps. */
  #generalise(evidence: Evidence): void {
    const living = this.#current(evidence)
    evidence.seen.length = 0
    const groups: Seen[][] = []
    for (const seen of living) {
      const gaps = this.#gapsOf(evidence, seen)
      const group = groups.find(([first]) =>
        first === undefined ? false : alike(gaps, this.#gapsOf(evidence, first)),
      )
      if (group === undefined) groups.push([seen])
      else group.push(seen)
    }
    for (const group of groups) {
      if (isEnough(group, evidence)) evidence.seen.push(this.#merge(evidence, group))
      else evidence.seen.push(...group)
    }
  }

  /** The evidence that still applies to the templates, one for each of them. */
  #current({ key, hole, seen }: Evidence): readonly Seen[] {
    const living = new Map<string, Seen>()
    for (const { word, traits, no } of seen) {
      const root = this.#numbers.root(no)
      const replaced = word === 0 ? 0 : 1
      if (replaced === 1 && root.words[hole] !== word) continue
      if (holeKey(root, hole, replaced) !== key) continue
      living.set(`${root.no} ${replaced}`, { word, traits, no: root.no })
    }
    return [...living.values()]
  }

  #gapsOf({ hole }: Evidence, { word, no }: Seen): readonly string[] {
    return this.#numbers.template(no).gapsOver(word === 0 ? -1 : hole)
  }

  #merge({ hole }: Evidence, group: readonly Seen[]): Seen {
    let target: Template | null = null
    const members = group.map(({ word, no }) => ({ word, template: this.#numbers.template(no) }))
    members.sort((a, b) => (a.template.isOlderThan(b.template) ? -1 : 1))
    for (const { word, template } of members) {
      if (word === 0) template.openGap(hole)
      else template.openWord(hole)
      target = target === null ? template : this.#union(target, template)
    }
    if (target === null) throw new Error('bug: a group of templates without a living one')
    return { word: 0, traits: 0, no: this.#place(target).no }
  }

  /** Indexes a template whose text changed, and merges it with those that have the same words or that it covers. */
  #place(template: Template): Template {
    this.#numbers.changed(template.no)
    const key = keyOf(template.words, template)
    const same = this.#exact.get(key)
    let root = template
    if (same === undefined) this.#exact.set(key, template.no)
    else root = this.#union(template, this.#numbers.root(same))
    this.#indexOpen(root)
    root = this.#takeCovered(root)
    this.#compare(root)
    return root
  }

  /** Merges the templates that a more general one covers into it. */
  #takeCovered(target: Template): Template {
    let root = target
    for (const no of this.#own) {
      const other = this.#numbers.template(no)
      if (other.redirect !== 0 || other === root || other.count <= root.count) continue
      if (this.#covers(root, other)) root = this.#union(root, other)
    }
    return root
  }

  #covers(target: Template, other: Template): boolean {
    const ends = this.#ends
    if (!align(target, other, ends, false)) return false
    let from = 0
    for (let k = 0; k < target.gapHashes.length; k++) {
      const to = ends[k] ?? 0
      if (!target.covers(k, other.gapTextOver(from, to))) return false
      from = to + 1
    }
    return true
  }

  /**
   * Merges two templates that have the same words, or of which one covers the other. On every instance the older one
   * stays and gets the more general text.
   */
  #union(first: Template, second: Template): Template {
    if (first === second) return first
    const [older, younger] = first.isOlderThan(second) ? [first, second] : [second, first]
    if (older.hasWordsOf(younger)) older.absorb(younger)
    else if (younger === (this.#covers(second, first) ? second : first)) older.become(younger)
    younger.retire(older.no)
    this.#numbers.changed(younger.no)
    this.#numbers.changed(older.no)
    this.#indexOpen(older)
    return older
  }
}

function gapFits(
  template: Template,
  message: MaskedMessage,
  k: number,
  [from, to]: readonly [number, number],
): boolean {
  const hash = from === to ? (message.gapHashes[to] ?? 0) : message.gapHashOver(from, to)
  if (template.gapHashes[k] === hash) return true
  if (!template.covers(k, message.gapTextOver(from, to))) return false
  template.gapHashes[k] = hash
  return true
}

/** Whether gaps have the same layout: they differ in words and values only. */
const alike = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((gap, k) => sameLayout(gap, b[k] ?? ''))

const wordsKey = (message: MaskedMessage): number =>
  message.count === 0
    ? mix(HOLE, message.gapHashes[0] ?? 0)
    : holeKey(message, -1, 0) + message.quotes

/** A key of all words and of the number of quotes. The quotes distinguish `'<*>'` from a word that varies. */
function keyOf(words: Int32Array, { gapHashes, quotes }: Layout): number {
  return words.length === 0
    ? mix(HOLE, gapHashes[0] ?? 0)
    : holeKey({ words, count: words.length }, -1, 0) + quotes
}

interface Words {
  readonly words: Int32Array
  readonly count: number
}

interface Layout {
  readonly gapHashes: Int32Array
  readonly quotes: number
}

const mix = (a: number, b: number): number => (a >>> 0) + (b & 0xfffff) * 0x100000000

/** The 52-bit hash of words with a hole at index `hole` in place of `replaced` (0 or 1) words. */
function holeKey({ words, count }: Words, hole: number, replaced: number): number {
  let lo = 0x243f6a88
  let hi = 0x13198a2e
  for (let p = 0; p <= count; p++) {
    let word = words[p] ?? 0
    if (p === hole) {
      lo = Math.imul(lo ^ HOLE, 0x9e3779b1)
      hi = Math.imul(hi ^ HOLE, 0x85ebca77)
      lo ^= lo >>> 15
      hi ^= hi >>> 13
      if (replaced === 1) continue
    }
    if (p === count) break
    word = Math.imul(word ^ (word >>> 16), 0x7feb352d)
    lo = Math.imul(lo ^ word, 0x9e3779b1)
    hi = Math.imul(hi ^ word, 0x85ebca77)
    lo ^= lo >>> 15
    hi ^= hi >>> 13
  }
  return mix(lo, hi)
}
