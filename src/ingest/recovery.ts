import type { Wal } from '../wal/wal.js'
import { decodeRecord, type LogRecord, type TemplateRow } from '../wal/record.js'
import type { PendingChanges } from '../writer/pending-changes.js'
import type { Sources } from '../records/sources.js'
import type { TemplateStore } from '../templates/store.js'
import { RecoveredNames } from './recovered-names.js'

/** templates of waiting entries that are saved in one insert at the start */
const ADOPTED_TOGETHER = 10_000

/**
 * Sources and templates that an earlier run acknowledged and did not get to store are known at once. Many
 * thousand entries may wait, so their templates are saved together.
 */
export async function recoverWal(
  wal: Wal,
  sources: Sources,
  { store, pending }: { readonly store: TemplateStore; readonly pending: PendingChanges },
): Promise<void> {
  // unreadable records may have registered sources and templates that later records name
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
    const parts = decodeRecord(payload)
    adoptSources(parts, sources)
    if (parts.command?.kind === 'shared') pending.add(entry.seq, parts.command)
    named?.add(parts)
    // in the order of their changes: the later row of a template replaces the earlier one
    for (const row of parts.templates) templates.set(`${row.source} ${row.id}`, row)
    if (templates.size >= ADOPTED_TOGETHER) await save()
  }
  await save()
  await named?.complete(sources, store)
}

function adoptSources({ registrations, command }: LogRecord, sources: Sources): void {
  for (const registration of registrations) sources.register(registration)
  // those of all instances whose rows this one had not sent when it ended count as its own do
  const change = command?.kind === 'shared' ? command.change : command
  if (change?.kind === 'delete-sources') sources.forget(change.sources)
  if (change?.kind === 'clear-all') sources.forgetAll()
}
