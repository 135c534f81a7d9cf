import type { Template } from './template.js'

export interface Sequence {
  readonly count: number
  readonly words: Int32Array
  isKey(k: number): boolean
  isVerb(k: number): boolean
}

/**
 * Aligns the words of a message with those of a template. The remaining words of the message must
 * be where the template allows values, and not before `=`.
 * @param known whether the message belongs to this template; a value may then have several words
 */
// oxlint-disable-next-line max-params -- on the path of every miss
export function align(
  template: Template,
  message: Sequence,
  ends: Uint16Array,
  known: boolean,
): boolean {
  const { words } = template
  let at = 0
  for (let k = 0; k <= words.length; k++) {
    const want = words[k]
    const maxWords = template.maxWords[k] ?? 0
    const most = known && maxWords > 0 ? message.count : Math.min(message.count, at + maxWords)
    const any = known ? most : at + (template.holes[k] ?? 0)
    const wide = template.wide[k] ?? 0
    if (wide > 0) at = wideEnd(message, at, want, wide)
    else while (at < most && message.words[at] !== want && mayBeValue(message, at, any)) at++
    ends[k] = at
    if (want === undefined) break
    if (at >= message.count || message.words[at] !== want) return false
    at++
  }
  return at === message.count
}

/** The next position of the wanted word. */
// oxlint-disable-next-line max-params -- likewise
function wideEnd(message: Sequence, from: number, want: number | undefined, wide: number): number {
  for (let at = from; at < message.count; at++) {
    if (message.words[at] === want || (wide === 2 && message.isKey(at))) return at
  }
  return message.count
}

/** Whether a word may be a value. A key is never one, and a verb only before index `any`. */
const mayBeValue = (message: Sequence, at: number, any: number): boolean =>
  !message.isKey(at) && (at < any || !message.isVerb(at))
