import { join } from 'node:path'

import { createAlerting } from './alerting/alerting.js'
import { openAccounts, type Accounts } from './api/auth/accounts.js'
import { createLimiter, toRateLimits } from './api/auth/limits.js'
import { createResets } from './api/auth/resets.js'
import { openMailer, openSmtp } from './api/auth/mailer.js'
import { createEventContext, explainPriority } from './api/event-context.js'
import { createExportSlots } from './api/export-slots.js'
import { gaugesOf } from './api/gauges.js'
import { createHealth, healthProbes } from './api/health.js'
import { openLive } from './api/live.js'
import { createIntrusions } from './api/intrusions.js'
import { createQuestions } from './api/questions.js'
import { ingestServices, openServers, type AppServices } from './api/servers.js'
import { metricsAccessOf } from './api/services.js'
import { createBackups } from './backup/backup.js'
import { openControl, type AccountResets } from './backup/control.js'
import { openBucket } from './backup/bucket.js'
import type { Store } from './clickhouse/client.js'
import { openDatabase } from './clickhouse/database.js'
import type { Config } from './config.js'
import { openDataDir } from './coordination/data-dir.js'
import { joinInstances } from './coordination/instance.js'
import { createExclusive, inTurn } from './coordination/lock.js'
import { createInProcessState } from './coordination/memory-state.js'
import { openSeal } from './coordination/seal.js'
import { openState } from './coordination/open-state.js'
import { SharedChanges } from './coordination/shared-changes.js'
import { createAnalytics } from './events/analytics.js'
import { createArrivalReader } from './events/arrivals.js'
import { createCalendar } from './events/calendar.js'
import { createEvents } from './events/events.js'
import { createKpiCache } from './events/kpi-cache.js'
import { openLedger } from './events/ledger.js'
import { computeKpis } from './events/kpis.js'
import { createSeries } from './events/series.js'
import { createSourceStats } from './events/source-stats.js'
import { createTemplateSamples } from './events/template-samples.js'
import { createTemplateStats } from './events/template-stats.js'
import { planCapacity } from './http/capacity.js'
import type { Uws } from './http/uws.js'
import { DedupWindow } from './ingest/dedup-window.js'
import { createListeners, type Listeners } from './ingest/listener.js'
import { openListenerPorts } from './ingest/listeners/listeners.js'
import { openMemory, WAL_CACHE_BYTES } from './ingest/memory.js'
import { createOnce, rememberStored, WINDOW_MS } from './ingest/once.js'
import { Pipeline } from './ingest/pipeline.js'
import { openPool } from './ingest/pool.js'
import { createWriteTarget } from './ingest/write-target.js'
import { recoverWal } from './ingest/recovery.js'
import { Sequencer } from './ingest/sequencer.js'
import { createResubmission } from './ingest/replays.js'
import { uploadSubmission, type UploadedFile } from './ingest/submission.js'
import { createDeletions, createErasure } from './ingest/deletions.js'
import { createInsights } from './insights/insights.js'
import type { BodyResult } from './ingest/block.js'
import { PRIORITIES, type EventRecord } from './model/event.js'
import { createCorrections } from './priority/corrections.js'
import { PriorityModel } from './priority/model.js'
import { PriorityOverrides } from './priority/overrides.js'
import { createPriorityStore } from './priority/store.js'
import { ApplicationDoc, createApplications } from './records/applications.js'
import { openAuditTrail } from './records/audit-trail.js'
import { cursorKey } from './records/cursor.js'
import { createDeadLetters } from './records/dead-letters.js'
import { createRecords } from './records/records.js'
import { createReplay, createReplayClaims, noReplayClaims } from './records/replay.js'
import { SourceDoc, Sources } from './records/sources.js'
import { createRetentionPolicy } from './retention/policy.js'
import { explainFullDisk, heldLimit } from './retention/disk-limit.js'
import { createRetention, type Retention } from './retention/retention.js'
import { s3Of } from './settings/cold.js'
import { createCollectorStats } from './telemetry/collector-stats.js'
import type { Log } from './telemetry/log.js'
import { createMetrics } from './telemetry/metrics.js'
import { createTemplateDirectory } from './templates/directory.js'
import { adoptStoredTemplates, loadTemplates, numberTemplates } from './templates/sharing.js'
import { createTemplateStore } from './templates/store.js'
import { createTemplateTables } from './templates/tables.js'
import { createTemplateUpkeep, type TemplateUpkeep } from './templates/upkeep.js'
import { writeBesideLog } from './wal/file.js'
import { Wal } from './wal/wal.js'
import { createBatchStore } from './writer/batch-store.js'
import { createQuarantine } from './writer/quarantine.js'
import { PendingChanges } from './writer/pending-changes.js'
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
export interface App extends AccountResets {
  /** The ports that were opened; null where the role has none. */
  readonly apiPort: number | null
  readonly collectorPort: number | null
  /** The ports of other protocols, by setting. */
  readonly listenerPorts: ReadonlyMap<string, number>
  readonly isEmbedded: boolean
  readonly store: Store
  readonly pipeline: Pipeline
  readonly listeners: Listeners
  readonly wal: Wal
  readonly writer: Writer
  readonly services: AppServices
  readonly templateUpkeep: TemplateUpkeep
  readonly retention: Retention
  close(): Promise<void>
}

const REPLAY_LOCK_MS = 15_000

/** Time for requests in flight, for acknowledged rows to be written, and for the audit trail. */
const CLOSE_HTTP_MS = 3_000
const CLOSE_WRITER_MS = 3_000
const CLOSE_AUDIT_MS = 1_000

/**
 * Builds the program from top to bottom: each part is made from the parts above it. First what is kept (data
 * directory, shared state, ClickHouse, records), then what an event passes through (templates, priority,
 * sequencer, WAL, writer, pipeline), then what answers (KPIs, services, servers). The writer and the insight
 * engine, which run by themselves, start when everything is there. The parts close in the opposite order.
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
    const jwtSecret = config.jwtSecret ?? dataDir.secret('jwt-secret')
    const state = closing(await openState(config, dataDir.instanceId, log))
    const database = closing(await openDatabase(config, { log }))
    const { store, embedded } = database
    const exclusive = createExclusive(state)
    await database.reach()
    await inTurn(exclusive, 'migrate', () => database.prepare())
    dataDir.migrated()

    const instance = closing(
      await joinInstances({ store, state, exclusive, isEmbedded: embedded !== null, log }),
    )
    const { replica, entities, withLock, ids } = instance

    // Who may: users, sessions, keys, limits, the audit trail.
    const metrics = createMetrics({ version })
    // Takes the place of the shared state while that does not answer.
    const alone = createInProcessState({
      onError: (error) => log.warn({ err: error }, 'the state of this process fails'),
    })
    const limiter = createLimiter(state, toRateLimits(config), alone)
    const mailer = openMailer(config, log)
    closers.push(() => mailer?.close())
    const seal = openSeal(config, dataDir)
    const accounts = await openAccounts(config, {
      entities,
      withLock,
      jwtSecret,
      seal,
      state,
      limiter,
      metrics,
      mailer,
      log,
    })
    options.onMade?.(accounts.made)
    const auditTrail = await openAuditTrail(store, dataDir, log)
    const { audit } = auditTrail
    closers.push(() => audit.close(CLOSE_AUDIT_MS))

    // What is counted and read.
    const collectorStats = createCollectorStats()
    const sourceStats = createSourceStats(store)
    const deadLetters = createDeadLetters(store)
    const ledger = closing(await openLedger({ store, state, self: dataDir.instanceId }))

    // What people work on, and how long it is kept.
    const sourceRecords = entities.collection('source', SourceDoc)
    const sources = new Sources(
      sourceRecords,
      { maxSources: config.maxSources, perKey: config.sourcesPerKey },
      Date.now,
    )
    sourceRecords.onChange(({ id, value, origin }) => {
      if (origin === 'reload') sources.follow(id, value)
    })
    const applications = createApplications(
      entities.collection('application', ApplicationDoc),
      withLock,
    )
    const policy = createRetentionPolicy({
      retentionDays: config.retentionDays,
      bySeverity: config.retentionBySeverity,
      sources,
      applications,
    })
    const s3 = s3Of(config)
    const maxDisk = heldLimit(config.maxDisk, embedded !== null, log)
    const retention = closing(
      createRetention({
        store,
        entities,
        exclusive,
        policy,
        log,
        limit: maxDisk,
        dir: embedded === null ? null : dataDir.path,
        coldAfterDays: config.coldAfterDays,
        checkS3: s3 === null ? null : openBucket(s3).check,
        audit,
        metrics: {
          droppedForDisk: (rows) => {
            metrics.droppedForDisk(rows)
            ledger.restart()
          },
        },
      }),
    )
    const events = createEvents(store, {
      dedupWindowSeconds: config.dedupWindowSeconds,
      retention,
      coldUntilMs: retention.cold.untilMs,
    })
    const records = createRecords({
      entities,
      sourcesOfEvents: (eventIds) => events.sourcesOf(eventIds),
      hasSource: (name) => sources.get(name) !== undefined,
      hasUser: (id) => accounts.users.get(id) !== null,
      hasApplication: (id) => applications.has(id),
    })

    // Templates, duplicates, priorities.
    const templateStore = createTemplateStore(store)
    const { templates, signatures, constantTexts } = createTemplateTables()
    const model = new PriorityModel()
    model.watch(templates)
    const overrides = new PriorityOverrides(templates)
    const window = new DedupWindow(config.dedupWindowSeconds * 1000, config.dedupMaxEntries)
    const sequencer = new Sequencer({
      ids,
      window,
      templates,
      model,
      overrides,
      retention: policy,
    })
    const directory = createTemplateDirectory(templates, (id) => overrides.of(id))
    const templateStats = createTemplateStats(store, directory)

    // The WAL, and what an earlier run left in it.
    const memory = closing(openMemory())
    const { bufferPool, blockPool } = memory
    const walDir = join(dataDir.path, 'wal')
    const wal = closing(
      await Wal.open({
        dir: walDir,
        maxBytes: config.walMaxBytes,
        cacheBytes: WAL_CACHE_BYTES,
        blockPool,
        keepOnceKeysMs: WINDOW_MS,
        onDamage: (report) => {
          log.error(report, 'the WAL is damaged; what is readable is kept')
          // The lost records may have begun events and named templates.
          sequencer.forgetAll()
          templates.markUnsaved()
        },
        onFullDisk: () =>
          log.warn(
            { dir: walDir },
            'the disk is full: no events are taken until there is space on it',
          ),
      }),
    )
    const pending = new PendingChanges()
    const onceKeys = await recoverWal(wal, sources, { store: templateStore, pending })
    await rememberStored(state, onceKeys)
    await loadTemplates(templateStore, templates)
    const priorities = createPriorityStore({ entities, templates, model, overrides })

    // The insights, the KPIs and the WebSockets.
    const insights = closing(
      createInsights({
        config,
        log,
        store,
        state,
        sources,
        directory,
        model,
      }),
    )
    const capacity = planCapacity(config.maxConnections, log)
    const kpis = createKpiCache({
      state,
      compute: () =>
        computeKpis({
          store,
          replica,
          directory,
          sources,
          applications,
          alerts: records.alerts,
          mlHealth: () => insights.mlHealth(),
        }),
    })
    const questions = createQuestions(config.questionsPerUser)
    const eventContext = createEventContext({ templates, sources, applications })
    const cursors = cursorKey(jwtSecret)
    const arrivals = createArrivalReader(store)
    const live = closing(
      await openLive({
        config,
        log,
        state,
        replica,
        accounts,
        limiter,
        kpis,
        arrivals,
        questions,
        context: eventContext,
        cursorKey: cursors,
        maxOpen: capacity.webSockets,
      }),
    )
    const { onChanged } = live

    // From the WAL into ClickHouse.
    const batches = createBatchStore(store)
    const erasure = createErasure({
      batches,
      sources,
      sequencer,
      templates,
      templateStats,
      priorities,
      insights,
      records,
      applications,
      deleting: ledger.deleting,
    })
    const writer = new Writer({
      wal,
      pending,
      quarantine: createQuarantine({
        wal,
        newToken: batches.newToken,
        wouldTake: batches.wouldTake,
        storedAmong: batches.storedAmong,
        takeId: () => ids.take(),
        writeFile: (name, bytes) => writeBesideLog(walDir, name, bytes),
        onRefused: (rows) => {
          log.error({ rows }, 'clickhouse refused rows of a batch; they are dead letters')
          metrics.rowsRefused(rows)
          // Repeats of an event that is not stored begin a new one.
          sequencer.forgetAll()
        },
      }),
      target: createWriteTarget({
        batches,
        events,
        templateStore,
        sources,
        erasure,
        deleting: ledger.deleting,
        replica,
        metrics,
        log,
      }),
      onWritten: (rows) => {
        metrics.batchWritten(rows)
        live.onWritten()
      },
      onFailure: (error, attempt) => {
        metrics.batchFailed()
        log[attempt === 1 ? 'warn' : 'debug'](
          { err: error, attempt },
          'a batch waits for clickhouse',
        )
      },
    })

    // From a body to the WAL.
    const ownerOf = (source: string): string => sources.get(source)?.keyId ?? ''
    const pool = closing(
      await openPool(config, {
        shared: {
          signatures: signatures.buffer,
          constantTexts: constantTexts.buffer,
          identity: {
            ignoredTags: config.dedupIgnoreAttributes,
            isDeduplicated: config.dedupWindowSeconds > 0,
          },
        },
        memory,
        ownerOf,
        prepare: (threads) => numberTemplates(templates, (known) => threads.restore(known)),
      }),
    )
    const once = createOnce(state, alone)
    const pipeline = new Pipeline({
      pool,
      once,
      sequencer,
      wal,
      writer,
      templates,
      sources,
      environment: config.environment,
      timeZone: config.defaultTimeZone,
      maxMessageBytes: config.maxMessageBytes,
      maxBytes: config.pipelineMaxBytes,
      modelVersion: () => model.modelVersion,
      learnSignature: (lo, hi, templateNo) => signatures.put(lo, hi, templateNo),
      onAcknowledged: ledger.acknowledged,
      onAccepted: (sums, block) => {
        if (block !== null) metrics.stored(block)
        for (const bodies of sums) {
          metrics.ingested(bodies.protocol, bodies)
          collectorStats.note(bodies)
        }
      },
    })
    const listeners = createListeners({
      key: () => accounts.ingestKeys.named(config.listenerKey),
      pipeline,
      once,
    })
    replica.onCatchUp(() =>
      adoptStoredTemplates(templateStore, templates, (rows) => pipeline.adopt(rows)),
    )
    const templateUpkeep = createTemplateUpkeep({
      store: templateStore,
      templates,
      ownerOf,
      isCorrected: (id) => overrides.of(id) !== null,
      settle: () => pipeline.settle(),
      renumber: () => pipeline.renumberTemplates(),
      onForgotten: (forgotten) => metrics.templatesForgotten(forgotten),
      log,
    })
    // Deletions and corrections that all instances on one database make together; null for a single instance.
    const shared =
      embedded === null
        ? new SharedChanges({
            entities,
            replica,
            exclusive,
            self: dataDir.instanceId,
            log,
            store,
            wal,
            writer,
            pending,
            appendCommand: (command) => pipeline.appendCommand(command),
            ...erasure,
            forgetRepeats: () => sequencer.forgetAll(),
            correct: (event, priority) => sequencer.correct(event, PRIORITIES.indexOf(priority)),
          })
        : null
    closers.push(async () => {
      await templateUpkeep.close()
      await pipeline.close()
      // What is not written in time waits in the WAL for the next start.
      await pipeline.settle(CLOSE_WRITER_MS).catch(() => undefined)
      await writer.stop()
      await shared?.leave()
    })

    // Alert rules.
    const alerting = createAlerting({
      entities,
      store,
      state,
      log,
      instanceId: dataDir.instanceId,
      wal,
      pipeline,
      context: eventContext,
      alerts: records.alerts,
      incidents: records.incidents,
      findings: (sinceMs, signal) => insights.findings(sinceMs, signal),
      onAlerts: onChanged,
      hasSource: (name) => sources.get(name) !== undefined,
      seal,
      mayBePrivate: config.alertPrivateAddresses,
      publicUrl: config.publicUrl,
      smtp: openSmtp(config),
    })
    closers.push(() => alerting.evaluator.close())
    erasure.onCleared(() => alerting.evaluator.forgetAll())
    await alerting.addDefaultRules()

    // What people change: corrections, deletions, replays, uploads.
    const corrections = createCorrections({
      events,
      withLock,
      templates,
      priorities,
      retention: policy,
      correctRepeats: async (event, priority) => {
        if (shared === null) sequencer.correct(event, PRIORITIES.indexOf(priority))
        else await shared.carryOut({ kind: 'correct-event', event, priority })
      },
      settle: () => pipeline.settle(),
      execute: (command, rows) => pipeline.execute(command, rows),
      onCorrected: onChanged,
    })
    const deletions = createDeletions({
      withLock,
      state,
      erasure,
      pipeline,
      events,
      sequencer,
      newToken: batches.newToken,
      shared,
      // A deletion needs cold storage only when there are rows in it.
      coldFault: () => (retention.cold.untilMs() === 0 ? null : retention.cold.fault()),
      onDeleted: onChanged,
    })
    const replay = createReplay({
      deadLetters,
      claims: embedded === null ? createReplayClaims(entities, dataDir.instanceId) : noReplayClaims,
      ...createResubmission({ pipeline, findKey: accounts.ingestKeys.find }),
      exclusive: (work) => withLock('delete', REPLAY_LOCK_MS, work),
    })

    // What the routes work with; each router names the part it needs.
    const services: AppServices = {
      ...accounts,
      ...records,
      ...alerting.services,
      limiter,
      intrusions: createIntrusions({ audit, metrics }),
      questions,
      exportSlots: createExportSlots(),
      auditTrail: auditTrail.table,
      metrics,
      collectorStats,
      version,
      collectorUrl: config.collectorUrl,
      cursorKey: cursors,
      metricsAccess: metricsAccessOf(config),
      sources,
      applications,
      retentionDays: config.retentionDays,
      retentionBySeverity: config.retentionBySeverity,
      maxDisk,
      storage: () => retention.report(),
      events,
      eventContext,
      explain: (event: EventRecord) => explainPriority(event, { templates, model, overrides }),
      series: createSeries(store),
      calendar: createCalendar(store),
      analytics: createAnalytics({ store, sourceStats }),
      ledger,
      sourceStats,
      templateStats,
      ...createTemplateSamples(templates, events),
      deadLetters,
      kpis,
      insights,
      corrections,
      deletions,
      replay,
      upload: async (file: UploadedFile): Promise<BodyResult> => {
        const result = await pipeline.submit(uploadSubmission(file))
        // The disk of an instance with the role `api` may be removed together with it.
        if (config.role === 'api') await pipeline.settle()
        return result
      },
      coldUntilMs: retention.cold.untilMs,
      health: createHealth(
        healthProbes({
          store,
          state,
          wal,
          pool,
          writer,
          retention,
          alertProblem: alerting.problem,
        }),
      ),
      announce: () => {
        void onChanged()
      },
    }
    metrics.watch(
      gaugesOf({
        wal,
        pipeline,
        buffers: [bufferPool, blockPool],
        window,
        templates,
        sources,
        live,
        pool,
        alerting,
        cold: retention.cold,
        state,
        writer,
      }),
    )

    // What runs by itself, and the ports.
    writer.start(shared)
    ledger.start(pipeline)
    if (config.role !== 'collector') {
      insights.start(onChanged)
      retention.start()
    }
    alerting.evaluator.start(config.role !== 'collector')
    const servers = openServers({
      config,
      uws,
      log,
      services,
      audit,
      metrics,
      pipeline,
      once,
      wal,
      buffers: bufferPool,
      webSockets: live.routes,
      state,
      replica,
      capacity,
    })
    closers.push(() => servers.close(CLOSE_HTTP_MS))
    const ingest = ingestServices({ services, pipeline, wal, once, state, replica })
    const listenerPorts = await openListenerPorts({
      config,
      log,
      listeners,
      ingest,
      capacity,
    })
    closers.push(() => listenerPorts.close(CLOSE_HTTP_MS))
    metrics.watchListeners(listenerPorts)
    const makeBackup = createBackups({
      config,
      store,
      isEmbedded: embedded !== null,
      settle: () => pipeline.settle(),
      writer,
      dataDir: dataDir.path,
    })
    const resets = createResets(accounts, audit)
    closers.push(
      await openControl(dataDir.path, {
        backup: makeBackup,
        ...resets,
        verifyAudit: auditTrail.verify,
      }),
    )
    const { apiPort, collectorPort } = servers
    return {
      apiPort,
      collectorPort,
      listenerPorts: listenerPorts.ports,
      isEmbedded: embedded !== null,
      store,
      pipeline,
      listeners,
      wal,
      writer,
      services,
      templateUpkeep,
      retention,
      ...resets,
      close,
    }
  } catch (error) {
    await close()
    throw (await explainFullDisk(config.dataDir, error)) ?? error
  }
}
