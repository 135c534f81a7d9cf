import { Type } from '@sinclair/typebox'

import { readSources } from '../event-question.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { SeveritySchema } from '../../model/schemas.js'
import { Count, Percent, SourceFilter, WindowSchema } from '../schemas/series.js'

const WindowQuery = Type.Union(WindowSchema.anyOf, { default: '24h' })
const WINDOW_TEXT =
  'The window ends now and begins at a whole second (`5s`), minute (up to `24h`) or hour. '

/** Rounded to two decimals; `empty` when the whole is 0. */
const percent = (part: number, whole: number, empty = 0): number =>
  whole === 0 ? empty : Math.round((part / whole) * 10_000) / 100

export const analyticsRoutes = [
  route({
    id: 'severityBreakdown',
    method: 'get',
    path: '/api/analytics/severity-breakdown',
    summary: 'Occurrences by severity in a window',
    description: WINDOW_TEXT.trim(),
    role: 'viewer',
    question: 'rollup',
    query: Type.Object({ window: WindowQuery, source: SourceFilter }),
    reply: Type.Object({
      window: WindowSchema,
      total: Count,
      items: Type.Array(Type.Object({ severity: SeveritySchema, count: Count, pct: Percent }), {
        description: 'all five severities, in ascending order of severity',
      }),
    }),
    errors: ['dependency_unavailable'],
    tokens: 'limited',
    handle: async ({ query, principal, signal }, { analytics }) => {
      const { window, source = [] } = query
      const sources = readSources(source, principal.sources)
      const counts = await analytics.severities(window, sources, signal)
      const total = counts.reduce((sum, { count }) => sum + count, 0)
      const items = counts.map(({ severity, count }) => ({
        severity,
        count,
        pct: percent(count, total),
      }))
      return { window, total, items }
    },
  }),
  route({
    id: 'topSources',
    method: 'get',
    path: '/api/analytics/top-sources',
    summary: 'Sources with the most occurrences in a window',
    description: `${WINDOW_TEXT}\`error_count\` counts ERROR and CRITICAL, \`dead_letter_count\` by arrival.`,
    role: 'viewer',
    question: 'rollup',
    query: Type.Object({
      window: WindowQuery,
      limit: Type.Integer({ minimum: 1, maximum: 50, default: 10 }),
    }),
    reply: Type.Object({
      window: WindowSchema,
      items: Type.Array(
        Type.Object({
          source: Type.String(),
          count: Count,
          error_count: Count,
          error_rate_pct: Percent,
          dead_letter_count: Count,
          last_event_at: Timestamp,
        }),
      ),
    }),
    errors: ['dependency_unavailable'],
    handle: async ({ query, signal }, { analytics }) => {
      const top = await analytics.topSources(query.window, query.limit, signal)
      const items = top.map(({ source, count, errors, deadLetters, lastEventAtMs }) => ({
        source,
        count,
        error_count: errors,
        error_rate_pct: percent(errors, count),
        dead_letter_count: deadLetters,
        last_event_at: new Date(lastEventAtMs).toISOString(),
      }))
      return { window: query.window, items }
    },
  }),
  route({
    id: 'deadVsStored',
    method: 'get',
    path: '/api/analytics/dlq-vs-stored',
    summary: 'Stored occurrences and dead letters in a window',
    description:
      `${WINDOW_TEXT}\`stored\` counts occurrences by event time, \`dlq\` dead letters by arrival, ` +
      '`received` both. Buckets have the step of the time series of the window; those with neither are ' +
      'left out. `success_rate_pct` is 100 when nothing was received.',
    role: 'viewer',
    question: 'rollup',
    query: Type.Object({ window: WindowQuery }),
    reply: Type.Object({
      window: WindowSchema,
      received: Count,
      stored: Count,
      dlq: Count,
      success_rate_pct: Percent,
      buckets: Type.Array(Type.Object({ t: Timestamp, stored: Count, dlq: Count })),
    }),
    errors: ['dependency_unavailable'],
    handle: async ({ query, signal }, { analytics }) => {
      const buckets = await analytics.deadVsStored(query.window, signal)
      const stored = buckets.reduce((sum, bucket) => sum + bucket.stored, 0)
      const dlq = buckets.reduce((sum, bucket) => sum + bucket.dlq, 0)
      const received = stored + dlq
      return {
        window: query.window,
        received,
        stored,
        dlq,
        success_rate_pct: percent(stored, received, 100),
        buckets: [...buckets],
      }
    },
  }),
  route({
    id: 'ledger',
    method: 'get',
    path: '/api/analytics/ledger',
    summary: 'Whether everything that was acknowledged is stored',
    description:
      'Of the messages received from `since` to `until`, those that the collectors acknowledged (counted when they replied) and ' +
      'those in ClickHouse, as occurrences of events or as dead letters. `difference` is what is missing; negative when more is ' +
      'stored than was acknowledged, as after a reply that was lost with its instance. `waiting` messages are ' +
      'acknowledged and not in ClickHouse yet; `until` is before the oldest of them. `since` is at most 24 h ago: a start of ' +
      'an instance and each deletion of events or dead letters restarts it. All callers get the same report, which is renewed after 5 s, or after 20 ' +
      'times as long as it took to count.',
    role: 'viewer',
    question: 'rollup',
    query: Type.Object({}),
    reply: Type.Object({
      since: Timestamp,
      until: Timestamp,
      acknowledged: Count,
      stored: Count,
      dead_letters: Count,
      waiting: Count,
      difference: Type.Integer(),
    }),
    errors: ['dependency_unavailable'],
    handle: async (_, { ledger }) => {
      const { sinceMs, untilMs, acknowledged, stored, deadLetters, waiting } = await ledger.report()
      return {
        since: new Date(sinceMs).toISOString(),
        until: new Date(untilMs).toISOString(),
        acknowledged,
        stored,
        dead_letters: deadLetters,
        waiting,
        difference: acknowledged - stored - deadLetters,
      }
    },
  }),
]
