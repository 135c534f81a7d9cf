import type { Check, Metric } from '../lib/report.js'

/** What was found with one number of shards. */
export interface Findings {
  readonly shards: number
  readonly batches: number
  /** INSERT statements at all servers */
  readonly insertsPerBatch: number
  /** bytes between servers for each event that the other servers keep; NaN without others */
  readonly bytesMoved: number
  /** stored */
  readonly eventsPerS: number
  /** of ClickHouse, per million events, merges that ran meanwhile included */
  readonly cpuS: number
  /** of the service, per million events */
  readonly serviceCpuS: number
  readonly serviceRssBytes: number
  /** of the one that took most */
  readonly engineRssBytes: number
  /** of the events, on the fullest shard */
  readonly largestShare: number
  readonly checks: readonly Check[]
  readonly queries: readonly QueryCost[]
}

export interface QueryCost {
  readonly name: string
  /** statements of the service */
  readonly asked: number
  /** tables that these name, those of their parts among them */
  readonly reads: number
  /** at the busiest of the other servers: at most so many round trips */
  readonly perShard: number
  /** of another server, on average */
  readonly bytes: number
  readonly ms: number
}

/** The figures of each number of shards, and what they are to those of one. */
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
    }
    if (single === undefined || single === found) continue
    add(`${on} to 1: stored`, 'x', found.eventsPerS / single.eventsPerS, 'higher')
    add(`${on} to 1: CPU ClickHouse`, 'x', found.cpuS / single.cpuS, 'lower')
    add(`${on} to 1: p50 of a query, median`, 'x', medianRatio(found, single), 'lower')
  }
}

function medianRatio(found: Findings, single: Findings): number {
  const ratios = found.queries.map(({ ms }, i) => ms / (single.queries[i]?.ms ?? Number.NaN))
  return ratios.sort((a, b) => a - b)[ratios.length >> 1] ?? Number.NaN
}
