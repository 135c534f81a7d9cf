/*
 * An alert rule: which events it counts, when it fires, and by what it groups them. A rule is stored in the form in which the
 * API takes it; its version grows with each change.
 */

import { Type, type Static } from '@sinclair/typebox'

import { PrioritySchema, SeveritySchema } from '../model/schemas.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../model/time.js'
import { allOf, EVERYTHING, type Query } from '../query/ast.js'
import { MAX_LINE, parseQuery } from '../query/parser.js'
import { DocumentOf, type Document } from '../records/documents.js'

const Duration = Type.String({
  pattern: '^[1-9][0-9]{0,5}[smhd]$',
  maxLength: 7,
  description: 'a number and s, m, h or d',
  examples: ['5m'],
})
const Delay = Type.String({ ...Duration, pattern: '^(0|[1-9][0-9]{0,5})[smhd]$' })

const Line = Type.Number({ minimum: -1e15, maximum: 1e15 })
const Share = Type.Number({ minimum: 0, maximum: 1 })
const AtLeast = Type.Integer({ minimum: 1, maximum: 1_000_000_000 })
const Op = Type.Union([
  Type.Literal('>'),
  Type.Literal('>='),
  Type.Literal('<'),
  Type.Literal('<='),
])
const closed = { additionalProperties: false }

const Window = Type.String({
  ...Duration,
  description: 'how far each evaluation looks back; 10s to 24h, a multiple of `every`',
})
const Fire = Type.Number({ ...Line, description: 'fires beyond this line' })
const Recover = Type.Optional(
  Type.Number({
    ...Line,
    description: 'recovers on the other side of this line; default: the line of `fire`',
  }),
)

const Kind = Type.Union([
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
      for: Type.String({ ...Duration, description: 'for how long; 10s to 24h' }),
      known: Type.Optional(
        Type.String({
          ...Duration,
          description: 'of groups that were seen within this time, up to 24h; default 24h',
        }),
      ),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('change', {
        description: 'the count of a window beside the one before it',
      }),
      window: Window,
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
      type: Type.Literal('new_template', {
        description: 'a template whose first event is less than an hour old',
      }),
      min_severity: Type.Optional(SeveritySchema),
      window: Window,
      at_least: Type.Optional(Type.Integer({ ...AtLeast, description: 'occurrences; default 1' })),
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

const GROUP_FIELDS = ['source', 'host', 'template', 'environment', 'severity'] as const

/** What a user sets of a rule. */
export const RuleFields = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 120, pattern: '\\S' }),
    enabled: Type.Optional(Type.Boolean({ description: 'default true' })),
    severity: PrioritySchema,
    owner: Type.Optional(Type.String({ maxLength: 200 })),
    runbook: Type.Optional(
      Type.String({
        maxLength: 2_000,
        pattern: '^https?://',
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
          description: `${GROUP_FIELDS.join(', ')} or the name of an attribute`,
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
    every: Type.Optional(
      Type.String({
        ...Duration,
        description:
          'the time between two evaluations, 1s to 10m; default 10s, for long windows more',
      }),
    ),
    notify: Type.Optional(
      Type.Object(
        {
          channels: Type.Array(
            Type.String({
              pattern: '^[0-9a-f]{8}-[0-9a-f-]{27}$',
              maxLength: 36,
              examples: ['3f1c9a52-7f0e-4a51-9a7e-2f6f0b8f4c11'],
            }),
            {
              maxItems: 10,
              uniqueItems: true,
            },
          ),
          on_resolve: Type.Optional(Type.Boolean({ description: 'default true' })),
          group_wait: Type.Optional(
            Type.String({
              ...Delay,
              description:
                'how long the first notice waits for those of other groups; up to 1h, default 10s',
            }),
          ),
          group_interval: Type.Optional(
            Type.String({
              ...Delay,
              description: 'the least time between two messages of the rule; up to 1d, default 5m',
            }),
          ),
          repeat: Type.Optional(
            Type.Union([Duration, Type.Literal('never')], {
              description:
                'after which a channel is told again that an alert fires; from 1m to 30d, default 4h',
            }),
          ),
        },
        { ...closed, description: 'the channels that are told when a group fires and resolves' },
      ),
    ),
    for: Type.Optional(
      Type.String({
        ...Delay,
        description: 'fires only when the line was crossed for so long; default 0s',
      }),
    ),
    keep_firing_for: Type.Optional(
      Type.String({ ...Delay, description: 'resolves when it was calm for so long; default 5m' }),
    ),
    n_of_m: Type.Optional(
      Type.Tuple(
        [Type.Integer({ minimum: 1, maximum: 20 }), Type.Integer({ minimum: 1, maximum: 20 })],
        {
          description:
            'the line counts as crossed when n of the last m evaluations crossed it; default [1, 1]',
        },
      ),
    ),
  },
  { additionalProperties: false, title: 'AlertRuleFields' },
)
export type RuleFields = Static<typeof RuleFields>

/** A rule as it is stored. */
export const RuleDoc = DocumentOf(RuleFields)
export type Rule = Document<RuleFields>

/** A count that a rule needs. */
export type Counter =
  | { readonly kind: 'events'; readonly query: Query; readonly of: 'occurrences' | 'events' }
  | { readonly kind: 'dead letters' }

/** A rule that can be evaluated: its times in ms, its queries parsed. */
export interface Plan {
  readonly rule: Rule
  readonly counters: readonly Counter[]
  readonly groupBy: readonly string[]
  readonly maxGroups: number
  readonly everyMs: number
  readonly windowMs: number
  /** How much of the past an evaluation reads. */
  readonly spanMs: number
  readonly forMs: number
  readonly keepFiringMs: number
  readonly nOfM: readonly [n: number, m: number]
  readonly notify: {
    readonly waitMs: number
    readonly intervalMs: number
    /** 0 for never. */
    readonly repeatMs: number
  }
}

const DEFAULT_EVERY_MS = 10 * SECOND_MS
const MAX_WINDOW_MS = DAY_MS
const MIN_WINDOW_MS = 10 * SECOND_MS
const MAX_EVERY_MS = 10 * MINUTE_MS
/** Slots of a window. */
const MAX_SLOTS = 1_440
const UNITS_MS = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS } as const

function toMs(duration: string): number {
  const unit = UNITS_MS[duration.slice(-1) as keyof typeof UNITS_MS] // its pattern was checked
  return Number(duration.slice(0, -1)) * unit
}

/** What is wrong with a field of a rule. */
export interface RuleFault {
  readonly path: string
  readonly message: string
}

/** @returns the plan, or what is wrong with the rule */
export function planRule(rule: Rule): Plan | RuleFault {
  const { fields } = rule
  const query = readLine('q', fields.q ?? '')
  if ('path' in query) return query
  const counters = countersOf(fields, query.query)
  if ('path' in counters) return counters
  const isNew = fields.kind.type === 'new_template'
  const plan = {
    rule,
    counters,
    groupBy: isNew ? ['template'] : (fields.group_by ?? []),
    maxGroups: fields.max_groups ?? 500,
    ...timesOf(fields),
    notify: notifyOf(fields),
  }
  return everyFault(plan) ?? notifyFault(plan) ?? spanFault(plan) ?? groupFault(fields) ?? plan
}

function timesOf(fields: RuleFields) {
  const { kind, every, for: pending = '0s', keep_firing_for: keep = '5m' } = fields
  const windowMs = toMs(kind.type === 'absence' ? kind.for : kind.window)
  const everyMs = every === undefined ? everyFor(windowMs) : toMs(every)
  const [n, m] = fields.n_of_m ?? [1, 1]
  const spanMs = spanOf(fields, windowMs) + (m - 1) * everyMs
  const nOfM = [n, m] as const
  return { windowMs, everyMs, spanMs, forMs: toMs(pending), keepFiringMs: toMs(keep), nOfM }
}

function notifyOf({ notify }: RuleFields): Plan['notify'] {
  const { group_wait: wait = '10s', group_interval: interval = '5m', repeat = '4h' } = notify ?? {}
  const repeatMs = repeat === 'never' ? 0 : toMs(repeat)
  return { waitMs: toMs(wait), intervalMs: toMs(interval), repeatMs }
}

function notifyFault({ notify }: Plan): RuleFault | null {
  const { waitMs, intervalMs, repeatMs } = notify
  if (waitMs > HOUR_MS) return { path: 'notify/group_wait', message: 'is at most 1h' }
  if (intervalMs > DAY_MS) return { path: 'notify/group_interval', message: 'is at most 1d' }
  if (repeatMs > 0 && (repeatMs < MINUTE_MS || repeatMs > 30 * DAY_MS))
    return { path: 'notify/repeat', message: 'is from 1m to 30d, or `never`' }
  return null
}

function spanOf({ kind }: RuleFields, windowMs: number): number {
  if (kind.type === 'change') return 2 * windowMs
  return kind.type === 'absence' ? toMs(kind.known ?? '24h') : windowMs
}

const everyFor = (windowMs: number): number =>
  windowMs > MAX_SLOTS * DEFAULT_EVERY_MS ? MINUTE_MS : DEFAULT_EVERY_MS

const windowPath = ({ rule: { fields } }: Plan): string =>
  fields.kind.type === 'absence' ? 'kind/for' : 'kind/window'

function everyFault(plan: Plan): RuleFault | null {
  const { everyMs, windowMs, nOfM } = plan
  const path = windowPath(plan)
  if (everyMs > MAX_EVERY_MS) return { path: 'every', message: 'is at most 10m' }
  if (windowMs % everyMs !== 0) return { path, message: 'must be a multiple of `every`' }
  if (windowMs / everyMs > MAX_SLOTS)
    return { path, message: `is at most ${MAX_SLOTS} times \`every\`` }
  return nOfM[0] > nOfM[1] ? { path: 'n_of_m', message: 'n is at most m' } : null
}

function spanFault(plan: Plan): RuleFault | null {
  const { windowMs, rule } = plan
  const { kind } = rule.fields
  const path = windowPath(plan)
  const spanMs = spanOf(rule.fields, windowMs)
  if (windowMs < MIN_WINDOW_MS || windowMs > MAX_WINDOW_MS)
    return { path, message: 'is from 10s to 24h' }
  if (kind.type === 'absence' && (spanMs > MAX_WINDOW_MS || spanMs < windowMs))
    return { path: 'kind/known', message: 'is from `for` to 24h' }
  return spanMs > MAX_WINDOW_MS ? { path, message: 'is at most 12h' } : null
}

function groupFault({ kind, group_by: groupBy = [] }: RuleFields): RuleFault | null {
  const isDead = kind.type === 'dead_letters'
  if (isDead && groupBy.some((name) => name !== 'source'))
    return { path: 'group_by', message: 'dead letters are grouped by source alone' }
  if (kind.type === 'new_template' && groupBy.length > 0)
    return { path: 'group_by', message: 'new templates are grouped by template' }
  return null
}

function countersOf(fields: RuleFields, query: Query): readonly Counter[] | RuleFault {
  const { kind } = fields
  const counting = (of: Query, what: 'occurrences' | 'events' = 'occurrences'): Counter => ({
    kind: 'events',
    query: of,
    of: what,
  })
  switch (kind.type) {
    case 'threshold':
      return [counting(query, kind.of)]
    case 'absence':
    case 'change':
      return [counting(query)]
    case 'ratio': {
      const part = readLine('kind/part', kind.part)
      if ('path' in part) return part
      return [counting(allOf([query, part.query])), counting(query)]
    }
    case 'new_template': {
      const least = kind.min_severity?.toLowerCase() ?? 'debug'
      const found = readLine('kind/min_severity', `severity>=${least} new:1h`)
      return 'path' in found ? found : [counting(allOf([query, found.query]))]
    }
    case 'dead_letters':
      return [{ kind: 'dead letters' }, counting(EVERYTHING)]
  }
}

function readLine(path: string, line: string): { readonly query: Query } | RuleFault {
  const parsed = parseQuery(line)
  if (parsed.fault !== null) return { path, message: parsed.fault.message }
  if (parsed.loneRegex !== null) return { path, message: parsed.loneRegex.message }
  if (names(parsed.query, 'count'))
    return { path, message: 'counts occurrences already: `count` cannot be asked' }
  return { query: parsed.query }
}

const names = (query: Query, name: string): boolean =>
  'nodes' in query
    ? query.nodes.some((node) => names(node, name))
    : query.kind === 'not'
      ? names(query.node, name)
      : 'field' in query && query.field.kind === 'builtin' && query.field.name === name
