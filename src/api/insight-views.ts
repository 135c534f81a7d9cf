import type { Static } from '@sinclair/typebox'

import { FORECAST_LEVEL } from '../insights/forecast.js'
import { gravityOf } from '../insights/gravity.js'
import type { StoredSnapshot } from '../insights/store.js'
import type {
  Contribution,
  Correlation,
  Explanation,
  Forecast,
  InsightAnomaly,
  MlHealth,
  TemplateChange,
} from '../model/insights.js'
import { DAY_MS } from '../model/time.js'
import type {
  AnomalySchema,
  ContributionSchema,
  CorrelationSchema,
  ExplanationSchema,
  ForecastSchema,
  HealthSchema,
  Links,
  SnapshotSchema,
  TemplateChangeSchema,
} from './schemas/insight.js'
import { toIso } from './schemas/record.js'

/** @returns null for an unknown template */
export type TextOf = (templateId: string) => string | null

export const toAnomalyView = (
  anomaly: InsightAnomaly,
  textOf: TextOf,
): Static<typeof AnomalySchema> => ({
  id: anomaly.id,
  scope: anomaly.scope,
  kind: anomaly.kind,
  state: anomaly.state,
  source: anomaly.source === '' ? null : anomaly.source,
  severity: anomaly.severity,
  template_id: anomaly.templateId,
  template_text: anomaly.templateId === null ? null : textOf(anomaly.templateId),
  started_at: toIso(anomaly.startedAtMs),
  ended_at: anomaly.state === 'ongoing' ? null : toIso(anomaly.endedAtMs),
  detected_at: toIso(anomaly.detectedAtMs),
  observed: anomaly.observed,
  expected: anomaly.expected,
  expected_range: [anomaly.expectedLeast, anomaly.expectedMost],
  score: anomaly.score,
  gravity: gravityOf(anomaly),
  part_of: anomaly.partOf,
  links: linksOf(anomaly),
})

function linksOf(anomaly: InsightAnomaly): Static<typeof Links> {
  const { scope, kind, source, severity, templateId, startedAtMs, endedAtMs } = anomaly
  const query = new URLSearchParams()
  if (source !== '') query.set('source', source)
  if (scope === 'severity' && severity !== null) query.set('severity', severity)
  if (templateId !== null) query.set('template_id', templateId)
  // A silence has no events, so its link begins a day earlier.
  query.set('start_time', toIso(kind === 'silence' ? startedAtMs - DAY_MS : startedAtMs))
  query.set('end_time', toIso(endedAtMs - 1))
  return { events: `/api/logs?${query.toString()}`, template: templateLink(templateId) }
}

const templateLink = (id: string | null): string | null =>
  id === null ? null : `/api/logs/meta/templates/${id}`

const toChangeView = (
  change: TemplateChange,
  textOf: TextOf,
  asOfMs: number,
): Static<typeof TemplateChangeSchema> => {
  const query = new URLSearchParams({
    source: change.source,
    template_id: change.templateId,
    // A vanished template has its last events before the last day.
    start_time: toIso(Math.min(asOfMs, change.lastSeenMs) - DAY_MS),
    end_time: toIso(asOfMs - 1),
  })
  return {
    change: change.change,
    template_id: change.templateId,
    template_text: textOf(change.templateId),
    source: change.source,
    severity: change.severity,
    count_24h: change.count,
    expected_24h: change.expected,
    p_value: change.chance,
    first_seen: toIso(change.firstSeenMs),
    last_seen: toIso(change.lastSeenMs),
    links: { events: `/api/logs?${query.toString()}`, template: templateLink(change.templateId) },
  }
}

const toForecastView = ({ hours, coverage }: Forecast): Static<typeof ForecastSchema> => ({
  hours: hours.map(({ atMs, ...hour }) => ({ t: toIso(atMs), ...hour })),
  coverage,
})

/** @param textOf null for sources and hosts */
const toContributionView = (
  contribution: Contribution,
  textOf: TextOf | null,
): Static<typeof ContributionSchema> => ({
  name: contribution.name,
  text: textOf === null ? null : textOf(contribution.name),
  before: contribution.before,
  during: contribution.during,
  explains: contribution.explains,
  share_before: contribution.shareBefore,
  share_during: contribution.shareDuring,
  has_more_errors: contribution.hasMoreErrors,
})

export const toExplanationView = (
  explanation: Explanation,
  textOf: TextOf,
): Static<typeof ExplanationSchema> => ({
  from: toIso(explanation.fromMs),
  to: toIso(explanation.toMs),
  before_from: toIso(explanation.beforeFromMs),
  templates: explanation.templates.map((each) => toContributionView(each, textOf)),
  sources: explanation.sources.map((each) => toContributionView(each, null)),
  hosts: explanation.hosts.map((each) => toContributionView(each, null)),
})

const toCorrelationView = (
  correlation: Correlation,
  textOf: TextOf,
): Static<typeof CorrelationSchema> => ({
  anomaly_id: correlation.anomalyId,
  ...toExplanationView(correlation, textOf),
  also_affected: correlation.alsoAffected.map(({ source, anomalyId }) => ({
    source,
    anomaly_id: anomalyId,
  })),
})

const toHealthView = (health: MlHealth): Static<typeof HealthSchema> => ({
  score: health.score,
  data_age_hours: health.dataAgeHours,
  drift: health.drift,
  low_confidence: health.lowConfidence,
  corrections: health.corrections,
  agreement: health.agreement,
})

export const toSnapshotView = (
  { generatedAtMs, snapshot }: StoredSnapshot,
  textOf: TextOf,
): Static<typeof SnapshotSchema> => ({
  generated_at: toIso(generatedAtMs),
  as_of: toIso(snapshot.asOfMs),
  model_version: snapshot.modelVersion,
  series: snapshot.series,
  anomaly_counts: { ongoing: snapshot.ongoing, over: snapshot.over },
  anomalies: snapshot.anomalies.map((anomaly) => toAnomalyView(anomaly, textOf)),
  emerging_templates: snapshot.templates.map((each) => toChangeView(each, textOf, snapshot.asOfMs)),
  forecast: {
    level: FORECAST_LEVEL,
    events: toForecastView(snapshot.events),
    errors: toForecastView(snapshot.errors),
  },
  correlations: snapshot.correlations.map((each) => toCorrelationView(each, textOf)),
  health: toHealthView(snapshot.health),
  learning: snapshot.learning.map(({ finds, fromMs }) => ({
    finds,
    from: fromMs === null ? null : toIso(fromMs),
  })),
})
