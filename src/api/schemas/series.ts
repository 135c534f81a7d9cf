import { Type } from '@sinclair/typebox'

import { GRANULARITIES, WINDOWS, type Window } from '../../model/window.js'
import { Timestamp } from './event.js'
import { PrioritySchema, SeveritySchema } from '../../model/schemas.js'

const isWindow = (name: string): name is Window => Object.hasOwn(WINDOWS, name)

export const WindowSchema = Type.Union(
  Object.keys(WINDOWS)
    .filter(isWindow)
    .map((name) => Type.Literal(name)),
)
export const GranularitySchema = Type.Union(GRANULARITIES.map((name) => Type.Literal(name)))

export const Count = Type.Integer({ minimum: 0 })
export const Percent = Type.Number({ minimum: 0, maximum: 100 })

export const SourceFilter = Type.Optional(
  Type.Array(Type.String({ maxLength: 120 }), { maxItems: 1000 }),
)

export const TimeBucket = Type.Object(
  {
    t: Timestamp,
    DEBUG: Count,
    INFO: Count,
    WARNING: Count,
    ERROR: Count,
    CRITICAL: Count,
    P1: Count,
    P2: Count,
    P3: Count,
    P4: Count,
  },
  { title: 'TimeBucket', description: 'start and occurrences of a bucket' },
)

const TEMPLATE_FIELDS = {
  template_id: Type.String({ description: '16 hex digits' }),
  template_text: Type.String(),
  template: Type.String({ description: 'the same as template_text' }),
  source: Type.String({ description: 'each source has its own templates' }),
  first_seen: Timestamp,
  last_seen: Timestamp,
  occurrence_count: Count,
  severity: SeveritySchema,
  priority: PrioritySchema,
  confidence: Type.Number({ minimum: 0, maximum: 1 }),
  model_version: Type.String({ description: '`manual` after a correction' }),
}

export const TemplateSchema = Type.Object(TEMPLATE_FIELDS, { title: 'Template' })
export { TEMPLATE_FIELDS }
