import { Type, type Static } from '@sinclair/typebox'

import {
  ANOMALY_KINDS,
  ANOMALY_SCOPES,
  ANOMALY_STATES,
  LEARNED,
  TEMPLATE_CHANGES,
  type Contribution,
  type Correlation,
  type Explanation,
  type Forecast,
  type InsightAnomaly,
  type MlHealth,
  type TemplateChange,
} from '../../model/insights.js'
import { Timestamp } from './event.js'
import { FORECAST_LEVEL } from '../../insights/forecast.js'
import type { StoredSnapshot } from '../../insights/store.js'
import { SeveritySchema } from '../../model/schemas.js'
import { toIso } from './record.js'
import { DAY_MS } from '../../model/time.js'

const literals = <T extends string>(values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))
const OrNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()])
const Share = Type.Number({ minimum: 0, maximum: 1 })
const Links = Type.Object(
  { events: Type.String(), template: OrNull(Type.String()) },
  {
    description:
      'paths of the API: the events of its span (of a silence, also of the day before), and their template',
  },
)

export const ScopeSchema = literals(ANOMALY_SCOPES)
export const KindSchema = literals(ANOMALY_KINDS)
export const StateSchema = literals(ANOMALY_STATES)

export const AnomalySchema = Type.Object({
  id: Type.String(),
  scope: ScopeSchema,
  kind: KindSchema,
  state: StateSchema,
  source: OrNull(Type.String()),
  severity: OrNull(SeveritySchema),
  template_id: OrNull(Type.String()),
  template_text: OrNull(Type.String()),
  started_at: Timestamp,
  ended_at: OrNull(Timestamp),
  detected_at: Timestamp,
  observed: Type.Number({ description: 'occurrences in its span' }),
  expected: Type.Number(),
  expected_range: Type.Tuple([Type.Number(), Type.Number()], {
    description: 'the 99 % interval of occurrences',
  }),
  score: Type.Number({
    description: 'standard deviations of a normal distribution that are as unlikely, at most 50',
  }),
  part_of: OrNull(
    Type.String({
      description:
        'id of the anomaly that leads its group: a wider one, or the gravest of templates of its source that coincide',
    }),
  ),
  links: Links,
})

const TemplateChangeSchema = Type.Object({
  change: literals(TEMPLATE_CHANGES),
  template_id: Type.String(),
  template_text: OrNull(Type.String()),
  source: Type.String(),
  severity: SeveritySchema,
  count_24h: Type.Number(),
  expected_24h: Type.Number(),
  p_value: Type.Number({ description: 'two-sided p-value of the count, given the weeks before' }),
  first_seen: Timestamp,
  last_seen: Timestamp,
  links: Links,
})

const ForecastSchema = Type.Object({
  hours: Type.Array(
    Type.Object({
      t: Timestamp,
      expected: Type.Number(),
      low: Type.Number(),
      high: Type.Number(),
    }),
    { description: 'the next 24; empty with less than four days to learn from' },
  ),
  coverage: OrNull(Share),
})

const ContributionSchema = Type.Object({
  name: Type.String(),
  text: OrNull(Type.String({ description: 'text of a template' })),
  before: Type.Number({ description: 'occurrences an hour in the span before' }),
  during: Type.Number({ description: 'occurrences an hour in its span' }),
  explains: Type.Number({ description: 'share of the change of the sum; 1 = all of it' }),
  share_before: Share,
  share_during: Share,
})

export const ExplanationSchema = Type.Object({
  from: Timestamp,
  to: Timestamp,
  before_from: Type.String({
    format: 'date-time',
    description: 'beginning of the span before, which is as long, but at least six hours',
  }),
  templates: Type.Array(ContributionSchema),
  sources: Type.Array(ContributionSchema, { description: 'empty for an anomaly of one source' }),
  hosts: Type.Array(ContributionSchema, {
    description: 'counted by source and severity; for a template, in its main severity',
  }),
})

const CorrelationSchema = Type.Object({
  anomaly_id: Type.String(),
  ...ExplanationSchema.properties,
  also_affected: Type.Array(Type.Object({ source: Type.String(), anomaly_id: Type.String() })),
})

const HealthSchema = Type.Object({
  score: Share,
  data_age_hours: Type.Number(),
  drift: Share,
  low_confidence: Share,
  corrections: Type.Integer(),
  agreement: OrNull(Share),
})

export const SnapshotSchema = Type.Object({
  generated_at: Timestamp,
  as_of: Timestamp,
  model_version: Type.String(),
  series: Type.Integer({ description: 'how many were analysed' }),
  anomaly_counts: Type.Object({ ongoing: Type.Integer(), over: Type.Integer() }),
  anomalies: Type.Array(AnomalySchema, { description: 'of the last five days, at most 200' }),
  emerging_templates: Type.Array(TemplateChangeSchema),
  forecast: Type.Object({
    level: Share,
    events: ForecastSchema,
    errors: ForecastSchema,
  }),
  correlations: Type.Array(CorrelationSchema),
  health: HealthSchema,
  learning: Type.Array(
    Type.Object({
      finds: literals(LEARNED),
      from: OrNull(
        Type.String({
          format: 'date-time',
          description:
            'when the oldest source has sent for long enough; null before the first event',
        }),
      ),
    }),
    {
      description:
        'what this run could not find yet; a source that is newer waits as long from its own first event. Empty when nothing waits',
    },
  ),
})

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
