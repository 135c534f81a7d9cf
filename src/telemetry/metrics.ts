import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'

import { SEVERITIES, type Severity } from '../model/event.js'
import { type Credential, countRefusedCredentials } from './refused-credentials.js'

const LOOP_LOOK_MS = 200

/** One finished request, as the HTTP server reports it. */
export interface RequestOutcome {
  /** Null when no route matched. */
  readonly routeId: string | null
  readonly method: string
  /** 0 means that the client disconnected before the reply. */
  readonly status: number
  readonly durationMs: number
}

/** The messages of one body by outcome. */
interface IngestFacts {
  readonly received: number
  readonly accepted: number
  readonly rejected: number
  readonly dropped: number
}

/** Rows of one block. */
interface StoredRows {
  readonly sources: readonly string[]
  /** Messages by source and severity: a number for each of SEVERITIES for each of `sources`. */
  readonly occurrences: Uint32Array
  readonly attributesLeftOut: number
}

/** The gauges; each is read when the metrics are rendered. */
export interface GaugeReaders {
  readonly walBytes: () => number
  readonly walLimitBytes: () => number
  readonly walRecords: () => number
  readonly walOldestSeconds: () => number
  readonly walDamagedBytes: () => number
  readonly pipelineBytes: () => number
  readonly bufferBytes: () => number
  readonly bufferFreeBytes: () => number
  readonly dedupEntries: () => number
  readonly templates: () => number
  readonly sources: () => number
  readonly webSockets: () => number
  readonly workers: () => number
  readonly alertRules: () => number
  readonly alertsFiring: () => number
  readonly noticesWaiting: () => number
  /** Attempts to send notices, by their outcome. */
  readonly noticesByOutcome: () => ReadonlyMap<string, number>
  readonly channelsFailing: () => number
  readonly alertRulesUnknown: () => number
  readonly alertRulesCut: () => number
  readonly alertLagSeconds: () => number
  readonly coldBytes: () => number
  readonly isColdUp: () => boolean
  readonly isStateUp: () => boolean
  readonly isClickhouseUp: () => boolean
}

/** The readers of listeners' metrics, called when the metrics are rendered. */
export interface ListenerReaders {
  readonly connections: () => number
  readonly bytes: () => number
  readonly lostDatagrams: () => ReadonlyMap<string, number>
}

export interface Metrics {
  /** Counts a finished request of one port. */
  request(server: 'api' | 'collector', facts: RequestOutcome): void
  ingested(protocol: string, facts: IngestFacts): void
  /** Counts the messages of durable rows by source and severity, and their tags that are kept but not searchable. */
  stored(rows: StoredRows): void
  /** Counts a wrong or reused credential. */
  credentialRefused(kind: Credential): void
  batchWritten(rows: number): void
  insertEnded(table: string, seconds: number, ok: boolean): void
  batchFailed(): void
  /** Counts rows that ClickHouse refused and that became dead letters. */
  rowsRefused(rows: number): void
  templatesForgotten(templates: number): void
  /** Counts rows that were dropped because of MAX_DISK. */
  droppedForDisk(rows: number): void
  /** Registers the gauges. It may be called once. */
  watch(readers: GaugeReaders): void
  /** Registers the readers of listeners. It may be called once. */
  watchListeners(readers: ListenerReaders): void
  /** Prometheus text format. */
  render(): Promise<string>
}

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

const PREFIX = 'log_engine_'
/** Seconds, from replies out of memory to the deadline of a handler. */
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const INSERT_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120]
const OUTCOMES = ['accepted', 'rejected', 'dropped'] as const

/** Creates the metrics of the service. The values of labels are bounded; clients choose only the names of the first sources. */
export function createMetrics({ version }: { readonly version: string }): Metrics {
  const registry = new Registry()
  // By default the delay of the event loop is sampled a hundred times a second, which would be most
  // of the work of an idle service.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_LOOK_MS })
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
    stored: createStored(registry),
    credentialRefused: countRefusedCredentials(registry),
    ...createBatches(registry),
    watch: (readers) => watch(registry, readers),
    watchListeners: (readers) => watchListeners(registry, readers),
    render: () => registry.metrics(),
  }
}

function createRequests(registry: Registry): Metrics['request'] {
  const durations = new Histogram({
    name: `${PREFIX}http_request_duration_seconds`,
    help: 'Time from the first byte of a request to the end of its reply; status 0 when the client disconnected before',
    labelNames: ['server', 'route', 'method', 'status'],
    buckets: REQUEST_BUCKETS,
    registers: [registry],
  })
  // Cached, because finding a histogram by its labels in prom-client costs more than the observation itself.
  const children = new Map<string, Child>()
  let last: { readonly of: string; readonly facts: RequestOutcome; readonly child: Child } | null =
    null
  return (server, facts) => {
    const { routeId, method, status, durationMs } = facts
    // Nearly every request has the labels of the one before it.
    if (last?.of === server && isSameKind(last.facts, facts)) {
      last.child.observe(durationMs / 1_000)
      return
    }
    const route = routeId ?? 'none'
    // Without a route the client chooses the method, which must not become a label.
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

const isSameKind = (a: RequestOutcome, b: RequestOutcome): boolean =>
  a.routeId === b.routeId && a.method === b.method && a.status === b.status

function createIngest(registry: Registry): Metrics['ingested'] {
  const received = new Counter({
    name: `${PREFIX}messages_received_total`,
    help: 'Messages received: the sum of accepted, rejected and dropped',
    labelNames: ['protocol'],
    registers: [registry],
  })
  const outcomes = new Counter({
    name: `${PREFIX}messages_total`,
    help: 'Messages by outcome: accepted (durable), rejected (dead-lettered) or dropped (source disabled)',
    labelNames: ['protocol', 'outcome'],
    registers: [registry],
  })
  // Cached, because finding a counter by its labels in prom-client costs more than counting. There are few protocols.
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

/** The most sources with a label of their own; further ones are counted together. */
const MAX_SOURCES = 100
const OTHER_SOURCES = '(other)'

function createStored(registry: Registry): Metrics['stored'] {
  const total = new Counter({
    name: `${PREFIX}stored_messages_total`,
    help: `Durable messages by source and severity; after the first ${MAX_SOURCES} sources, further ones are ${OTHER_SOURCES}`,
    labelNames: ['source', 'severity'],
    registers: [registry],
  })
  const leftOut = new Counter({
    name: `${PREFIX}attributes_left_out_total`,
    help: 'Values of tags that are kept but not searchable, because they exceed the limits of attributes',
    registers: [registry],
  })
  // Cached, because finding a counter by its labels in prom-client costs more than counting.
  const counters = new Map<string, Counter.Internal>()
  const known = new Set<string>()
  const labelOf = (source: string): string => {
    if (!known.has(source) && known.size >= MAX_SOURCES) return OTHER_SOURCES
    known.add(source)
    return source
  }
  const counterOf = (name: string, severity: Severity): Counter.Internal => {
    const source = labelOf(name)
    const key = `${severity} ${source}`
    const counter = counters.get(key) ?? total.labels({ source, severity })
    counters.set(key, counter)
    return counter
  }
  return ({ sources, occurrences, attributesLeftOut }) => {
    leftOut.inc(attributesLeftOut)
    sources.forEach((source, no) => {
      for (const [level, severity] of SEVERITIES.entries()) {
        const count = occurrences[no * SEVERITIES.length + level] ?? 0
        if (count > 0) counterOf(source, severity).inc(count)
      }
    })
  }
}

function createBatches(
  registry: Registry,
): Pick<
  Metrics,
  | 'batchWritten'
  | 'insertEnded'
  | 'batchFailed'
  | 'rowsRefused'
  | 'templatesForgotten'
  | 'droppedForDisk'
> {
  const counter = (name: string, help: string): Counter =>
    new Counter({ name: PREFIX + name, help, registers: [registry] })
  const batches = counter('batches_written_total', 'Batches written to ClickHouse')
  const rows = counter('batch_rows_written_total', 'Rows of the batches written to ClickHouse')
  const dropped = counter(
    'dropped_for_disk_rows_total',
    'Rows that were dropped because of MAX_DISK',
  )
  const failed = counter('batch_failures_total', 'Failed attempts to write a batch')
  const refused = counter(
    'rows_refused_total',
    'Rows that ClickHouse refused; they became dead letters',
  )
  const forgotten = counter(
    'templates_forgotten_total',
    'Templates that were forgotten to make room, or with their sources',
  )
  const durations = new Histogram({
    name: `${PREFIX}insert_duration_seconds`,
    help: 'Time of one INSERT into ClickHouse, materialized views included',
    labelNames: ['table'],
    buckets: INSERT_BUCKETS,
    registers: [registry],
  })
  const failures = new Counter({
    name: `${PREFIX}insert_failures_total`,
    help: 'Failed INSERTs; each is retried',
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
    droppedForDisk: (count) => dropped.inc(count),
    templatesForgotten: (count) => forgotten.inc(count),
    insertEnded: (table, seconds, ok) => {
      if (ok) durations.observe({ table }, seconds)
      else failures.inc({ table })
    },
  }
}

type AddGauge = (name: string, help: string, read: () => number) => void

const gaugesOf =
  (registry: Registry): AddGauge =>
  (name, help, read) => {
    const collect = (): void => made.set(read())
    const made = new Gauge({ name: PREFIX + name, help, registers: [registry], collect })
  }

function watch(registry: Registry, readers: GaugeReaders): void {
  const gauge = gaugesOf(registry)
  gauge(
    'wal_bytes',
    'Bytes of the write-ahead log (WAL) on disk that are not in ClickHouse yet',
    readers.walBytes,
  )
  gauge(
    'wal_limit_bytes',
    'Limit of the WAL in bytes (WAL_MAX_BYTES); at the limit requests get 429',
    readers.walLimitBytes,
  )
  gauge('wal_records', 'Records of the WAL that are not in ClickHouse yet', readers.walRecords)
  gauge('wal_oldest_seconds', 'How long the oldest of them has waited', readers.walOldestSeconds)
  gauge(
    'wal_damaged_bytes',
    'Bytes of the WAL found damaged and lost since the start',
    readers.walDamagedBytes,
  )
  gauge('pipeline_bytes', 'Bytes of the request bodies being processed', readers.pipelineBytes)
  gauge(
    'buffer_bytes',
    'Bytes of the buffers for bodies and blocks, free ones included',
    readers.bufferBytes,
  )
  gauge('buffer_free_bytes', 'Bytes of the free buffers', readers.bufferFreeBytes)
  gauge('dedup_window_entries', 'Messages in the deduplication window', readers.dedupEntries)
  gauge('templates', 'Known templates', readers.templates)
  gauge('sources', 'Registered sources', readers.sources)
  gauge('websockets', 'Open WebSockets', readers.webSockets)
  gauge(
    'worker_threads',
    'Worker threads that decode messages and find their templates',
    readers.workers,
  )
  watchAlerting(registry, readers)
  gauge('cold_bytes', 'Bytes of the events in cold storage', readers.coldBytes)
  const flag = (name: string, help: string, read: () => boolean): void =>
    gauge(name, help, () => Number(read()))
  flag('cold_up', '1 when cold storage answers, or there is none', readers.isColdUp)
  flag('state_up', '1 when the shared state (Redis or in-process) answers', readers.isStateUp)
  flag('clickhouse_up', '1 when ClickHouse accepts batches', readers.isClickhouseUp)
}

function watchListeners(registry: Registry, readers: ListenerReaders): void {
  const gauge = gaugesOf(registry)
  gauge(
    'listener_connections',
    'Open connections to the ports of other protocols than HTTP',
    readers.connections,
  )
  gauge(
    'listener_bytes',
    'Bytes that these ports have read and that are not durable yet',
    readers.bytes,
  )
  counted(registry, {
    name: 'listener_lost_datagrams_total',
    help: 'UDP datagrams that were lost because the kernel (Linux) or the queue had no room',
    label: 'protocol',
    read: readers.lostDatagrams,
  })
}

/** A counter whose value is kept elsewhere and may restart at 0. */
function counted(
  registry: Registry,
  facts: {
    readonly name: string
    readonly help: string
    readonly label: string
    readonly read: () => ReadonlyMap<string, number>
  },
): void {
  const { name, help, label, read } = facts
  const counts = new Map<string, number>()
  const counter = new Counter({
    name: PREFIX + name,
    help,
    labelNames: [label],
    registers: [registry],
    collect: () => {
      for (const [value, count] of read()) {
        const before = counts.get(value) ?? 0
        counter.labels({ [label]: value }).inc(count < before ? count : count - before)
        counts.set(value, count)
      }
    },
  })
}

function watchAlerting(registry: Registry, readers: GaugeReaders): void {
  const gauge = gaugesOf(registry)
  counted(registry, {
    name: 'notices_total',
    help: 'Attempts to send notices of alert rules by outcome: sent, failed, refused, held, silenced or dropped',
    label: 'outcome',
    read: readers.noticesByOutcome,
  })
  gauge(
    'alert_rules_unknown',
    'Alert rules whose queries fail; 0 on instances that do not evaluate',
    readers.alertRulesUnknown,
  )
  gauge(
    'alert_rules_cut',
    'Alert rules that have more groups than are tracked; 0 on instances that do not evaluate',
    readers.alertRulesCut,
  )
  gauge(
    'channels_failing',
    'Notification channels that do not deliver; 0 on instances that do not evaluate',
    readers.channelsFailing,
  )
  gauge('alert_rules', 'Alert rules', readers.alertRules)
  gauge(
    'alerts_firing',
    'Groups of alert rules that fire; 0 on instances that do not evaluate',
    readers.alertsFiring,
  )
  gauge(
    'notices_waiting',
    'Notices of alert rules that are not sent yet; 0 on instances that do not evaluate',
    readers.noticesWaiting,
  )
  gauge(
    'alert_lag_seconds',
    'How far the evaluation of alert rules is behind; 0 on instances that do not evaluate',
    readers.alertLagSeconds,
  )
}
