import type { Check, Metric } from '../lib/report.js'

/** The results with one number of shards. */
export interface Findings {
  readonly shards: number
  readonly batches: number
  /** INSERT statements on all servers. */
  readonly insertsPerBatch: number
  /** Bytes between servers per event stored on the other servers; NaN for a single server. */
  readonly bytesMoved: number
  /** Stored events per second. */
  readonly eventsPerS: number
  /** CPU seconds of ClickHouse per million events, including merges at that time. */
  readonly cpuS: number
  /** CPU seconds of the service per million events. */
  readonly serviceCpuS: number
  readonly serviceRssBytes: number
  /** The peak memory of the server with the highest. */
  readonly engineRssBytes: number
  /** The share of the events on the largest shard. */
  readonly largestShare: number
  readonly checks: readonly Check[]
  readonly queries: readonly QueryCost[]
}

export interface QueryCost {
  readonly name: string
  /** Statements of the service. */
  readonly asked: number
  /** Tables named in these statements, including subqueries. */
  readonly reads: number
  /** Statements on the busiest of the other servers, an upper bound of the round trips. */
  readonly perShard: number
  /** The average per other server. */
  readonly bytes: number
  readonly ms: number
  /** CPU milliseconds of the service and all servers. */
  readonly cpuMs: number
}

/** The figures of each number of shards, and their ratios to those of one shard. */
export function addFindings(metrics: Metric[], findings: readonly Findings[]): void {
  const [single] = findings
  const add = (name: string, unit: string, value: number, better: Metric['better']): void => {
    metrics.push({ name, unit, samples: [value], better })
  }
  for (const found of findings) {
    const on = found.shards === 1 ? '1 shard' : `${found.shards} shards`
    add(`${on}: stored`, 'events/s', found.eventsPerS, 'higher')
    add(`${on}: INSERTs per batch`, '', found.insertsPerBatch, 'lower')
    if (found.shards > 1)
      add(`${on}: bytes to and from the others`, 'B/event there', found.bytesMoved, 'lower')
    add(`${on}: CPU ClickHouse`, 'CPU s/M', found.cpuS, 'lower')
    add(`${on}: CPU service`, 'CPU s/M', found.serviceCpuS, 'lower')
    add(`${on}: peak RSS service`, 'MiB', found.serviceRssBytes / 1024 ** 2, 'info')
    add(`${on}: peak RSS of one ClickHouse`, 'MiB', found.engineRssBytes / 1024 ** 2, 'info')
    add(`${on}: events on the fullest shard`, '%', found.largestShare * 100, 'info')
    for (const query of found.queries) {
      const name = `${on}: ${query.name}`
      add(`${name}, statements`, '', query.asked, 'lower')
      if (found.shards > 1) {
        add(`${name}, statements at another shard`, '', query.perShard, 'lower')
        add(`${name}, bytes of another shard`, 'B', query.bytes, 'lower')
      }
      add(`${name}, p50`, 'ms', query.ms, 'lower')
      add(`${name}, CPU`, 'ms', query.cpuMs, 'lower')
    }
    if (single === undefined || single === found) continue
    add(`${on} to 1: stored`, 'x', found.eventsPerS / single.eventsPerS, 'higher')
    add(`${on} to 1: CPU ClickHouse`, 'x', found.cpuS / single.cpuS, 'lower')
    add(
      `${on} to 1: p50 of a query, median`,
      'x',
      medianRatio(found, single, ({ ms }) => ms),
      'lower',
    )
    add(
      `${on} to 1: CPU of a query, median`,
      'x',
      medianRatio(found, single, ({ cpuMs }) => cpuMs),
      'lower',
    )
    add(`${on} to 1: CPU service`, 'x', found.serviceCpuS / single.serviceCpuS, 'lower')
  }
}

function medianRatio(found: Findings, single: Findings, of: (query: QueryCost) => number): number {
  const ratios = found.queries.map((query, i) => {
    const base = single.queries[i]
    return base === undefined ? Number.NaN : of(query) / of(base)
  })
  return ratios.sort((a, b) => a - b)[ratios.length >> 1] ?? Number.NaN
}
