import { Type, type Static } from '@sinclair/typebox'

import { PRIORITIES, SEVERITIES, type Priority, type Severity } from '../model/event.js'
import { ReadonlyTexts } from '../model/schemas.js'
import { wordsOf } from './words.js'

/** A correction as training data of the model. */
const CorrectionDoc = Type.Object({
  words: ReadonlyTexts,
  severity: Type.Number(),
  priority: Type.Number(),
})
export type Correction = Readonly<Static<typeof CorrectionDoc>>

/** The stored state of the model. */
export const PriorityStateDoc = Type.Object({
  format: Type.Literal(1),
  /** Number of corrections ever made; part of the model's version. */
  learned: Type.Number(),
  corrections: Type.Unsafe<readonly Correction[]>(Type.Array(CorrectionDoc)),
})
export type PriorityState = Readonly<Static<typeof PriorityStateDoc>>

export const MAX_CORRECTIONS = 1000

export const NOTHING_LEARNED: PriorityState = { format: 1, learned: 0, corrections: [] }

/** The state with one more correction, which replaces an earlier one of the same words and severity. */
export function withCorrection(
  state: PriorityState,
  {
    severity,
    priority,
    text,
  }: { readonly severity: Severity; readonly priority: Priority; readonly text: string },
): PriorityState {
  const correction: Correction = {
    words: wordsOf(text),
    severity: SEVERITIES.indexOf(severity),
    priority: PRIORITIES.indexOf(priority),
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
