import type { Store } from '../clickhouse/client.js'
import type { Entities } from '../coordination/entities.js'
import type { Exclusive } from '../coordination/lock.js'
import type { Severity } from '../model/event.js'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../model/time.js'
import type { Log } from '../telemetry/log.js'
import { createPartitions } from './partitions.js'
import type { RetentionPolicy } from './policy.js'
import { createSweep, RetentionDoc } from './sweep.js'

interface RetentionDeps {
  readonly store: Store
  readonly entities: Entities
  readonly exclusive: Exclusive
  readonly policy: RetentionPolicy
  readonly log: Log
}

export type Retention = ReturnType<typeof createRetention>

const FIRST_SWEEP_MS = MINUTE_MS

/** Drops what is past its retention, every hour, on one instance at a time. */
export function createRetention({ store, entities, exclusive, policy, log }: RetentionDeps) {
  const sweepAt = createSweep({
    policy,
    partitions: createPartitions(store),
    records: entities.collection('retention', RetentionDoc),
    onDropped: (dropped) => log.info(dropped, 'past retention: dropped'),
  })
  const sweep = (nowMs = Date.now()): Promise<void> => exclusive('retention', () => sweepAt(nowMs))
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  const plan = (waitMs: number): void => {
    timer = setTimeout(() => {
      running = sweep()
        .catch((error: unknown) => log.warn({ err: error }, 'retention could not be applied'))
        .finally(() => {
          if (timer !== undefined) plan(HOUR_MS)
        })
    }, waitMs).unref()
  }
  return {
    sweep,
    start: (): void => plan(FIRST_SWEEP_MS),
    /** Resolves when the sweep under way has ended. */
    close: async (): Promise<void> => {
      clearTimeout(timer)
      timer = undefined
      await running
    },
    /** The time of arrival since which all events of these sources and severities are stored; null stands for all. */
    keptSinceMs: (
      sources: readonly string[] | null,
      severities: readonly Severity[] | null,
    ): number => Date.now() - policy.shortestDays(sources, severities) * DAY_MS,
  }
}
