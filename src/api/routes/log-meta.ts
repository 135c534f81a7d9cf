import { Type, type Static } from '@sinclair/typebox'

import { AppError } from '../../model/errors.js'
import type { TemplateView } from '../../events/template-stats.js'
import { toEventItem } from '../event-views.js'
import type { TemplateNotesRecord } from '../../records/template-notes.js'
import { readSources } from '../event-question.js'
import { route } from '../route.js'
import { parseQueryTime } from '../query-time.js'
import { hexId, ListParameter, QueryTime } from '../schemas/page.js'
import type { Services } from '../services.js'
import { EventItem, Timestamp } from '../schemas/event.js'
import { PrioritySchema } from '../../model/schemas.js'
import { STEP_S, type Granularity } from '../../model/window.js'
import {
  Count,
  GranularitySchema,
  SourceFilter,
  TEMPLATE_FIELDS,
  TemplateSchema,
  TimeBucket,
  WindowSchema,
} from '../schemas/series.js'

const SAMPLES = 5
const TemplateId = hexId('the id of a template')

const SpanEnd = Type.Union([Timestamp, Type.Null()], {
  description: 'the buckets cover the time from `start` up to `end`; null without buckets',
})

const SeriesReply = Type.Object(
  {
    window: WindowSchema,
    granularity: GranularitySchema,
    offset: Count,
    start: SpanEnd,
    end: SpanEnd,
    has_more: Type.Boolean({ description: 'whether there are older buckets within the month' }),
    buckets: Type.Array(TimeBucket, {
      description: 'ascending; without empty buckets unless `fill=true`',
    }),
  },
  { title: 'TimeSeries' },
)

const TemplateNote = Type.Object({
  text: Type.String(),
  actor_id: Type.String(),
  at: Timestamp,
})

const TemplateCorrection = Type.Object({
  event_id: EventItem.properties.id,
  priority: PrioritySchema,
  reason: Type.String(),
  actor_id: Type.String(),
  at: Timestamp,
})

const TemplateDetail = Type.Object(
  {
    ...TEMPLATE_FIELDS,
    series: Type.Array(TimeBucket, { description: 'the newest hours with occurrences, ascending' }),
    sample_events: Type.Array(EventItem, { description: 'the newest events of the template' }),
    variables: Type.Array(
      Type.Object({
        index: Type.Integer({
          minimum: 0,
          description: 'position of the variable in the template, from the left',
        }),
        values: Type.Array(Type.Object({ value: Type.String(), count: Count })),
        numbers: Type.Union(
          [
            Type.Object({ p50: Type.Number(), p95: Type.Number(), unit: Type.String() }),
            Type.Null(),
          ],
          { description: 'null unless all values are numbers of one unit, such as `87ms`' },
        ),
      }),
      { description: 'the most frequent values of each variable in recent events' },
    ),
    note: Type.Union([TemplateNote, Type.Null()]),
    corrections: Type.Array(TemplateCorrection, {
      description: 'of priorities by people, the newest first, at most 50',
    }),
  },
  { title: 'TemplateDetail' },
)

const toTemplate = (view: TemplateView): Static<typeof TemplateSchema> => ({
  template_id: view.id,
  template_text: view.text,
  template: view.text,
  source: view.source,
  first_seen: new Date(view.firstSeenMs).toISOString(),
  last_seen: new Date(view.lastSeenMs).toISOString(),
  occurrence_count: view.occurrences,
  severity: view.severity,
  priority: view.priority,
  confidence: view.confidence,
  model_version: view.modelVersion,
})

function notesOf(
  record: TemplateNotesRecord | null,
): Pick<Static<typeof TemplateDetail>, 'note' | 'corrections'> {
  const { note, corrections } = record ?? { note: null, corrections: [] }
  const signed = (one: { readonly actorId: string; readonly atMs: number }) => ({
    actor_id: one.actorId,
    at: new Date(one.atMs).toISOString(),
  })
  return {
    note: note && { text: note.text, ...signed(note) },
    corrections: corrections.map(({ eventId, priority, reason, ...one }) => ({
      event_id: eventId,
      priority,
      reason,
      ...signed(one),
    })),
  }
}

async function templateDetail(
  id: string,
  hours: number,
  services: Services,
  signal: AbortSignal,
): Promise<Static<typeof TemplateDetail>> {
  const view = await services.templateStats.one(id, signal)
  if (view === null)
    throw new AppError('not_found', 'there is no such template', { details: { template_id: id } })
  const [series, samples, variables] = await Promise.all([
    services.templateStats.hours(view.id, hours, signal),
    services.templateSamples(view.id, SAMPLES, signal),
    services.templateVariables({ id: view.id, text: view.text }, signal),
  ])
  return {
    ...toTemplate(view),
    series: [...series],
    sample_events: samples.map((event) => toEventItem(event, services.eventContext)),
    variables: variables.map((one) => ({ ...one, values: [...one.values] })),
    ...notesOf(services.templateNotes.of(view.id)),
  }
}

const endOf = (bucket: string, granularity: Granularity): string =>
  new Date(Date.parse(bucket) + STEP_S[granularity] * 1000).toISOString()

export const logMetaRoutes = [
  route({
    id: 'topTemplates',
    method: 'get',
    path: '/api/logs/meta/templates',
    tag: 'logs',
    summary: 'Templates with the most occurrences, or the newest ones',
    description:
      'Ordered by `occurrence_count`, descending; with `order=first_seen` the newest come first; with `template_id` ' +
      'only these. `start_time` and `end_time` are of `first_seen`: what is new since a deployment. A merged template counts for its target. `severity` is the ' +
      'most frequent of the occurrences (of equally frequent ones the worse), `priority` the corrected one, ' +
      'else the most frequent.',
    role: 'viewer',
    question: 'rollup',
    query: Type.Object({
      limit: Type.Integer({ minimum: 1, maximum: 200, default: 20 }),
      order: Type.Union([Type.Literal('occurrences'), Type.Literal('first_seen')], {
        default: 'occurrences',
        description: '`first_seen`: the newest first',
      }),
      template_id: ListParameter(TemplateId),
      start_time: QueryTime('of `first_seen`, inclusive'),
      end_time: QueryTime('of `first_seen`, inclusive'),
    }),
    reply: Type.Array(TemplateSchema),
    errors: ['dependency_unavailable'],
    tokens: 'limited',
    handle: async ({ query, principal, signal }, { templateStats }) => {
      const { limit, order, template_id: ids = [], start_time: start, end_time: end } = query
      const from =
        start === undefined ? {} : { firstSeenFromMs: parseQueryTime(start, 'start_time') }
      const until =
        end === undefined ? {} : { firstSeenUntilMs: parseQueryTime(end, 'end_time') + 1 }
      const asked = { limit, order, ids, sources: principal.sources ?? [], ...from, ...until }
      return (await templateStats.top(asked, signal)).map(toTemplate)
    },
  }),
  route({
    id: 'getTemplate',
    method: 'get',
    path: '/api/logs/meta/templates/{template_id}',
    tag: 'logs',
    summary:
      'One template with its hourly counts, its newest events and the values of its variables',
    role: 'viewer',
    question: 'search',
    query: Type.Object({
      hours: Type.Integer({
        minimum: 1,
        maximum: 744,
        default: 168,
        description: 'the number of hourly counts; hours without occurrences are left out',
      }),
    }),
    params: Type.Object({ template_id: TemplateId }),
    reply: TemplateDetail,
    errors: ['not_found', 'dependency_unavailable'],
    handle: ({ params, query, signal }, services) =>
      templateDetail(params.template_id, query.hours, services, signal),
  }),
  route({
    id: 'setTemplateNote',
    method: 'put',
    path: '/api/logs/meta/templates/{template_id}/note',
    tag: 'logs',
    bodyBytes: 64 * 1024,
    summary: 'Writes the note of a template, which its page shows; an empty text removes it',
    role: 'manager',
    params: Type.Object({ template_id: TemplateId }),
    body: Type.Object({ text: Type.String({ maxLength: 4000 }) }, { additionalProperties: false }),
    reply: Type.Object({ note: Type.Union([TemplateNote, Type.Null()]) }),
    errors: ['not_found', 'dependency_unavailable'],
    examples: { body: { text: 'Harmless: the cron job retries it.' } },
    handle: async ({ params, body, principal, signal }, { templateStats, templateNotes }) => {
      const { template_id: id } = params
      const view = await templateStats.one(id, signal)
      if (view === null)
        throw new AppError('not_found', 'there is no such template', { details: params })
      await templateNotes.write(view, principal.userId, body.text.trim())
      return { note: notesOf(templateNotes.of(view.id)).note }
    },
  }),
  route({
    id: 'timeSeries',
    method: 'get',
    path: '/api/logs/meta/timeseries',
    tag: 'logs',
    summary: 'Occurrences per time bucket, by severity and priority',
    description:
      'Buckets are aligned to UTC (5 s, 1 min, 1 h, 1 day); empty ones are left out unless `fill=true`. They cover at most a ' +
      'calendar month before the latest event, which may be 5 minutes ahead of now; `offset` counts from ' +
      'the newest. With `fill=true`, `limit` and `offset` count empty buckets too. With `granularity=auto` the window determines the step; without data in the window it is ' +
      'the next coarser one whose largest window (15m, 24h, 30d) has data, else day. `granularity` ' +
      'in the reply is the one that was used.',
    role: 'viewer',
    question: 'rollup',
    query: Type.Object({
      window: Type.Union(WindowSchema.anyOf, {
        default: '24h',
        description:
          'with `granularity=auto` it determines the step; `limit` and `offset` say which buckets are listed',
      }),
      granularity: Type.Union([Type.Literal('auto'), ...GranularitySchema.anyOf], {
        default: 'auto',
        description: 'step of the buckets',
      }),
      source: SourceFilter,
      limit: Type.Integer({
        minimum: 1,
        maximum: 50,
        default: 10,
        description: 'the most buckets of the reply',
      }),
      offset: Type.Integer({
        minimum: 0,
        default: 0,
        description: 'how many of the newest buckets are left out',
      }),
      fill: Type.Boolean({ default: false, description: 'whether empty buckets are listed' }),
    }),
    reply: SeriesReply,
    errors: ['dependency_unavailable'],
    tokens: 'limited',
    handle: async ({ query, principal, signal }, { series }) => {
      const { window, offset, limit, granularity, fill, source = [] } = query
      const sources = readSources(source, principal.sources)
      const asked = { window, granularity, sources, limit, offset }
      const page = fill ? await series.filled(asked, signal) : await series.page(asked, signal)
      const { granularity: used, hasMore, buckets } = page
      const last = buckets.at(-1)
      return {
        window,
        granularity: used,
        offset,
        start: buckets[0]?.t ?? null,
        end: last === undefined ? null : endOf(last.t, used),
        has_more: hasMore,
        buckets: [...buckets],
      }
    },
  }),
  route({
    id: 'calendar',
    method: 'get',
    path: '/api/logs/meta/calendar',
    tag: 'logs',
    summary: 'Occurrences per day',
    description:
      'The last `days` days (UTC), today included; days without occurrences are left out.',
    role: 'viewer',
    question: 'rollup',
    query: Type.Object({
      priority: ListParameter(PrioritySchema),
      days: Type.Integer({
        minimum: 1,
        maximum: 730,
        default: 365,
        description: 'how many days (UTC), today included',
      }),
    }),
    reply: Type.Array(Type.Object({ day: Type.String({ format: 'date' }), value: Count })),
    errors: ['dependency_unavailable'],
    tokens: 'limited',
    handle: async (
      { query: { priority: priorities = [], days }, principal, signal },
      { calendar },
    ) => [...(await calendar.days({ priorities, days, sources: principal.sources ?? [] }, signal))],
  }),
]
