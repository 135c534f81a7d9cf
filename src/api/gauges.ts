import type { Alerting } from '../alerting/alerting.js'
import type { Instance } from '../coordination/instance.js'
import { watchState } from '../coordination/open-state.js'
import type { DedupWindow } from '../ingest/dedup-window.js'
import type { SharedMemory } from '../ingest/packed-task.js'
import type { Pipeline } from '../ingest/pipeline.js'
import type { Pool } from '../ingest/pool.js'
import type { Sources } from '../records/sources.js'
import type { Retention } from '../retention/retention.js'
import type { GaugeReaders } from '../telemetry/metrics.js'
import type { TemplateRegistry } from '../templates/registry.js'
import type { Wal } from '../wal/wal.js'
import type { Writer } from '../writer/writer.js'
import type { Live } from './live.js'

interface Gauged extends Pick<Instance, 'state'> {
  readonly wal: Wal
  readonly pipeline: Pipeline
  readonly memory: SharedMemory
  readonly window: DedupWindow
  readonly templates: TemplateRegistry
  readonly sources: Sources
  readonly live: Live
  readonly pool: Pool
  readonly alerting: Alerting
  readonly retention: Retention
  readonly writer: Writer
}

/** The readers of the gauges of `/metrics`. */
export function gaugesOf(parts: Gauged): GaugeReaders {
  const { wal, pipeline, window, templates, sources, live, pool, alerting, state } = parts
  const { evaluator } = alerting
  const { bufferPool, blockPool } = parts.memory
  const { cold } = parts.retention
  return {
    walBytes: () => wal.bytes,
    walLimitBytes: () => wal.maxBytes,
    walRecords: () => wal.waiting.length,
    walOldestSeconds: () => wal.oldestMs / 1_000,
    walDamagedBytes: () => wal.damagedBytes,
    pipelineBytes: () => pipeline.bytes,
    bufferBytes: () => bufferPool.bytes + blockPool.bytes,
    bufferFreeBytes: () => bufferPool.freeBytes + blockPool.freeBytes,
    dedupEntries: () => window.size,
    templates: () => templates.size,
    sources: () => sources.size,
    webSockets: () => live.size,
    workers: () => pool.workers,
    alertRules: () => alerting.services.alertRules.list().length,
    alertsFiring: () => evaluator.firing,
    noticesWaiting: () => evaluator.noticesWaiting,
    noticesByOutcome: () => evaluator.noticesByOutcome,
    alertRulesUnknown: () => evaluator.unknown,
    alertRulesCut: () => evaluator.cut,
    channelsFailing: () => evaluator.channelsFailing,
    alertLagSeconds: () => evaluator.lagSeconds,
    coldBytes: cold.bytes,
    isColdUp: () => cold.fault() === null,
    isStateUp: watchState(state),
    isClickhouseUp: () => parts.writer.failingSinceMs === null,
  }
}
