import { BUCKETS } from './words.js'

/** Scores at which P4 becomes P3, P3 becomes P2 and P2 becomes P1. */
const THRESHOLDS = [-0.6, 1.4, 3.2] as const
const SLOPE = 1.7

/** Points of DEBUG, INFO, WARNING, ERROR, CRITICAL. */
export const SEVERITY_POINTS = [-3.6, -2.2, 0.4, 2.3, 4.4] as const

/** A template as input of the fit. */
export interface Sample {
  /** Buckets of the words. */
  readonly words: Uint16Array
  /** Weight of each word, 0..1. */
  readonly weights: Float32Array
  readonly severity: number
  /** Points before learning. */
  readonly base: number
  /** Index of PRIORITIES. */
  readonly priority: number
  readonly weight: number
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))

/** Chances of P1, P2, P3, P4 at a score (proportional odds). */
export function chances(score: number): [number, number, number, number] {
  const over = THRESHOLDS.map((threshold) => sigmoid(SLOPE * (score - threshold)))
  const [p3 = 0, p2 = 0, p1 = 0] = over
  return [p1, p2 - p1, p3 - p2, 1 - p3]
}

/** Derivative of the log-likelihood of a priority with respect to the score. */
function gradient(score: number, priority: number): number {
  const lower = THRESHOLDS[2 - priority]
  const upper = THRESHOLDS[3 - priority]
  const over = lower === undefined ? 1 : sigmoid(SLOPE * (score - lower))
  const above = upper === undefined ? 0 : sigmoid(SLOPE * (score - upper))
  return SLOPE * (1 - over - above)
}

// test/unit/priority/model.test.ts: after 50 corrections under a rule, 90 % of unseen templates must follow it
const EPOCHS = 80
const RATE = 0.2
const RATE_FALL = 0.03
/** Shrinkage per epoch, which keeps points that few corrections support near 0. */
const SHRINK_WORDS = 0.02
const SHRINK_PAIRS = 0.03
const SHRINK_SEVERITY = 40
/** P1 and P4 are learned with a margin, because an unseen template has fewer of the words. */
const MARGIN = 1

const LANES = SEVERITY_POINTS.length + 1

/** The learned points: by severity, by word, and by word and severity together. */
export interface Learned {
  /** For each word bucket: its points, then its points with each severity. */
  readonly words: Float32Array
  readonly severity: Float32Array
}

export const nothingLearned = (): Learned => ({
  words: new Float32Array(BUCKETS * LANES),
  severity: new Float32Array(SEVERITY_POINTS.length),
})

/** Points of a word for a severity. */
export const pointsFor = ({ words }: Learned, bucket: number, severity: number): number =>
  (words[bucket * LANES] ?? 0) + (words[bucket * LANES + 1 + severity] ?? 0)

/** Scales all points of a word. */
export function scaleWord({ words }: Learned, bucket: number, share: number): void {
  for (let at = bucket * LANES; at < (bucket + 1) * LANES; at++)
    words[at] = (words[at] ?? 0) * share
}

/** Score of a sample with what was learned. */
function scoreOf(sample: Sample, learned: Learned): number {
  const { severity } = sample
  let score = sample.base + (SEVERITY_POINTS[severity] ?? 0) + (learned.severity[severity] ?? 0)
  for (let i = 0; i < sample.words.length; i++) {
    score += pointsFor(learned, sample.words[i] ?? 0, severity) * (sample.weights[i] ?? 0)
  }
  return score
}

/**
 * Fits the points to the samples by gradient ascent on the likelihood with shrinkage towards 0, so that words which
 * many corrected templates share get the points.
 * Deterministic: the same samples in the same order give the same points.
 */
export function fit(samples: readonly Sample[]): Learned {
  const learned = nothingLearned()
  const touched = [...new Set(samples.flatMap(({ words }) => [...words]))]
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    const rate = RATE / (1 + RATE_FALL * epoch)
    for (const sample of samples) learnFrom(sample, learned, rate * sample.weight)
    for (const bucket of touched) shrinkWord(learned.words, bucket, rate)
    for (let i = 0; i < learned.severity.length; i++) {
      learned.severity[i] = (learned.severity[i] ?? 0) / (1 + rate * SHRINK_SEVERITY)
    }
  }
  return learned
}

function learnFrom(sample: Sample, learned: Learned, rate: number): void {
  const { words, weights, severity, priority } = sample
  const spare = priority === 0 ? -MARGIN : priority === 3 ? MARGIN : 0
  const step = rate * gradient(scoreOf(sample, learned) + spare, priority)
  for (let i = 0; i < words.length; i++) {
    const at = (words[i] ?? 0) * LANES
    const move = step * (weights[i] ?? 0)
    learned.words[at] = (learned.words[at] ?? 0) + move
    const pair = at + 1 + severity
    learned.words[pair] = (learned.words[pair] ?? 0) + move
  }
  learned.severity[severity] = (learned.severity[severity] ?? 0) + step
}

function shrinkWord(words: Float32Array, bucket: number, rate: number): void {
  const at = bucket * LANES
  words[at] = (words[at] ?? 0) / (1 + rate * SHRINK_WORDS)
  for (let pair = at + 1; pair < at + LANES; pair++) {
    words[pair] = (words[pair] ?? 0) / (1 + rate * SHRINK_PAIRS)
  }
}
