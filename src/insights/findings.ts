/* Anomalies in the form that alert rules evaluate. */

import { counted } from '../lib/counted.js'
import type { Priority, Severity } from '../model/event.js'
import {
  isRise,
  type AnomalyKind,
  type AnomalyScope,
  type InsightAnomaly,
} from '../model/insights.js'
import type { Sources } from '../records/sources.js'
import { withGravity } from './anomaly-groups.js'
import type { StoredAnomaly } from './store.js'

/** An anomaly that leads its group, of a source that was registered before it began. */
export interface Finding {
  readonly scope: AnomalyScope
  readonly kind: AnomalyKind
  /** '' for all sources. */
  readonly source: string
  readonly severity: Severity | ''
  /** '' for none. */
  readonly templateId: string
  readonly gravity: number
  readonly isOver: boolean
  readonly startedAtMs: number
  readonly endedAtMs: number
  /** End of the hour in which it was detected. */
  readonly detectedAtMs: number
  /** The priority of the anomaly for people. */
  readonly priority: Priority
  /** A line with the observed count, its place and the expected count. */
  readonly title: string
}

interface FindingDeps {
  readonly sources: Pick<Sources, 'list' | 'get'>
  readonly textOf: (templateId: string) => string | null
}

const MAX_TITLE = 300
const MAX_TEXT = 120

/** @param all anomalies with those of their groups @returns the gravest first */
export const findingsOf = (
  all: readonly StoredAnomaly[],
  { sources, textOf }: FindingDeps,
): readonly Finding[] =>
  withGravity(all)
    .filter((each) => each.partOf === null && isOfLiveSource(sources, each))
    .toSorted((a, b) => b.gravity - a.gravity || (a.id < b.id ? -1 : 1))
    .map((each) => ({
      scope: each.scope,
      kind: each.kind,
      source: each.source,
      severity: each.severity ?? '',
      templateId: each.templateId ?? '',
      gravity: each.gravity,
      isOver: each.state === 'over',
      startedAtMs: each.startedAtMs,
      endedAtMs: each.endedAtMs,
      detectedAtMs: each.detectedAtMs,
      priority: priorityOf(each),
      title: titleOf(each, textOf).slice(0, MAX_TITLE),
    }))

/** Whether an anomaly began after its source was registered. An earlier one is in an uploaded old file. */
function isOfLiveSource(
  sources: FindingDeps['sources'],
  { source, startedAtMs }: InsightAnomaly,
): boolean {
  const known = source === '' ? sources.list() : [sources.get(source)]
  return known.some((each) => each !== undefined && each.createdAtMs <= startedAtMs)
}

/** P1: a spike of CRITICAL, or a silent source. P2: a spike of ERROR, or a source that dropped. */
function priorityOf({ kind, severity, scope }: InsightAnomaly): Priority {
  const isWhole = scope === 'all' || scope === 'source'
  if (isRise(kind)) return severity === 'CRITICAL' ? 'P1' : severity === 'ERROR' ? 'P2' : 'P3'
  if (kind === 'silence') return isWhole ? 'P1' : 'P3'
  return isWhole ? 'P2' : 'P3'
}

const KIND_WORDS = {
  spike: 'Spike',
  drop: 'Drop',
  silence: 'Silence',
  new: 'First occurrence',
} as const

function titleOf(anomaly: InsightAnomaly, textOf: FindingDeps['textOf']): string {
  const { kind, source, startedAtMs, observed, expectedLeast, expectedMost } = anomaly
  const since = new Date(startedAtMs).toISOString().slice(0, 16)
  return (
    `${KIND_WORDS[kind]} ${subjectOf(anomaly, textOf)}${source === '' ? '' : ` in ${source}`}: ` +
    `${counted(observed, 'occurrence')} since ${since}Z, ${expectedLeast} to ${expectedMost} were expected`
  )
}

function subjectOf(
  { scope, severity, templateId }: InsightAnomaly,
  textOf: FindingDeps['textOf'],
): string {
  if (scope === 'severity') return `of ${severity ?? ''}`
  if (scope === 'template')
    return `of "${(textOf(templateId ?? '') ?? templateId ?? '').slice(0, MAX_TEXT)}"`
  return scope === 'all' ? 'over all sources' : 'of all messages'
}
