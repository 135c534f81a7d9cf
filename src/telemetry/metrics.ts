import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'

/** One finished request, as the HTTP server reports it. */
interface RequestFacts {
  /** null when no route was found */
  readonly routeId: string | null
  readonly method: string
  /** 0 when the client left before a reply */
  readonly status: number
  readonly durationMs: number
}

/** What became of the messages of one body. */
interface IngestFacts {
  readonly received: number
  readonly accepted: number
  readonly rejected: number
  readonly dropped: number
}

/** What is read when the metrics are; each is a cheap look at a number that exists anyway. */
export interface GaugeReaders {
  readonly walBytes: () => number
  readonly walLimitBytes: () => number
  readonly walEntries: () => number
  readonly walDamagedBytes: () => number
  readonly pipelineBytes: () => number
  readonly bufferBytes: () => number
  readonly bufferFreeBytes: () => number
  readonly dedupEntries: () => number
  readonly templates: () => number
  readonly sources: () => number
  readonly webSockets: () => number
  readonly workers: () => number
  readonly isStateUp: () => boolean
  readonly isClickhouseUp: () => boolean
}

export interface Metrics {
  /** Counts a finished request of one port. */
  request(server: 'api' | 'collector', facts: RequestFacts): void
  /** for the pipeline's `onAccepted` */
  ingested(protocol: string, facts: IngestFacts): void
  /** a batch has been written */
  batchWritten(rows: number): void
  /** an insert has succeeded, or failed and will be tried again */
  insertEnded(table: string, seconds: number, ok: boolean): void
  /** an attempt to write a batch has failed, for whatever reason */
  batchFailed(): void
  /** ClickHouse has refused rows, which are dead letters now */
  rowsRefused(rows: number): void
  /** Gives the gauges something to read; to be called once. Until then they are absent. */
  watch(readers: GaugeReaders): void
  /** Prometheus text format. */
  render(): Promise<string>
}

/** Media type of `render`. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

const PREFIX = 'log_engine_'
/** seconds: from what is answered from memory to the deadline of a handler */
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const INSERT_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120]
const OUTCOMES = ['accepted', 'rejected', 'dropped'] as const

/** The program's metrics on a registry of their own. Labels take values of ours only, so they are few. */
export function createMetrics({ version }: { readonly version: string }): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const info = new Gauge({
    name: `${PREFIX}build_info`,
    help: 'Always 1; the version is a label',
    labelNames: ['version', 'node'],
    registers: [registry],
  })
  info.set({ version, node: process.version }, 1)
  return {
    request: createRequests(registry),
    ingested: createIngest(registry),
    ...createBatches(registry),
    watch: (readers) => watch(registry, readers),
    render: () => registry.metrics(),
  }
}

function createRequests(registry: Registry): Metrics['request'] {
  const durations = new Histogram({
    name: `${PREFIX}http_request_duration_seconds`,
    help: 'Time from the first byte of a request to the end of its reply; status 0: the client left',
    labelNames: ['server', 'route', 'method', 'status'],
    buckets: REQUEST_BUCKETS,
    registers: [registry],
  })
  // looking a child up by its labels costs more than the observation itself
  const children = new Map<string, Child>()
  let last: { readonly of: string; readonly facts: RequestFacts; readonly child: Child } | null =
    null
  return (server, facts) => {
    const { routeId, method, status, durationMs } = facts
    // nearly all are of the kind of the one before
    if (last?.of === server && isSameKind(last.facts, facts)) {
      last.child.observe(durationMs / 1_000)
      return
    }
    const route = routeId ?? 'none'
    // a method nobody serves is the client's invention
    const known = routeId === null ? 'any' : method
    const key = `${server} ${route} ${known} ${status}`
    let child = children.get(key)
    if (child === undefined) {
      child = durations.labels({ server, route, method: known, status: String(status) })
      children.set(key, child)
    }
    last = { of: server, facts, child }
    child.observe(durationMs / 1_000)
  }
}

interface Child {
  readonly observe: (seconds: number) => void
}

const isSameKind = (a: RequestFacts, b: RequestFacts): boolean =>
  a.routeId === b.routeId && a.method === b.method && a.status === b.status

function createIngest(registry: Registry): Metrics['ingested'] {
  const received = new Counter({
    name: `${PREFIX}messages_received_total`,
    help: 'Messages that came in; accepted + rejected + dropped',
    labelNames: ['protocol'],
    registers: [registry],
  })
  const outcomes = new Counter({
    name: `${PREFIX}messages_total`,
    help: 'Messages by outcome: accepted is durable, rejected dead-lettered, dropped of a disabled source',
    labelNames: ['protocol', 'outcome'],
    registers: [registry],
  })
  // looking a child up by its labels costs more than counting; protocols are few
  const children = new Map<string, { readonly inc: (count: number) => void }>()
  const count = (name: string, make: () => Counter.Internal, by: number): void => {
    let child = children.get(name)
    if (child === undefined) {
      child = make()
      children.set(name, child)
    }
    child.inc(by)
  }
  return (protocol, facts) => {
    if (facts.received > 0) count(protocol, () => received.labels({ protocol }), facts.received)
    for (const outcome of OUTCOMES) {
      if (facts[outcome] > 0)
        count(
          `${protocol} ${outcome}`,
          () => outcomes.labels({ protocol, outcome }),
          facts[outcome],
        )
    }
  }
}

function createBatches(
  registry: Registry,
): Pick<Metrics, 'batchWritten' | 'insertEnded' | 'batchFailed' | 'rowsRefused'> {
  const counter = (name: string, help: string): Counter =>
    new Counter({ name: PREFIX + name, help, registers: [registry] })
  const batches = counter('batches_written_total', 'Batches that are in ClickHouse')
  const rows = counter('batch_rows_written_total', 'Rows of batches that are in ClickHouse')
  const failed = counter('batch_failures_total', 'Attempts to write a batch that failed')
  const refused = counter('rows_refused_total', 'Rows that ClickHouse refused: dead letters')
  const durations = new Histogram({
    name: `${PREFIX}insert_duration_seconds`,
    help: 'Time of one INSERT into ClickHouse, views included',
    labelNames: ['table'],
    buckets: INSERT_BUCKETS,
    registers: [registry],
  })
  const failures = new Counter({
    name: `${PREFIX}insert_failures_total`,
    help: 'INSERTs that failed; they are tried again',
    labelNames: ['table'],
    registers: [registry],
  })
  return {
    batchWritten: (count) => {
      batches.inc()
      rows.inc(count)
    },
    batchFailed: () => failed.inc(),
    rowsRefused: (count) => refused.inc(count),
    insertEnded: (table, seconds, ok) => {
      if (ok) durations.observe({ table }, seconds)
      else failures.inc({ table })
    },
  }
}

function watch(registry: Registry, readers: GaugeReaders): void {
  const gauge = (name: string, help: string, read: () => number): void => {
    const collect = (): void => made.set(read())
    const made = new Gauge({ name: PREFIX + name, help, registers: [registry], collect })
  }
  gauge('wal_bytes', 'Bytes on disk that wait for ClickHouse', readers.walBytes)
  gauge('wal_limit_bytes', 'Bytes from which on no more is taken', readers.walLimitBytes)
  gauge('wal_entries', 'Entries of the WAL that wait for ClickHouse', readers.walEntries)
  gauge(
    'wal_damaged_bytes',
    'Bytes of the WAL that were found damaged since the start, and are lost',
    readers.walDamagedBytes,
  )
  gauge('pipeline_bytes', 'Bytes of the bodies in work', readers.pipelineBytes)
  gauge('buffer_bytes', 'Buffers of bodies and blocks, free ones included', readers.bufferBytes)
  gauge('buffer_free_bytes', 'Buffers that wait for use', readers.bufferFreeBytes)
  gauge('dedup_window_entries', 'Messages remembered for deduplication', readers.dedupEntries)
  gauge('templates', 'Templates known', readers.templates)
  gauge('sources', 'Sources registered', readers.sources)
  gauge('websockets', 'Open WebSockets', readers.webSockets)
  gauge('worker_threads', 'Threads that decode and mine', readers.workers)
  gauge('state_up', '1 when the shared state answers', () => Number(readers.isStateUp()))
  gauge('clickhouse_up', '1 when ClickHouse takes batches', () => Number(readers.isClickhouseUp()))
}
