import { TRAIT, type MaskedMessage } from './masked-message.js'
import { MAX_TOKENS } from './scan.js'
import type { Template } from './template.js'
import { sameLayout } from './template-text.js'

/** What a source asks of the registry that numbers all templates. */
export interface Registry {
  /** @returns 0 when there is no room for another template */
  create(source: string, message: MaskedMessage): number
  template(no: number): Template
  root(no: number): Template
  changed(no: number): void
}

/** What was seen at one place between the same other words. */
interface Seen {
  /** hash of the word; 0 for a value */
  readonly word: number
  readonly traits: number
  readonly no: number
}

interface Evidence {
  /** place of the hole among the words */
  readonly hole: number
  /** words that stand around it */
  readonly fixed: number
  readonly seen: Seen[]
}

/** Words in order, of a message or of a template. */
interface Sequence {
  readonly count: number
  readonly words: Int32Array
  isKey(k: number): boolean
  isVerb(k: number): boolean
}

/** Places of a message whose words are compared; words behind them stay text. */
const MAX_HOLES = 40
const MAX_SEEN = 64
const HOLE = 0x3c6ef372

/** The templates of one source: finds the one of a message, or makes it. */
export class SourceTemplates {
  readonly #name: string
  readonly #registry: Registry
  readonly #maxEvidence: number
  /** by all words, values left out */
  readonly #exact = new Map<number, number>()
  /** by first word, those with room for a word in the place of a value */
  readonly #open = new Map<number, number[]>()
  readonly #evidence = new Map<number, Evidence>()
  /** all templates of the source */
  readonly #own: number[] = []
  /** for each gap of a template, the message's word behind it */
  readonly #ends = new Uint16Array(MAX_TOKENS + 40)

  constructor(name: string, registry: Registry, maxEvidence: number) {
    this.#name = name
    this.#registry = registry
    this.#maxEvidence = maxEvidence
  }

  /** @returns 0 when the message is of no known template and there is no room for one more */
  resolve(message: MaskedMessage): number {
    const key = wordsKey(message)
    const known = this.#exact.get(key)
    if (known !== undefined) {
      const root = this.#registry.root(known)
      if (this.#cover(root, message)) return root.no
    }
    const open = this.#findOpen(message)
    if (open !== 0) return open
    const no = this.#registry.create(this.#name, message)
    if (no === 0) return 0
    this.#exact.set(key, no)
    this.#own.push(no)
    this.#indexOpen(this.#registry.root(no))
    this.#compare(this.#registry.root(no))
    return this.#registry.root(no).no
  }

  /** Makes a stored template findable; of two with the same words, the one that came first. */
  adopt(template: Template): void {
    this.#own.push(template.no)
    const key = keyOf(template.words, template.gapHashes)
    if (!this.#exact.has(key)) this.#exact.set(key, template.no)
    this.#indexOpen(template)
  }

  #indexOpen(template: Template): void {
    if (!template.room.some((room) => room > 0) || template.words.length === 0) return
    const first = template.words[0] ?? 0
    const list = this.#open.get(first)
    if (list === undefined) this.#open.set(first, [template.no])
    else if (!list.includes(template.no)) list.push(template.no)
  }

  /**
   * Makes a template cover a message of its words, whose gaps may look different.
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
      this.#registry.changed(template.no)
    }
    return true
  }

  #findOpen(message: MaskedMessage): number {
    const tries = Math.min(3, message.count)
    for (let p = 0; p < tries; p++) {
      const list = this.#open.get(message.words[p] ?? 0)
      if (list === undefined) continue
      for (const no of list) {
        const template = this.#registry.template(no)
        if (template.redirect === 0 && this.#fitsOpen(template, message)) return no
      }
    }
    return 0
  }

  /** Whether the message is covered by `template` as it is, some words standing for values. */
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

  /** Notes the words of a template beside those of its like, and generalises on evidence. */
  #compare(template: Template): void {
    const { no, words, traits } = template
    const due: Evidence[] = []
    const note = (key: number, hole: number, seen: Seen): void => {
      const entry = this.#entry(key, hole, seen.word === 0 ? words.length : words.length - 1)
      if (entry.seen.length >= MAX_SEEN) return
      if (seen.word !== 0 && entry.seen.some(({ word }) => word === seen.word)) return
      entry.seen.push(seen)
      if (isEnough(entry.seen, entry)) due.push(entry)
    }
    const holes = Math.min(words.length, MAX_HOLES)
    for (let p = 0; p < holes; p++) {
      const trait = traits[p] ?? 0
      if ((trait & TRAIT.key) !== 0) continue
      note(holeKey(words, p, 1), p, { word: words[p] ?? 0, traits: trait, no })
    }
    for (let k = 0; k <= holes; k++) {
      if (template.hasValue(k)) note(holeKey(words, k, 0), k, { word: 0, traits: 0, no })
    }
    for (const entry of due) this.#generalise(entry)
  }

  #entry(key: number, hole: number, fixed: number): Evidence {
    const known = this.#evidence.get(key)
    if (known !== undefined) return known
    if (this.#evidence.size >= this.#maxEvidence) {
      // the oldest evidence goes first
      for (const old of this.#evidence.keys()) {
        this.#evidence.delete(old)
        break
      }
    }
    const entry: Evidence = { hole, fixed, seen: [] }
    this.#evidence.set(key, entry)
    return entry
  }

  /** Makes one template of those that differ in one word only and look alike; the oldest stays. */
  #generalise(entry: Evidence): void {
    const living = entry.seen.filter((seen) => this.#isCurrent(entry, seen))
    entry.seen.length = 0
    const groups: Seen[][] = []
    for (const seen of living) {
      const gaps = this.#gapsOf(entry, seen)
      const group = groups.find(([first]) =>
        first === undefined ? false : alike(gaps, this.#gapsOf(entry, first)),
      )
      if (group === undefined) groups.push([seen])
      else group.push(seen)
    }
    for (const group of groups) {
      if (isEnough(group, entry)) entry.seen.push(this.#merge(entry, group))
      else entry.seen.push(...group)
    }
  }

  /** Whether the template is still one of those that the evidence is about. */
  #isCurrent({ hole, fixed }: Evidence, { word, no }: Seen): boolean {
    const { redirect, words } = this.#registry.template(no)
    if (redirect !== 0) return false
    return word === 0 ? words.length === fixed : words.length === fixed + 1 && words[hole] === word
  }

  #gapsOf({ hole }: Evidence, { word, no }: Seen): readonly string[] {
    return this.#registry.template(no).gapsOver(word === 0 ? -1 : hole)
  }

  #merge({ hole }: Evidence, group: readonly Seen[]): Seen {
    let target: Template | null = null
    for (const { word, no } of [...group].sort((a, b) => a.no - b.no)) {
      const template = this.#registry.template(no)
      if (template.redirect !== 0) continue
      if (word === 0) template.openGap(hole)
      else template.openWord(hole)
      target = this.#union(target, template)
    }
    if (target === null) throw new Error('bug: a group of templates without a living one')
    this.#registry.changed(target.no)
    const key = keyOf(target.words, target.gapHashes)
    const same = this.#exact.get(key)
    if (same === undefined) this.#exact.set(key, target.no)
    else target = this.#union(target, this.#registry.root(same))
    this.#indexOpen(target)
    this.#takeCovered(target)
    this.#compare(target)
    return { word: 0, traits: 0, no: target.no }
  }

  /** Redirects templates that a more general one covers, as if their messages came after it. */
  #takeCovered(target: Template): void {
    for (const no of this.#own) {
      const other = this.#registry.template(no)
      if (other.redirect !== 0 || other === target || other.count <= target.count) continue
      if (!this.#covers(target, other)) continue
      other.retire(target.no)
      this.#registry.changed(no)
    }
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

  #union(a: Template | null, b: Template): Template {
    if (a === null || a === b) return b
    const [older, younger] = a.no < b.no ? [a, b] : [b, a]
    if (older.words.length === younger.words.length) older.absorb(younger)
    younger.retire(older.no)
    this.#registry.changed(younger.no)
    this.#registry.changed(older.no)
    return older
  }
}

/**
 * Lays the words of a message along those of a template; the others must stand where the template
 * has room for words, and not before `=`.
 * @param known the message was of this template before
 */
// oxlint-disable-next-line max-params -- on the path of every miss
function align(template: Template, message: Sequence, ends: Uint16Array, known: boolean): boolean {
  const { words } = template
  let at = 0
  for (let k = 0; k <= words.length; k++) {
    const want = words[k]
    const room = template.room[k] ?? 0
    // a value of a known message may be of several words
    const most = known && room > 0 ? message.count : Math.min(message.count, at + room)
    const any = known ? most : at + (template.holes[k] ?? 0)
    while (at < most && message.words[at] !== want && mayBeValue(message, at, any)) at++
    ends[k] = at
    if (want === undefined) break
    if (at >= message.count || message.words[at] !== want) return false
    at++
  }
  return at === message.count
}

/** A key is never a value, a verb only before place `any`. */
const mayBeValue = (message: Sequence, at: number, any: number): boolean =>
  !message.isKey(at) && (at < any || !message.isVerb(at))

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

/** Whether distinct words at one place are enough to call the place a value. */
function isEnough(seen: readonly Seen[], { fixed }: Evidence): boolean {
  const words = seen.filter(({ word }) => word !== 0)
  if (words.length === 0 || fixed === 0) return false
  let all = -1
  let any = 0
  for (const { traits } of words) {
    all &= traits
    any |= traits
  }
  const besideValue = words.length < seen.length && fixed >= 3
  return words.length >= needed(fixed, all, any, besideValue)
}

/**
 * Distinct words that make a place a value: 3 among many fixed words, up to 8 beside a single one.
 * The factors are from the public loghub sets (bench/mining.ts).
 */
// oxlint-disable-next-line max-params -- all that is known of the place
function needed(fixed: number, all: number, any: number, besideValue: boolean): number {
  if ((all & (TRAIT.assigned | TRAIT.unit)) !== 0) return 2
  let need = Math.max(3, 9 - fixed)
  if (besideValue) need = 1
  else if ((all & TRAIT.quoted) !== 0) need = 3
  else if ((all & TRAIT.name) !== 0) need = Math.max(3, Math.ceil(need / 2))
  if ((any & TRAIT.verb) !== 0) need *= 3
  if ((all & TRAIT.capitals) !== 0) need *= 2
  return (any & TRAIT.first) !== 0 ? Math.max(16, need) : need
}

/** Whether gaps have one layout: they differ in words and values only. */
const alike = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((gap, k) => sameLayout(gap, b[k] ?? ''))

const wordsKey = (message: MaskedMessage): number =>
  message.count === 0
    ? mix(HOLE, message.gapHashes[0] ?? 0)
    : keyOf(message.words.subarray(0, message.count), message.gapHashes)

function keyOf(words: Int32Array, gapHashes: Int32Array): number {
  return words.length === 0 ? mix(HOLE, gapHashes[0] ?? 0) : holeKey(words, -1, 0)
}

const mix = (a: number, b: number): number => (a >>> 0) + (b & 0xfffff) * 0x100000000

/** 52-bit key of `words` with a hole at `hole`, in place of `replaced` (0 or 1) of them. */
function holeKey(words: Int32Array, hole: number, replaced: number): number {
  let lo = 0x243f6a88
  let hi = 0x13198a2e
  for (let p = 0; p <= words.length; p++) {
    let word = words[p] ?? 0
    if (p === hole) {
      lo = Math.imul(lo ^ HOLE, 0x9e3779b1)
      hi = Math.imul(hi ^ HOLE, 0x85ebca77)
      lo ^= lo >>> 15
      hi ^= hi >>> 13
      if (replaced === 1) continue
    }
    if (p === words.length) break
    word = Math.imul(word ^ (word >>> 16), 0x7feb352d)
    lo = Math.imul(lo ^ word, 0x9e3779b1)
    hi = Math.imul(hi ^ word, 0x85ebca77)
    lo ^= lo >>> 15
    hi ^= hi >>> 13
  }
  return mix(lo, hi)
}
