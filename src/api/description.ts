import { COLLECTOR_OPERATIONS } from './collector-description.js'
import { createOpenApi, webSocketOperation, type OpenApiDocument } from './openapi.js'
import { allRoutes } from './routes.js'

const ABOUT = `Log analytics on ClickHouse: ingest, template mining, deduplication, priorities, queries.

**Errors** have one form, \`{"detail": {"message", "code", "details"}}\`. **Times** of replies are ISO 8601 in UTC with
milliseconds; those of requests may have any offset, and those of parameters be relative, such as \`now-1h\`. **Lists** of unbounded length are paged by keyset: pass \`next_cursor\` back as \`cursor\`; a cursor
is valid only with the filters of the page that returned it. **Repeated parameters** may be written \`severity=ERROR&severity=CRITICAL\` or
\`severity=ERROR,CRITICAL\`.

**Counting.** An *occurrence* is one received message, an *event* the deduplicated record. Time buckets, calendar,
severity counts and per-minute figures count occurrences; \`unique_events\` counts events.

**The collector** listens on a port of its own; its operations can't be tried from this page.

**Numbers** are decimal digits. The collector takes **compressed bodies**, this API none.`

const ABOUT_TAIL = `The client sends \`{"subscribe": {"id": "errors", "q": "severity>=error", "max": 100}}\`: \`id\` names the
subscription in all messages about it (default: empty), \`q\` is a line of the query language (default: every event), \`max\`
(0 to 500, default 100) the most events of a message. The answer is \`{"type": "tail:subscribed", "id", "watermark"}\`. A second
\`subscribe\` with the same \`id\` replaces the first, and \`{"unsubscribe": "errors"}\` ends it. \`/ws/tail?q=…&max=…\` subscribes at
once; \`id\` and \`resume\` may be in the URL too.

After stored batches, at most twice a second, come \`{"type": "tail:rows", "id", "from", "to", "matched", "left_out",
"watermark", "rows"}\`: \`matched\` events were stored since the message before it, \`rows\` has the newest of them, in the form
of \`GET /api/logs\`, and \`left_out\` says how many it lacks. A client that reads slowly gets fewer messages, each about a
longer time, and stays connected. \`{"subscribe": …, "resume": "<watermark>"}\` goes on after the message that had the watermark,
on any connection and after restarts.

An error is \`{"type": "tail:error", "id", "error": {"code", "message", …}}\`, with \`position\`, \`length\` and \`suggestion\`
when it is one of \`q\`; the connection stays open, and the subscription is not there. A connection has at most 16
subscriptions, a user 64. \`ping\` is answered with \`pong\`; an idle connection gets \`ping\` every 20 s. Tokens, limits and
close codes are those of \`/ws/kpis\`. The guide [Live tail and export](/docs/tail-and-export) says more.`

export const describeApi = (version: string): OpenApiDocument =>
  createOpenApi({
    title: 'Log analytics engine',
    version,
    description: ABOUT,
    routes: allRoutes,
    tags: {
      auth: 'Logins, tokens, sessions, the second factor',
      logs: 'Events, templates, time series, calendar',
      analytics: 'Severities, top sources, stored occurrences and dead letters',
      kpis: 'Figures of the whole service',
      collector: 'Events and webhooks, on a port of their own',
      'ai-insights': 'Anomalies, what explains them, the forecast',
      incidents: 'Incidents that people work on',
      alerts: 'Alerts raised by rules or by hand',
      'alert-rules': 'What fires, and when',
      'notification-channels': 'Where alerts are sent',
      silences: 'Silences, which hold notices back once',
      'maintenance-windows': 'Maintenance windows, which hold notices back each week',
      'saved-views': 'Views of the page, for one user or for all',
      sources: 'Sources of messages, and file uploads',
      applications: 'Groups of sources',
      monitoring: 'Health, metrics, dead letters, the audit trail',
      tasks: 'Tasks of people',
      users: 'Accounts and roles',
      'ingest-keys': 'Keys of senders',
      'api-tokens': 'Tokens of programs that call this API',
    },
    extra: [
      ...COLLECTOR_OPERATIONS,
      webSocketOperation('/ws/kpis', {
        id: 'kpiSocket',
        tag: 'kpis',
        summary: 'Pushes the KPI snapshot when it changes',
        description:
          'Sends `{"type": "kpi:snapshot", "payload": …}` on connect and when new events were written, at most ' +
          'once a second. `ping` is answered with `pong`; an idle connection gets `ping` every 30 s. The token is the ' +
          'first of Authorization, `Sec-WebSocket-Protocol: jwt.<token>`, the cookie, and the query `token`. The ' +
          'connection is closed with 1008 without a valid token, above the limit, and when it sends more than 100 messages, pings and pongs in a second.',
      }),
      webSocketOperation('/ws/tail', {
        id: 'tailSocket',
        tag: 'logs',
        summary: 'Pushes the events that match queries as they are stored',
        description: ABOUT_TAIL,
      }),
    ],
  })
