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

/** The first occurrence of a CRITICAL message has at least this gravity. */
const NEW_CRITICAL = 10
/** A spike of a single hour has this part of the gravity: bursts of errors come and go, an incident lasts. */
const PASSING = 0.7
/** A change by less than a factor of two has a smaller part of the gravity, and at least this one. */
const LEAST_SIZE = 0.5

/**
 * Grades how much an anomaly matters: its score, which says how sure it is and grows while it lasts, times how severe
 * it is, times how large, times how long.
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
