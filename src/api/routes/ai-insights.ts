import { Type, type Static } from '@sinclair/typebox'

import { ANY_ANOMALY, type AnomalyPosition } from '../../insights/store.js'
import { anomaliesWithin, usualBars } from '../../insights/usual.js'
import { explainSpan } from '../../insights/span-explanation.js'
import { AppError } from '../../model/errors.js'
import { readPage } from '../../records/page.js'
import {
  EVENT_PARAMETERS,
  answered,
  fieldNames,
  invalid,
  readEventQuestion,
} from '../event-question.js'
import { hexId, ListParameter, PageParameters, PageSchema, QueryTime } from '../schemas/page.js'
import { Timestamp } from '../schemas/event.js'
import { Count } from '../schemas/series.js'
import { DAY_MS } from '../../model/time.js'
import type { Services } from '../services.js'
import { parseQueryTime } from '../query-time.js'
import { route, type Caller } from '../route.js'
import { SeveritySchema } from '../../model/schemas.js'
import {
  AnomalySchema,
  ExplanationSchema,
  KindSchema,
  ScopeSchema,
  SnapshotSchema,
  StateSchema,
} from '../schemas/insight.js'
import { toAnomalyView, toExplanationView, toSnapshotView } from '../insight-views.js'

const AtParameter = QueryTime('the state at this time; default now')
const Names = Type.Optional(Type.Array(Type.String({ maxLength: 120 }), { maxItems: 1000 }))

const toMs = (text: string | undefined, name: string): number | null =>
  text === undefined ? null : parseQueryTime(text, name)

const isPosition = (value: unknown): value is AnomalyPosition =>
  typeof value === 'object' &&
  value !== null &&
  'startedAtMs' in value &&
  'id' in value &&
  Number.isSafeInteger(value.startedAtMs) &&
  typeof value.id === 'string'

const REFRESH_TIMEOUT_MS = 120_000

/** Reports faults of a query as those of a body. */
async function ofBody<T>(answer: () => Promise<T>): Promise<T> {
  try {
    return await answer()
  } catch (error) {
    if (!(error instanceof AppError) || !Array.isArray(error.details['errors'])) throw error
    const errors: readonly object[] = error.details['errors']
    const details = { errors: errors.map((one) => ({ ...one, in: 'body' })) }
    throw new AppError(error.code, error.message, { details })
  }
}

const ExplainBody = Type.Object(
  {
    q: EVENT_PARAMETERS.q,
    start_time: Type.String({ maxLength: 64, description: 'ISO 8601, or relative; inclusive' }),
    end_time: QueryTime('inclusive; default now'),
  },
  { additionalProperties: false },
)

const SpanExplanationSchema = Type.Object(
  {
    ...ExplanationSchema.properties,
    before_from: Type.String({
      format: 'date-time',
      description: 'beginning of the equally long time before',
    }),
    total_before: Count,
    total_during: Count,
    complete_from: Type.String({
      format: 'date-time',
      description: 'later than `from` when all of it would have taken too much time or memory',
    }),
  },
  { title: 'SpanExplanation' },
)

const USUAL_MOST_BARS = 300
const USUAL_MOST_MS = 62 * DAY_MS

const UsualQuery = Type.Object({
  ...EVENT_PARAMETERS,
  step_s: Type.Integer({
    minimum: 1,
    maximum: 86_400,
    default: 10_800,
    description: 'of the bars, as the histogram has it: a divisor or a multiple of an hour',
  }),
})

const UsualReply = Type.Object(
  {
    bars: Type.Array(
      Type.Object({
        t: Timestamp,
        expected: Type.Number(),
        low: Type.Number({ description: 'of the 99 % interval' }),
        high: Type.Number(),
      }),
      { description: 'ascending; bars with too little history are left out' },
    ),
    anomalies: Type.Array(AnomalySchema, {
      description: 'the newest first, at most 50; parts of wider ones are left out',
    }),
  },
  { title: 'Usual' },
)

async function usual(
  query: Static<typeof UsualQuery>,
  { events, eventContext, insights }: Services,
  { principal, signal }: { readonly principal: Caller; readonly signal: AbortSignal },
): Promise<Static<typeof UsualReply>> {
  const stepS = query.step_s
  if (3600 % stepS !== 0 && stepS % 3600 !== 0)
    throw invalid('step_s', { message: 'must divide an hour or be a multiple of it' })
  const asked = readEventQuestion(query, eventContext, principal.sources)
  const question = events.rangeOf(asked, Date.now())
  const spanMs = question.toMs - question.fromMs
  if (spanMs > USUAL_MOST_MS || spanMs / 1000 / stepS > USUAL_MOST_BARS)
    throw invalid('step_s', { message: 'gives more than 300 bars, or the range is over 62 days' })
  const names = fieldNames(eventContext)
  const bars = spanMs <= 0 ? null : await usualBars(events, { question, names, stepS }, signal)
  if (bars === null) return { bars: [], anomalies: [] }
  const anomalies = await anomaliesWithin(insights, question, signal)
  return {
    bars: bars.map(({ startS, ...bar }) => ({ t: new Date(startS * 1000).toISOString(), ...bar })),
    anomalies: anomalies.map((each) => toAnomalyView(each, (id) => insights.textOf(id))),
  }
}

async function explainBody(
  body: Static<typeof ExplainBody>,
  { events, eventContext, insights }: Services,
  signal: AbortSignal,
): Promise<Static<typeof SpanExplanationSchema>> {
  const asked = readEventQuestion(body, eventContext, null)
  const endMs = asked.toMs ?? Date.now()
  if (endMs <= asked.fromMs) throw invalid('end_time', { message: 'must be after start_time' })
  const question = { ...asked, toMs: endMs }
  const names = fieldNames(eventContext)
  const found = await answered(explainSpan(events, { question, names }, signal), {
    q: body.q,
    events,
  })
  return {
    ...toExplanationView(found, (id) => insights.textOf(id)),
    total_before: found.totalBefore,
    total_during: found.totalDuring,
    complete_from: new Date(found.completeFromMs).toISOString(),
  }
}

export const aiInsightRoutes = [
  route({
    id: 'insightSnapshot',
    method: 'get',
    path: '/api/ai-insights/snapshot',
    summary: 'What changed: anomalies, templates, forecast, correlations, health',
    description:
      'The last snapshot, computed every `INSIGHTS_INTERVAL_SECONDS` from hourly counts. With `at` the last ' +
      'one for that time or before it: one is stored for each hour. After a week without events, snapshots ' +
      'end with the last hour that has some.',
    role: 'viewer',
    query: Type.Object({ at: AtParameter }),
    reply: SnapshotSchema,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ query, signal }, { insights }) => {
      const stored = await insights.snapshot(toMs(query.at, 'at'), signal)
      if (stored === null) throw new AppError('not_found', 'there is no snapshot of that time yet')
      return toSnapshotView(stored, (id) => insights.textOf(id))
    },
  }),
  route({
    id: 'refreshInsights',
    method: 'post',
    path: '/api/ai-insights/snapshot/refresh',
    summary: 'Computes a snapshot now',
    description:
      'With `at` a snapshot for that time in the past, for days whose events were uploaded later.',
    role: 'manager',
    query: Type.Object({ at: AtParameter }),
    reply: SnapshotSchema,
    handlerTimeoutMs: REFRESH_TIMEOUT_MS,
    errors: ['dependency_unavailable'],
    handle: async ({ query }, { insights }) => {
      const stored = await insights.refresh(toMs(query.at, 'at'))
      return toSnapshotView(stored, (id) => insights.textOf(id))
    },
  }),
  route({
    id: 'listAnomalies',
    method: 'get',
    path: '/api/ai-insights/anomalies',
    summary: 'Anomalies, the latest beginning first',
    description:
      'With `at` those that had been detected by then, in the state they had, with the counts and scores ' +
      'that are known today. `whole_only` leaves out what is part of a wider anomaly.',
    role: 'viewer',
    question: 'rollup',
    query: Type.Object({
      at: AtParameter,
      state: ListParameter(StateSchema),
      scope: ListParameter(ScopeSchema),
      kind: ListParameter(KindSchema, { description: 'only these kinds' }),
      source: Names,
      severity: ListParameter(SeveritySchema),
      template_id: Names,
      min_score: Type.Number({
        minimum: 0,
        maximum: 50,
        default: 0,
        description: 'only anomalies with this `score` or a greater one',
      }),
      whole_only: Type.Boolean({
        default: false,
        description: 'whether what is part of a wider anomaly is left out',
      }),
      ...PageParameters,
    }),
    reply: PageSchema(AnomalySchema),
    errors: ['invalid_cursor', 'dependency_unavailable'],
    handle: async ({ query, signal }, { insights, cursorKey }) => {
      const { limit, cursor, at, ...filters } = query
      const asked = {
        ...ANY_ANOMALY,
        atMs: toMs(at, 'at') ?? ANY_ANOMALY.atMs,
        states: filters.state ?? [],
        scopes: filters.scope ?? [],
        kinds: filters.kind ?? [],
        sources: filters.source ?? [],
        severities: filters.severity ?? [],
        templates: filters.template_id ?? [],
        leastScore: filters.min_score,
        wholeOnly: filters.whole_only,
      }
      const page = await readPage(
        { limit, cursor, filters: { list: 'anomalies', at, ...filters }, cursorKey },
        {
          isPosition,
          read: async (after, most) =>
            await insights.anomalies({ ...asked, after, limit: most }, signal),
          positionOf: ({ startedAtMs, id }) => ({ startedAtMs, id }),
        },
      )
      const items = page.items.map((each) => toAnomalyView(each, (id) => insights.textOf(id)))
      return { ...page, items }
    },
  }),
  route({
    id: 'explainAnomaly',
    method: 'get',
    path: '/api/ai-insights/anomalies/{anomaly_id}',
    summary: 'An anomaly with the templates, sources and hosts that explain it',
    description:
      'Compares its span with the same hours of the three weeks before, of a newer source with those of six days. ' +
      '`explains` is the share of the change that a template, source or host makes up. Counts are hourly.',
    role: 'viewer',
    question: 'rollup',
    params: Type.Object({ anomaly_id: hexId('the `id` of an anomaly') }),
    reply: Type.Object({ anomaly: AnomalySchema, ...ExplanationSchema.properties }),
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, signal }, { insights }) => {
      const [anomaly] = await insights.anomalies(
        { ...ANY_ANOMALY, ids: [params.anomaly_id] },
        signal,
      )
      if (anomaly === undefined) {
        const details = { anomaly_id: params.anomaly_id }
        throw new AppError('not_found', 'there is no such anomaly', { details })
      }
      const explanation = await insights.explain(anomaly, signal)
      return {
        anomaly: toAnomalyView(anomaly, (id) => insights.textOf(id)),
        ...toExplanationView(explanation, (id) => insights.textOf(id)),
      }
    },
  }),
  route({
    id: 'usual',
    method: 'get',
    path: '/api/ai-insights/usual',
    summary: 'The expected counts of a query over time, and its anomalies',
    description:
      'The seasonal baseline of the anomaly detection, for the bars of a histogram. Queries by source, application, severity ' +
      'or priority, and template have one; of others, and without a day of the same kind to learn from, `bars` is empty.',
    role: 'viewer',
    question: 'search',
    tokens: 'limited',
    query: UsualQuery,
    reply: UsualReply,
    errors: ['dependency_unavailable'],
    handle: ({ query, principal, signal }, services) =>
      usual(query, services, { principal, signal }),
  }),
  route({
    id: 'explainSpan',
    method: 'post',
    path: '/api/ai-insights/explain',
    summary: 'The templates, sources and hosts that explain what changed in a time range',
    description:
      "Counts the occurrences of the query's events in the range and in the equally long time before. `explains` is the share of " +
      'the change that a template, source or host makes up; at most five of each: those that have notably more errors ' +
      '(`has_more_errors`), then the others, each the greatest first.',
    role: 'viewer',
    question: 'search',
    bodyBytes: 64 * 1024,
    body: ExplainBody,
    reply: SpanExplanationSchema,
    errors: ['dependency_unavailable'],
    examples: {
      body: {
        q: 'severity>=error',
        start_time: '2026-11-21T09:00:00Z',
        end_time: '2026-11-21T10:00:00Z',
      },
      reply: {
        from: '2026-11-21T09:00:00.000Z',
        to: '2026-11-21T10:00:00.001Z',
        before_from: '2026-11-21T07:59:59.999Z',
        templates: [
          {
            name: 'a8c48708073718c0',
            text: 'payment service timed out after <*> ms',
            before: 1,
            during: 41,
            explains: 1,
            share_before: 1,
            share_during: 1,
            has_more_errors: true,
          },
        ],
        sources: [
          {
            name: 'checkout',
            text: null,
            before: 1,
            during: 41,
            explains: 1,
            share_before: 1,
            share_during: 1,
            has_more_errors: true,
          },
        ],
        hosts: [],
        total_before: 1,
        total_during: 41,
        complete_from: '2026-11-21T09:00:00.000Z',
      },
    },
    handle: ({ body, signal }, services) => ofBody(() => explainBody(body, services, signal)),
  }),
]
