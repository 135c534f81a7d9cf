import type { RoomPool } from '../lib/room-pool.js'
import { createRefusals, type Refusals } from '../writer/quarantine.js'
import type { Sequencer } from './sequencer.js'
import { Wal } from '../wal/wal.js'
import { keepBeside } from '../wal/file.js'
import { decodeEntry, type EntryParts, type TemplateRow } from '../wal/record.js'
import type { Unsent } from '../writer/unsent.js'
import { Writer, type SharedWork } from '../writer/writer.js'
import type { BatchStore } from '../writer/batches.js'
import { isDataError } from '../clickhouse/failure.js'
import type { Sources } from '../records/sources.js'
import type { TemplateStore } from '../templates/store.js'
import type { IngestionParts } from '../assembly/ingestion.js'
import { RecoveredNames } from './recovered-names.js'
import { executeStatement, type Run } from '../assembly/statements.js'

/** how much of what waits for ClickHouse is kept in memory: a large batch and some of the next; bench/NOTES.md: more gains nothing */
export const WAL_CACHE_BYTES = 64 * 1024 * 1024
/** templates of waiting entries that are saved in one insert at the start */
const ADOPTED_TOGETHER = 10_000

/** @param onDamage what was lost may have begun events, and told of templates */
export const openWal = (
  { config, walDir, log }: IngestionParts,
  rooms: RoomPool,
  onDamage: () => void,
): Promise<Wal> =>
  Wal.open({
    dir: walDir,
    maxBytes: config.walMaxBytes,
    cacheBytes: WAL_CACHE_BYTES,
    rooms,
    onDamage: (report) => {
      log.error(report, 'the WAL is damaged; what is readable is kept')
      onDamage()
    },
  })

/**
 * Sources and templates that an earlier run acknowledged and did not get to store are known at once. Many
 * thousand entries may wait, so their templates are saved together.
 */
export async function adoptLogged(
  wal: Wal,
  sources: Sources,
  { store, unsent }: { readonly store: TemplateStore; readonly unsent: Unsent },
): Promise<void> {
  // entries that can't be read may have told of sources and templates of those behind them
  const named = wal.damagedBytes > 0 ? new RecoveredNames() : null
  const templates = new Map<string, TemplateRow>()
  const save = async (): Promise<void> => {
    if (templates.size > 0) await store.save([...templates.values()])
    templates.clear()
  }
  // a copy: what can't be read leaves the list
  for (const entry of wal.waiting.slice()) {
    const payload = await wal.read(entry)
    if (payload === null) continue
    const parts = decodeEntry(payload)
    adoptSources(parts, sources)
    if (parts.statement?.kind === 'shared') unsent.add(entry.seq, parts.statement)
    named?.add(parts)
    // in the order of their changes: the later row of a template replaces the earlier one
    for (const row of parts.templates) templates.set(`${row.source} ${row.id}`, row)
    if (templates.size >= ADOPTED_TOGETHER) await save()
  }
  await save()
  await named?.complete(sources, store)
}

function adoptSources({ registrations, statement }: EntryParts, sources: Sources): void {
  for (const registration of registrations) sources.register(registration)
  // those of all instances whose rows this one had not sent when it ended count as its own do
  const change = statement?.kind === 'shared' ? statement.change : statement
  if (change?.kind === 'delete-sources') sources.forget(change.sources)
  if (change?.kind === 'clear-all') sources.forgetAll()
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

export interface WriterParts {
  readonly wal: Wal
  readonly sequencer: Sequencer
  readonly templates: TemplateStore
  readonly run: Run
  /** null for the only instance there is */
  readonly shared: SharedWork | null
}

export const openWriter = (parts: IngestionParts, joined: WriterParts): Writer => {
  const { storage, onWritten, onFailure, onInsert, log } = parts
  const { wal, templates, run, shared } = joined
  return new Writer({
    wal,
    ...(shared === null ? {} : { shared }),
    refusals: openRefusals(parts, joined),
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
        const leftOut = await templates.save(rows)
        if (leftOut > 0) log.error({ leftOut }, 'clickhouse refused templates; they are left out')
        // before the batch counts as written: who sees its events knows their templates
        await storage.following.changed()
      },
      register: async (registration) => {
        await run.sources.store(registration).catch((error: unknown) => {
          if (!isDataError(error)) throw error
          log.error({ err: error }, 'clickhouse refused a source; it is left out')
        })
      },
      registerAgain: (name) => run.sources.registerAgain(name),
      held: run.batches.held,
      execute: (statement) => executeStatement(statement, run),
    },
  })
}

const openRefusals = (
  { storage, walDir, log, onRefused }: IngestionParts,
  { wal, sequencer, run: { batches } }: WriterParts,
): Refusals =>
  createRefusals({
    wal,
    newToken: batches.newToken,
    wouldTake: batches.wouldTake,
    held: batches.held,
    takeId: () => storage.ids.take(),
    keep: (name, bytes) => keepBeside(walDir, name, bytes),
    onRefused: (rows) => {
      log.error({ rows }, 'clickhouse refused rows of a batch; they are dead letters')
      onRefused(rows)
      // repeats of an event that is not stored begin a new one
      sequencer.forgetAll()
    },
  })
