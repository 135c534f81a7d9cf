import { join } from 'node:path'

import type { Store } from '../clickhouse/client.js'
import type { DataDir } from '../coordination/data-dir.js'
import type { Log } from '../telemetry/log.js'
import { createAudit, createAuditTable, type Audit, type AuditTable } from './audit.js'
import {
  createChain,
  headFile,
  NO_HEAD,
  verifyTrail,
  type AuditChain,
  type AuditReport,
} from './audit-chain.js'

export interface AuditTrail {
  readonly audit: Audit
  readonly table: AuditTable
  verify(): Promise<AuditReport>
}

/** Opens the audit trail and continues the chain of this instance in it. */
export async function openAuditTrail(
  store: Store,
  dataDir: DataDir,
  log: Log,
): Promise<AuditTrail> {
  const table = createAuditTable(store)
  const chain = await openChain(table, dataDir, log)
  return {
    audit: createAudit({ append: table.append, chain, log }),
    table,
    verify: () => verifyTrail(table.all(), [{ writer: chain.writer, ...chain.head }], Date.now()),
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
  const isCut = stored.number < kept.number
  if (isCut) log.error({ stored, kept }, 'the audit trail has lost entries of this instance')
  return createChain(dataDir.instanceId, isCut ? kept : stored, file.keep)
}
