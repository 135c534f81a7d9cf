import { COLLECTOR_OPERATIONS } from './collector-description.js'
import { createOpenApi, webSocketOperation, type OpenApiDocument } from './openapi.js'
import { allRoutes } from './routes.js'

const ABOUT = `Log analytics on ClickHouse: ingest, template mining, deduplication, priorities, queries.

**Errors** have one form, \`{"detail": {"message", "code", "details"}}\`. **Times** are ISO 8601 in UTC with
milliseconds. **Lists** of unbounded length are paged by keyset: pass \`next_cursor\` back as \`cursor\`; a cursor
is valid only with the filters of the page that returned it. **Repeated parameters** may be written \`severity=ERROR&severity=CRITICAL\` or
\`severity=ERROR,CRITICAL\`.

**Counting.** An *occurrence* is one received message, an *event* the deduplicated record. Time buckets, calendar,
severity counts and per-minute figures count occurrences; \`unique_events\` counts events.

**The collector** listens on a port of its own; its operations can't be tried from this page.

**Numbers** are decimal digits. **Compressed bodies** are for \`/ingest\` alone.`

export const describeApi = (version: string): OpenApiDocument =>
  createOpenApi({
    title: 'Log analytics engine',
    version,
    description: ABOUT,
    routes: allRoutes,
    tags: {
      auth: 'Login, refresh, logout, current user',
      logs: 'Events, templates, time series, calendar',
      analytics: 'Severities, top sources, stored occurrences and dead letters',
      kpis: 'Global figures',
      collector: 'Events and webhooks, on a port of their own',
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
          'connection is closed with 1008 without a valid token and above the limit.',
      }),
    ],
  })
