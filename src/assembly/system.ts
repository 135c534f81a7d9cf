import { join } from 'node:path'

import { ApplicationDoc, createApplications, type Applications } from '../records/applications.js'
import { createAudit, type Audit } from '../records/audit.js'
import { createLimiter, toRateLimits } from '../api/auth/limits.js'
import type { Config } from '../config.js'
import type { DataDir } from '../coordination/data-dir.js'
import { createAuditTable } from '../records/audit-table.js'
import { createSourceStats, type SourceStats } from '../events/source-stats.js'
import { createCollectorStats, type CollectorStats } from '../telemetry/collector-stats.js'
import type { Log } from '../telemetry/log.js'
import { createMetrics, type Metrics } from '../telemetry/metrics.js'
import type { Accounts } from '../api/auth/accounts.js'
import { clearDesk, createDesk, type Desk } from '../records/desk.js'
import { createInsights, type Insights } from '../insights/insights.js'
import { openIngestion, type Ingestion } from './ingestion.js'
import { openLive, type Live } from './live.js'
import { createReplayClaims, noReplayClaims, type ReplayClaims } from '../records/replay-claims.js'
import { createServices, type Services } from './services.js'
import { SharedChanges } from '../coordination/shared-changes.js'
import type { StatementHooks } from './statements.js'
import type { Storage } from './storage.js'

export interface SystemParts {
  readonly config: Config
  readonly log: Log
  readonly storage: Storage
  readonly accounts: Accounts
  readonly jwtSecret: string
  readonly dataDir: DataDir
  readonly version: string
  readonly maxWebSockets: number
}

/** Everything between storage and servers. */
export interface System {
  readonly ingestion: Ingestion
  readonly services: Services
  readonly live: Live
  close(): Promise<void>
}

const CLOSE_INGESTION_MS = 3_000
const CLOSE_AUDIT_MS = 1_000

export async function openSystem(parts: SystemParts): Promise<System> {
  const { config, log, storage, accounts, version } = parts
  const counters = {
    metrics: createMetrics({ version }),
    collectorStats: createCollectorStats(),
    sourceStats: createSourceStats(storage.store),
  }
  const late: LateParts = { hooks: null, live: null }
  const changes = openChanges(parts)
  const ingestion = await joinIngestion(parts, counters, { late, changes })
  const applications = createApplications(
    storage.entities.collection('application', ApplicationDoc),
    storage.withLock,
  )
  const desk = joinDesk(parts, ingestion, applications)
  const insights = createInsights({
    config,
    log,
    ...storage,
    ...ingestion,
    directory: ingestion.directory,
    ...desk,
    onNews: async () => late.live?.push.onChanged(),
  })
  late.hooks = hooksAmong(insights, desk, applications)
  const limiter = createLimiter(storage.state, toRateLimits(config))
  const shared = { config, storage, ingestion, applications, limiter, log }
  const live = await openLive({
    ...shared,
    sessions: accounts.sessions,
    alerts: desk.alerts,
    mlHealth: () => insights.mlHealth(),
    maxWebSockets: parts.maxWebSockets,
  })
  late.live = live
  accounts.onUserChanged((id) => live.sockets.closeUser(id, POLICY_VIOLATION, 'the user is gone'))
  const auditTrail = createAuditTable(storage.store)
  const audit = createAudit({ append: auditTrail.append, log })
  const services = createServices({
    ...parts,
    ...shared,
    ...counters,
    changes,
    claims: openClaims(parts),
    desk,
    live,
    insights,
    audit,
    auditTrail,
  })
  watch(counters, { ingestion, storage, live })
  ingestion.begin()
  if (config.role !== 'collector') insights.start()
  const parted = { ingestion, live, insights, audit, changes }
  return { ingestion, services, live, close: () => close(parted) }
}

interface Parted {
  readonly ingestion: Ingestion
  readonly live: Live
  readonly insights: Insights
  readonly audit: Audit
  readonly changes: SharedChanges | null
}

async function close({ ingestion, live, insights, audit, changes }: Parted): Promise<void> {
  live.push.close()
  await insights.close()
  await ingestion.close(CLOSE_INGESTION_MS)
  await changes?.leave()
  await audit.close(CLOSE_AUDIT_MS)
}

interface Counters {
  readonly metrics: Metrics
  readonly collectorStats: CollectorStats
  readonly sourceStats: SourceStats
}

/** An embedded database has no other instance. */
const openChanges = ({ storage, dataDir, log }: SystemParts): SharedChanges | null =>
  storage.embedded === null
    ? new SharedChanges({
        ...storage,
        self: dataDir.instanceId,
        log,
        insertsRunning: (seconds) => storage.store.insertsRunning(seconds),
      })
    : null

const openClaims = ({ storage, dataDir }: SystemParts): ReplayClaims =>
  storage.embedded === null
    ? createReplayClaims(storage.entities, dataDir.instanceId)
    : noReplayClaims

const joinIngestion = (
  { config, storage, log, dataDir }: SystemParts,
  { metrics, collectorStats }: Counters,
  { late, changes }: { readonly late: LateParts; readonly changes: SharedChanges | null },
): Promise<Ingestion> =>
  openIngestion({
    config,
    storage,
    walDir: join(dataDir.path, 'wal'),
    log,
    hooks: hooksOf(late),
    shared: changes,
    onWritten: (rows) => {
      metrics.batchWritten(rows)
      late.live?.push.onWritten()
    },
    onFailure: () => metrics.batchFailed(),
    onRefused: (rows) => metrics.rowsRefused(rows),
    onInsert: (table, seconds, ok) => metrics.insertEnded(table, seconds, ok),
    onAccepted: (bodies) => {
      metrics.ingested(bodies.protocol, bodies)
      collectorStats.note(bodies)
    },
  })

const POLICY_VIOLATION = 1008

const joinDesk = (
  { storage, accounts }: SystemParts,
  ingestion: Ingestion,
  applications: Applications,
): Desk =>
  createDesk({
    entities: storage.entities,
    sourcesOfEvents: (ids) => ingestion.events.sourcesOf(ids),
    hasSource: (name) => ingestion.sources.get(name) !== undefined,
    hasUser: (id) => accounts.users.get(id) !== null,
    hasApplication: (id) => applications.has(id),
  })

const hooksAmong = (
  insights: Insights,
  desk: Desk,
  applications: Applications,
): StatementHooks => ({
  removeAlerts: async (sources) => {
    await insights.forget(sources)
    return await desk.alerts.removeForSources(sources)
  },
  clearEntities: async () => {
    await insights.forgetAll()
    return await clearDesk(desk, applications)
  },
})

/** What statements and batches reach that is made after the ingestion. */
interface LateParts {
  hooks: StatementHooks | null
  live: Live | null
}

const hooksOf = (late: LateParts): StatementHooks => {
  const ready = (): StatementHooks => {
    if (late.hooks === null) throw new Error('bug: a statement before the writer began')
    return late.hooks
  }
  return {
    removeAlerts: (sources) => ready().removeAlerts(sources),
    clearEntities: () => ready().clearEntities(),
  }
}

function watch(
  { metrics }: Counters,
  { ingestion, storage, live }: Pick<System, 'ingestion' | 'live'> & Pick<SystemParts, 'storage'>,
): void {
  let isStateUp = true
  storage.state.onStatus((status) => {
    isStateUp = status === 'ok'
  })
  metrics.watch({
    walBytes: () => ingestion.wal.bytes,
    walLimitBytes: () => ingestion.wal.maxBytes,
    walEntries: () => ingestion.wal.waiting.length,
    walDamagedBytes: () => ingestion.wal.damagedBytes,
    pipelineBytes: () => ingestion.pipeline.bytes,
    bufferBytes: () => ingestion.buffers.bytes + ingestion.rooms.bytes,
    bufferFreeBytes: () => ingestion.buffers.freeBytes + ingestion.rooms.freeBytes,
    dedupEntries: () => ingestion.window.size,
    templates: () => ingestion.templates.size,
    sources: () => ingestion.sources.size,
    webSockets: () => live.sockets.size,
    workers: () => ingestion.pool.workers,
    isStateUp: () => isStateUp,
    isClickhouseUp: () => ingestion.writer.failingSinceMs === null,
  })
}
