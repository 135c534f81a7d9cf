/* The kinds of alert rules, and the notation of durations. */

import { Type, type Static } from '@sinclair/typebox'

import { NUMBER_FUNCTIONS } from '../events/number-functions.js'
import { ANOMALY_KINDS } from '../model/insights.js'
import { SeveritySchema } from '../model/schemas.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../model/time.js'
import { MAX_LINE } from '../query/parser.js'

export const Duration = Type.String({
  pattern: '^[1-9][0-9]{0,5}[smhd]$',
  maxLength: 7,
  description: 'a number and s, m, h or d',
  examples: ['5m'],
})
const Delay = Type.String({ ...Duration, pattern: '^(0|[1-9][0-9]{0,5})[smhd]$' })
/** The schema of a duration; the description is the error message for a wrong value. */
export const durationOf = (says: string) =>
  Type.String({ ...Duration, description: `${Duration.description}: ${says}` })
export const delayOf = (says: string) =>
  Type.String({ ...Delay, description: `${Duration.description}: ${says}` })

const ThresholdNumber = Type.Number({ minimum: -1e15, maximum: 1e15 })
const Share = Type.Number({ minimum: 0, maximum: 1 })
const AtLeast = Type.Integer({ minimum: 1, maximum: 1_000_000_000 })
const Op = Type.Union([
  Type.Literal('>'),
  Type.Literal('>='),
  Type.Literal('<'),
  Type.Literal('<='),
])
export const closed = { additionalProperties: false }

const LOOKS_BACK = 'how far each evaluation looks back; 10s to 24h, a multiple of `every`'
const Window = durationOf(LOOKS_BACK)
const Fire = Type.Number({ ...ThresholdNumber, description: 'fires beyond this threshold' })
const Recover = Type.Optional(
  Type.Number({
    ...ThresholdNumber,
    description: 'recovers on the other side of this threshold; default: that of `fire`',
  }),
)

export const Kind = Type.Union([
  Type.Object(
    {
      type: Type.Literal('threshold', { description: 'a count' }),
      of: Type.Optional(
        Type.Union([Type.Literal('occurrences'), Type.Literal('events')], {
          description: 'occurrences (the default) count repeats of an event, events do not',
        }),
      ),
      window: Window,
      op: Op,
      fire: Fire,
      recover: Recover,
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('ratio', { description: 'the share of `q` that also matches `part`' }),
      part: Type.String({ minLength: 1, maxLength: MAX_LINE }),
      window: Window,
      op: Op,
      fire: Fire,
      recover: Recover,
      at_least: Type.Optional(
        Type.Integer({
          ...AtLeast,
          description: 'with fewer matches of `q` it is calm; default 1',
        }),
      ),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('absence', { description: 'nothing arrives any more' }),
      for: durationOf('for how long; 10s to 24h'),
      known: Type.Optional(
        durationOf('of groups that were seen within this time, up to 7d; default 7d'),
      ),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('change', {
        description: 'the count of a window beside an earlier one',
      }),
      window: Window,
      against: Type.Optional(
        Type.Union([Type.Literal('before'), Type.Literal('day'), Type.Literal('week')], {
          description:
            'the window before (the default), or the same one of a day or a week ago, which is queried at each evaluation',
        }),
      ),
      factor: Type.Number({
        exclusiveMinimum: 1,
        maximum: 1_000_000,
        description: 'fires at this many times the count before, or at its inverse',
      }),
      at_least: Type.Optional(
        Type.Integer({
          ...AtLeast,
          description: 'with fewer in both windows it is calm; default 10',
        }),
      ),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('value', { description: 'a metric of an attribute over the window' }),
      metric: Type.String({
        maxLength: 200,
        description: `${NUMBER_FUNCTIONS.join(', ')} of an attribute`,
        examples: ['p95(duration_ms)'],
      }),
      window: Window,
      op: Op,
      fire: Fire,
      recover: Recover,
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('new_template', {
        description: 'a template whose first event is less than an hour old',
      }),
      min_severity: Type.Optional(SeveritySchema),
      also_reappeared_after: Type.Optional(
        durationOf(
          'also one that comes again after it was not seen for so long, 1h to 30d; by whole hours',
        ),
      ),
      window: Type.Optional(durationOf(`${LOOKS_BACK}; default 15m`)),
      at_least: Type.Optional(Type.Integer({ ...AtLeast, description: 'occurrences; default 1' })),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('anomaly', {
        description: 'an anomaly of the insight runs; `q` may name source, severity and template',
      }),
      min_score: Type.Optional(
        Type.Number({ minimum: 1, maximum: 150, description: 'its least `gravity`; default 10' }),
      ),
      kinds: Type.Optional(
        Type.Array(Type.Union(ANOMALY_KINDS.map((kind) => Type.Literal(kind))), {
          minItems: 1,
          maxItems: ANOMALY_KINDS.length,
          uniqueItems: true,
          description: 'default: all',
        }),
      ),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('dead_letters', {
        description: 'the share of rejected records among all; `q` is not used',
      }),
      window: Window,
      share: Share,
      at_least: Type.Optional(Type.Integer({ ...AtLeast, description: 'records; default 100' })),
    },
    closed,
  ),
])
export type Kind = Static<typeof Kind>

const UNITS_MS = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS } as const

export function toMs(duration: string): number {
  const unit = UNITS_MS[duration.slice(-1) as keyof typeof UNITS_MS] // its pattern was checked
  return Number(duration.slice(0, -1)) * unit
}
