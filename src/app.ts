import { openAlerting } from './alerting/alerting.js'
import { openAccounts, type Accounts } from './api/auth/accounts.js'
import { createResets } from './api/auth/resets.js'
import { createEventContext } from './api/event-context.js'
import { createExportSlots } from './api/export-slots.js'
import { gaugesOf } from './api/gauges.js'
import { createHealth, healthProbes } from './api/health.js'
import { createIntrusions } from './api/intrusions.js'
import { openLive } from './api/live.js'
import { createQuestions } from './api/questions.js'
import { ingestServices, openServers, type AppServices } from './api/servers.js'
import { metricsAccessOf } from './api/services.js'
import { createBackups } from './backup/backup.js'
import { openControl, type AccountResets } from './backup/control.js'
import { openDatabase } from './clickhouse/database.js'
import type { Config } from './config.js'
import { createOwnChanges } from './coordination/changes.js'
import { openDataDir } from './coordination/data-dir.js'
import { joinInstances, type Instance } from './coordination/instance.js'
import { createExclusive, inTurn } from './coordination/lock.js'
import { openState } from './coordination/open-state.js'
import { openSeal } from './coordination/seal.js'
import { SharedChanges } from './coordination/shared-changes.js'
import { createEvents } from './events/events.js'
import { createKpis } from './events/kpis.js'
import { openLedger } from './events/ledger.js'
import { createStatistics } from './events/statistics.js'
import { planCapacity } from './http/capacity.js'
import type { Uws } from './http/uws.js'
import { DedupWindow } from './ingest/dedup-window.js'
import { createDeletions, createEffects } from './ingest/deletions.js'
import { openListenerPorts } from './ingest/listeners/listeners.js'
import { openMemory } from './ingest/memory.js'
import { createOnce } from './ingest/once.js'
import { Pipeline } from './ingest/pipeline.js'
import { openPool } from './ingest/pool.js'
import { openWal } from './ingest/recovery.js'
import { createResubmission } from './ingest/replays.js'
import { Sequencer } from './ingest/sequencer.js'
import { createUpload } from './ingest/upload.js'
import { createWriteTarget } from './ingest/write-target.js'
import { Insights } from './insights/insights.js'
import { createCorrections } from './priority/corrections.js'
import { openPriorities } from './priority/store.js'
import { createApplications } from './records/applications.js'
import { openAuditTrail } from './records/audit-trail.js'
import { cursorKey } from './records/cursor.js'
import { createDeadLetters } from './records/dead-letters.js'
import { createRecords } from './records/records.js'
import { createReplay, createReplayClaims } from './records/replay.js'
import { openSources } from './records/sources.js'
import { explainFullDisk } from './retention/disk-limit.js'
import { createRetention, type Retention } from './retention/retention.js'
import { createCollectorStats } from './telemetry/collector-stats.js'
import type { Log } from './telemetry/log.js'
import { createMetrics } from './telemetry/metrics.js'
import { createTemplateDirectory } from './templates/directory.js'
import { createTemplateStore } from './templates/store.js'
import { openTemplates } from './templates/tables.js'
import { createTemplateUpkeep, type TemplateUpkeep } from './templates/upkeep.js'
import type { Wal } from './wal/wal.js'
import { createBatchStore } from './writer/batch-store.js'
import { createQuarantine } from './writer/quarantine.js'
import { Writer } from './writer/writer.js'

export interface AppOptions {
  readonly config: Config
  readonly log: Log
  readonly uws: Uws
  /** The program's version. */
  readonly version: string
  /** Called with the first credentials, which nobody can read later. */
  readonly onMade?: (made: Accounts['made']) => void
}

/** The running program. */
export interface App extends AccountResets, Pick<Instance, 'isEmbedded' | 'store'> {
  /** The ports that were opened; null where the role has none. */
  readonly apiPort: number | null
  readonly collectorPort: number | null
  /** The ports of other protocols, by setting. */
  readonly listenerPorts: ReadonlyMap<string, number>
  readonly pipeline: Pipeline
  readonly wal: Wal
  readonly writer: Writer
  readonly services: AppServices
  readonly templateUpkeep: TemplateUpkeep
  readonly retention: Retention
  close(): Promise<void>
}

/** Time for requests in flight, and for acknowledged rows to be written. */
const CLOSE_HTTP_MS = 3_000
const CLOSE_WRITER_MS = 3_000

/**
 * Builds the program from top to bottom: each part is made from the parts above it. First what is kept (data
 * directory, shared state, ClickHouse, accounts, records, WAL, templates, priorities), then what reads it (events,
 * insights, KPIs, WebSockets), then what a message passes through (sequencer, writer, pipeline), then what people change
 * (alert rules, corrections, deletions, replays), and what answers (services, servers). The writer and the insight engine,
 * which run by themselves, start when everything is there. The parts close in the opposite order.
 *
 * @throws Error saying what keeps the program from starting; whatever was opened is closed again
 */
export async function openApp(options: AppOptions): Promise<App> {
  const { config, log, uws, version } = options
  const closers: (() => unknown)[] = []
  const close = async (): Promise<void> => {
    for (const step of closers.splice(0).toReversed()) await step()
  }
  /** Has a part closed at the end. */
  const closing = <T extends { close(): unknown }>(part: T): T => {
    closers.push(() => part.close())
    return part
  }
  try {
    // What is kept.
    const dataDir = openDataDir(config.dataDir)
    closers.push(() => dataDir.release())
    const state = closing(await openState(config, dataDir.instanceId, log))
    const database = closing(await openDatabase(config, { log }))
    const exclusive = createExclusive(state)
    await database.reach()
    await inTurn(exclusive, 'migrate', () => database.prepare())
    dataDir.migrated()
    const metrics = createMetrics({ version })
    const own = { config, log, metrics, state, exclusive }
    const instance = closing(await joinInstances(dataDir, database, own))
    const { store, alone, isEmbedded } = instance

    // Who may: users, sessions, keys, limits, the audit trail.
    const jwtSecret = config.jwtSecret ?? dataDir.secret('jwt-secret')
    const seal = openSeal(config, dataDir)
    const accounts = closing(await openAccounts({ ...instance, jwtSecret, seal }))
    options.onMade?.(accounts.made)
    const auditTrail = closing(await openAuditTrail(instance))
    const { audit } = auditTrail

    // What people work on, and how long it is kept.
    const ledger = closing(await openLedger(instance))
    const sources = openSources(instance)
    const applications = createApplications(instance)
    const retention = closing(
      createRetention({ ...instance, audit, sources, applications, onDropped: ledger.restart }),
    )
    const events = createEvents(store, { config, retention })
    const records = createRecords({
      ...instance,
      sources,
      applications,
      events,
      users: accounts.users,
    })

    // The WAL with what an earlier run left in it; templates and priorities.
    const memory = closing(openMemory())
    const templateStore = createTemplateStore(store)
    const { wal, pending } = closing(await openWal({ ...instance, memory, sources, templateStore }))
    const tables = await openTemplates(templateStore)
    const { templates } = tables
    const priorities = openPriorities(instance, templates)
    const directory = createTemplateDirectory(templates, priorities.overrides)
    /** What is kept, which nearly every part below works with. */
    const kept = {
      ...instance,
      ...tables,
      ledger,
      sources,
      applications,
      retention,
      events,
      records,
      wal,
      pending,
      memory,
      templateStore,
      priorities,
      directory,
    }

    // What reads it: insights, statistics, KPIs, WebSockets.
    const insights = closing(new Insights(kept))
    const statistics = createStatistics(kept)
    const kpis = createKpis({ ...kept, ...statistics, insights })
    const capacity = planCapacity(config.maxConnections, log)
    const answering = {
      cursorKey: cursorKey(jwtSecret),
      questions: createQuestions(config.questionsPerUser),
      eventContext: createEventContext(kept),
    }
    const live = closing(await openLive({ ...instance, ...answering, capacity, accounts, kpis }))
    const { onChanged } = live

    // From the WAL into ClickHouse.
    const window = new DedupWindow(config.dedupWindowSeconds * 1000, config.dedupMaxEntries)
    const sequencer = new Sequencer({ ...kept, ...priorities, window, retention: retention.policy })
    wal.onDamage(() => {
      // The lost records may have begun events and named templates.
      sequencer.forgetAll()
      templates.markUnsaved()
    })
    const batches = createBatchStore(store)
    const effects = createEffects({ ...kept, ...statistics, batches, sequencer, insights })
    // Repeats of an event that is not stored begin a new one.
    const onRefused = (): void => sequencer.forgetAll()
    const writer = new Writer({
      ...kept,
      quarantine: createQuarantine({ ...kept, batches, onRefused }),
      target: createWriteTarget({ ...kept, batches, effects }),
      onWritten: live.onWritten,
    })

    // From a body to the WAL.
    const pool = closing(await openPool(kept))
    const once = createOnce(state, alone)
    const collectorStats = createCollectorStats()
    const pipeline = new Pipeline({ ...kept, pool, once, sequencer, writer, collectorStats })
    const templateUpkeep = createTemplateUpkeep({ ...kept, pipeline })
    const changes = isEmbedded
      ? createOwnChanges(effects, pipeline)
      : new SharedChanges({ ...kept, writer, pipeline, effects })
    closers.push(async () => {
      await templateUpkeep.close()
      await pipeline.close()
      // What is not written in time waits in the WAL for the next start.
      await pipeline.settle(CLOSE_WRITER_MS).catch(() => undefined)
      await writer.stop()
      await changes.leave()
    })

    // What people change: alert rules, corrections, deletions, replays.
    const alerting = closing(
      await openAlerting({ ...kept, ...answering, seal, pipeline, insights, onChanged }),
    )
    effects.onCleared(() => alerting.evaluator.forgetAll())
    const corrections = createCorrections({ ...kept, changes, pipeline, onChanged })
    const deletions = createDeletions({ ...kept, changes, pipeline, batches, onChanged })
    const deadLetters = createDeadLetters(store)
    const replay = createReplay({
      ...instance,
      ...createResubmission({ pipeline, findKey: accounts.ingestKeys.find }),
      deadLetters,
      claims: createReplayClaims(instance),
    })

    // What the routes work with; each router names the part it needs.
    const services: AppServices = {
      ...kept,
      ...accounts,
      ...records,
      ...alerting.services,
      ...answering,
      ...statistics,
      version,
      collectorStats,
      metricsAccess: metricsAccessOf(config),
      intrusions: createIntrusions({ audit, metrics }),
      exportSlots: createExportSlots(),
      auditTrail: auditTrail.table,
      deadLetters,
      kpis,
      insights,
      corrections,
      deletions,
      replay,
      upload: createUpload(config, pipeline),
      health: createHealth(healthProbes({ ...kept, pool, writer, alerting })),
      announce: () => void onChanged(),
    }
    metrics.watch(gaugesOf({ ...kept, window, live, pool, pipeline, writer, alerting }))

    // What runs by itself, and the ports.
    writer.start(changes)
    ledger.start(pipeline)
    if (config.role !== 'collector') {
      insights.start(onChanged)
      retention.start()
    }
    alerting.evaluator.start(config.role !== 'collector')
    const ingest = ingestServices({ ...kept, services, pipeline, once })
    const servers = openServers({ ...kept, uws, capacity, audit, live, services, ingest })
    closers.push(() => servers.close(CLOSE_HTTP_MS))
    const key = () => accounts.ingestKeys.named(config.listenerKey)
    const listenerPorts = await openListenerPorts({ config, log, key, ingest, capacity })
    closers.push(() => listenerPorts.close(CLOSE_HTTP_MS))
    metrics.watchListeners(listenerPorts)
    const resets = createResets(accounts, audit)
    const backup = createBackups({ ...instance, pipeline, writer })
    const { verify: verifyAudit } = auditTrail
    closers.push(await openControl(dataDir.path, { ...resets, backup, verifyAudit }))
    return {
      ...kept,
      ...resets,
      ...servers,
      listenerPorts: listenerPorts.ports,
      pipeline,
      writer,
      services,
      templateUpkeep,
      close,
    }
  } catch (error) {
    await close()
    throw (await explainFullDisk(config.dataDir, error)) ?? error
  }
}
