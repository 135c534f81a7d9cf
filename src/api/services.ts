import type { RunBacktest } from '../alerting/backtest.js'
import type { EvaluationStatus } from '../alerting/status.js'
import type { Channels } from '../alerting/channel.js'
import type { Delivery } from '../alerting/delivery-log.js'
import type { Send } from '../alerting/send.js'
import type { AlertLog } from '../alerting/alert-log.js'
import type { MaintenanceWindows, Silences } from '../alerting/suppression.js'
import type { Rules } from '../alerting/rules.js'
import type { Config } from '../config.js'
import type { createAnalytics } from '../events/analytics.js'
import type { createCalendar } from '../events/calendar.js'
import type { createEvents } from '../events/events.js'
import type { createKpiCache } from '../events/kpi-cache.js'
import type { Ledger } from '../events/ledger.js'
import type { createSeries } from '../events/series.js'
import type { SourceStats } from '../events/source-stats.js'
import type { BodyResult } from '../ingest/block.js'
import type { createInsights } from '../insights/insights.js'
import type { EventRecord, Severity } from '../model/event.js'
import type { createCorrections } from '../priority/corrections.js'
import type { Alerts } from '../records/alerts.js'
import type { Applications } from '../records/applications.js'
import type { SavedViews } from '../records/saved-views.js'
import type { AuditTable } from '../records/audit.js'
import type { DeadLetters } from '../records/dead-letters.js'
import type { UploadedFile } from '../ingest/submission.js'
import type { Deletions } from '../ingest/deletions.js'
import type { Incidents } from '../records/incidents.js'
import type { Replay } from '../records/replay.js'
import type { Sources } from '../records/sources.js'
import type { Tasks } from '../records/tasks.js'
import type { TemplateNotes } from '../records/template-notes.js'
import type { DiskLimit } from '../retention/disk-limit.js'
import type { StorageReport } from '../retention/retention.js'
import type { CollectorStats } from '../telemetry/collector-stats.js'
import type { Metrics } from '../telemetry/metrics.js'
import type { createTemplateSamples } from '../events/template-samples.js'
import type { TemplateStats } from '../events/template-stats.js'
import type { ApiTokens } from './auth/api-tokens.js'
import type { CookieSettings } from './auth/credentials.js'
import type { IngestKeys } from './auth/ingest-keys.js'
import type { Oidc } from './auth/oidc.js'
import type { OutsideUsers } from './auth/outside-users.js'
import type { Guesses } from './auth/guesses.js'
import type { Limiter } from './auth/limits.js'
import type { SecondFactors } from './auth/second-factor.js'
import type { Principal, Session, Sessions } from './auth/sessions.js'
import type { Users } from './auth/users.js'
import type { EventContext, explainPriority } from './event-context.js'
import type { ExportSlots } from './export-slots.js'
import type { Health } from './health.js'
import type { Intrusions } from './intrusions.js'
import type { Questions } from './questions.js'

/** The services that the handlers of routes call; the program builds them once. */
export interface Services {
  // Events and their counts.
  readonly events: Omit<ReturnType<typeof createEvents>, 'counted' | 'correct' | 'sourcesOf'>
  readonly eventContext: EventContext
  readonly corrections: ReturnType<typeof createCorrections>
  /** Explains the automatic priority of an event. */
  readonly explain: (event: EventRecord) => ReturnType<typeof explainPriority>
  readonly series: ReturnType<typeof createSeries>
  readonly calendar: ReturnType<typeof createCalendar>
  readonly analytics: ReturnType<typeof createAnalytics>
  readonly ledger: Pick<Ledger, 'report'>
  readonly templateStats: TemplateStats
  readonly templateSamples: ReturnType<typeof createTemplateSamples>['templateSamples']
  readonly templateVariables: ReturnType<typeof createTemplateSamples>['templateVariables']
  readonly kpis: Pick<ReturnType<typeof createKpiCache>, 'get'>
  readonly insights: ReturnType<typeof createInsights>

  // The records.
  readonly alerts: Alerts
  readonly alertRules: Rules
  readonly backtestRule: RunBacktest
  readonly channels: Channels
  readonly silences: Silences
  readonly maintenanceWindows: MaintenanceWindows
  readonly sendNotice: Send
  /** The states of notices by their ids. */
  readonly deliveriesOf: (ids: readonly string[]) => Promise<ReadonlyMap<string, Delivery>>
  readonly alertLog: Pick<AlertLog, 'history'>
  /** The status of the rule evaluation; null when it is not known. */
  readonly alertRuleStatus: () => Promise<EvaluationStatus | null>
  readonly incidents: Incidents
  readonly tasks: Tasks
  readonly savedViews: SavedViews
  readonly templateNotes: TemplateNotes
  readonly sources: Pick<Sources, 'list' | 'get' | 'create' | 'change'>
  readonly sourceStats: SourceStats
  /** Events that arrived before may be in cold storage; 0 for none. */
  readonly coldUntilMs: () => number
  /** RETENTION_DAYS, the longest retention. */
  readonly retentionDays: number
  /** RETENTION_DAYS_BY_SEVERITY. */
  readonly retentionBySeverity: ReadonlyMap<Severity, number>
  /** MAX_DISK; null for no limit. */
  readonly maxDisk: DiskLimit | null
  readonly storage: () => Promise<StorageReport>
  readonly applications: Applications
  readonly deletions: Deletions
  readonly deadLetters: Pick<DeadLetters, 'page'>
  readonly replay: Replay
  readonly auditTrail: Pick<AuditTable, 'page'>
  /** Parses an uploaded file and ingests its rows. */
  readonly upload: (file: UploadedFile) => Promise<BodyResult>
  /** Recomputes the KPI snapshot after a change of a source, or of something else (''). */
  readonly announce: (source: string) => void

  // Accounts and keys.
  readonly users: Users
  readonly sessions: Sessions
  readonly secondFactors: SecondFactors
  readonly oidc: Oidc
  readonly outsideUsers: OutsideUsers
  /** Whether every local user may log in with a password. */
  readonly hasPasswordLogin: boolean
  readonly ingestKeys: IngestKeys
  readonly apiTokens: ApiTokens
  /** Returns the user of an access token or API token. @throws AppError unauthorized, token_expired */
  readonly authenticate: (token: string) => Principal
  /** Whether a session or an API token is still valid. */
  readonly isAlive: (caller: Session) => boolean
  readonly limiter: Limiter
  readonly guesses: Guesses
  readonly intrusions: Intrusions
  readonly questions: Questions
  readonly exportSlots: ExportSlots
  readonly cookies: CookieSettings
  /** Signs the cursors of pages. */
  readonly cursorKey: Buffer

  // The service itself.
  readonly version: string
  /** COLLECTOR_URL; '' when it is not set. */
  readonly collectorUrl: string
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
