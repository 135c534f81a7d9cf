import type { MlHealth } from '../model/insights.js'

export interface MlFacts {
  readonly dataAgeHours: number
  /** of the last 24 h, occurrences below P1; and those of templates that are new in sources that are not */
  readonly routine: number
  readonly novel: number
  /** of the last 24 h, events below P1, and those with a confidence under a half */
  readonly routineEvents: number
  readonly unsureEvents: number
  readonly corrections: number
  readonly agreeing: number
}

const CONFIDENCE_PART = 0.4
const AGREEMENT_PART = 0.3
const DRIFT_PART = 0.2
const FRESHNESS_PART = 0.1
/** a few corrections are drawn to full agreement as if by so many more */
const AGREEMENT_WEIGHT = 3
/** this share of occurrences in new templates is the worst */
const WORST_DRIFT = 0.5
const FRESH_HOURS = 2
const STALE_HOURS = 24

/**
 * 0.4·confident share + 0.3·agreement with corrections + 0.2·(1 − drift) + 0.1·freshness. What is P1 is left
 * out of the shares, so that a flood of P1 raises none of them.
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
