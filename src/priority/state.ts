import { PRIORITIES, SEVERITIES, type Priority, type Severity } from '../model/event.js'
import { wordsOf } from './words.js'

/** A person's priority for a template, as far as it teaches something of other templates. */
export interface Correction {
  readonly words: readonly string[]
  readonly severity: number
  readonly priority: number
}

/** What is stored of a model; JSON. */
export interface PriorityState {
  readonly format: 1
  /** corrections learned from, all together */
  readonly learned: number
  readonly corrections: readonly Correction[]
}

export const MAX_CORRECTIONS = 1000

export const NOTHING_LEARNED: PriorityState = { format: 1, learned: 0, corrections: [] }

/** What is known when a template of this severity should have this priority too; the later word counts. */
export function withCorrection(
  state: PriorityState,
  told: { readonly severity: Severity; readonly priority: Priority; readonly text: string },
): PriorityState {
  const correction: Correction = {
    words: wordsOf(told.text),
    severity: SEVERITIES.indexOf(told.severity),
    priority: PRIORITIES.indexOf(told.priority),
  }
  const key = keyOf(correction)
  const others = state.corrections.filter((known) => keyOf(known) !== key)
  return {
    format: 1,
    learned: state.learned + 1,
    corrections: [...others, correction].slice(-MAX_CORRECTIONS),
  }
}

const keyOf = ({ words, severity }: Correction): string => `${severity} ${words.join(' ')}`
