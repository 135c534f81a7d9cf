import { isDeepStrictEqual } from 'node:util'

import type { Instance } from '../coordination/instance.js'
import type { Lease } from '../coordination/state.js'
import type { Explanation, InsightAnomaly } from '../model/insights.js'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../model/time.js'
import type { Priorities } from '../priority/store.js'
import type { Sources } from '../records/sources.js'
import type { TemplateDirectory } from '../templates/directory.js'
import {
  anomaliesSince,
  knownBefore,
  trackAnomalies,
  withKnownIds,
  type TrackedAnomaly,
} from './anomaly-tracking.js'
import { explain } from './explanation.js'
import { findingsOf, type Finding } from './findings.js'
import { agreementOf } from './ml-health.js'
import { createRollups, type Rollups } from './rollups.js'
import { runInsights, type RunResult, type RunTime } from './run.js'
import { pauseAfter, SliceClock } from './slice-clock.js'
import {
  createInsightStore,
  type AnomalyQuery,
  type InsightStore,
  type StoredAnomaly,
  type StoredSnapshot,
} from './store.js'

interface InsightDeps extends Pick<Instance, 'config' | 'log' | 'store' | 'state'> {
  readonly sources: Sources
  readonly directory: TemplateDirectory
  readonly priorities: Priorities
}

/** An hour is analysed this long after its end, when its messages have been written. */
const SETTLE_MS = 90_000
/** After this long without events, runs end with the last hour that has some. */
const ASLEEP_HOURS = 7 * 24
const FIRST_RUN_MS = 5_000
const LOCK = 'insights:run'
const LEASE = 'insights:lease'
const ACTOR = 'insights'

/**
 * Whether an anomaly of a run is to be stored. A run for the past has fewer data than a later one,
 * so it replaces only shorter anomalies.
 */
const isNews = ({ anomaly, known }: TrackedAnomaly): boolean =>
  known === null || known.endedAtMs < anomaly.endedAtMs

const newsOfPast = (tracked: readonly TrackedAnomaly[]): readonly StoredAnomaly[] =>
  tracked
    .filter((each) => isNews(each))
    .map(({ anomaly }) => ({ ...anomaly, state: 'over' as const }))

/** The anomalies whose stored state changed. A stored anomaly that is not found any more is over. */
function changedNow(
  known: readonly StoredAnomaly[],
  tracked: readonly TrackedAnomaly[],
): readonly StoredAnomaly[] {
  const current = tracked.map(({ anomaly }) => anomaly)
  const currentIds = new Set(current.map(({ id }) => id))
  const ended = known
    .filter(({ id }) => !currentIds.has(id))
    .map((each) => (each.state === 'over' ? each : { ...each, state: 'over' as const }))
  const before = new Map(known.map((each) => [each.id, each]))
  return [...current, ...ended].filter((each) => !isStoredAs(before.get(each.id), each))
}

/** Gravity is not stored. */
const isStoredAs = (before: StoredAnomaly | undefined, now: StoredAnomaly): boolean =>
  before !== undefined && isDeepStrictEqual(before, { ...now, gravity: before.gravity })

/**
 * Anomalies, changed templates, forecast, causes and ML health, computed from the hourly rollups.
 *
 * Every INSIGHTS_INTERVAL_SECONDS the instance that gets the lease makes a run (run.ts); the others
 * read its snapshot. The anomalies of a run that continue stored ones take over their ids
 * (anomaly-tracking.ts), then anomalies and snapshot are stored (store.ts). Alert rules read the
 * anomalies from there (findings.ts). One lock serialises runs and deletions on all instances. A
 * run for a time in the past stores only anomalies that are new or last longer than the stored
 * ones.
 */
export class Insights {
  readonly #deps: InsightDeps
  readonly #rollups: Rollups
  readonly #store: InsightStore
  #newest: StoredSnapshot | null = null
  #timer: NodeJS.Timeout | null = null
  #running: Promise<unknown> = Promise.resolve()
  readonly #closing = new AbortController()
  #lastCostMs = 0
  /** Given to `start`. */
  #onHealthChanged: () => Promise<void> = () => Promise.resolve()

  constructor(deps: InsightDeps) {
    this.#deps = deps
    this.#rollups = createRollups(deps.store, deps.directory)
    this.#store = createInsightStore(deps.store)
  }

  /** @returns the last snapshot for a time or before it. @param atMs null = the newest */
  async snapshot(atMs: number | null, signal?: AbortSignal): Promise<StoredSnapshot | null> {
    const stored = await this.#store.snapshotAt(atMs ?? Number.MAX_SAFE_INTEGER, signal)
    return stored === null ? null : this.#withoutDeletedSources(stored)
  }

  anomalies(query: AnomalyQuery, signal?: AbortSignal): Promise<readonly StoredAnomaly[]> {
    return this.#store.anomalies(query, signal)
  }

  /** The anomalies for alert rules: those that began since a time, by descending gravity. */
  async findings(sinceMs: number, signal?: AbortSignal): Promise<readonly Finding[]> {
    const all = await this.#store.anomalies(anomaliesSince(sinceMs), signal)
    const textOf = (id: string): string | null => this.textOf(id)
    return findingsOf(all, { sources: this.#deps.sources, textOf })
  }

  explain(anomaly: InsightAnomaly, signal?: AbortSignal): Promise<Explanation> {
    const isWatched = (source: string): boolean => this.#isWatched(source)
    return explain(this.#rollups, anomaly, {
      isWatched,
      ...(signal === undefined ? {} : { signal }),
    })
  }

  textOf(templateId: string): string | null {
    return this.#deps.directory.describe(templateId)?.text ?? null
  }

  /** @returns 0..1, or null without a snapshot of the last day */
  mlHealth(): number | null {
    const newest = this.#newest
    if (newest === null || newest.generatedAtMs < Date.now() - DAY_MS) return null
    return newest.snapshot.health.score
  }

  /** Removes the anomalies of deleted sources. */
  forget(sources: readonly string[]): Promise<void> {
    return this.#betweenRuns(() => this.#store.removeSources(sources))
  }

  async forgetAll(): Promise<void> {
    await this.#betweenRuns(() => this.#store.clear())
    this.#newest = null
  }

  /**
   * Begins to make runs, unless the interval is 0.
   *
   * @param onHealthChanged called after a run that changed ML health, which the KPIs show
   */
  start(onHealthChanged: () => Promise<void>): void {
    this.#onHealthChanged = onHealthChanged
    if (this.#deps.config.insightsIntervalSeconds > 0) this.#schedule(FIRST_RUN_MS)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#running.catch(() => undefined)
  }

  #schedule(delayMs: number): void {
    if (this.#closing.signal.aborted) return
    this.#timer = setTimeout(() => {
      this.#running = this.#runOrFollow().finally(() =>
        this.#schedule(pauseAfter(this.#lastCostMs, this.#deps.config)),
      )
    }, delayMs)
    this.#timer.unref()
  }

  async #runOrFollow(): Promise<void> {
    const { state, config, log } = this.#deps
    try {
      // The lease ends before the instance that holds it runs again.
      const leaseMs = Math.max(1000, config.insightsIntervalSeconds * 900)
      if (await state.setIfAbsent(LEASE, ACTOR, leaseMs)) await this.refresh(null)
      else this.#newest = await this.snapshot(null)
    } catch (error) {
      if (this.#closing.signal.aborted) return
      log.warn({ err: error }, 'the insight run failed; it is tried again')
    }
  }

  /** Makes a run. @param atMs a time in the past that it is made for; null = the present */
  refresh(atMs: number | null): Promise<StoredSnapshot> {
    return this.#exclusively(async (lease) => {
      const begunAtMs = Date.now()
      const { log, priorities, directory } = this.#deps
      const time = await this.#runTimeOf(atMs)
      const result = await runInsights(
        {
          rollups: this.#rollups,
          isWatched: (source) => this.#isWatched(source),
          directory,
          agreement: () => agreementOf(priorities.model),
          clock: new SliceClock([this.#closing.signal, lease.signal]),
        },
        time,
      )
      this.#lastCostMs = result.costMs
      const stored = await this.#save(result, time.isPast)
      const healthBefore = this.mlHealth()
      const isNewest = stored.snapshot.asOfMs >= (this.#newest?.snapshot.asOfMs ?? 0)
      if (isNewest) this.#newest = stored
      if (this.mlHealth() !== healthBefore) await this.#onHealthChanged()
      const tookMs = Date.now() - begunAtMs
      const { ongoing, series } = stored.snapshot
      const facts = { tookMs, costMs: Math.round(result.costMs), series, ongoing }
      log.debug(facts, 'insight snapshot computed')
      return stored
    })
  }

  #isWatched(source: string): boolean {
    return this.#deps.sources.get(source)?.enabled ?? false
  }

  async #runTimeOf(atMs: number | null): Promise<RunTime & { readonly isPast: boolean }> {
    const now = Math.floor((Date.now() - SETTLE_MS) / HOUR_MS)
    const latest = (await this.#rollups.latestHour(now + 1)) ?? now
    const isAsleep = latest < now - ASLEEP_HOURS
    const current = isAsleep ? latest + 1 : now
    if (atMs === null)
      return { endHour: current, withRunning: !isAsleep, nowHour: now, isPast: false }
    const nowHour = Math.min(Math.floor(atMs / HOUR_MS), now)
    const endHour = Math.min(nowHour, current)
    return { endHour, withRunning: false, nowHour, isPast: endHour < current }
  }

  async #save(
    { snapshot: computed, anomalies }: RunResult,
    isPast: boolean,
  ): Promise<StoredSnapshot> {
    const generatedAtMs = Date.now()
    const known = await this.#store.anomalies(knownBefore(computed.asOfMs))
    const tracked = trackAnomalies(anomalies, known)
    const snapshot = withKnownIds(computed, anomalies, tracked)
    const changed = isPast ? newsOfPast(tracked) : changedNow(known, tracked)
    await this.#store.saveAnomalies(changed, generatedAtMs)
    const stored = { generatedAtMs, snapshot }
    await this.#store.saveSnapshot(stored)
    return stored
  }

  /** Leaves out deleted sources, and those that were deleted and created again after the snapshot. */
  #withoutDeletedSources({ generatedAtMs, snapshot }: StoredSnapshot): StoredSnapshot {
    const { sources } = this.#deps
    const isThere = (source: string): boolean => {
      const createdAtMs = sources.get(source)?.createdAtMs
      return source === '' || (createdAtMs !== undefined && createdAtMs <= generatedAtMs)
    }
    const anomalies = snapshot.anomalies.filter(({ source }) => isThere(source))
    const ids = new Set(anomalies.map(({ id }) => id))
    const correlations = snapshot.correlations
      .filter(({ anomalyId }) => ids.has(anomalyId))
      .map((each) => ({
        ...each,
        sources: each.sources.filter(({ name }) => isThere(name)),
        alsoAffected: each.alsoAffected.filter(({ source }) => isThere(source)),
      }))
    const templates = snapshot.templates.filter(({ source }) => isThere(source))
    return { generatedAtMs, snapshot: { ...snapshot, anomalies, templates, correlations } }
  }

  /**
   * Waits for a run in progress, which would store deleted sources again. A deletion is carried out
   * without the lock when the shared state is down.
   */
  async #betweenRuns(work: () => Promise<void>): Promise<void> {
    await this.#exclusively(work).catch(() => work())
  }

  #exclusively<T>(work: (lease: Lease) => Promise<T>): Promise<T> {
    return this.#deps.state.withLock(LOCK, MINUTE_MS, work)
  }
}
