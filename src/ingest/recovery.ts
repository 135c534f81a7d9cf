import { join } from 'node:path'

import type { Instance } from '../coordination/instance.js'
import { Wal } from '../wal/wal.js'
import { decodeRecord, type LogRecord, type TemplateRow } from '../wal/record.js'
import { PendingChanges } from '../writer/pending-changes.js'
import type { Sources } from '../records/sources.js'
import type { TemplateStore } from '../templates/store.js'
import { WAL_CACHE_BYTES } from './memory.js'
import { rememberStored, WINDOW_MS } from './once.js'
import type { SharedMemory } from './packed-task.js'
import { RecoveredNames } from './recovered-names.js'

/** The most templates that are saved in one insert. */
const ADOPTED_TOGETHER = 10_000

interface WalDeps extends Pick<Instance, 'config' | 'log' | 'dataDir' | 'state'> {
  readonly memory: SharedMemory
  readonly sources: Sources
  readonly templateStore: TemplateStore
}

export interface OpenedWal {
  readonly wal: Wal
  /** Changes of all instances that an earlier run had not finished. */
  readonly pending: PendingChanges
  close(): Promise<void>
}

/** Opens the WAL, and takes up what an earlier run left in it. */
export async function openWal(deps: WalDeps): Promise<OpenedWal> {
  const { config, log, dataDir, state, memory, sources, templateStore: store } = deps
  const wal = await Wal.open({
    dir: join(dataDir.path, 'wal'),
    maxBytes: config.walMaxBytes,
    cacheBytes: WAL_CACHE_BYTES,
    blockPool: memory.blockPool,
    keepOnceKeysMs: WINDOW_MS,
    log,
  })
  try {
    const pending = new PendingChanges()
    await rememberStored(state, await recoverWal(wal, sources, { store, pending }))
    return { wal, pending, close: () => wal.close() }
  } catch (error) {
    await wal.close()
    throw error
  }
}

/**
 * Registers the sources and saves the templates of the records that an earlier run acknowledged and
 * did not store. The log may contain many thousand records, so templates are saved in large
 * inserts.
 *
 * @returns the `onceKeys` of these records, and of those stored in the last minutes of that run
 */
async function recoverWal(
  wal: Wal,
  sources: Sources,
  { store, pending }: { readonly store: TemplateStore; readonly pending: PendingChanges },
): Promise<readonly string[]> {
  // Unreadable records may have registered sources and templates of later records.
  const named = wal.damagedBytes > 0 ? new RecoveredNames() : null
  const templates = new Map<string, TemplateRow>()
  const onceKeys = await keysOfDone(wal)
  const save = async (): Promise<void> => {
    if (templates.size > 0) await store.save([...templates.values()])
    templates.clear()
  }
  // A copy, because unreadable records are removed from the list.
  for (const waiting of wal.waiting.slice()) {
    const payload = await wal.read(waiting)
    if (payload === null) continue
    const record = decodeRecord(payload)
    adoptSources(record, sources)
    if (record.command?.kind === 'shared') pending.add(waiting.seq, record.command)
    named?.add(record)
    noteKeys(record, onceKeys)
    // The later row of a template replaces the earlier one.
    for (const row of record.templates) templates.set(`${row.source} ${row.id}`, row)
    if (templates.size >= ADOPTED_TOGETHER) await save()
  }
  await save()
  await named?.complete(sources, store)
  return onceKeys
}

/** The keys of records that ClickHouse has, from the last window in which the earlier run wrote. */
async function keysOfDone(wal: Wal): Promise<string[]> {
  const keys: string[] = []
  for await (const payload of wal.readDone()) {
    const record = decodeRecord(payload)
    const isLate = (record.atMs ?? 0) < wal.writtenAtMs - WINDOW_MS
    noteKeys(isLate ? { ...record, onceKeys: [] } : record, keys)
  }
  return keys
}

/**
 * After a deletion earlier keys may be sent again. It is not known which keys belonged to a deleted
 * source, so all of them are dropped.
 */
function noteKeys({ command, onceKeys = [] }: LogRecord, keys: string[]): void {
  const change = command?.kind === 'shared' ? command.change : command
  if (change?.kind === 'delete-sources' || change?.kind === 'clear-all') keys.length = 0
  for (const key of onceKeys) keys.push(key)
}

function adoptSources({ registrations, command }: LogRecord, sources: Sources): void {
  for (const registration of registrations) sources.register(registration)
  // A deletion of another instance applies to the rows of this log as well.
  const change = command?.kind === 'shared' ? command.change : command
  if (change?.kind === 'delete-sources') sources.forget(change.sources)
  if (change?.kind === 'clear-all') sources.forgetAll()
}
