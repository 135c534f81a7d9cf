import { TRAIT } from './masked-message.js'

/** A word or value that a template has in a hole, among templates with the same other words. */
export interface Seen {
  /** Hash of the word; 0 for a value. */
  readonly word: number
  readonly traits: number
  readonly no: number
}

export interface Evidence {
  /** Hash of the words around the hole. */
  readonly key: number
  /** Index of the hole among the words. */
  readonly hole: number
  /** The number of words around it. */
  readonly fixed: number
  readonly seen: Seen[]
}

/** Whether enough distinct words were seen in a hole to make it a value. */
export function isEnough(seen: readonly Seen[], { fixed }: Evidence): boolean {
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
 * The number of distinct words that make a hole a value: 3 among many fixed words, up to 5 beside a single one.
 * The factors were tuned on the public loghub data sets (bench/flow/mining.ts).
 */
// oxlint-disable-next-line max-params -- numbers, not an object per hole
function needed(fixed: number, all: number, any: number, besideValue: boolean): number {
  if (besideValue && (all & TRAIT.measure) !== 0) return 1
  if ((all & (TRAIT.assigned | TRAIT.unit)) !== 0) return 2
  let need = Math.max(3, 6 - fixed)
  if (besideValue) need = 1
  else if ((all & TRAIT.quoted) !== 0) need = 3
  else if ((all & TRAIT.name) !== 0) need = Math.max(3, Math.ceil(need / 2))
  if ((any & TRAIT.verb) !== 0) need *= 3
  if ((all & TRAIT.capitals) !== 0) need *= 2
  if ((any & TRAIT.first) === 0) return need
  // The first word of a message mostly says what happens, so it needs more distinct words. If many
  // other words are the same, it says who does it, and needs fewer.
  return Math.max(fixed < 4 ? 16 : besideValue ? 2 : 6, need)
}
