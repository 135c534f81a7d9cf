import type { Severity } from './event.js'

/** The series of an anomaly: of all sources, a source, a severity (of a source or of all), or a template. */
export const ANOMALY_SCOPES = ['all', 'source', 'severity', 'template'] as const
export type AnomalyScope = (typeof ANOMALY_SCOPES)[number]

/** `new`: an ERROR or CRITICAL template that did not occur in the two weeks before. */
export const ANOMALY_KINDS = ['spike', 'drop', 'silence', 'new'] as const
export type AnomalyKind = (typeof ANOMALY_KINDS)[number]

export const isRise = (kind: AnomalyKind): boolean => kind === 'spike' || kind === 'new'

export const ANOMALY_STATES = ['ongoing', 'over'] as const
export type AnomalyState = (typeof ANOMALY_STATES)[number]

/**
 * A span of hours whose counts differ significantly from the expected ones. Times are ms since
 * 1970.
 */
export interface InsightAnomaly {
  /** 16 hex digits. */
  readonly id: string
  readonly scope: AnomalyScope
  readonly kind: AnomalyKind
  readonly state: AnomalyState
  /** '' for all sources. */
  readonly source: string
  /**
   * The severity of the series; for a source or template, the severity of most of its occurrences,
   * if there is one.
   */
  readonly severity: Severity | null
  /** 16 hex digits. */
  readonly templateId: string | null
  readonly startedAtMs: number
  /** End of its last hour so far. */
  readonly endedAtMs: number
  /** End of the hour in which it was detected. */
  readonly detectedAtMs: number
  readonly observed: number
  readonly expected: number
  /** The 99 % interval of occurrences. */
  readonly expectedLeast: number
  readonly expectedMost: number
  /**
   * The deviation from the expected count, as standard deviations of a normal distribution; at most
   * 50.
   */
  readonly score: number
  /**
   * The importance: the score times factors for the severity, scope and duration of the anomaly and
   * its group.
   */
  readonly gravity: number
  /** Id of the leader of its anomaly group; null for a leader. */
  readonly partOf: string | null
}

export const TEMPLATE_CHANGES = ['new', 'reappeared', 'grown', 'shrunk', 'vanished'] as const
export type TemplateChangeKind = (typeof TEMPLATE_CHANGES)[number]

/** A template whose last 24 h differ from the weeks before. */
export interface TemplateChange {
  readonly change: TemplateChangeKind
  readonly templateId: string
  readonly source: string
  readonly severity: Severity
  /** Occurrences of the last 24 h. */
  readonly count: number
  readonly expected: number
  /** Two-sided p-value of the count, given the weeks before. */
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
  /** Empty when the history has less than four days. */
  readonly hours: readonly ForecastHour[]
  /** Share of the last days' hours within the intervals of their forecasts; null with too few days. */
  readonly coverage: number | null
}

/** A template, source or host in the span of an anomaly and in the hours that it is compared with. */
export interface Contribution {
  /** A template's id, or the name of a source or host. */
  readonly name: string
  /** Occurrences an hour. */
  readonly before: number
  readonly during: number
  /** Share of the change of the sum; below 0 for a change in the other direction. */
  readonly explains: number
  readonly shareBefore: number
  readonly shareDuring: number
  /** Whether its errors increased notably, where errors are counted separately. */
  readonly hasMoreErrors: boolean
}

/** What changed most from the usual hours to those of an anomaly. */
export interface Explanation {
  readonly fromMs: number
  readonly toMs: number
  /** The first of the hours that it is compared with. */
  readonly beforeFromMs: number
  readonly templates: readonly Contribution[]
  /** Empty for an anomaly of one source. */
  readonly sources: readonly Contribution[]
  /** Counted by source and severity; for a template, in its main severity. */
  readonly hosts: readonly Contribution[]
}

export interface Correlation extends Explanation {
  readonly anomalyId: string
  /** Other sources whose anomaly began within two hours. */
  readonly alsoAffected: readonly { readonly source: string; readonly anomalyId: string }[]
}

/** The accuracy of priorities and templates; shares are 0..1. */
export interface MlHealth {
  readonly score: number
  /** Hours since the last one with occurrences below P1. */
  readonly dataAgeHours: number
  /** Share of the last day's occurrences below P1 whose template is new in a source that is not. */
  readonly drift: number
  /** Share of the last day's events below P1 with a confidence under a half. */
  readonly lowConfidence: number
  readonly corrections: number
  /** Share of the corrected templates to which the model gives the corrected priority; null without any. */
  readonly agreement: number | null
}

export const LEARNED = [
  'anomalies',
  'anomalies_of_weekends',
  'new_templates',
  'grown_templates',
  'forecast',
] as const

/** Results that a run can't compute yet, because the history of every source is too short. */
export interface Learning {
  readonly finds: (typeof LEARNED)[number]
  /** The time from which the history of the oldest source suffices; null before the first event. */
  readonly fromMs: number | null
}

/** The result of a run: the same for the same counts and time. */
export interface InsightSnapshot {
  readonly modelVersion: string
  /** End of the last whole hour that was analysed. */
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
  readonly learning: readonly Learning[]
}
