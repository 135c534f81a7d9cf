import type { Store } from '../../src/clickhouse/client.js'

/** Counters of the servers of a cluster since their start. */
export interface ServerCounts {
  /** Statements that other servers sent. */
  readonly statements: number
  readonly inserts: number
  /** Bytes through its sockets in both directions, including HTTP. */
  readonly bytes: number
}

interface EventRow {
  readonly event: string
  readonly value: number
}

const SQL = {
  name: 'bench',
  sql: `SELECT event, value FROM system.events
    WHERE event IN ('Query', 'InitialQuery', 'InsertQuery', 'NetworkSendBytes', 'NetworkReceiveBytes')`,
}

/** The counters of each server, beginning with the queried one. */
export const readCounts = (servers: readonly Store[]): Promise<readonly ServerCounts[]> =>
  Promise.all(
    servers.map(async (server) => {
      const rows = await server.query<Record<string, never>, EventRow>(SQL, {})
      const of = (name: string): number => rows.find(({ event }) => event === name)?.value ?? 0
      return {
        statements: of('Query') - of('InitialQuery'),
        inserts: of('InsertQuery'),
        bytes: of('NetworkSendBytes') + of('NetworkReceiveBytes'),
      }
    }),
  )

/** The difference of two readings, without the cost of the readings. */
export function countsBetween(
  before: readonly ServerCounts[],
  after: readonly ServerCounts[],
  reading: readonly ServerCounts[],
): readonly ServerCounts[] {
  const zero = { statements: 0, inserts: 0, bytes: 0 }
  return after.map((now, i) => {
    const [then, cost] = [before[i] ?? zero, reading[i] ?? zero]
    return {
      statements: now.statements - then.statements - cost.statements,
      inserts: now.inserts - then.inserts - cost.inserts,
      bytes: now.bytes - then.bytes - cost.bytes,
    }
  })
}

/** The cost of one reading. */
export async function costOfReading(servers: readonly Store[]): Promise<readonly ServerCounts[]> {
  await readCounts(servers)
  const [first, second] = [await readCounts(servers), await readCounts(servers)]
  return countsBetween(first, second, [])
}
