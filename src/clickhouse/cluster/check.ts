import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { ByteBuffer } from '../../lib/byte-buffer.js'
import { HOUR_MS } from '../../model/time.js'
import type { LogAt } from '../../telemetry/log.js'
import type { SchemaNumbers } from '../migrate.js'
import { DictColumn, FixedColumn, StringColumn, toNativeBlock } from '../native-writer.js'
import { statement } from '../statement.js'
import { createClusterStore, type ClusterOptions, type ClusterStore } from './cluster.js'
import { serversSql, type ClusterServer } from './reach.js'

/*
 * Tries an operator's cluster with the program's own statements, in databases of its own: it creates the tables, inserts,
 * counts, deletes, and drops what it made. It stops nothing and touches no other database.
 */

const rowsSql = statement<
  { readonly cluster: string; readonly database: string },
  { readonly position: number; readonly events: number }
>('cluster_rows')
type Counts = Readonly<Record<string, number>>
const countsSql = statement<Record<string, never>, Counts>('check_counts')

const EVENTS = 2_000
const REPEATS = 1_000
/** Enough sources that every shard gets rows of some. */
const SOURCES = 200
const REPLICAS_MS = 30_000
const PAUSE_MS = 500

export interface CheckOptions {
  readonly cluster: Omit<ClusterOptions, 'database'>
  readonly numbers: SchemaNumbers
  readonly log: LogAt<'debug' | 'info' | 'warn'>
  readonly print: (text: string) => void
}

/** @returns whether every step succeeded */
export async function checkCluster({
  cluster,
  numbers,
  log,
  print,
}: CheckOptions): Promise<boolean> {
  const database = `log_check_${randomBytes(6).toString('hex')}`
  const store = createClusterStore({ ...cluster, database })
  const step = async (what: string, work: () => Promise<string>): Promise<boolean> => {
    try {
      print(`ok      ${what}: ${await work()}`)
      return true
    } catch (error) {
      print(`FAILED  ${what}: ${error instanceof Error ? error.message : String(error)}`)
      return false
    }
  }
  let isMade = false
  try {
    isMade = await step('tables', async () => {
      await store.prepare({ numbers, log })
      return `made in ${database} and ${database}_local on every server, ${await enginesOf(store)}`
    })
    const checks = isMade
      ? await tryStatements({ store, step, database, cluster, token: store.newToken() })
      : []
    return isMade && checks.every(Boolean)
  } finally {
    await step('drop', async () => {
      await store.dropDatabases()
      return isMade
        ? 'the databases of the check are gone'
        : `gone from the server that was asked; others may have ${database} and ${database}_local`
    })
    await store.close()
  }
}

interface Trial {
  readonly store: ClusterStore
  readonly step: (what: string, work: () => Promise<string>) => Promise<boolean>
  readonly database: string
  readonly cluster: Pick<ClusterOptions, 'cluster'>
  readonly token: string
}

async function tryStatements(trial: Trial): Promise<readonly boolean[]> {
  const { store, step, token } = trial
  const block = rowsOfCheck()
  const expectOnce = async (): Promise<string> => {
    const [counts = {}] = await store.query(countsSql, {})
    const { events, ...sums } = counts
    const isRight =
      events === EVENTS && Object.values(sums).every((sum) => sum === EVENTS + REPEATS)
    if (!isRight)
      throw new Error(`${EVENTS} events and ${REPEATS} repeats became ${JSON.stringify(counts)}`)
    return `${EVENTS} events and ${REPEATS} repeats in events and every rollup`
  }
  return [
    await step('insert', async () => {
      await store.insertNative('landing', block, token)
      return await expectOnce()
    }),
    await step('the same insert again', async () => {
      await store.insertNative('landing', block, token)
      return await expectOnce()
    }),
    await step('replicas', () => untilEqual(trial)),
    await step('deletion', async () => {
      await store.change("DELETE FROM events WHERE startsWith(source, 'check-')")
      const [counts] = await store.query(countsSql, {})
      if (counts?.['events'] !== 0) throw new Error(`${counts?.['events']} events are left`)
      return 'on every shard'
    }),
  ]
}

/** Every shard has rows, and all replicas of a shard have the same. */
async function untilEqual({ store, database, cluster: { cluster } }: Trial): Promise<string> {
  const servers = await store.query(serversSql, { cluster })
  let found = ''
  for (const until = Date.now() + REPLICAS_MS; Date.now() < until; await sleep(PAUSE_MS)) {
    const rows = await store.query(rowsSql, { cluster, database: `${database}_local` })
    const events = new Map(rows.map((row) => [row.position, row.events]))
    const counted = servers.map((server, i) => ({ server, events: events.get(i + 1) ?? 0 }))
    found = counted.map((one) => `${placeOf(one.server)} ${one.events}`).join(', ')
    const first = new Map(counted.map((one) => [one.server.shard, one.events]))
    const isEqual = counted.every(
      (one) => one.events > 0 && one.events === first.get(one.server.shard),
    )
    if (isEqual) return `events by server: ${found}`
  }
  throw new Error(`replicas of a shard differ, or a server has none: ${found}`)
}

const placeOf = ({ shard, replica, host }: ClusterServer): string =>
  `shard ${shard} replica ${replica} (${host})`

async function enginesOf(store: ClusterStore): Promise<string> {
  return (await store.isReplicated()) ? 'replicated' : 'not replicated'
}

/** A block as the collector inserts it, with events of this hour. */
function rowsOfCheck(): Uint8Array {
  const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  const columns = {
    id: new FixedColumn('id', 'UInt64', 8),
    isNew: new FixedColumn('is_new', 'UInt8', 1),
    n: new FixedColumn('n', 'Int32', 4),
    receivedAt: new FixedColumn('received_at', "DateTime64(3, 'UTC')", 8),
    ts: new FixedColumn('ts', "DateTime64(3, 'UTC')", 8),
    source: new DictColumn('source'),
    templateId: new FixedColumn('template_id', 'UInt64', 8),
    message: new StringColumn('variables'),
  }
  for (let row = 0; row < EVENTS + REPEATS; row++) {
    const event = row % EVENTS
    columns.id.data.u64(event + 1)
    columns.isNew.data.u8(row < EVENTS ? 1 : 0)
    columns.n.data.u32(1)
    columns.receivedAt.data.u64(Date.now())
    columns.ts.data.u64(hour + event)
    columns.source.push(`check-${event % SOURCES}`)
    columns.templateId.data.u64(1 + (event % 20))
    columns.message.push(`message ${event} of a check`)
  }
  return toNativeBlock(Object.values(columns), EVENTS + REPEATS, new ByteBuffer()).bytes
}
