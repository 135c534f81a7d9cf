import type { Priority } from '../model/event.js'
import type { InsightAnomaly } from '../model/insights.js'
import { seriesOf } from './continued.js'
import { HOUR_MS } from '../model/time.js'

export interface AlertRules {
  readonly leastScore: number
  readonly holdDownMs: number
  readonly nowMs: number
}

export interface AlertedAnomaly extends InsightAnomaly {
  /** ms since 1970, 0 = not yet */
  readonly alertedAtMs: number
}

export interface AnomalyAlert {
  readonly anomaly: InsightAnomaly
  readonly severity: Priority
  readonly title: string
}

/** A look that finds more than this has found one thing: the gravest are told. */
const MAX_ALERTS = 20
const RECENT_MS = 24 * HOUR_MS
const MAX_NAME = 120

/**
 * The anomalies that an alert is due for: grave, recent, not part of a wider one, never told before, and not of a
 * series that was told of within the hold-down.
 *
 * @param all newly found ones and those of the last days
 */
export function alertsFor(
  all: readonly AlertedAnomaly[],
  { leastScore, holdDownMs, nowMs }: AlertRules,
  textOf: (templateId: string) => string | null,
): readonly AnomalyAlert[] {
  const held = new Set(
    all.filter(({ alertedAtMs }) => alertedAtMs > nowMs - holdDownMs).map(seriesOf),
  )
  const due: AlertedAnomaly[] = []
  for (const anomaly of all.toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))) {
    const { partOf, score, alertedAtMs, endedAtMs } = anomaly
    if (partOf !== null || score < leastScore || alertedAtMs > 0) continue
    if (endedAtMs < nowMs - RECENT_MS || held.has(seriesOf(anomaly))) continue
    held.add(seriesOf(anomaly))
    due.push(anomaly)
  }
  return due.slice(0, MAX_ALERTS).map((anomaly) => ({
    anomaly,
    severity: priorityOf(anomaly),
    title: titleOf(anomaly, textOf),
  }))
}

/** P1: CRITICAL in great numbers, or a source that is silent. P2: ERROR in great numbers, or a drop of a source. */
function priorityOf({ kind, severity, scope }: InsightAnomaly): Priority {
  const isWhole = scope === 'all' || scope === 'source'
  if (kind === 'spike') return severity === 'CRITICAL' ? 'P1' : severity === 'ERROR' ? 'P2' : 'P3'
  if (kind === 'silence') return isWhole ? 'P1' : 'P3'
  return isWhole ? 'P2' : 'P3'
}

const KIND_WORDS = { spike: 'Spike', drop: 'Drop', silence: 'Silence' } as const

function titleOf(anomaly: InsightAnomaly, textOf: (templateId: string) => string | null): string {
  const { kind, source, startedAtMs, observed, expectedLeast, expectedMost } = anomaly
  const since = new Date(startedAtMs).toISOString().slice(0, 16)
  return (
    `${KIND_WORDS[kind]} ${subjectOf(anomaly, textOf)}${source === '' ? '' : ` in ${source}`}: ` +
    `${observed} occurrences since ${since}Z, ${expectedLeast} to ${expectedMost} were expected`
  )
}

function subjectOf(
  { scope, severity, templateId }: InsightAnomaly,
  textOf: (templateId: string) => string | null,
): string {
  if (scope === 'severity') return `of ${severity ?? ''}`
  if (scope === 'template')
    return `of "${(textOf(templateId ?? '') ?? templateId ?? '').slice(0, MAX_NAME)}"`
  return scope === 'all' ? 'over all sources' : 'of all messages'
}
