import { Type, type Static } from '@sinclair/typebox'

import type { Histogram } from '../../events/histogram.js'
import {
  EVENT_PARAMETERS,
  FieldName,
  answered,
  fieldNames,
  readEventQuestion,
  readField,
} from '../event-question.js'
import { route } from '../route.js'
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

const toTime = (ms: number): string => new Date(ms).toISOString()

async function histogram(
  { buckets, by, top, count, ...filters }: Static<typeof HistogramQuery>,
  { events, eventContext }: Services,
  signal: AbortSignal,
): Promise<Static<typeof HistogramReply>> {
  const question = readEventQuestion(filters, eventContext)
  const field = by === undefined ? null : readField(by, 'by')
  const names = fieldNames(eventContext)
  const asked = { question, buckets, field, top, counted: count, names }
  const { answer, completeFromMs } = await answered(events.histogram(asked, signal))
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

export const logCountRoutes = [
  route({
    id: 'histogram',
    method: 'get',
    path: '/api/logs/histogram',
    tag: 'logs',
    summary: 'Occurrences or events of a query over time, by the values of a field',
    description:
      `${WHAT_COUNTS} The step is the smallest round one that gives at most so many buckets; they begin at multiples of it (UTC). ` +
      'Without `end_time` the range ends now, or at the latest event when clocks of producers are ahead.',
    role: 'viewer',
    limit: 'none',
    question: 'search',
    bodyBytes: 0,
    query: HistogramQuery,
    body: null,
    reply: HistogramReply,
    status: 200,
    errors: ['dependency_unavailable'],
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
    handle: ({ query, signal }, services) => histogram(query, services, signal),
  }),
]
