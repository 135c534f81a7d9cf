import { Type } from '@sinclair/typebox'

import {
  ANOMALY_KINDS,
  ANOMALY_SCOPES,
  ANOMALY_STATES,
  LEARNED,
  TEMPLATE_CHANGES,
} from '../../model/insights.js'
import { SeveritySchema } from '../../model/schemas.js'
import { Timestamp } from './event.js'

const literals = <T extends string>(values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))
const OrNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()])
const Share = Type.Number({ minimum: 0, maximum: 1 })
export const Links = Type.Object(
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
  gravity: Type.Number({
    description:
      'how important it is: the score times factors for severity and size; with its group it decides on an alert',
  }),
  part_of: OrNull(
    Type.String({
      description:
        'id of the anomaly that leads its group: a wider one, or the gravest of templates of its source that coincide',
    }),
  ),
  links: Links,
})

export const TemplateChangeSchema = Type.Object({
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

export const ForecastSchema = Type.Object({
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

export const ContributionSchema = Type.Object({
  name: Type.String(),
  text: OrNull(Type.String({ description: 'text of a template' })),
  before: Type.Number({ description: 'occurrences an hour in the hours that it is compared with' }),
  during: Type.Number({ description: 'occurrences an hour during the anomaly or time range' }),
  explains: Type.Number({ description: 'share of the whole change; 1 = all of it' }),
  share_before: Share,
  share_during: Share,
  has_more_errors: Type.Boolean({
    description:
      'only of a time range: the share of errors is notably higher than before; such ones are listed first',
  }),
})

export const ExplanationSchema = Type.Object({
  from: Timestamp,
  to: Timestamp,
  before_from: Type.String({
    format: 'date-time',
    description:
      'the first of the hours that it is compared with: the same hours of three weeks, for a new source of six days, or the hours before',
  }),
  templates: Type.Array(ContributionSchema),
  sources: Type.Array(ContributionSchema, { description: 'empty for an anomaly of one source' }),
  hosts: Type.Array(ContributionSchema, {
    description: 'counted by source and severity; for a template, in its main severity',
  }),
})

export const CorrelationSchema = Type.Object({
  anomaly_id: Type.String(),
  ...ExplanationSchema.properties,
  also_affected: Type.Array(Type.Object({ source: Type.String(), anomaly_id: Type.String() })),
})

export const HealthSchema = Type.Object({
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
