import { join } from 'node:path'

import type { DataDir } from '../coordination/data-dir.js'
import type { Instance } from '../coordination/instance.js'
import type { Log } from '../telemetry/log.js'
import { createAudit, createAuditTable, type Audit, type AuditTable } from './audit.js'
import {
  createChain,
  endAfterStart,
  headFile,
  NO_HEAD,
  verifyTrail,
  type AuditChain,
  type AuditReport,
} from './audit-chain.js'

/** How long the end of the program waits for entries that are not stored. */
const CLOSE_MS = 1_000

export interface AuditTrail {
  readonly audit: Audit
  readonly table: AuditTable
  verify(): Promise<AuditReport>
  close(): Promise<void>
}

/** Opens the audit trail and continues the chain of this instance in it. */
export async function openAuditTrail({
  store,
  dataDir,
  log,
}: Pick<Instance, 'store' | 'dataDir' | 'log'>): Promise<AuditTrail> {
  const table = createAuditTable(store)
  const chain = await openChain(table, dataDir, log)
  const audit = createAudit({ append: table.append, chain, log })
  return {
    audit,
    table,
    verify: () => verifyTrail(table.all(), [{ writer: chain.writer, ...chain.head }], Date.now()),
    close: () => audit.close(CLOSE_MS),
  }
}

async function openChain(table: AuditTable, dataDir: DataDir, log: Log): Promise<AuditChain> {
  const file = headFile(join(dataDir.path, 'audit-head'))
  const newest = await table.newestOf(dataDir.instanceId)
  const [kept, link] = [file.read(), newest?.link ?? null]
  const stored =
    newest === null || link === null
      ? NO_HEAD
      : { number: link.number, hash: link.hash, atMs: newest.atMs, seq: newest.seq }
  const isKeptStored = kept.number > 0 && (await table.has(dataDir.instanceId, kept.hash))
  const { head, isChanged } = endAfterStart({ kept, stored, isKeptStored }, Date.now())
  if (isChanged)
    log.error(
      { stored, kept },
      'the audit trail has lost the last entry of this instance, or it was changed',
    )
  return createChain(dataDir.instanceId, head, file.keep)
}
