import { Type } from '@sinclair/typebox'

import { RETENTION_CLASSES, type RetentionClass } from '../../model/retention.js'
import { nameOf } from '../../model/schemas.js'
import { Timestamp } from './event.js'

const NO_CONTROL = '^[^\\u0000-\\u001f\\u007f]*$'

export const SourceName = Type.String({
  minLength: 1,
  maxLength: 120,
  pattern: NO_CONTROL,
  description: 'the name of a source, without control characters',
})
/** The source names that ingest accepts. */
export const NewSourceName = nameOf(120)
export const SourceTypeSchema = Type.Union([
  Type.Literal('push'),
  Type.Literal('webhook'),
  Type.Literal('poll'),
  Type.Literal('file'),
])
export const Connector = Type.String({
  pattern: '^[a-z0-9][a-z0-9-]{0,63}$',
  maxLength: 64,
  description: 'lower-case letters, digits and -',
  examples: ['custom', 'jira', 'prometheus', 'azure-devops'],
})
export const Uuid = Type.String({ format: 'uuid' })

/** Days of retention; null for the default. */
export const RetentionDays = Type.Unsafe<RetentionClass | null>({
  type: ['integer', 'null'],
  enum: [...RETENTION_CLASSES, null],
  description:
    'days after arrival when its events are dropped, at most RETENTION_DAYS; null: as the application of a source, ' +
    'then RETENTION_DAYS_BY_SEVERITY, then RETENTION_DAYS say. A change holds for what is stored within a day.',
  examples: [30],
})
/** Stored days may belong to a class that no longer exists. */
const StoredRetentionDays = Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
  description: 'days after arrival when its events are dropped; null: it has none of its own',
})

export const SourceSchema = Type.Object(
  {
    name: SourceName,
    type: SourceTypeSchema,
    connector: Connector,
    status: Type.Union(
      [
        Type.Literal('disabled'),
        Type.Literal('pending'),
        Type.Literal('active'),
        Type.Literal('stale'),
      ],
      {
        description:
          'disabled: ingestion is off; pending: no event yet; active: an event in the last 24 h; else stale',
      },
    ),
    enabled: Type.Boolean(),
    application_id: Type.Union([Uuid, Type.Null()]),
    retention_days: StoredRetentionDays,
    last_event_at: Type.Union([Timestamp, Type.Null()]),
    dead_letters_24h: Type.Integer({
      minimum: 0,
      description: 'its messages of the last 24 h that could not be stored',
    }),
  },
  { title: 'Source' },
)

export const ApplicationSchema = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    environment: Type.String(),
    hosts: Type.Array(Type.String()),
    retention_days: StoredRetentionDays,
    sources: Type.Array(Type.String(), { description: 'names of the linked sources' }),
    unique_events: Type.Integer({ minimum: 0, description: 'over all linked sources' }),
  },
  { title: 'Application' },
)
