import { TRAIT, type MaskedMessage } from './masked-message.js'
import type { Template } from './template.js'

/** What a source asks of the registry that numbers all templates. */
export interface Registry {
  /** @returns 0 when there is no room for another template */
  create(source: string, message: MaskedMessage): number
  template(no: number): Template
  root(no: number): Template
  changed(no: number): void
}

/** Words seen at one place between the same other words. */
interface Evidence {
  /** place of the hole among the words */
  readonly hole: number
  /** hashes of the distinct words */
  readonly words: number[]
  /** the template of each word; behind them, those with a value in the place */
  readonly members: number[]
  /** a value (number, path, …) was seen in the place */
  value: boolean
  /** traits that all words share, and that any word has */
  all: number
  any: number
}

/** Places of a message whose words are compared; words behind them stay text. */
const MAX_HOLES = 40
const MAX_EVIDENCE_WORDS = 64
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

  constructor(name: string, registry: Registry, maxEvidence: number) {
    this.#name = name
    this.#registry = registry
    this.#maxEvidence = maxEvidence
  }

  /** @returns 0 when the message is of no known template and there is no room for one more */
  resolve(message: MaskedMessage): number {
    const key = wordsKey(message)
    const known = this.#exact.get(key)
    if (known !== undefined) return this.#fit(this.#registry.root(known), message)
    const open = this.#findOpen(message)
    if (open !== 0) return open
    const no = this.#registry.create(this.#name, message)
    if (no === 0) return 0
    this.adopt(this.#registry.root(no), key)
    this.#compare(this.#registry.root(no), message)
    return this.#registry.root(no).no
  }

  /** Makes a template findable. */
  adopt(template: Template, key = keyOf(template.words, template.gapHashes)): void {
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

  /** A message with the words of `template`: its gaps may look different. */
  #fit(template: Template, message: MaskedMessage): number {
    let changed = false
    for (let k = 0; k < template.gapHashes.length; k++) {
      const hash = message.gapHashes[k] ?? 0
      if (template.gapHashes[k] === hash) continue
      if (template.cover(k, message.gapText(k), hash)) changed = true
    }
    if (changed) {
      this.#indexOpen(template)
      this.#registry.changed(template.no)
    }
    return template.no
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

  /** Whether the message has the words of `template` in order, and others only where values are. */
  #fitsOpen(template: Template, message: MaskedMessage): boolean {
    const { words, room } = template
    if (words.length >= message.count) return false
    let at = 0
    for (let k = 0; k <= words.length; k++) {
      const from = at
      const most = Math.min(message.count, at + (room[k] ?? 0))
      if (k === words.length) {
        if (message.count > most) return false
        at = message.count
      } else {
        while (at < most && message.words[at] !== words[k]) at++
        if (message.words[at] !== words[k] || at >= message.count) return false
      }
      if (at > from && !gapFits(template, message, k, [from, at])) return false
      at++
    }
    return this.#coverFixedGaps(template, message)
  }

  #coverFixedGaps(template: Template, message: MaskedMessage): boolean {
    let at = 0
    let changed = false
    for (let k = 0; k <= template.words.length; k++) {
      const from = at
      while (at < message.count && message.words[at] !== template.words[k]) at++
      if (at === from) {
        const hash = message.gapHashes[at] ?? 0
        if (template.gapHashes[k] !== hash) {
          changed = template.cover(k, message.gapText(at), hash) || changed
        }
      }
      at++
    }
    if (changed) this.#registry.changed(template.no)
    return true
  }

  /** Notes the words of a new template beside those of its like, and generalises on evidence. */
  #compare(born: Template, message: MaskedMessage): void {
    const holes = Math.min(message.count, MAX_HOLES)
    const due: Evidence[] = []
    for (let p = 0; p < holes; p++) {
      const entry = this.#entry(holeKey(born.words, p, 1), p)
      this.#noteWord(entry, born.no, message.words[p] ?? 0, message.traits(p))
      if (isEnough(entry, message.count - 1)) due.push(entry)
    }
    for (let k = 0; k <= holes; k++) {
      if ((message.gapValues[k] ?? 0) === 0) continue
      const entry = this.#entry(holeKey(born.words, k, 0), k)
      if (entry.members.length < MAX_EVIDENCE_WORDS) entry.members.push(born.no)
      if (!message.isSoft(k, 0)) entry.value = true
      if (isEnough(entry, message.count)) due.push(entry)
    }
    for (const entry of due) this.#generalise(entry)
  }

  #noteWord(entry: Evidence, no: number, word: number, traits: number): void {
    if (entry.words.length >= MAX_EVIDENCE_WORDS || entry.words.includes(word)) return
    entry.words.push(word)
    entry.members.push(no)
    entry.all &= traits
    entry.any |= traits
  }

  #entry(key: number, hole: number): Evidence {
    const known = this.#evidence.get(key)
    if (known !== undefined) return known
    if (this.#evidence.size >= this.#maxEvidence) {
      // the oldest evidence goes first
      for (const old of this.#evidence.keys()) {
        this.#evidence.delete(old)
        break
      }
    }
    const entry: Evidence = { hole, words: [], members: [], value: false, all: 0xff, any: 0 }
    this.#evidence.set(key, entry)
    return entry
  }

  /** Makes one template of those that differ in one word only; the oldest stays. */
  #generalise(entry: Evidence): void {
    const roots = [...new Set(entry.members.map((no) => this.#registry.root(no)))]
    roots.sort((a, b) => a.no - b.no)
    const like = roots.find((root) => root.words.length > 0)
    if (like === undefined) return
    const most = Math.max(...roots.map((root) => root.words.length))
    const want = this.#keyAfter(roots, entry.hole, most)
    let target: Template | null = null
    for (const root of roots) {
      const opens = root.words.length === most
      const key = opens ? holeKey(root.words, entry.hole, 1) : holeKey(root.words, entry.hole, 0)
      if (key !== want) continue
      if (opens) root.openWord(entry.hole)
      else root.room[entry.hole] = Math.max(1, root.room[entry.hole] ?? 0)
      target = this.#union(target, root)
    }
    if (target === null) return
    this.#registry.changed(target.no)
    const key = keyOf(target.words, target.gapHashes)
    const same = this.#exact.get(key)
    if (same === undefined) this.#exact.set(key, target.no)
    else target = this.#union(target, this.#registry.root(same))
    this.#indexOpen(target)
    entry.words.length = 0
    entry.members.length = 0
    entry.members.push(target.no)
  }

  #keyAfter(roots: readonly Template[], hole: number, most: number): number {
    const longest = roots.find((root) => root.words.length === most)
    return longest === undefined ? 0 : holeKey(longest.words, hole, 1)
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

function gapFits(
  template: Template,
  message: MaskedMessage,
  k: number,
  [from, to]: readonly [number, number],
): boolean {
  const hash = message.gapHashOver(from, to)
  if (template.gapHashes[k] === hash) return true
  if (!template.covers(k, message.gapTextOver(from, to))) return false
  template.gapHashes[k] = hash
  return true
}

/** How many distinct words at one place make it a value, `fixed` words standing around it. */
function isEnough(entry: Evidence, fixed: number): boolean {
  const seen = entry.words.length
  if (seen === 0 || fixed === 0) return false
  let need = Math.max(3, 9 - fixed)
  if (entry.value && fixed >= 3) need = 1
  else if ((entry.all & TRAIT.enclosed) !== 0) need = 2
  if ((entry.any & TRAIT.verb) !== 0) need *= 3
  if ((entry.all & TRAIT.capitals) !== 0) need *= 2
  if (entry.hole === 0) need = Math.max(16, need)
  return seen >= need
}

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
