import { aiInsightRoutes } from './routes/ai-insights.js'
import { alertRoutes } from './routes/alerts.js'
import { alertRuleRoutes } from './routes/alert-rules.js'
import { analyticsRoutes } from './routes/analytics.js'
import { apiTokenRoutes } from './routes/api-tokens.js'
import { applicationRoutes } from './routes/applications.js'
import { auditRoutes } from './routes/audit.js'
import { authRoutes } from './routes/auth.js'
import { deadLetterRoutes } from './routes/dead-letters.js'
import { incidentRoutes } from './routes/incidents.js'
import { ingestKeyRoutes } from './routes/ingest-keys.js'
import { kpiRoutes } from './routes/kpis.js'
import { logContextRoutes } from './routes/log-context.js'
import { logCountRoutes } from './routes/log-counts.js'
import { logDeletionRoutes } from './routes/log-deletion.js'
import { logExportRoutes } from './routes/log-export.js'
import { logFieldRoutes } from './routes/log-fields.js'
import { logMetaRoutes } from './routes/log-meta.js'
import { logRoutes } from './routes/logs.js'
import { monitoringRoutes } from './routes/monitoring.js'
import { notificationChannelRoutes } from './routes/notification-channels.js'
import { quietRoutes } from './routes/quiet.js'
import { oidcRoutes } from './routes/oidc.js'
import { queryRoutes } from './routes/query.js'
import { savedViewRoutes } from './routes/saved-views.js'
import { secondFactorRoutes } from './routes/second-factor.js'
import { sessionRoutes } from './routes/sessions.js'
import { sourceRoutes } from './routes/sources.js'
import { taskRoutes } from './routes/tasks.js'
import { userRoutes } from './routes/users.js'

/** Every route of the API. */
export const allRoutes = [
  ...authRoutes,
  ...oidcRoutes,
  ...sessionRoutes,
  ...secondFactorRoutes,
  ...logRoutes,
  ...logCountRoutes,
  ...logContextRoutes,
  ...logDeletionRoutes,
  ...logExportRoutes,
  ...logFieldRoutes,
  ...logMetaRoutes,
  ...queryRoutes,
  ...analyticsRoutes,
  ...kpiRoutes,
  ...aiInsightRoutes,
  ...incidentRoutes,
  ...alertRoutes,
  ...alertRuleRoutes,
  ...notificationChannelRoutes,
  ...quietRoutes,
  ...savedViewRoutes,
  ...sourceRoutes,
  ...applicationRoutes,
  ...monitoringRoutes,
  ...deadLetterRoutes,
  ...auditRoutes,
  ...taskRoutes,
  ...userRoutes,
  ...ingestKeyRoutes,
  ...apiTokenRoutes,
]
