import type { Severity } from './event.js'

/** What an anomaly is about: everything, a source, one severity of a source, a template. */
export const ANOMALY_SCOPES = ['all', 'source', 'severity', 'template'] as const
export type AnomalyScope = (typeof ANOMALY_SCOPES)[number]

export const ANOMALY_KINDS = ['spike', 'drop', 'silence'] as const
export type AnomalyKind = (typeof ANOMALY_KINDS)[number]

export const ANOMALY_STATES = ['ongoing', 'over'] as const
export type AnomalyState = (typeof ANOMALY_STATES)[number]

/** A span of hours in which occurrences were not what the past explains. Moments are ms since 1970. */
export interface InsightAnomaly {
  /** 16 hex digits */
  readonly id: string
  readonly scope: AnomalyScope
  readonly kind: AnomalyKind
  readonly state: AnomalyState
  /** '' for all */
  readonly source: string
  /** of a template the one most of its occurrences have */
  readonly severity: Severity | null
  /** 16 hex digits */
  readonly templateId: string | null
  readonly startedAtMs: number
  /** end of its last hour, as far as known */
  readonly endedAtMs: number
  /** end of the hour in which it became certain */
  readonly detectedAtMs: number
  readonly observed: number
  readonly expected: number
  /** what 99 of 100 such spans stay in */
  readonly expectedLeast: number
  readonly expectedMost: number
  /** standard deviations of a normal law that are as unlikely, at most 50 */
  readonly score: number
  /** id of the wider anomaly that this one is a part of, or of the gravest of templates that go together */
  readonly partOf: string | null
}

export const TEMPLATE_CHANGES = ['new', 'reappeared', 'grown', 'shrunk', 'vanished'] as const
export type TemplateChangeKind = (typeof TEMPLATE_CHANGES)[number]

/** A template whose last 24 h are not like the weeks before. */
export interface TemplateChange {
  readonly change: TemplateChangeKind
  readonly templateId: string
  readonly source: string
  readonly severity: Severity
  /** occurrences of the last 24 h */
  readonly count: number
  readonly expected: number
  /** chance that the weeks before would bring this about */
  readonly chance: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
}

export interface ForecastHour {
  readonly atMs: number
  readonly expected: number
  readonly low: number
  readonly high: number
}

export interface Forecast {
  /** empty while there are fewer than four days to learn from */
  readonly hours: readonly ForecastHour[]
  /** share of the hours of the days before that their own forecasts' intervals held; null without any */
  readonly coverage: number | null
}

/** What a part of an anomaly did in its span and before. */
export interface Contribution {
  /** a template's id, or the name of a source or host */
  readonly name: string
  /** occurrences an hour */
  readonly before: number
  readonly during: number
  /** share of the change of the whole that is this part's, below 0 when it went the other way */
  readonly explains: number
  readonly shareBefore: number
  readonly shareDuring: number
}

/** Which parts changed most from the span before an anomaly to its own. */
export interface Explanation {
  readonly fromMs: number
  readonly toMs: number
  readonly beforeFromMs: number
  readonly templates: readonly Contribution[]
  /** of an anomaly over all sources */
  readonly sources: readonly Contribution[]
  /** of the anomaly's source and severity, of a template its severity */
  readonly hosts: readonly Contribution[]
}

export interface Correlation extends Explanation {
  readonly anomalyId: string
  /** other sources whose own anomaly began within two hours */
  readonly alsoAffected: readonly { readonly source: string; readonly anomalyId: string }[]
}

/** How well priorities and templates can be trusted; shares are 0..1. */
export interface MlHealth {
  readonly score: number
  /** newest event to the end of the data, hours */
  readonly dataAgeHours: number
  /** occurrences below P1 of the last 24 h whose template is new, where sources are not */
  readonly drift: number
  /** events below P1 of the last 24 h with a confidence under a half */
  readonly lowConfidence: number
  readonly corrections: number
  /** corrected templates for which the model itself gives the corrected priority; null without any */
  readonly agreement: number | null
}

/** What an operator reads in the morning. The same for the same data and moment. */
export interface InsightSnapshot {
  readonly modelVersion: string
  /** end of the last whole hour that is looked at */
  readonly asOfMs: number
  readonly series: number
  readonly ongoing: number
  readonly over: number
  readonly anomalies: readonly InsightAnomaly[]
  readonly templates: readonly TemplateChange[]
  readonly events: Forecast
  readonly errors: Forecast
  readonly correlations: readonly Correlation[]
  readonly health: MlHealth
}
