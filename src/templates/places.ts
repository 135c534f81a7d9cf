import { LRUCache } from 'lru-cache'
import type { LivingTemplates } from './families.js'
import { hashOfText } from './scan.js'
import { findSlots, findTail, isSentence, slotsAround } from './slots.js'
import type { Template } from './template.js'
import { VALUE } from './template-text.js'

/** The most places in which two templates may differ. */
const MAX_PLACES = 3
/** The most units of a text; longer texts are not compared. */
const MAX_UNITS = 80
/** The most units of one place of several words, and the least number of equal words around it. */
const MAX_RUN = 12
const RUN_WORDS = 5
/** The least number of units between two places, blanks included. */
const MIN_BETWEEN = 4
/** The number of contents that a place of several words needs, by the number of words around it; with more words it needs 3. */
const RUN_NEEDS = [99, 99, 16, 10, 6]
/** The most templates, newest first, that a template is compared with for each key in common. */
const MAX_BUCKET = 20
const MAX_SIMILAR = 32
/** The most keys of a source; beyond it the least recently used one is dropped. */
const MAX_BUCKETS = 2000

const UNIT = /<\*>|\s+|[^\s"'`()[\]{}<>=,;]+|./gs
const END = /(?<![.:!?])[.:!?]+$/
const WORD = /[A-Za-z\u0080-\uffff]{2}/
const CONTENT = /[\w\u0080-\uffff]|<\*>/
const VERB = /^(?=\w{6})\w+(?:ed|ing)$/
const SENTENCE_NAME = /(?:^|\W)(?:msg|message)(?:=|"\s*:\s*)$/
const CAPITALS = /^[A-Z][A-Z_]+$/

/** The offsets of a place among the units of two texts. */
interface Place {
  readonly from: number
  readonly to: number
  readonly theirFrom: number
  readonly theirTo: number
}

/** The templates that differ from one template in the same places. */
interface Group {
  /** The common text, with a value in each place. */
  readonly text: string
  readonly words: number
  readonly contents: readonly Set<string>[]
  readonly members: Template[]
  readonly isOfRuns: boolean
}

/**
 * Finds values that vary together, and values of several words: templates that are equal except for
 * up to three places are merged when each of these places had enough different values.
 */
export class Places {
  readonly #templates: LivingTemplates
  /** The numbers of templates by the beginnings and ends of their texts. */
  readonly #buckets = new Map<number, readonly number[]>()

  constructor(templates: LivingTemplates) {
    this.#templates = templates
  }

  note(template: Template): void {
    const units = unitsOf(template.text)
    if (units.length > MAX_UNITS) return
    const groups = new Map<string, Group>()
    for (const other of this.#similar(template, units)) compare(units, other, groups)
    const group = [...groups.values()].find(isEnough)
    if (group === undefined) return
    for (const member of [template, ...group.members]) {
      const root = this.#templates.root(member.no)
      const words = group.isOfRuns ? MAX_RUN : 1
      const isDone = root.text === group.text && (words === 1 || root.hasHoleOf(words))
      if (root === member && !isDone) this.#templates.rewrite(root, group.text, words)
    }
  }

  #similar(template: Template, units: readonly string[]): ReadonlySet<Template> {
    const similar = new Set<Template>()
    for (const key of keysOf(units)) {
      const roots = new Set(this.#buckets.get(key)?.map((no) => this.#templates.root(no)))
      roots.delete(template)
      for (const root of roots) if (similar.size < MAX_SIMILAR) similar.add(root)
      const kept = [...roots].slice(1 - MAX_BUCKET).map(({ no }) => no)
      this.#buckets.delete(key)
      this.#buckets.set(key, [...kept, template.no])
      if (this.#buckets.size > MAX_BUCKETS) this.#dropOldest()
    }
    return similar
  }

  #dropOldest(): void {
    for (const key of this.#buckets.keys()) {
      this.#buckets.delete(key)
      break
    }
  }
}

/** A cache of texts split into units, shared by all sources, because a template is compared with many others. */
const recent = new LRUCache<string, readonly string[]>({
  maxSize: 2 ** 21,
  sizeCalculation: (_, text) => text.length + 1,
})

function unitsOf(text: string): readonly string[] {
  const known = recent.get(text)
  if (known !== undefined) return known
  const units = readUnits(text)
  recent.set(text, units)
  return units
}

/** Splits a text into words, blanks and punctuation; the content of a slot and a tail are one unit. */
function readUnits(text: string): readonly string[] {
  const units: string[] = []
  const tail = findTail(text, isSentence)
  let at = 0
  for (const { from, to } of tail === null ? findSlots(text) : slotsAround(text, tail)) {
    cut(text.slice(at, from), units)
    if (to > from) units.push(text.slice(from, to))
    at = to
  }
  cut(text.slice(at), units)
  return units
}

function cut(text: string, units: string[]): void {
  for (const unit of text.match(UNIT) ?? []) {
    const end = END.exec(unit)?.index ?? 0
    if (end > 0) units.push(unit.slice(0, end))
    units.push(unit.slice(end))
  }
}

/** The keys of a text. Texts without a common key are not compared. */
function keysOf(units: readonly string[]): readonly number[] {
  const words = units.filter((unit) => WORD.test(unit) && !unit.includes(VALUE))
  const keys = [
    [units.length, ...words.slice(0, 2)],
    [units.length, 0, ...words.slice(-2)],
  ]
  if (words.length >= RUN_WORDS) keys.push(words.slice(0, 3), [0, ...words.slice(-3)])
  else keys.push(words.slice(0, 1), [0, ...words.slice(-2)])
  return keys.map((key) => hashOfText(key.join(' ')))
}

function compare(units: readonly string[], other: Template, groups: Map<string, Group>): void {
  const theirs = unitsOf(other.text)
  const places = theirs.length > MAX_UNITS ? [] : differences(units, theirs)
  if (places.length === 0) return
  const text = withValues(units, places)
  let group = groups.get(text)
  if (group === undefined) {
    const contents = places.map(({ from, to }) => new Set([units.slice(from, to).join('')]))
    const words = countWords(units, places)
    const isOfRuns = !places.every(
      ({ from, to, theirFrom, theirTo }) => to - from === 1 && theirTo - theirFrom === 1,
    )
    groups.set(text, (group = { text, words, contents, members: [], isOfRuns }))
  }
  group.members.push(other)
  for (const [i, { theirFrom, theirTo }] of places.entries()) {
    group.contents[i]?.add(theirs.slice(theirFrom, theirTo).join(''))
  }
}

function withValues(units: readonly string[], places: readonly Place[]): string {
  let text = ''
  let at = 0
  for (const { from, to } of places) {
    text += units.slice(at, from).join('') + VALUE
    at = to
  }
  return text + units.slice(at).join('')
}

/** Counts the words outside of the places. Names of values do not distinguish statements, so they are not counted. */
function countWords(units: readonly string[], places: readonly Place[]): number {
  const isFixed = (i: number): boolean => !places.some(({ from, to }) => from <= i && i < to)
  const isName = (i: number): boolean =>
    units[i + 1] === '=' || (units[i + 1] === '"' && units[i + 2] === ':')
  return units.filter((unit, i) => WORD.test(unit) && isFixed(i) && !isName(i)).length
}

/**
 * Finds the places in which two texts differ: single units of texts of the same length, or one run
 * of units among many equal words. Texts that differ more have none. The first unit is no place,
 * because it says who does something.
 */
function differences(a: readonly string[], b: readonly string[]): readonly Place[] {
  if (a[0] !== b[0]) return []
  const singles = a.length === b.length ? singleUnits(a, b) : []
  return singles.length > 0 ? singles : runs(a, b)
}

function singleUnits(a: readonly string[], b: readonly string[]): readonly Place[] {
  const places: Place[] = []
  for (const [i, unit] of a.entries()) {
    const other = b[i] ?? ''
    if (unit === other) continue
    // Two adjacent words form a phrase.
    const isPhrase = places.at(-1)?.from === i - 2 && isBlank(a[i - 1])
    const isPlace = CONTENT.test(unit) && CONTENT.test(other) && !isPhrase && !opensSentence(a, i)
    if (!isPlace || places.length === MAX_PLACES) return []
    places.push({ from: i, to: i + 1, theirFrom: i, theirTo: i + 1 })
  }
  return places
}

/** The first unit of a sentence in logfmt or JSON. */
const opensSentence = (units: readonly string[], i: number): boolean =>
  units[i - 1] === '"' && SENTENCE_NAME.test(units.slice(Math.max(0, i - 5), i - 1).join(''))

function runs(a: readonly string[], b: readonly string[]): readonly Place[] {
  if (!haveWordsInCommon(a, b)) return []
  const [head, tail] = commonEnds(a, b)
  const [endA, endB] = [a.length - tail, b.length - tail]
  const places: Place[] = []
  let [i, j] = [head, head]
  for (const [x, y] of [...longestCommon(a.slice(head, endA), b.slice(head, endB)), END_PAIR]) {
    const [to, theirTo] = x < 0 ? [endA, endB] : [head + x, head + y]
    if (to > i || theirTo > j) add(places, { from: i, to, theirFrom: j, theirTo })
    i = to + 1
    j = theirTo + 1
  }
  if (places.length > MAX_PLACES || !places.every((place) => isRun(a, place))) return []
  return countWords(a, places) > places.length ? places : []
}

/** The lengths of the common beginning and of the common end of the rest. */
function commonEnds(a: readonly string[], b: readonly string[]): Pair {
  const most = Math.min(a.length, b.length)
  let head = 0
  while (head < most && a[head] === b[head]) head++
  let tail = 0
  while (tail < most - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++
  return [head, tail]
}

/** Marks the end of both lists. */
const END_PAIR: Pair = [-1, -1]

/** Adds a place. Single common words between two places are a coincidence, so the places are joined. */
function add(places: Place[], place: Place): void {
  const last = places.at(-1)
  if (last === undefined || place.from - last.to >= MIN_BETWEEN) places.push(place)
  else places[places.length - 1] = { ...place, from: last.from, theirFrom: last.theirFrom }
}

function haveWordsInCommon(a: readonly string[], b: readonly string[]): boolean {
  const words = new Set(a)
  let common = 0
  for (const unit of b) if (unit.length > 1 && words.has(unit)) common++
  return common >= 2
}

function isRun(a: readonly string[], { from, to, theirFrom, theirTo }: Place): boolean {
  const lengths = [to - from, theirTo - theirFrom]
  if (!lengths.every((length) => length > 0 && length <= MAX_RUN)) return false
  const next = a[to] ?? ' '
  return isBlank(a[from - 1]) && (isBlank(next) || END.test(next) || next === ',' || next === ';')
}

type Pair = readonly [number, number]

/** The longest common subsequence, as pairs of indexes. */
function longestCommon(a: readonly string[], b: readonly string[]): readonly Pair[] {
  const best = commonLengths(a, b)
  const width = b.length + 1
  const lengthAt = (i: number, j: number): number => best[i * width + j] ?? 0
  const pairs: Pair[] = []
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) pairs.push([i++, j++])
    else if (lengthAt(i + 1, j) >= lengthAt(i, j + 1)) i++
    else j++
  }
  return pairs
}

/** The lengths of the longest common subsequences of all ends of two lists, row by row. */
function commonLengths(a: readonly string[], b: readonly string[]): Uint8Array {
  const width = b.length + 1
  const best = new Uint8Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const skipped = Math.max(best[(i + 1) * width + j] ?? 0, best[i * width + j + 1] ?? 0)
      best[i * width + j] = a[i] === b[j] ? (best[(i + 1) * width + j + 1] ?? 0) + 1 : skipped
    }
  }
  return best
}

const isBlank = (unit: string | undefined): boolean => unit !== undefined && /^\s/.test(unit)

function isEnough({ text, contents, words, isOfRuns, members }: Group): boolean {
  if (words < 2) return false
  // These values were found before.
  if (words >= RUN_WORDS && members.some((member) => member.text === text)) return true
  const need = isOfRuns
    ? (RUN_NEEDS[words - contents.length + 1] ?? 3)
    : words >= 5
      ? 3
      : words >= 3
        ? 4
        : 5
  return contents.every((seen) => seen.size >= need * caution([...seen]))
}

/** The factor by which verbs and capitals, which are seldom values, need more contents. */
function caution(contents: readonly string[]): number {
  if (contents.every((content) => CAPITALS.test(content))) return 2
  return contents.filter((content) => VERB.test(content)).length * 2 > contents.length ? 3 : 1
}
