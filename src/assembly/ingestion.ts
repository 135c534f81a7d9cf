import type { Config } from '../config.js'
import { BufferPool } from '../lib/buffer-pool.js'
import { RoomPool } from '../lib/room-pool.js'
import { PriorityModel } from '../priority/model.js'
import { SignatureCache } from '../templates/signature-cache.js'
import { PRIORITIES } from '../model/event.js'
import { DedupWindow } from '../ingest/dedup-window.js'
import { createLazyPool } from '../ingest/lazy-pool.js'
import { Pipeline } from '../ingest/pipeline.js'
import { createPool, type Pool } from '../ingest/pool.js'
import { Sequencer } from '../ingest/sequencer.js'
import { ConstantTexts } from '../templates/constant-texts.js'
import type { Wal } from '../wal/wal.js'
import { TemplateRegistry } from '../templates/registry.js'
import { Unsent } from '../writer/unsent.js'
import type { Writer } from '../writer/writer.js'
import { createBatchStore, type BatchStore } from '../writer/batches.js'
import type { Collection } from '../coordination/collection.js'
import { createEvents, type Events } from '../events/events.js'
import { SourceDoc, Sources, type Source } from '../records/sources.js'
import { createTemplateStats } from '../events/template-stats.js'
import { createTemplateStore } from '../templates/store.js'
import type { Log } from '../telemetry/log.js'
import { PriorityOverrides } from '../priority/overrides.js'
import { createPriorityStore, type PriorityStore } from '../priority/store.js'
import { adoptLogged, openWal, openWriter, WAL_CACHE_BYTES } from '../ingest/recovery.js'
import type { SharedChanges } from '../coordination/shared-changes.js'
import { executeStatement, type Run, type StatementHooks } from './statements.js'
import type { Storage } from './storage.js'
import { createTemplateDirectory, type TemplateDirectory } from '../templates/directory.js'
import { adoptStoredTemplates, loadTemplates, numberTemplates } from '../templates/sharing.js'

/** buffers of bodies that wait for use */
const FREE_BUFFER_BYTES = 32 * 1024 * 1024
/** buffers of blocks that wait for use: as many as the WAL keeps in memory, and some that fill up */
const FREE_ROOM_BYTES = WAL_CACHE_BYTES + 32 * 1024 * 1024
/** Signatures that every thread knows, 16 bytes each. */
const SIGNATURES = 1 << 18

export interface Ingestion {
  readonly pipeline: Pipeline
  /** where bodies are put */
  readonly buffers: BufferPool
  /** where blocks are put */
  readonly rooms: RoomPool
  readonly pool: Pool
  readonly wal: Wal
  readonly writer: Writer
  readonly window: DedupWindow
  readonly templates: TemplateRegistry
  readonly model: PriorityModel
  readonly sequencer: Sequencer
  readonly sources: Sources
  readonly sourceRecords: Collection<Source>
  readonly events: Events
  readonly batches: BatchStore
  readonly directory: TemplateDirectory
  readonly overrides: PriorityOverrides
  readonly priorities: PriorityStore
  /** Their messages are of unregistered sources from here on; nothing joins what is being deleted. */
  forget(sources: readonly string[]): void
  forgetAll(): void
  /** Begins to write, what an earlier run left behind first. */
  begin(): void
  /** Stops taking messages and writes what is acknowledged, as far as the time allows. */
  close(deadlineMs: number): Promise<void>
}

export interface IngestionParts {
  readonly config: Config
  readonly storage: Storage
  readonly walDir: string
  readonly log: Log
  readonly hooks: StatementHooks
  /** null for the only instance there is */
  readonly shared: SharedChanges | null
  readonly onWritten: (rows: number) => void
  /** an attempt to write a batch failed; it is tried again */
  readonly onFailure: () => void
  /** ClickHouse refused rows, which are dead letters now */
  readonly onRefused: (rows: number) => void
  readonly onInsert: (table: string, seconds: number, ok: boolean) => void
  readonly onAccepted: ConstructorParameters<typeof Pipeline>[0]['onAccepted']
}

/** Joins workers, sequencer, wal and writer, and begins to write what an earlier run left in the WAL. */
export async function openIngestion(parts: IngestionParts): Promise<Ingestion> {
  const { config, storage, hooks, shared } = parts
  const batches = createBatchStore(storage.store)
  const templateStore = createTemplateStore(storage.store)
  const records = storage.entities.collection('source', SourceDoc)
  const sources = new Sources(records, config.maxSources, Date.now)
  const signatures = SignatureCache.create(SIGNATURES)
  const templates = new TemplateRegistry()
  const model = new PriorityModel()
  const window = new DedupWindow(config.dedupWindowSeconds * 1000, config.dedupMaxEntries)
  const constantTexts = ConstantTexts.create()
  model.watch(templates)
  constantTexts.watch(templates)
  const overrides = new PriorityOverrides(templates)
  const sequencer = new Sequencer({ ids: storage.ids, window, templates, model, overrides })
  const known = { templates, model, overrides }
  const rooms = new RoomPool(FREE_ROOM_BYTES)
  const wal = await openWal(parts, rooms, () => {
    sequencer.forgetAll()
    templates.markUnsaved(() => true)
  })
  const unsent = shared?.unsent ?? new Unsent()
  await adoptLogged(wal, sources, { store: templateStore, unsent })
  await loadTemplates(templateStore, templates)
  const buffers = new BufferPool(FREE_BUFFER_BYTES)
  const pool = await openPool(config, { signatures, constantTexts, buffers, rooms }, templates)
  const priorities = createPriorityStore({ entities: storage.entities, ...known })
  const events = createEvents(storage.store)
  const directory = createTemplateDirectory(templates, (id) => overrides.of(id))
  const run = {
    batches,
    events,
    sources,
    priorities,
    templatesKnown: () => createTemplateStats(storage.store, directory).known(),
    hooks,
  }
  const writer = openWriter(parts, { wal, sequencer, templates: templateStore, run, shared })
  const stages = { buffers, rooms, pool, wal, writer, sources, sequencer, priorities, ...known }
  const pipeline = joinPipeline(parts, stages, (lo, hi, no) => signatures.put(lo, hi, no))
  storage.following.add(() =>
    adoptStoredTemplates(templateStore, templates, (rows) => pipeline.adopt(rows)),
  )
  records.onChange(({ id, value, origin }) => {
    if (origin === 'reload') sources.follow(id, value)
  })
  if (shared !== null) joinOthers(shared, { ...stages, pipeline }, run)
  return {
    begin: () => writer.start(),
    ...stages,
    pipeline,
    window,
    directory,
    sourceRecords: records,
    events,
    batches,
    ...forgetting(stages),
    close: (deadlineMs) => close(deadlineMs, { pipeline, writer, pool, wal }),
  }
}

type Stages = Pick<
  Ingestion,
  | 'buffers'
  | 'rooms'
  | 'pool'
  | 'wal'
  | 'writer'
  | 'sources'
  | 'sequencer'
  | 'priorities'
  | 'templates'
  | 'model'
  | 'overrides'
>

/** An instance that takes no events starts its threads when a file is uploaded, or a dead letter replayed. */
async function openPool(
  { role, workers }: Config,
  {
    signatures,
    constantTexts,
    buffers,
    rooms,
  }: Pick<Ingestion, 'buffers' | 'rooms'> & {
    readonly signatures: SignatureCache
    readonly constantTexts: ConstantTexts
  },
  templates: TemplateRegistry,
): Promise<Pool> {
  const open = async (): Promise<Pool> => {
    const shared = { signatures: signatures.buffer, constantTexts: constantTexts.buffer }
    const pool = createPool(workers, shared, { buffers, rooms })
    await numberTemplates(templates, (known) => pool.restore(known))
    return pool
  }
  return role === 'api' ? createLazyPool(workers, open) : await open()
}

const joinPipeline = (
  { config, onAccepted }: IngestionParts,
  stages: Stages,
  learnSignature: (lo: number, hi: number, templateNo: number) => void,
): Pipeline =>
  new Pipeline({
    ...stages,
    environment: config.environment,
    maxMessageBytes: config.maxMessageBytes,
    maxBytes: config.pipelineMaxBytes,
    modelVersion: () => stages.model.modelVersion,
    learnSignature,
    onAccepted,
  })

const forgetting = ({
  sources,
  sequencer,
  templates,
  priorities,
}: Stages): Pick<Ingestion, 'forget' | 'forgetAll'> => ({
  forget: (names) => {
    const gone = new Set(names)
    sources.forget(names)
    sequencer.forget(names)
    templates.markUnsaved((source) => gone.has(source))
    priorities.forget((source) => gone.has(source))
  },
  forgetAll: () => {
    sources.forgetAll()
    sequencer.forgetAll()
    priorities.forget(() => true)
    templates.markUnsaved(() => true)
  },
})

/** Deletions and corrections are made together with the other instances. */
function joinOthers(
  shared: SharedChanges,
  stages: Stages & Pick<Ingestion, 'pipeline'>,
  run: Run,
): void {
  const { sources, sequencer, priorities, wal, writer, pipeline } = stages
  const { forget, forgetAll } = forgetting(stages)
  shared.join({
    forget: (names) => (names === null ? forgetAll() : forget(names)),
    release: (names) => {
      const gone = names === null ? null : new Set(names)
      sources.release(names ?? undefined)
      priorities.recall((source) => gone?.has(source) ?? true)
    },
    correct: (event, priority) => sequencer.correct(event, PRIORITIES.indexOf(priority)),
    has: (source) => sources.get(source) !== undefined,
    mark: (statement) => pipeline.mark(statement),
    openCut: () => wal.openCut,
    isWalEmpty: () => wal.waiting.length === 0,
    poke: () => writer.poke(),
    carryOut: (deletion) => executeStatement(deletion, run),
  })
}

async function close(
  deadlineMs: number,
  { pipeline, writer, pool, wal }: Pick<Ingestion, 'pipeline' | 'writer' | 'pool' | 'wal'>,
): Promise<void> {
  await pipeline.close()
  const last = wal.waiting.at(-1)
  // what is not written in time stays in the WAL, and the next start writes it
  if (last !== undefined)
    await writer.flush(last.seq, AbortSignal.timeout(deadlineMs)).catch(() => undefined)
  await writer.stop()
  await wal.close()
  await pool.close()
}
