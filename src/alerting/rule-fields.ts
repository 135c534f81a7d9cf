/* The user's settings of an alert rule, in the form of the API, of exports and of storage. */

import { Type, type Static } from '@sinclair/typebox'

import { nameOf, PrioritySchema } from '../model/schemas.js'
import { MAX_LINE } from '../query/parser.js'
import { closed, delayOf, Duration, durationOf, Kind } from './rule-kind.js'

/** The built-in fields of the query language that a rule may group by. */
export const GROUP_FIELDS: readonly string[] = [
  'source',
  'host',
  'template',
  'environment',
  'severity',
]

export const RuleFields = Type.Object(
  {
    name: nameOf(120),
    enabled: Type.Optional(Type.Boolean({ description: 'default true' })),
    severity: PrioritySchema,
    owner: Type.Optional(Type.String({ maxLength: 200 })),
    runbook: Type.Optional(
      Type.String({
        maxLength: 2_000,
        pattern: '^https?://',
        description: 'an http or https URL, which notices have',
        examples: ['https://wiki.example.com/runbooks/checkout'],
      }),
    ),
    note: Type.Optional(Type.String({ maxLength: 2_000 })),
    q: Type.Optional(
      Type.String({
        maxLength: MAX_LINE,
        description: 'a line of the query language; default: every event',
      }),
    ),
    kind: Kind,
    group_by: Type.Optional(
      Type.Array(
        Type.String({
          pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,99}$',
          maxLength: 100,
          description: `${GROUP_FIELDS.join(', ')} or the name of an attribute, with \`tag.\` before it where a field of the query language has it`,
        }),
        { maxItems: 3, uniqueItems: true },
      ),
    ),
    max_groups: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 500,
        description: 'further groups are left out; default 500',
      }),
    ),
    time: Type.Optional(
      Type.Union([Type.Literal('arrival'), Type.Literal('event')], {
        description:
          'the time by which messages are counted: arrival (the default), or their own, which is queried at each evaluation; ' +
          'for `threshold`, `ratio` and `change` against the window before',
      }),
    ),
    max_age: Type.Optional(
      durationOf(
        'messages that are older on arrival, such as those of an uploaded old file, do not count; up to 7d, default 1h',
      ),
    ),
    every: Type.Optional(
      durationOf('the time between two evaluations, 1s to 10m; default 10s, for long windows more'),
    ),
    notify: Type.Optional(
      Type.Object(
        {
          channels: Type.Array(
            Type.String({
              pattern: '^[0-9a-f]{8}-[0-9a-f-]{27}$',
              maxLength: 36,
              description: 'the id of a channel',
              examples: ['3f1c9a52-7f0e-4a51-9a7e-2f6f0b8f4c11'],
            }),
            {
              maxItems: 10,
              uniqueItems: true,
            },
          ),
          on_resolve: Type.Optional(Type.Boolean({ description: 'default true' })),
          group_wait: Type.Optional(
            delayOf(
              'how long the first notice waits for those of other groups; up to 1h, default 10s',
            ),
          ),
          group_interval: Type.Optional(
            delayOf('the least time between two messages of the rule; up to 1d, default 5m'),
          ),
          repeat: Type.Optional(
            Type.Union([Duration, Type.Literal('never')], {
              description:
                'after which a channel is notified again of a firing alert; from 1m to 30d, default 4h',
            }),
          ),
        },
        {
          ...closed,
          description: 'the channels that are notified when a group fires and when it resolves',
        },
      ),
    ),
    opens: Type.Optional(Type.Literal('incident', { description: 'each alert opens an incident' })),
    for: Type.Optional(
      delayOf('fires only when the threshold was crossed for so long; up to 7d, default 0s'),
    ),
    keep_firing_for: Type.Optional(
      delayOf('resolves when it was calm for so long; up to 7d, default 5m'),
    ),
    n_of_m: Type.Optional(
      Type.Tuple(
        [Type.Integer({ minimum: 1, maximum: 20 }), Type.Integer({ minimum: 1, maximum: 20 })],
        {
          description:
            'the threshold counts as crossed when n of the last m evaluations crossed it; default [1, 1]',
        },
      ),
    ),
  },
  { additionalProperties: false, title: 'AlertRuleFields' },
)
export type RuleFields = Static<typeof RuleFields>
