export interface HealthInputs {
  /** P1 occurrences of the last 24 h */
  readonly p1: number
  /** Dead letters of the last 24 h divided by dead letters and occurrences below P1, 0..1. */
  readonly deadShare: number
  /** How certain priorities are, 0..1. */
  readonly mlHealth: number
  /** Repeats divided by the occurrences below P1, 0..1. */
  readonly dedupShare: number
}

const P1_POINTS = 15
const DEAD_POINTS = 40
const ML_POINTS = 20
const DEDUP_POINTS = 5
const APP_ERROR_POINTS = 30

/**
 * 100 − 15·log10(1 + P1 occurrences of 24 h) − 40·dead-letter share − 20·(1 − ML health) + 5·share of
 * repeats, limited to 0..100. Ten times as many P1 cost about 15 points. The shares leave P1 out, so that a
 * flood of P1 dilutes none of them: more P1 never raises the score.
 */
export const globalHealth = ({ p1, deadShare, mlHealth, dedupShare }: HealthInputs): number =>
  toScore(
    100 -
      P1_POINTS * Math.log10(1 + Math.max(0, p1)) -
      DEAD_POINTS * deadShare -
      ML_POINTS * (1 - mlHealth) +
      DEDUP_POINTS * dedupShare,
  )

/** 100 − 15·log10(1 + P1 occurrences of 24 h) − 30·share of ERROR and CRITICAL, limited to 0..100. */
export const applicationHealth = (p1: number, errorShare: number): number =>
  toScore(100 - P1_POINTS * Math.log10(1 + Math.max(0, p1)) - APP_ERROR_POINTS * errorShare)

const toScore = (points: number): number => Math.min(100, Math.max(0, Math.round(points)))

/** `part` divided by `whole`, 0..1; 0 when `whole` is 0. */
export const share = (part: number, whole: number): number =>
  whole <= 0 ? 0 : Math.min(1, Math.max(0, part / whole))
