import { BufferPool } from '../lib/buffer-pool.js'
import { join } from 'node:path'

import type { Config } from '../config.js'
import { PriorityModel } from '../mining/priority.js'
import { NOTHING_LEARNED, withCorrection, type PriorityState } from '../mining/priority-state.js'
import { ShapeCache } from '../mining/shape-cache.js'
import { PRIORITIES, type Priority, type Severity } from '../model/event.js'
import { DedupWindow } from '../pipeline/dedup-window.js'
import { Pipeline } from '../pipeline/pipeline.js'
import { createPool, type Pool } from '../pipeline/pool.js'
import { Sequencer } from '../pipeline/sequencer.js'
import { Spool } from '../pipeline/spool.js'
import { keepBeside } from '../pipeline/spool-file.js'
import { createRefusals, type Refusals } from '../pipeline/refusals.js'
import { decodeEntry, type TemplateRow } from '../pipeline/spool-entry.js'
import { TemplateTable } from '../pipeline/template-table.js'
import { Writer } from '../pipeline/writer.js'
import { createBatchStore, type BatchStore } from '../store/batches.js'
import type { Answers } from '../store/answers.js'
import type { Collection } from '../store/collection.js'
import { isDataError } from '../store/failure.js'
import { createEvents, type Events } from '../store/events.js'
import { Sources, type Source } from '../store/sources.js'
import type { Log } from '../telemetry/log.js'
import { parserOf, PriorityModelDoc, SourceDoc, TemplatePriorityDoc } from './documents.js'
import {
  executeStatement,
  type Run,
  type StatementHooks,
  type TemplatePriority,
} from './statements.js'
import type { Storage } from './storage.js'

/** body buffers that wait for use: bodies of 1 MiB on a few connections need a few of them */
const BODY_BUFFER_BYTES = 16 * 1024 * 1024
/** shapes known to every thread; 12 bytes each */
const SHAPES = 1 << 18
/** there is one model */
const MODEL_ID = 'current'
/** payloads of waiting spool entries kept in memory */
const SPOOL_CACHE_BYTES = 64 * 1024 * 1024
/** templates of waiting entries that are saved in one insert at the start */
const ADOPTED_TOGETHER = 10_000

export interface Ingestion {
  readonly pipeline: Pipeline
  /** where bodies of messages are put */
  readonly bodyBuffers: BufferPool
  readonly pool: Pool
  readonly spool: Spool
  readonly writer: Writer
  readonly window: DedupWindow
  readonly templates: TemplateTable
  readonly model: PriorityModel
  readonly sequencer: Sequencer
  readonly sources: Sources
  readonly sourceRecords: Collection<Source>
  readonly events: Events
  readonly batches: BatchStore
  /** Makes a person's priority for a template durable and known to the sequencer; the model learns from it. */
  setTemplatePriority(correction: TemplateCorrection): Promise<void>
  /** Their messages are of unregistered sources from here on; nothing joins what is being deleted. */
  forget(sources: readonly string[]): void
  forgetAll(): void
  /** Begins to write, what an earlier run left behind first. */
  begin(): void
  /** Stops taking messages and writes what is acknowledged, as far as the time allows. */
  close(deadlineMs: number): Promise<void>
}

export interface TemplateCorrection {
  readonly templateId: string
  readonly source: string
  readonly severity: Severity
  readonly priority: Priority
}

export interface IngestionParts {
  readonly config: Config
  readonly storage: Storage
  readonly answers: Pick<Answers, 'query'>
  readonly spoolDir: string
  readonly log: Log
  readonly hooks: StatementHooks
  readonly onWritten: (rows: number) => void
  /** an attempt to write a batch failed; it is tried again */
  readonly onFailure: () => void
  /** ClickHouse refused rows, which are dead letters now */
  readonly onRefused: (rows: number) => void
  readonly onInsert: (table: string, seconds: number, ok: boolean) => void
  readonly onAccepted: ConstructorParameters<typeof Pipeline>[0]['onAccepted']
}

/** Joins workers, sequencer, spool and writer, and begins to write what an earlier run left in the spool. */
export async function openIngestion(parts: IngestionParts): Promise<Ingestion> {
  const { config, storage } = parts
  const batches = createBatchStore(storage.store)
  const records = storage.entities.collection('source', parserOf(SourceDoc))
  const overrides = storage.entities.collection('template_priority', parserOf(TemplatePriorityDoc))
  const learned = storage.entities.collection<PriorityState>(
    'priority_model',
    parserOf(PriorityModelDoc),
  )
  const sources = new Sources(records, config.maxSources, Date.now)
  const shapes = ShapeCache.create(SHAPES)
  const pool = createPool(config.workers, shapes.buffer)
  const templates = new TemplateTable()
  const model = new PriorityModel()
  const window = new DedupWindow(config.dedupWindowSeconds * 1000, config.dedupMaxEntries)
  const sequencer = new Sequencer({ ids: storage.ids, window, templates, scorer: model })
  const spool = await openSpool(parts)
  await adoptSpooled(spool, sources, batches)
  await restoreTemplates(batches, pool, templates, model)
  restoreOverrides(overrides, sequencer)
  const remembered = learned.get(MODEL_ID)
  if (remembered !== null) model.restore(remembered)
  const events = createEvents(storage.store, parts.answers)
  const run = { batches, events, sources, overrides, hooks: parts.hooks }
  const refusals = openRefusals(parts, { spool, batches, sequencer })
  const writer = openWriter(parts, { spool, refusals }, run)
  const bodyBuffers = new BufferPool(BODY_BUFFER_BYTES)
  const stages = { bodyBuffers, pool, sequencer, spool, writer, templates, model, sources }
  const pipeline = joinPipeline(parts, stages, (lo, hi, no) => shapes.put(lo, hi, no))
  const forget = forgetting(stages)
  records.onChange(({ id, value, origin }) => {
    if (origin === 'reload') sources.follow(id, value)
  })
  overrides.onChange(({ id, value, origin }) => {
    if (origin !== 'reload') return
    sequencer.override(id, value === null ? null : PRIORITIES.indexOf(value.priority))
  })
  learned.onChange(({ value }) => model.restore(value ?? NOTHING_LEARNED))
  return {
    begin: () => writer.start(),
    ...stages,
    pipeline,
    window,
    sourceRecords: records,
    events,
    batches,
    setTemplatePriority: async ({ templateId, source, severity, priority }) => {
      await overrides.put(templateId, { templateId, source, priority })
      sequencer.override(templateId, PRIORITIES.indexOf(priority))
      const template = templates.byId(templateId)
      if (template === undefined) return
      const { text } = template
      await learned.update(MODEL_ID, (state) =>
        withCorrection(state ?? NOTHING_LEARNED, { severity, priority, text }),
      )
    },
    ...forget,
    close: (deadlineMs) => close(deadlineMs, { pipeline, writer, pool, spool }),
  }
}

type Stages = Pick<
  Ingestion,
  'bodyBuffers' | 'pool' | 'sequencer' | 'spool' | 'writer' | 'templates' | 'model' | 'sources'
>

const joinPipeline = (
  { config, onAccepted }: IngestionParts,
  stages: Stages,
  learnShape: (lo: number, hi: number, templateNo: number) => void,
): Pipeline =>
  new Pipeline({
    ...stages,
    gate: stages.sources,
    environment: config.environment,
    maxMessageBytes: config.maxMessageBytes,
    maxBytes: config.pipelineMaxBytes,
    modelVersion: () => stages.model.modelVersion,
    learnShape,
    onTemplate: ({ no, text }) => {
      stages.model.register(no, text)
      stages.sequencer.noteTemplate(no)
    },
    onAccepted,
    reuse: (buffer) => stages.bodyBuffers.give(buffer),
  })

const forgetting = ({
  sources,
  sequencer,
  templates,
}: Stages): Pick<Ingestion, 'forget' | 'forgetAll'> => ({
  forget: (names) => {
    const gone = new Set(names)
    sources.forget(names)
    sequencer.forget(names)
    templates.markUnsaved((source) => gone.has(source))
    for (const { id, source } of templates.all())
      if (gone.has(source) && sequencer.overrideOf(id) !== null) sequencer.override(id, null)
  },
  forgetAll: () => {
    sources.forgetAll()
    sequencer.forgetAll()
    sequencer.clearOverrides()
    templates.markUnsaved(() => true)
  },
})

const openSpool = ({ config, spoolDir, log }: IngestionParts): Promise<Spool> =>
  Spool.open({
    dir: join(spoolDir),
    maxBytes: config.spoolMaxBytes,
    cacheBytes: SPOOL_CACHE_BYTES,
    onDamage: (report) => log.error(report, 'the spool is damaged; what is readable is kept'),
  })

/**
 * Sources and templates that an earlier run acknowledged and did not get to store are known at once. Many
 * thousand entries may wait, so their templates are saved together.
 */
async function adoptSpooled(spool: Spool, sources: Sources, batches: BatchStore): Promise<void> {
  const templates = new Map<string, TemplateRow>()
  const save = async (): Promise<void> => {
    if (templates.size > 0) await batches.saveTemplates([...templates.values()])
    templates.clear()
  }
  // a copy: what can't be read leaves the list
  for (const entry of spool.waiting.slice()) {
    const payload = await spool.read(entry)
    if (payload === null) continue
    const parts = decodeEntry(payload)
    for (const registration of parts.registrations) sources.register(registration)
    if (parts.statement?.kind === 'delete-sources') sources.forget(parts.statement.sources)
    if (parts.statement?.kind === 'clear-all') sources.forgetAll()
    // in the order of their changes: the later row of a template replaces the earlier one
    for (const row of parts.templates) templates.set(`${row.source} ${row.id}`, row)
    if (templates.size >= ADOPTED_TOGETHER) await save()
  }
  await save()
}

async function restoreTemplates(
  batches: BatchStore,
  pool: Pool,
  templates: TemplateTable,
  model: PriorityModel,
): Promise<void> {
  const stored = (await batches.templates()).map(({ redirectTo, ...template }) => ({
    ...template,
    redirectId: redirectTo,
  }))
  const nos = await pool.restore(stored)
  const noOf = new Map(stored.map(({ id }, i) => [id, nos[i] ?? 0]))
  stored.forEach((template, i) => {
    const no = nos[i] ?? 0
    if (no === 0) return
    templates.apply({ ...template, no, redirectTo: noOf.get(template.redirectId) ?? 0 })
    model.register(no, template.text)
  })
}

function restoreOverrides(overrides: Collection<TemplatePriority>, sequencer: Sequencer): void {
  sequencer.restoreOverrides(
    overrides.list().map(({ templateId, priority }) => [templateId, PRIORITIES.indexOf(priority)]),
  )
}

/** The insert of a batch, which tells how long it took and whether it was taken. */
const timed =
  (batches: BatchStore, onInsert: IngestionParts['onInsert']): BatchStore['insert'] =>
  async (table, parts, token) => {
    const startedMs = performance.now()
    let ok = false
    try {
      await batches.insert(table, parts, token)
      ok = true
    } finally {
      onInsert(table, (performance.now() - startedMs) / 1000, ok)
    }
  }

const openWriter = (
  { onWritten, onFailure, onInsert, log }: IngestionParts,
  { spool, refusals }: { readonly spool: Spool; readonly refusals: Refusals },
  run: Run,
): Writer =>
  new Writer({
    spool,
    refusals,
    onWritten,
    onFailure: (error, attempt) => {
      onFailure()
      const level = attempt === 1 ? 'warn' : 'debug'
      log[level]({ err: error, attempt }, 'a batch waits for clickhouse')
    },
    target: {
      newToken: run.batches.newToken,
      insert: timed(run.batches, onInsert),
      templates: async (rows) => {
        const leftOut = await run.batches.saveTemplates(rows)
        if (leftOut > 0) log.error({ leftOut }, 'clickhouse refused templates; they are left out')
      },
      register: async (registration) => {
        await run.sources.store(registration).catch((error: unknown) => {
          if (!isDataError(error)) throw error
          log.error({ err: error }, 'clickhouse refused a source; it is left out')
        })
      },
      execute: (statement) => executeStatement(statement, run),
    },
  })

const openRefusals = (
  { storage, spoolDir, log, onRefused }: IngestionParts,
  { spool, batches, sequencer }: Pick<Ingestion, 'spool' | 'batches' | 'sequencer'>,
): Refusals =>
  createRefusals({
    spool,
    newToken: batches.newToken,
    wouldTake: batches.wouldTake,
    holdsAny: batches.holdsAny,
    takeId: () => storage.ids.take(),
    keep: (name, bytes) => keepBeside(spoolDir, name, bytes),
    onRefused: (rows) => {
      log.error({ rows }, 'clickhouse refused rows of a batch; they are dead letters')
      onRefused(rows)
      // repeats of an event that is not stored begin a new one
      sequencer.forgetAll()
    },
  })

async function close(
  deadlineMs: number,
  { pipeline, writer, pool, spool }: Pick<Ingestion, 'pipeline' | 'writer' | 'pool' | 'spool'>,
): Promise<void> {
  await pipeline.close()
  const last = spool.waiting.at(-1)
  // what is not written in time stays in the spool, and the next start writes it
  if (last !== undefined)
    await writer.flush(last.seq, AbortSignal.timeout(deadlineMs)).catch(() => undefined)
  await writer.stop()
  await spool.close()
  await pool.close()
}
