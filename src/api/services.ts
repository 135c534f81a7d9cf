import type { AlertingServices } from '../alerting/alerting.js'
import type { Config } from '../config.js'
import type { Events } from '../events/events.js'
import type { KpiCache } from '../events/kpi-cache.js'
import type { Ledger } from '../events/ledger.js'
import type { Statistics } from '../events/statistics.js'
import type { Deletions } from '../ingest/deletions.js'
import type { createUpload } from '../ingest/upload.js'
import type { Insights } from '../insights/insights.js'
import type { Corrections } from '../priority/corrections.js'
import type { Priorities } from '../priority/store.js'
import type { Applications } from '../records/applications.js'
import type { AuditTable } from '../records/audit.js'
import type { DeadLetters } from '../records/dead-letters.js'
import type { WorkRecords } from '../records/records.js'
import type { Replay } from '../records/replay.js'
import type { Sources } from '../records/sources.js'
import type { Cold } from '../retention/cold.js'
import type { Retention } from '../retention/retention.js'
import type { CollectorStats } from '../telemetry/collector-stats.js'
import type { Metrics } from '../telemetry/metrics.js'
import type { Accounts } from './auth/accounts.js'
import type { EventContext } from './event-context.js'
import type { ExportSlots } from './export-slots.js'
import type { Health } from './health.js'
import type { Intrusions } from './intrusions.js'
import type { Questions } from './questions.js'

/** The services that the handlers of routes call; the program builds them once. */
export interface Services
  extends Omit<Accounts, 'made' | 'close'>, WorkRecords, AlertingServices, Statistics {
  // Events and their counts.
  readonly events: Omit<Events, 'counted' | 'correct' | 'sourcesOf'>
  readonly eventContext: EventContext
  readonly corrections: Corrections
  readonly priorities: Pick<Priorities, 'explain'>
  readonly ledger: Pick<Ledger, 'report'>
  readonly kpis: Pick<KpiCache, 'get'>
  readonly insights: Insights

  // Records, and how long events are kept.
  readonly sources: Pick<Sources, 'list' | 'get' | 'create' | 'change'>
  readonly applications: Applications
  readonly retention: Pick<Retention, 'maxDisk' | 'report'> & {
    readonly cold: Pick<Cold, 'untilMs'>
  }
  readonly deletions: Deletions
  readonly deadLetters: Pick<DeadLetters, 'page'>
  readonly replay: Replay
  readonly auditTrail: Pick<AuditTable, 'page'>
  readonly upload: ReturnType<typeof createUpload>
  /** Has the KPI snapshot computed anew. */
  readonly announce: () => void

  // What limits and signs requests.
  readonly intrusions: Intrusions
  readonly questions: Questions
  readonly exportSlots: ExportSlots
  /** Signs the cursors of pages. */
  readonly cursorKey: Buffer

  // The service itself.
  readonly config: Pick<Config, 'retentionDays' | 'retentionBySeverity' | 'collectorUrl'>
  readonly version: string
  /** The port that the collector of this instance listens on; null for a role without one. */
  readonly collectorPort: number | null
  readonly health: Health
  readonly collectorStats: Pick<CollectorStats, 'list'>
  readonly metrics: Pick<Metrics, 'render'>
  readonly metricsAccess: MetricsAccess
}

/** Who may read the metrics without a login. */
export interface MetricsAccess {
  /** The bearer token that grants access; null for none. */
  readonly token: string | null
  /** Whether clients on this machine need no token. */
  readonly isLocalOpen: boolean
}

/**
 * Behind a proxy on this machine every client has a local address, and not every proxy forwards the
 * client's own, so local clients need a token then.
 */
export const metricsAccessOf = (config: Config): MetricsAccess => ({
  token: config.metricsToken,
  isLocalOpen:
    config.nodeEnv !== 'production' && !config.cookieSecure && config.trustedProxies.length === 0,
})
