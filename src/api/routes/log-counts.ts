import { Type, type Static } from '@sinclair/typebox'

import type { Histogram } from '../../events/histogram.js'
import type { EventQuestion } from '../../events/occurrences.js'
import { NUMBER_FUNCTIONS, isNumberFunction } from '../../events/number-functions.js'
import type { Metric } from '../../events/stats.js'
import { readName } from '../../query/fields.js'
import {
  EVENT_PARAMETERS,
  FieldName,
  answered,
  fieldNames,
  invalid,
  readEventQuestion,
  readField,
} from '../event-question.js'
import { route, type Caller } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { Count } from '../schemas/series.js'
import type { Services } from '../services.js'

const WHAT_COUNTS =
  'An occurrence counts in the range and bucket of its own time, to the second; an event is in the range when one of its ' +
  'occurrences is. Nothing is sampled. For the same parameters `total` is the same here, in the histogram, the facets, the `count` ' +
  'of the stats, and as the sum of `occurrence_count` over all pages of the list.'

const CompleteFrom = Type.Unsafe<Static<typeof Timestamp>>({
  ...Timestamp,
  description:
    'the counts are of the time from here on. It is later than the start of the range only when all of it would have taken ' +
    'too much time or memory.',
})

const ValueCount = Type.Object({ value: Type.String(), count: Count })

const HistogramReply = Type.Object(
  {
    start: Timestamp,
    end: Type.Unsafe<Static<typeof Timestamp>>({ ...Timestamp, description: 'exclusive' }),
    step_s: Type.Integer({ minimum: 1 }),
    total: Count,
    unique_events: Type.Integer({
      minimum: 0,
      description: 'events in the range, as many as the list has',
    }),
    by: Type.Union([Type.String(), Type.Null()]),
    values: Type.Array(ValueCount, {
      description:
        'the most frequent values of the whole range; events without a value are in `total` alone',
    }),
    buckets: Type.Array(
      Type.Object({
        t: Timestamp,
        total: Count,
        values: Type.Record(Type.String(), Count, {
          description: 'the counts of `values`, without zeros',
        }),
      }),
      { description: 'ascending, empty ones too' },
    ),
    answered_from: Type.Union([Type.Literal('rollup'), Type.Literal('events')]),
    complete_from: CompleteFrom,
  },
  { title: 'Histogram' },
)

const HistogramQuery = Type.Object({
  ...EVENT_PARAMETERS,
  buckets: Type.Integer({ minimum: 1, maximum: 300, default: 60, description: 'the most buckets' }),
  by: Type.Optional(
    Type.String({
      ...FieldName,
      description:
        'severity, priority, type, source, application, environment, host, template, trace, span, or an attribute (`http.status`)',
      examples: ['severity'],
    }),
  ),
  top: Type.Integer({
    minimum: 1,
    maximum: 50,
    default: 5,
    description: 'values that are counted apart',
  }),
  count: Type.Union([Type.Literal('occurrences'), Type.Literal('events')], {
    default: 'occurrences',
    description: '`events` counts each event once, where it began',
  }),
})

const FIELDS =
  'severity, priority, type, source, application, environment, host, template, trace, span, or an attribute (`http.status`)'

const FacetsQuery = Type.Object({
  ...EVENT_PARAMETERS,
  fields: Type.Array(FieldName, {
    minItems: 1,
    maxItems: 10,
    default: ['severity', 'priority', 'source', 'host'],
    description: `each ${FIELDS}`,
  }),
  top: Type.Integer({
    minimum: 1,
    maximum: 1000,
    default: 10,
    description: 'values of each field',
  }),
})

const FacetsReply = Type.Object(
  {
    total: Count,
    facets: Type.Array(
      Type.Object({
        field: Type.String(),
        distinct: Type.Integer({ minimum: 0, description: 'how many values there are' }),
        values: Type.Array(ValueCount, { description: 'the most frequent first' }),
      }),
    ),
    complete_from: CompleteFrom,
  },
  { title: 'Facets' },
)

const METRIC = new RegExp(`^(${['distinct', ...NUMBER_FUNCTIONS].join('|')})\\((.+)\\)$`, 'i')

const StatsQuery = Type.Object({
  ...EVENT_PARAMETERS,
  by: Type.Array(FieldName, { maxItems: 3, default: [], description: `each ${FIELDS}` }),
  metrics: Type.Array(Type.String({ minLength: 1, maxLength: 150 }), {
    minItems: 1,
    maxItems: 10,
    default: ['count'],
    description:
      '`count` (occurrences), `distinct(FIELD)`, and of the numbers of an attribute ' +
      NUMBER_FUNCTIONS.map((name) => `\`${name}(…)\``).join(', '),
    examples: [['count', 'p95(duration_ms)']],
  }),
  step: Type.Optional(
    Type.String({
      pattern: '^[1-9][0-9]{0,8}[smhd]$',
      maxLength: 10,
      description: 'a number of s, m, h or d: each group also has a series; at most 300 steps',
      examples: ['3h'],
    }),
  ),
  top: Type.Integer({
    minimum: 1,
    maximum: 1000,
    default: 10,
    description: 'groups; at most 100 with a step',
  }),
})

const MetricValues = Type.Record(Type.String(), Type.Union([Type.Number(), Type.Null()]), {
  description: 'by metric; null where nothing has a number',
})

const StatsReply = Type.Object(
  {
    groups: Type.Array(
      Type.Object({
        by: Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]), {
          description: 'by field; null where the events have no value',
        }),
        values: MetricValues,
        series: Type.Optional(
          Type.Array(Type.Object({ t: Timestamp, values: MetricValues }), {
            description: 'ascending, without empty steps; with `step` only',
          }),
        ),
      }),
      { description: 'by the first metric, descending' },
    ),
    group_count: Type.Integer({ minimum: 0, description: 'how many groups there are' }),
    complete_from: CompleteFrom,
  },
  { title: 'Stats' },
)

interface Asking {
  readonly principal: Caller
  readonly signal: AbortSignal
}

const toTime = (ms: number): string => new Date(ms).toISOString()

async function histogram(
  { buckets, by, top, count, ...filters }: Static<typeof HistogramQuery>,
  { events, eventContext }: Services,
  { principal, signal }: Asking,
): Promise<Static<typeof HistogramReply>> {
  const question = readEventQuestion(filters, eventContext, principal.sources)
  const field = by === undefined ? null : readField(by, 'by')
  const names = fieldNames(eventContext)
  const asked = { question, buckets, field, top, counted: count, names }
  const { answer, completeFromMs } = await answered(events.histogram(asked, signal), {
    q: filters.q,
    events,
  })
  return {
    start: toTime(answer.startMs),
    end: toTime(answer.endMs),
    step_s: answer.stepS,
    total: answer.total,
    unique_events: answer.uniqueEvents,
    by: by ?? null,
    values: answer.values.map((value, i) => ({
      value,
      count: answer.buckets.reduce((sum, { counts }) => sum + (counts[i] ?? 0), 0),
    })),
    buckets: answer.buckets.map((bucket) => toBucket(bucket, answer.values)),
    answered_from: answer.answeredFrom,
    complete_from: toTime(completeFromMs),
  }
}

const toBucket = (
  { startS, total, counts }: Histogram['buckets'][number],
  values: readonly string[],
) => ({
  t: toTime(startS * 1000),
  total,
  values: Object.fromEntries(
    values.map((value, i) => [value, counts[i] ?? 0] as const).filter(([, n]) => n !== 0),
  ),
})

async function facets(
  { fields, top, ...filters }: Static<typeof FacetsQuery>,
  { events, eventContext }: Services,
  { principal, signal }: Asking,
): Promise<Static<typeof FacetsReply>> {
  const question = readEventQuestion(filters, eventContext, principal.sources)
  const names = fieldNames(eventContext)
  const asked = { question, fields: fields.map((name) => readField(name, 'fields')), top, names }
  const { answer, completeFromMs } = await answered(events.facets(asked, signal), {
    q: filters.q,
    events,
  })
  return {
    total: answer.total,
    facets: answer.facets.map(({ distinct, values }, i) => ({
      field: fields[i] ?? '',
      distinct,
      values: values.map(({ value, count }) => ({ value, count })),
    })),
    complete_from: toTime(completeFromMs),
  }
}

function readMetric(text: string): Metric {
  if (text.toLowerCase() === 'count') return { kind: 'count' }
  const [, name = '', argument = ''] = METRIC.exec(text) ?? []
  const of = name.toLowerCase()
  if (of === 'distinct') return { kind: 'distinct', field: readField(argument, 'metrics') }
  const field = readName(argument)
  if (isNumberFunction(of) && field?.kind === 'attribute')
    return { kind: 'number', of, attribute: field.name }
  const functions = NUMBER_FUNCTIONS.join(', ')
  throw invalid('metrics', {
    message: `must be count, distinct(FIELD), or one of ${functions} of an attribute, as in avg(duration_ms)`,
  })
}

const MAX_STEPS = 300
const MAX_SERIES = 100
const UNIT_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** @returns seconds; 0 without a step */
function readStep(
  { step, top }: { readonly step: string | undefined; readonly top: number },
  { fromMs, toMs }: EventQuestion,
): number {
  if (step === undefined) return 0
  const stepS = Number(step.slice(0, -1)) * (UNIT_S[step.slice(-1)] ?? 1)
  const steps = ((toMs ?? Date.now()) - fromMs) / 1000 / stepS
  if (steps > MAX_STEPS)
    throw invalid('step', { message: `must be longer: the time range has more than ${MAX_STEPS}` })
  if (top > MAX_SERIES) throw invalid('top', { message: `must be <= ${MAX_SERIES} with a step` })
  return stepS
}

async function stats(
  { by, metrics, step, top, ...filters }: Static<typeof StatsQuery>,
  { events, eventContext }: Services,
  { principal, signal }: Asking,
): Promise<Static<typeof StatsReply>> {
  const question = readEventQuestion(filters, eventContext, principal.sources)
  const asked = {
    question,
    by: by.map((name) => readField(name, 'by')),
    metrics: metrics.map(readMetric),
    stepS: readStep({ step, top }, question),
    top,
    names: fieldNames(eventContext),
  }
  const { answer, completeFromMs } = await answered(events.stats(asked, signal), {
    q: filters.q,
    events,
  })
  const named = (values: readonly (number | null)[]) =>
    Object.fromEntries(metrics.map((metric, i) => [metric, values[i] ?? null]))
  return {
    groups: answer.groups.map(({ keys, values, series }) => ({
      by: Object.fromEntries(
        by.map((name, i) => [name, keys[i] === '' ? null : (keys[i] ?? null)]),
      ),
      values: named(values),
      ...(step === undefined
        ? {}
        : {
            series: series.map((one) => ({
              t: toTime(one.startS * 1000),
              values: named(one.values),
            })),
          }),
    })),
    group_count: answer.groupCount,
    complete_from: toTime(completeFromMs),
  }
}

const COUNTING = {
  method: 'get',
  tag: 'logs',
  role: 'viewer',
  question: 'search',
  tokens: 'limited',
  errors: ['dependency_unavailable'],
} as const

export const logCountRoutes = [
  route({
    ...COUNTING,
    id: 'histogram',
    path: '/api/logs/histogram',
    summary: 'Occurrences or events of a query over time, by the values of a field',
    description:
      `${WHAT_COUNTS} The step is the smallest round one that gives at most so many buckets; they begin at multiples of it (UTC). ` +
      'Without `end_time` the range ends now, or at the latest event when clocks of producers are ahead.',
    query: HistogramQuery,
    reply: HistogramReply,
    examples: {
      reply: {
        start: '2026-11-21T09:00:00.000Z',
        end: '2026-11-21T10:00:00.001Z',
        step_s: 1800,
        total: 42,
        unique_events: 31,
        by: 'severity',
        values: [
          { value: 'ERROR', count: 40 },
          { value: 'WARNING', count: 2 },
        ],
        buckets: [
          { t: '2026-11-21T09:00:00.000Z', total: 2, values: { WARNING: 2 } },
          { t: '2026-11-21T09:30:00.000Z', total: 40, values: { ERROR: 40 } },
          { t: '2026-11-21T10:00:00.000Z', total: 0, values: {} },
        ],
        answered_from: 'rollup',
        complete_from: '2026-11-21T09:00:00.000Z',
      },
    },
    handle: ({ query, principal, signal }, services) =>
      histogram(query, services, { principal, signal }),
  }),
  route({
    ...COUNTING,
    id: 'facets',
    path: '/api/logs/facets',
    summary: 'The most frequent values of fields among the occurrences of a query',
    description: `${WHAT_COUNTS} What has no value of a field is in \`total\` alone.`,
    query: FacetsQuery,
    reply: FacetsReply,
    examples: {
      reply: {
        total: 42,
        facets: [
          {
            field: 'host',
            distinct: 2,
            values: [
              { value: 'web-1', count: 40 },
              { value: 'web-2', count: 1 },
            ],
          },
        ],
        complete_from: '2026-11-21T09:00:00.000Z',
      },
    },
    handle: ({ query, principal, signal }, services) =>
      facets(query, services, { principal, signal }),
  }),
  route({
    ...COUNTING,
    id: 'stats',
    path: '/api/logs/stats',
    summary: 'Metrics of the occurrences of a query, by groups and over time',
    description:
      `${WHAT_COUNTS} A value of an event counts once for each of its occurrences. All metrics are exact: \`p95(x)\` is the smallest ` +
      'value of x that at least 95 % of the occurrences do not exceed.',
    query: StatsQuery,
    reply: StatsReply,
    examples: {
      reply: {
        groups: [
          {
            by: { host: 'web-1' },
            values: { count: 40, 'p95(duration_ms)': 812.5 },
            series: [
              {
                t: '2026-11-21T09:00:00.000Z',
                values: { count: 40, 'p95(duration_ms)': 812.5 },
              },
            ],
          },
        ],
        group_count: 2,
        complete_from: '2026-11-21T09:00:00.000Z',
      },
    },
    handle: ({ query, principal, signal }, services) =>
      stats(query, services, { principal, signal }),
  }),
]
