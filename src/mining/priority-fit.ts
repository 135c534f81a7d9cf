import { BUCKETS } from './priority-words.js'

/** Scores at which P4 becomes P3, P3 becomes P2 and P2 becomes P1. */
const CUTS = [-0.6, 1.4, 3.2] as const
const SLOPE = 1.7

/** Points of DEBUG, INFO, WARNING, ERROR, CRITICAL. */
export const SEVERITY_POINTS = [-3.6, -2.2, 0.4, 2.3, 4.4] as const

/** A template as the fit sees it. */
export interface Sample {
  /** word buckets */
  readonly words: Uint16Array
  /** how telling each word is, 0..1 */
  readonly telling: Float32Array
  readonly severity: number
  /** points before anything is learned */
  readonly base: number
  /** index of PRIORITIES */
  readonly priority: number
  readonly weight: number
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))

/** Chances of P1, P2, P3, P4 at a score (proportional odds). */
export function chances(score: number): [number, number, number, number] {
  const over = CUTS.map((cut) => sigmoid(SLOPE * (score - cut)))
  const [p3 = 0, p2 = 0, p1 = 0] = over
  return [p1, p2 - p1, p3 - p2, 1 - p3]
}

/** Derivative of the log-likelihood of a priority with respect to the score. */
function pull(score: number, priority: number): number {
  const lower = CUTS[2 - priority]
  const upper = CUTS[3 - priority]
  const over = lower === undefined ? 1 : sigmoid(SLOPE * (score - lower))
  const above = upper === undefined ? 0 : sigmoid(SLOPE * (score - upper))
  return SLOPE * (1 - over - above)
}

// test/unit/mining/priority.test.ts holds what these reach: 50 corrections, 90 % of unseen templates
const EPOCHS = 60
const RATE = 0.5
const SHRINK_WORDS = 0.003
const SHRINK_SEVERITY = 0.08

/** What corrections have taught: points by word bucket and by severity. */
export interface Learned {
  readonly words: Float32Array
  readonly severity: Float32Array
}

export const nothingLearned = (): Learned => ({
  words: new Float32Array(BUCKETS),
  severity: new Float32Array(SEVERITY_POINTS.length),
})

/** Score of a sample with what was learned. */
function scoreOf(sample: Sample, learned: Learned): number {
  let score = sample.base + (SEVERITY_POINTS[sample.severity] ?? 0)
  score += learned.severity[sample.severity] ?? 0
  for (let i = 0; i < sample.words.length; i++) {
    score += (learned.words[sample.words[i] ?? 0] ?? 0) * (sample.telling[i] ?? 0)
  }
  return score
}

/**
 * Fits the points to the samples by AdaGrad on the likelihood, shrinking towards 0. Deterministic:
 * the same samples in the same order give the same points.
 */
export function fit(samples: readonly Sample[]): Learned {
  const learned = nothingLearned()
  const wordSquares = new Float32Array(BUCKETS).fill(0.1)
  const severitySquares = new Float32Array(SEVERITY_POINTS.length).fill(1)
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    for (const sample of samples) {
      const force = pull(scoreOf(sample, learned), sample.priority) * sample.weight
      for (let i = 0; i < sample.words.length; i++) {
        const step = force * (sample.telling[i] ?? 0)
        move(learned.words, wordSquares, sample.words[i] ?? 0, [step, SHRINK_WORDS * sample.weight])
      }
      move(learned.severity, severitySquares, sample.severity, [
        force,
        SHRINK_SEVERITY * sample.weight,
      ])
    }
  }
  return learned
}

function move(
  points: Float32Array,
  squares: Float32Array,
  at: number,
  [step, shrink]: readonly [number, number],
): void {
  const value = points[at] ?? 0
  const slope = step - shrink * value
  const square = (squares[at] ?? 0) + slope * slope
  squares[at] = square
  points[at] = value + (RATE * slope) / Math.sqrt(square)
}
