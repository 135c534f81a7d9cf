import type { createAlerting } from '../alerting/alerting.js'
import type { State } from '../coordination/state.js'
import { watchState } from '../coordination/open-state.js'
import type { DedupWindow } from '../ingest/dedup-window.js'
import type { Pipeline } from '../ingest/pipeline.js'
import type { Pool } from '../ingest/pool.js'
import type { Sources } from '../records/sources.js'
import type { Cold } from '../retention/cold.js'
import type { GaugeReaders } from '../telemetry/metrics.js'
import type { TemplateRegistry } from '../templates/registry.js'
import type { Wal } from '../wal/wal.js'
import type { Writer } from '../writer/writer.js'
import type { Live } from './live.js'

interface Gauged {
  readonly wal: Wal
  readonly pipeline: Pick<Pipeline, 'bytes'>
  readonly buffers: readonly { readonly bytes: number; readonly freeBytes: number }[]
  readonly window: DedupWindow
  readonly templates: TemplateRegistry
  readonly sources: Sources
  readonly live: Live
  readonly pool: Pick<Pool, 'workers'>
  readonly alerting: ReturnType<typeof createAlerting>
  readonly state: State
  readonly cold: Cold
  readonly writer: Pick<Writer, 'failingSinceMs'>
}

/** The readers of the gauges of `/metrics`. */
export function gaugesOf(parts: Gauged): GaugeReaders {
  const { wal, pipeline, buffers, window, templates, sources, live, pool, alerting, state } = parts
  const { evaluator } = alerting
  const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)
  return {
    walBytes: () => wal.bytes,
    walLimitBytes: () => wal.maxBytes,
    walRecords: () => wal.waiting.length,
    walOldestSeconds: () => wal.oldestMs / 1_000,
    walDamagedBytes: () => wal.damagedBytes,
    pipelineBytes: () => pipeline.bytes,
    bufferBytes: () => sum(buffers.map(({ bytes }) => bytes)),
    bufferFreeBytes: () => sum(buffers.map(({ freeBytes }) => freeBytes)),
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
    coldBytes: parts.cold.bytes,
    isColdUp: () => parts.cold.fault() === null,
    isStateUp: watchState(state),
    isClickhouseUp: () => parts.writer.failingSinceMs === null,
  }
}
