import { Type } from '@sinclair/typebox'

import type { ComputedKpis } from '../../model/kpi.js'
import { Timestamp } from './event.js'
import { PrioritySchema } from '../../model/schemas.js'
import { Count, Percent } from './series.js'

const Trend = Type.Object(
  { '1h': Type.Number(), '24h': Type.Number() },
  {
    description:
      'per cent change against the period before; 100 when only the later period has occurrences',
  },
)
const Score = Type.Integer({ minimum: 0, maximum: 100 })

/** Body of `GET /api/kpis` and payload of the WebSocket's `kpi:snapshot`. */
export const KpiSnapshotSchema = Type.Unsafe<ComputedKpis>(
  Type.Object(
    {
      unique_events: Type.Integer({
        minimum: 0,
        description: 'stored events, after deduplication',
      }),
      total_occurrences: Type.Integer({
        minimum: 0,
        description: 'stored messages, repeats included',
      }),
      dedup_rate_pct: Percent,
      success_rate_pct: Type.Number({
        minimum: 0,
        maximum: 100,
        description:
          'stored occurrences per cent of stored occurrences and dead letters; 100 without either',
      }),
      dlq_count: Type.Integer({ minimum: 0, description: 'dead letters of the last 24 h' }),
      error_events: Type.Integer({ minimum: 0, description: 'occurrences of ERROR and CRITICAL' }),
      events_last_minute: Count,
      errors_last_minute: Count,
      events_last_5min: Count,
      events_per_second: Type.Number({
        minimum: 0,
        description: 'events of the last minute divided by 60',
      }),
      criticals_24h: Type.Integer({ minimum: 0, description: 'occurrences of CRITICAL' }),
      templates_known: Count,
      total_applications: Count,
      active_applications: Type.Integer({
        minimum: 0,
        description: 'applications with an occurrence of a linked source in the last 24 h',
      }),
      inactive_applications: Count,
      critical_applications: Type.Integer({
        minimum: 0,
        description: 'applications with a P1 occurrence in the last 24 h',
      }),
      open_alerts: Type.Integer({ minimum: 0, description: 'unread alerts' }),
      global_health_score: Type.Integer({
        minimum: 0,
        maximum: 100,
        description:
          '100 − 15·log10(1 + P1 occurrences of 24 h) − 40·share of dead letters in 24 h − 20·(1 − ML ' +
          'health) + 5·share of repeats, limited to 0..100. The shares leave P1 out, so more P1 never raise it. ' +
          'Without a value from the insight engine, ML health is the share of priorities with a confidence of at least 0.5.',
      }),
      top_critical_apps: Type.Array(
        Type.Object({
          name: Type.String(),
          critical_count: Type.Integer({ minimum: 0, description: 'P1 occurrences in 24 h' }),
          health_score: Score,
        }),
        { maxItems: 5 },
      ),
      recent_alerts: Type.Array(
        Type.Object({
          id: Type.String(),
          title: Type.String(),
          severity: PrioritySchema,
          created_at: Timestamp,
        }),
        { maxItems: 5 },
      ),
      top_unstable_apps: Type.Array(Type.Object({ name: Type.String(), error_rate_pct: Percent }), {
        maxItems: 5,
        description: 'the highest shares of ERROR and CRITICAL in 24 h',
      }),
      top_errors: Type.Array(
        Type.Object({ template_id: Type.String(), count: Count, template_text: Type.String() }),
        {
          maxItems: 5,
          description:
            'the templates with the most ERROR and CRITICAL in the hours of the last 24 h',
        },
      ),
      sparkline: Type.Array(Count, {
        minItems: 7,
        maxItems: 7,
        description:
          'occurrences of the last seven calendar minutes; the last one is the current minute',
      }),
      trends: Type.Object({ events: Trend, errors: Trend }),
      computed_at: Type.String({
        format: 'date-time',
        description: 'when the counts were read; they cover what was stored by then',
      }),
    },
    { title: 'KpiSnapshot' },
  ),
)
