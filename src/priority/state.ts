import { Type, type Static } from '@sinclair/typebox'

import { PRIORITIES, SEVERITIES, type Priority, type Severity } from '../model/event.js'
import { ReadonlyTexts } from '../model/schemas.js'
import { wordsOf } from './words.js'

/** A person's priority for a template, as far as it teaches something of other templates. */
const CorrectionDoc = Type.Object({
  words: ReadonlyTexts,
  severity: Type.Number(),
  priority: Type.Number(),
})
export type Correction = Readonly<Static<typeof CorrectionDoc>>

/** What is stored of a model. */
export const PriorityStateDoc = Type.Object({
  format: Type.Literal(1),
  /** corrections learned from, all together */
  learned: Type.Number(),
  corrections: Type.Unsafe<readonly Correction[]>(Type.Array(CorrectionDoc)),
})
export type PriorityState = Readonly<Static<typeof PriorityStateDoc>>

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
