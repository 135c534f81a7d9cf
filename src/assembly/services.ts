import type { Applications } from '../records/applications.js'
import type { Audit } from '../records/audit.js'
import type { CookieSettings } from '../api/auth/credentials.js'
import type { Limiter } from '../api/auth/limits.js'
import { createCorrections } from '../priority/corrections.js'
import { cursorKey } from '../records/cursor.js'
import { forgetDeliveries } from '../ingest/webhook/webhook.js'
import { createDeletions, type DeletionParts } from '../records/deletions.js'
import { createHealth } from '../api/health.js'
import { createReplay, type ReplayLetter, type ReplayOutcome } from '../records/replay.js'
import type { Services as ApiServices, Upload } from '../api/services.js'
import type { Config } from '../config.js'
import { createSemaphore } from '../lib/semaphore.js'
import { AppError } from '../model/errors.js'
import { PRIORITIES, type EventRecord } from '../model/event.js'
import type { BodyResult } from '../ingest/block.js'
import type { Pipeline, Submission } from '../ingest/pipeline.js'
import { createAnalytics } from '../events/analytics.js'
import type { AuditTable } from '../records/audit-table.js'
import { createCalendar } from '../events/calendar.js'
import { createDeadLetters } from '../records/dead-letters.js'
import type { Events } from '../events/events.js'
import { createSeries } from '../events/series.js'
import type { SourceStats } from '../events/source-stats.js'
import type { Sources } from '../records/sources.js'
import { createTemplateStats } from '../events/template-stats.js'
import type { CollectorStats } from '../telemetry/collector-stats.js'
import type { Metrics } from '../telemetry/metrics.js'
import type { Accounts } from '../api/auth/accounts.js'
import type { Desk } from '../records/desk.js'
import type { Ingestion } from './ingestion.js'
import type { Insights } from '../insights/insights.js'
import type { Live } from './live.js'
import type { ReplayClaims } from '../records/replay-claims.js'
import type { SharedChanges } from '../coordination/shared-changes.js'
import type { Storage } from './storage.js'
import { createTemplateSamples } from '../events/template-samples.js'
import { DAY_S } from '../model/time.js'

/** rows of an uploaded file */
const UPLOAD_ROWS = 200_000
const REPLAY_LOCK_MS = 15_000
/** a batch that ClickHouse does not take for so long, though it answers, is worth a look */
const HELD_BATCH_MS = 3_000

export interface ServiceParts {
  readonly config: Config
  readonly storage: Storage
  readonly ingestion: Ingestion
  /** null for the only instance there is */
  readonly changes: SharedChanges | null
  readonly claims: ReplayClaims
  readonly accounts: Accounts
  readonly applications: Applications
  readonly limiter: Limiter
  readonly desk: Desk
  readonly live: Live
  readonly insights: Insights
  readonly sourceStats: SourceStats
  readonly audit: Audit
  readonly auditTrail: AuditTable
  readonly metrics: Metrics
  readonly collectorStats: CollectorStats
  readonly jwtSecret: string
  readonly version: string
}

/** What the routes work with; each router names the part it needs. */
export type Services = ReturnType<typeof createServices>

export function createServices(parts: ServiceParts) {
  const { config, ingestion, accounts, applications, live, sourceStats } = parts
  const { sources, templates, events } = ingestion
  const onChanged = (): Promise<void> => live.push.onChanged()
  return {
    ...accounts,
    ...parts.desk,
    ...createCounts(parts),
    ...createChanges(parts, onChanged),
    limiter: parts.limiter,
    cookies: toCookies(config),
    cursorKey: cursorKey(parts.jwtSecret),
    metricsToken: config.metricsToken,
    version: parts.version,
    audit: parts.audit,
    auditTrail: parts.auditTrail,
    metrics: parts.metrics,
    collectorStats: parts.collectorStats,
    kpis: live.kpis,
    insights: parts.insights,
    events: { ...events, page: byTurns(events.page) },
    sources,
    applications,
    health: createHealth(probesOf(parts)),
    sourceTotals: (signal?: AbortSignal) => sourceStats.all(signal),
    eventContext: {
      canonicalTemplate: (id: string) => templates.byId(id)?.id ?? id,
      templateAliases: (id: string) => templates.aliasesOf(id),
      ...applicationLinks(sources, applications),
    },
    explain: (event: EventRecord) => explain(event, ingestion),
    announce: () => {
      void onChanged()
    },
  }
}

/**
 * Pages that are searched for at once: with more each takes so much longer that none is done in time. Half of the
 * connections that all questions share (`store/client.ts`), so that the others find one.
 */
const PAGES_AT_ONCE = 10
const PAGES_WAITING = 1_000

const byTurns = (page: Events['page']): Events['page'] => {
  const inTurn = createSemaphore({
    atOnce: PAGES_AT_ONCE,
    waiting: PAGES_WAITING,
    refusal: () =>
      new AppError('overloaded', 'too many lists of events are being searched', { retryAfterS: 2 }),
  })
  return (query, signal) =>
    inTurn(() => {
      // nobody waits for it any more
      signal?.throwIfAborted()
      return page(query, signal)
    })
}

/** What is counted, read from the rollups. */
const createCounts = ({ sourceStats, storage, ingestion }: ServiceParts) => ({
  series: createSeries(storage.store),
  calendar: createCalendar(storage.store),
  analytics: createAnalytics({ store: storage.store, sourceStats }),
  templateStats: createTemplateStats(storage.store, ingestion.directory),
  ...createTemplateSamples(ingestion.templates, ingestion.events),
  deadLetters: createDeadLetters(storage.store),
})

/** What goes through the pipeline: uploads, corrections, deletions, replays. */
function createChanges(
  { storage, ingestion, config, changes, claims }: ServiceParts,
  onChanged: () => Promise<void>,
) {
  const { pipeline, events, templates, sequencer } = ingestion
  const { withLock } = storage
  return {
    upload: async (file: Upload): Promise<BodyResult> => {
      const result = await pipeline.submit(toSubmission(file))
      // an instance that takes no events may have a disk that goes with it
      if (config.role === 'api') await pipeline.settle()
      return result
    },
    corrections: createCorrections({
      events,
      withLock,
      templates,
      priorities: ingestion.priorities,
      correctRepeats: async (event, priority) => {
        if (changes === null) sequencer.correct(event, PRIORITIES.indexOf(priority))
        else await changes.carryOut({ kind: 'correct-event', event, priority })
      },
      settle: () => pipeline.settle(),
      execute: (statement, rows) => pipeline.execute(statement, rows),
      onCorrected: onChanged,
    }),
    deletions: createDeletions({
      withLock,
      ...(changes === null ? alone(ingestion) : together(changes)),
      forgetDeliveries: (names) => forgetDeliveries(storage.state, names),
      onDeleted: onChanged,
    }),
    replay: createReplay({
      letters: createDeadLetters(storage.store),
      ...claims,
      resubmit: (letters) =>
        Promise.all(letters.map((letter) => resubmit(letter, pipeline, config.maxMessageBytes))),
      settle: () => pipeline.settle(),
      exclusive: (work) => withLock('delete', REPLAY_LOCK_MS, work),
    }),
  }
}

type Deleting = Pick<DeletionParts, 'forget' | 'forgetAll' | 'execute'>

const alone = ({ forget, forgetAll, pipeline }: Ingestion): Deleting => ({
  forget,
  forgetAll,
  execute: (statement) => pipeline.execute(statement),
})

/** Each instance, this one too, forgets by itself when it learns of the change. */
const together = (changes: SharedChanges): Deleting => ({
  forget: () => undefined,
  forgetAll: () => undefined,
  execute: (statement) => changes.carryOut(statement),
})

/** One dead letter as a body of its own; the source is registered, as by a key that may. */
async function resubmit(
  letter: ReplayLetter,
  pipeline: Pipeline,
  maxRows: number,
): Promise<ReplayOutcome> {
  const line = new TextEncoder().encode(letter.line)
  const result = await pipeline.submit({
    format: 'ingest',
    bytes: line,
    events: null,
    protocol: 'replay',
    source: null,
    allowedSources: null,
    keepRaw: true,
    maxRows,
    replays: letter.id,
    register: { type: 'push', connector: 'custom', applicationId: null },
  })
  if (result.accepted > 0) return 'stored'
  return result.rejected > 0 ? 'rejected' : 'kept'
}

function probesOf({ storage, ingestion }: ServiceParts): Parameters<typeof createHealth>[0] {
  const { wal, pool, writer } = ingestion
  return {
    clickhouse: async (signal) => {
      await storage.store.ping({ signal })
      const sinceMs = writer.failingSinceMs
      const heldMs = sinceMs === null ? 0 : performance.now() - sinceMs
      if (heldMs < HELD_BATCH_MS) return { status: 'ok' }
      // it answers and takes no rows: too many parts, no memory, read-only, rows it refuses
      const seconds = Math.round(heldMs / 1000)
      return {
        status: 'degraded',
        detail: `a batch is not taken for ${seconds} s; it waits in the WAL`,
      }
    },
    state: async () => {
      await storage.state.ping()
      return { status: 'ok', detail: storage.state.kind }
    },
    spool: () => {
      if (wal.fault !== null) return { status: 'down', detail: 'the WAL cannot be written' }
      return wal.isFull()
        ? { status: 'down', detail: 'the WAL is full' }
        : { status: 'ok', detail: `${wal.bytes} bytes wait` }
    },
    workers: async () => {
      await pool.ping()
      return { status: 'ok', detail: `${pool.workers} threads` }
    },
  }
}

function explain(
  event: EventRecord,
  { templates, model, overrides }: Ingestion,
): ReturnType<ApiServices['explain']> {
  const template = templates.byId(event.templateId)
  return {
    ...model.explain(template?.no ?? 0, event.severity, template?.text ?? event.message),
    override: overrides.of(template?.id ?? event.templateId),
  }
}

const applicationLinks = (sources: Sources, applications: Applications) => ({
  applicationOf: (source: string): string | null => {
    const id = sources.get(source)?.applicationId ?? null
    return applications.list().find((application) => application.id === id)?.name ?? null
  },
  sourcesOfApplication: (name: string): readonly string[] => {
    const id = applications.byName(name)?.id
    if (id === undefined) return []
    return sources
      .list()
      .filter((source) => source.applicationId === id)
      .map((source) => source.name)
  },
})

const toSubmission = ({ format, bytes, source, applicationId }: Upload): Submission => ({
  format,
  bytes,
  events: null,
  protocol: 'upload',
  source,
  allowedSources: null,
  keepRaw: false,
  maxRows: UPLOAD_ROWS,
  replays: null,
  register: { type: 'file', connector: 'custom', applicationId },
})

const toCookies = (config: Config): CookieSettings => ({
  secure: config.cookieSecure,
  sameSite: config.cookieSamesite,
  accessSeconds: config.accessTokenExpireMinutes * 60,
  refreshSeconds: config.refreshTokenExpireDays * DAY_S,
})
