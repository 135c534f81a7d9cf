import { hashOfText } from './scan.js'
import {
  countSentence,
  countWords,
  findSentence,
  findSlots,
  findTail,
  frameOf,
  isPhrase,
  isSentence,
  openContent,
  slotsAround,
  type Slot,
} from './slots.js'
import type { Template } from './template.js'

export interface LivingTemplates {
  /** The remaining template of this number, after merges. */
  root(no: number): Template
  /**
   * Replaces a template's text by a more general one, whose values may have this many words each.
   *
   * @returns the template that it is part of now
   */
  rewrite(template: Template, text: string, words: number): Template
}

/** Templates with the same frame, and the contents of each of its slots. */
interface Family {
  readonly need: number
  readonly isOfTails: boolean
  readonly members: Set<number>
  readonly columns: readonly Column[]
}

interface Column {
  /** The hashes of the distinct contents, while the column is not open. */
  seen: number[]
  /** The value that replaces all contents. */
  content: string
  isOpen: boolean
}

/** The slots of a text under the key of its family. */
interface Frame {
  readonly key: number
  readonly need: number
  readonly isOfTails: boolean
  readonly slots: readonly Slot[]
}

/** The most families of a source; beyond it the least recently used one is dropped. */
const MAX_FAMILIES = 1000
const MAX_MEMBERS = 64

/**
 * Templates with the same frame (slots.ts) are a family. When several distinct contents were seen
 * in a slot, it opens: it becomes a value that may have any words. The tail of a sentence is a slot
 * too.
 */
export class Families {
  readonly #templates: LivingTemplates
  readonly #families = new Map<number, Family>()

  constructor(templates: LivingTemplates) {
    this.#templates = templates
  }

  /** @returns the template, or the one that it is part of now */
  note(template: Template): Template {
    let root = template
    for (const read of FRAMES) {
      const frame = read(root.text)
      if (frame !== null) root = this.#note(root, frame, read)
    }
    return root
  }

  #note(template: Template, frame: Frame, read: (text: string) => Frame | null): Template {
    const family = this.#family(frame)
    const { text, no } = template
    let changed = false
    frame.slots.forEach(({ from, to }, i) => {
      const column = family.columns[i]
      if (column !== undefined) changed = take(column, text.slice(from, to), family) || changed
    })
    if (family.members.size < MAX_MEMBERS) family.members.add(no)
    const members = changed ? [...family.members] : [no]
    if (changed) family.members.clear()
    for (const member of members) {
      const root = this.#templates.root(member)
      const now = read(root.text)
      if (now?.key === frame.key) this.#open(root, now.slots, family)
    }
    return this.#templates.root(no)
  }

  /** Replaces the contents of the open columns in one template. */
  #open(template: Template, slots: readonly Slot[], family: Family): void {
    let text = ''
    let at = 0
    slots.forEach(({ from, to }, i) => {
      const column = family.columns[i]
      text += template.text.slice(at, from)
      text += column?.isOpen === true ? column.content : template.text.slice(from, to)
      at = to
    })
    text += template.text.slice(at)
    const root = text === template.text ? template : this.#templates.rewrite(template, text, 1)
    if (family.members.size < MAX_MEMBERS) family.members.add(root.no)
  }

  #family({ key, need, isOfTails, slots }: Frame): Family {
    const families = this.#families
    const known = families.get(key)
    if (known !== undefined) families.delete(key)
    else if (families.size >= MAX_FAMILIES) {
      for (const old of families.keys()) {
        families.delete(old)
        break
      }
    }
    const columns = slots.map(() => ({ seen: [], content: '', isOpen: false }))
    const family = known ?? { need, isOfTails, members: new Set<number>(), columns }
    families.set(key, family)
    return family
  }
}

/** @returns whether the column opened, or changed its content */
function take(column: Column, content: string, { need, isOfTails }: Family): boolean {
  const { isOpen, content: before } = column
  column.content = openContent(before === '' ? [content] : [before, content])
  if (isOpen) return column.content !== before
  // Tails that differ only in their slots count as equal.
  const hash = hashOfText(isOfTails ? frameOf(content, findSlots(content)) : content)
  if (!column.seen.includes(hash)) column.seen.push(hash)
  if (column.seen.length < need) return false
  column.isOpen = true
  column.seen = []
  return true
}

function frameOfSlots(text: string): Frame | null {
  const slots = findSlots(text)
  if (slots.length === 0) return null
  const frame = frameOf(text, slots)
  const words = countWords(frame)
  // A short frame may belong to several statements, so it needs more contents.
  const need = words >= 5 ? 2 : words >= 3 ? 3 : 4
  return { key: hashOfText(frame), need, isOfTails: false, slots }
}

function frameOfTail(text: string): Frame | null {
  const sentence = findTail(text, isSentence)
  const tail = sentence ?? findTail(text, isPhrase)
  if (tail === null) return null
  const head = text.slice(findSentence(text)?.from ?? 0, tail.from)
  const frame = frameOf(head, findSlots(head))
  const need =
    sentence === null ? (countSentence(head) === 3 ? 5 : 12) : countWords(frame) >= 4 ? 2 : 3
  const key = hashOfText(`${frameOf(text, slotsAround(text, tail))}\u0003`)
  return { key, need, isOfTails: true, slots: [tail] }
}

const FRAMES = [frameOfSlots, frameOfTail]
