import { isDeepStrictEqual } from 'node:util'

import type { Alerts } from '../records/alerts.js'
import type { Incidents } from '../records/incidents.js'
import type { Config } from '../config.js'
import { continued } from './continued.js'
import type { Explanation, InsightAnomaly, InsightSnapshot } from '../model/insights.js'
import type { Lease, State } from '../coordination/state.js'
import { createInsightSeries, type InsightSeries } from './stored-series.js'
import {
  createInsightArchive,
  type AnomalyQuery,
  type InsightArchive,
  type KeptAnomaly,
} from './store.js'
import type { Log } from '../telemetry/log.js'
import { raiseAlerts } from './alerts.js'
import { agreementOf, knownAround, neverAlerted, parseSnapshot, withKnownIds } from './records.js'
import { createMemory } from './counts.js'
import { explain } from './parts.js'
import { runInsights, type Moment, type RunResult } from './run.js'
import { pauseAfter, SliceClock } from './slice-clock.js'
import type { PriorityModel } from '../priority/model.js'
import type { Sources } from '../records/sources.js'
import type { Store } from '../clickhouse/client.js'
import type { TemplateDirectory } from '../templates/directory.js'
import { MINUTE_MS, HOUR_MS, DAY_MS } from '../model/time.js'

export interface InsightDeps {
  readonly config: Config
  readonly log: Log
  readonly store: Store
  readonly state: State
  readonly sources: Sources
  readonly directory: TemplateDirectory
  readonly model: PriorityModel
  readonly alerts: Alerts
  readonly incidents: Incidents
  /** Called after a run that raised alerts or changed ML health, which the KPIs show. */
  readonly onNews: () => Promise<void>
}

/** A snapshot with the moment it was made. */
export interface MadeSnapshot {
  readonly generatedAtMs: number
  readonly snapshot: InsightSnapshot
}

/** What the insight router and the KPIs ask. */
export interface Insights {
  /** The last one made for a moment or before it. @param atMs null = the newest */
  snapshot(atMs: number | null, signal?: AbortSignal): Promise<MadeSnapshot | null>
  /** Looks now, or back from a moment in the past. */
  refresh(atMs: number | null): Promise<MadeSnapshot>
  anomalies(query: AnomalyQuery, signal?: AbortSignal): Promise<readonly KeptAnomaly[]>
  explain(anomaly: InsightAnomaly, signal?: AbortSignal): Promise<Explanation>
  textOf(templateId: string): string | null
  /** 0..1; null without a recent snapshot */
  mlHealth(): number | null
  /** For deletions: nothing of these sources is told any more. */
  forget(sources: readonly string[]): Promise<void>
  forgetAll(): Promise<void>
  /** Begins to look from time to time. */
  start(): void
  close(): Promise<void>
}

/** an hour counts as whole when what was sent in it has had this long to be written */
const SETTLE_MS = 90_000
/** when nothing came for so long, the look is back from the last hour that has something */
const ASLEEP_HOURS = 7 * 24
const FIRST_LOOK_MS = 5_000
const LOCK_MS = MINUTE_MS
const LOCK = 'insights:look'
const TURN = 'insights:turn'
const ACTOR = 'insights'

export function createInsights(deps: InsightDeps): Insights {
  return new Engine(deps)
}

class Engine implements Insights {
  readonly #deps: InsightDeps
  readonly #series: InsightSeries
  readonly #archive: InsightArchive
  #newest: MadeSnapshot | null = null
  #timer: NodeJS.Timeout | null = null
  #running: Promise<unknown> = Promise.resolve()
  readonly #closing = new AbortController()
  readonly #memory = createMemory()
  #lastCostMs = 0

  constructor(deps: InsightDeps) {
    this.#deps = deps
    this.#series = createInsightSeries(deps.store, deps.directory)
    this.#archive = createInsightArchive(deps.store)
  }

  async snapshot(atMs: number | null, signal?: AbortSignal): Promise<MadeSnapshot | null> {
    const kept = await this.#archive.snapshotAt(atMs ?? Number.MAX_SAFE_INTEGER, signal)
    if (kept === null) return null
    const { generatedAtMs, json } = kept
    return { generatedAtMs, snapshot: this.#withoutDeleted(generatedAtMs, parseSnapshot(json)) }
  }

  refresh(atMs: number | null): Promise<MadeSnapshot> {
    return this.#look(atMs)
  }

  anomalies(query: AnomalyQuery, signal?: AbortSignal): Promise<readonly KeptAnomaly[]> {
    return this.#archive.anomalies(query, signal)
  }

  explain(anomaly: InsightAnomaly, signal?: AbortSignal): Promise<Explanation> {
    return explain(this.#series, anomaly, signal)
  }

  textOf(templateId: string): string | null {
    return this.#deps.directory.describe(templateId)?.text ?? null
  }

  mlHealth(): number | null {
    const newest = this.#newest
    if (newest === null || newest.generatedAtMs < Date.now() - DAY_MS) return null
    return newest.snapshot.health.score
  }

  forget(sources: readonly string[]): Promise<void> {
    return this.#afterLooks(() => this.#archive.removeSources(sources))
  }

  async forgetAll(): Promise<void> {
    await this.#afterLooks(() => this.#archive.clear())
    this.#newest = null
  }

  start(): void {
    if (this.#deps.config.insightsIntervalSeconds > 0) this.#plan(FIRST_LOOK_MS)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#running.catch(() => undefined)
  }

  #plan(delayMs: number): void {
    if (this.#closing.signal.aborted) return
    this.#timer = setTimeout(() => {
      this.#running = this.#takeTurn().finally(() =>
        this.#plan(pauseAfter(this.#lastCostMs, this.#deps.config)),
      )
    }, delayMs)
    this.#timer.unref()
  }

  /** One of the instances looks, the others take over what it found. */
  async #takeTurn(): Promise<void> {
    const { state, config, log } = this.#deps
    try {
      const lastMs = Math.max(1000, config.insightsIntervalSeconds * 900)
      const isMine = await state.setIfAbsent(TURN, ACTOR, lastMs)
      if (isMine) await this.#look(null)
      else this.#newest = await this.snapshot(null)
    } catch (error) {
      if (this.#closing.signal.aborted) return
      log.warn({ err: error }, 'the insight engine could not look; it tries again')
    }
  }

  #look(atMs: number | null): Promise<MadeSnapshot> {
    return this.#exclusive(async (lease) => {
      const begunAtMs = Date.now()
      const moment = await this.#momentOf(atMs)
      const { sources, directory, model } = this.#deps
      const result = await runInsights(
        {
          series: this.#series,
          isWatched: (source) => sources.get(source)?.enabled ?? false,
          canonical: (id) => directory.describe(id)?.id ?? id,
          isCorrected: (id) => (directory.describe(id)?.override ?? null) !== null,
          agreement: () => agreementOf(model),
          memory: moment.isPast ? createMemory() : this.#memory,
          clock: new SliceClock([this.#closing.signal, lease.signal]),
        },
        moment,
      )
      this.#lastCostMs = result.costMs
      const { made, alerted } = await this.#save(result, moment)
      const healthBefore = this.mlHealth()
      const isNewest = made.snapshot.asOfMs >= (this.#newest?.snapshot.asOfMs ?? 0)
      if (isNewest) this.#newest = made
      if (alerted > 0 || this.mlHealth() !== healthBefore) await this.#deps.onNews()
      const tookMs = Date.now() - begunAtMs
      const { ongoing, series } = made.snapshot
      const facts = { tookMs, costMs: Math.round(result.costMs), series, ongoing, alerted }
      this.#deps.log.debug(facts, 'insight snapshot computed')
      return made
    })
  }

  async #momentOf(atMs: number | null): Promise<Moment & { readonly isPast: boolean }> {
    const now = Math.floor((Date.now() - SETTLE_MS) / HOUR_MS)
    const latest = (await this.#series.latestHour(now + 1)) ?? now
    const isAsleep = latest < now - ASLEEP_HOURS
    const current = isAsleep ? latest + 1 : now
    if (atMs === null)
      return { endHour: current, withRunning: !isAsleep, nowHour: now, isPast: false }
    const nowHour = Math.min(Math.floor(atMs / HOUR_MS), now)
    const endHour = Math.min(nowHour, current)
    return { endHour, withRunning: false, nowHour, isPast: endHour < current }
  }

  async #save(
    { snapshot, anomalies }: RunResult,
    { isPast }: { readonly isPast: boolean },
  ): Promise<{ readonly made: MadeSnapshot; readonly alerted: number }> {
    const generatedAtMs = Date.now()
    const known = await this.#archive.anomalies(knownAround(snapshot.asOfMs))
    const matched = continued(anomalies, known)
    const ids = new Map(anomalies.map(({ id }, i) => [id, matched[i]?.anomaly.id ?? id]))
    const current = matched.map(({ anomaly }) => anomaly)
    const told = withKnownIds(snapshot, current, ids)
    let alerted = 0
    if (isPast) {
      // what is known from a later look stays as it is
      const unknown = matched.filter((each) => each.known === null)
      const over = unknown.map(({ anomaly }) => ({ ...anomaly, state: 'over' as const }))
      await this.#archive.saveAnomalies(over.map(neverAlerted), generatedAtMs)
    } else alerted = await this.#keep(known, matched, generatedAtMs)
    const json = JSON.stringify(told)
    await this.#archive.saveSnapshot(snapshot.asOfMs, { generatedAtMs, json })
    return { made: { generatedAtMs, snapshot: told }, alerted }
  }

  /** Raises the alerts that are due, then stores what is new of the anomalies. @returns how many were raised */
  async #keep(
    known: readonly KeptAnomaly[],
    matched: ReturnType<typeof continued<KeptAnomaly>>,
    nowMs: number,
  ): Promise<number> {
    const kept = matched.map(({ anomaly, known: before }) => ({
      ...anomaly,
      alertedAtMs: before?.alertedAtMs ?? 0,
    }))
    const found = new Set(kept.map(({ id }) => id))
    const others = known
      .filter(({ id }) => !found.has(id))
      .map((each) => (each.state === 'over' ? each : { ...each, state: 'over' as const }))
    const all: readonly KeptAnomaly[] = [...kept, ...others]
    const alertParts = { ...this.#deps, textOf: (id: string) => this.textOf(id) }
    const alerted = await raiseAlerts(alertParts, all, nowMs)
    const before = new Map(known.map((each) => [each.id, each]))
    const changed = all
      .map((each) => (alerted.has(each.id) ? { ...each, alertedAtMs: nowMs } : each))
      .filter((each) => !isDeepStrictEqual(before.get(each.id), each))
    await this.#archive.saveAnomalies(changed, nowMs)
    return alerted.size
  }

  /** Deleted sources are not told of; one that was made anew has nothing to do with what was before. */
  #withoutDeleted(generatedAtMs: number, snapshot: InsightSnapshot): InsightSnapshot {
    const { sources } = this.#deps
    const isThere = (source: string): boolean => {
      const createdAtMs = sources.get(source)?.createdAtMs
      return source === '' || (createdAtMs !== undefined && createdAtMs <= generatedAtMs)
    }
    const anomalies = snapshot.anomalies.filter(({ source }) => isThere(source))
    const ids = new Set(anomalies.map(({ id }) => id))
    return {
      ...snapshot,
      anomalies,
      templates: snapshot.templates.filter(({ source }) => isThere(source)),
      correlations: snapshot.correlations
        .filter(({ anomalyId }) => ids.has(anomalyId))
        .map((each) => ({
          ...each,
          sources: each.sources.filter(({ name }) => isThere(name)),
          alsoAffected: each.alsoAffected.filter(({ source }) => isThere(source)),
        })),
    }
  }

  /** A look under way must not bring back what goes. Without the shared state a deletion goes on all the same. */
  async #afterLooks(work: () => Promise<void>): Promise<void> {
    await this.#exclusive(work).catch(() => work())
  }

  #exclusive<T>(work: (lease: Lease) => Promise<T>): Promise<T> {
    return this.#deps.state.withLock(LOCK, LOCK_MS, work)
  }
}
