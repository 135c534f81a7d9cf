import {
  isRise,
  type AnomalyKind,
  type AnomalyScope,
  type InsightAnomaly,
} from '../model/insights.js'
import type { Severity } from '../model/event.js'
import { HOUR_MS } from '../model/time.js'

type Graded = Pick<
  InsightAnomaly,
  'observed' | 'expected' | 'score' | 'startedAtMs' | 'endedAtMs'
> & {
  readonly scope: AnomalyScope
  readonly kind: AnomalyKind
  readonly severity: Severity | null
}

/** The least gravity of the first occurrence of a CRITICAL message. */
const NEW_CRITICAL = 10
/** A spike of a single hour has this share of the gravity, because bursts of errors come and go, and incidents last. */
const PASSING = 0.7
/** The least share of the gravity that a change by less than a factor of two has. */
const LEAST_SIZE = 0.5

/**
 * The gravity of an anomaly says how important it is. It is the score, which is its certainty and
 * grows while it lasts, times factors for severity, size and duration. The factors for severity:
 *
 * | of | times |
 * |---|---|
 * | CRITICAL that rises or is new | 3 |
 * | ERROR that rises or is new; a source, or all, that falls silent or drops | 2 |
 * | another template | 0.5 |
 * | others | 1 |
 */
export function gravityOf(anomaly: Graded): number {
  const { kind, severity, score, observed, expected } = anomaly
  const doublings = Math.abs(Math.log2((observed + 0.5) / (expected + 0.5)))
  const size = Math.max(LEAST_SIZE, Math.min(1, doublings))
  const isPassing = kind === 'spike' && anomaly.endedAtMs - anomaly.startedAtMs <= HOUR_MS
  const gravity = score * severeness(anomaly) * size * (isPassing ? PASSING : 1)
  const least = kind === 'new' && severity === 'CRITICAL' ? NEW_CRITICAL : 0
  return Math.round(Math.max(least, gravity) * 10) / 10
}

function severeness({ scope, kind, severity }: Graded): number {
  if (scope === 'all' || scope === 'source') return isRise(kind) ? 1 : 2
  if (isRise(kind) && severity === 'CRITICAL') return 3
  if (isRise(kind) && severity === 'ERROR') return 2
  return scope === 'template' ? 0.5 : 1
}
