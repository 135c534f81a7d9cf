import { PRIORITIES, SEVERITIES } from '../model/event.js'
import type { MlHealth } from '../model/insights.js'
import type { PriorityModel } from '../priority/model.js'

export interface MlFacts extends Agreement {
  readonly dataAgeHours: number
  /** Occurrences of the last 24 h below P1, and those of them whose template is new in a source that is not. */
  readonly routine: number
  readonly novel: number
  /** Events of the last 24 h below P1, and those of them with a confidence under a half. */
  readonly routineEvents: number
  readonly unsureEvents: number
}

/** Corrected templates, and those of them to which the model gives the corrected priority. */
export interface Agreement {
  readonly corrections: number
  readonly agreeing: number
}

const CONFIDENCE_PART = 0.4
const AGREEMENT_PART = 0.3
const DRIFT_PART = 0.2
const FRESHNESS_PART = 0.1
/** Weight of the prior, full agreement, in corrections. */
const AGREEMENT_WEIGHT = 3
/** From this share of occurrences in new templates on, the score of drift is 0. */
const WORST_DRIFT = 0.5
const FRESH_HOURS = 2
const STALE_HOURS = 24

/**
 * 0.4·confident share + 0.3·agreement with corrections + 0.2·(1 − drift) + 0.1·freshness. The shares leave P1 out,
 * so a flood of P1 raises none of them.
 */
export function mlHealthOf(facts: MlFacts): MlHealth {
  const lowConfidence = share(facts.unsureEvents, facts.routineEvents)
  const drift = share(facts.novel, facts.routine)
  const { corrections, agreeing } = facts
  const agreement = (agreeing + AGREEMENT_WEIGHT) / (corrections + AGREEMENT_WEIGHT)
  const staleness = (facts.dataAgeHours - FRESH_HOURS) / (STALE_HOURS - FRESH_HOURS)
  const score =
    CONFIDENCE_PART * (1 - lowConfidence) +
    AGREEMENT_PART * agreement +
    DRIFT_PART * (1 - Math.min(1, drift / WORST_DRIFT)) +
    FRESHNESS_PART * (1 - Math.min(1, Math.max(0, staleness)))
  return {
    score: thousandths(score),
    dataAgeHours: facts.dataAgeHours,
    drift: thousandths(drift),
    lowConfidence: thousandths(lowConfidence),
    corrections,
    agreement: corrections === 0 ? null : thousandths(agreeing / corrections),
  }
}

const share = (part: number, whole: number): number =>
  whole <= 0 ? 0 : Math.min(1, Math.max(0, part / whole))

const thousandths = (value: number): number => Math.round(value * 1000) / 1000

/**
 * Counts how often the model, by severity and words alone, gives the priority that a person gave. Its counters of
 * rarity and bursts are left out: they grow with P1.
 */
export function agreementOf(model: PriorityModel): Agreement {
  const { corrections } = model.toJSON()
  const agreeing = corrections.filter(
    ({ words, severity, priority }) =>
      model.explain(0, SEVERITIES[severity] ?? 'INFO', words.join(' ')).priority ===
      PRIORITIES[priority],
  ).length
  return { corrections: corrections.length, agreeing }
}
