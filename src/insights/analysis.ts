/*
 * How a run finds its anomalies, and in which files:
 *
 * 1. Each source, its severities and templates are series of hourly counts (here).
 * 2. The expected count of an hour is its mean over the last three weeks, by hour of day and kind
 * of day, times the level of the last five days. The variance of the counts gives the surprise of a
 * deviation (baseline.ts, rolling-baseline.ts, negative-binomial.ts). Hours of day are those of the
 * senders' clocks (week-clock.ts).
 * 3. Surprising sums of 1 to 24 hours that no job, repetition or usual burst explains are notices
 * (evidence.ts).
 * 4. Notices and the deviating hours beside them form an anomaly of at most five days
 * (anomalies.ts). Errors that were never seen are anomalies too (new-errors.ts).
 * 5. Anomalies of one source, direction and time form a group (anomaly-groups.ts), whose gravity
 * decides about alerts (gravity.ts).
 *
 * No step depends on counts after an anomaly's end, so the result does not depend on when it is
 * computed.
 */

import { hashId } from '../lib/hash.js'
import { SEVERITIES, type Severity } from '../model/event.js'
import {
  isRise,
  LEARNED,
  type AnomalyScope,
  type Correlation,
  type InsightAnomaly,
  type InsightSnapshot,
  type Learning,
  type TemplateChange,
} from '../model/insights.js'
import { HOUR_MS } from '../model/time.js'
import { findWithEarlier, judgedFrom, type DetectOptions, type Finding } from './anomalies.js'
import { groupAnomalies, type FoundAnomaly } from './anomaly-groups.js'
import { forecastFrom, forecastNext } from './forecast.js'
import { DAY_HOURS, reportedFrom, type Frame } from './frame.js'
import { gravityOf } from './gravity.js'
import { newErrorsOf, notableErrors, type NewError } from './new-errors.js'
import { mlHealthOf, type Agreement } from './ml-health.js'
import type { TemplateDay } from './rollups.js'
import {
  changeOf,
  knownGrownFrom,
  knownNewFrom,
  notableChanges,
  type TemplateSeries,
} from './template-changes.js'

export interface SourceSeries {
  readonly source: string
  /** Counts by hour of the frame, in the order of SEVERITIES. */
  readonly severities: readonly Float64Array[]
}

/** The counts of a template, with the priorities of its last 24 h. */
export interface AnalysedTemplate extends TemplateSeries, TemplateDay {}

export interface SnapshotFacts extends Agreement {
  /** In the order of `inOrder`. */
  readonly anomalies: readonly InsightAnomaly[]
  readonly correlations: readonly Correlation[]
  readonly dataAgeHours: number
}

/** The source that a severity or template belongs to. */
interface Whole {
  readonly presence: Float64Array
  /** Its clock, which its parts use too, because they have too few messages to estimate their own. */
  readonly shifts: readonly number[]
}

interface SeriesKey {
  readonly scope: AnomalyScope
  readonly source: string
  readonly severity: Severity | null
  readonly templateId: string | null
}

const MODEL_VERSION = 'insights-1'
/** A severity with this share of its source's occurrences has no series of its own. */
const NEARLY_ALL = 0.9
const MAX_SHOWN = 200
const ERROR_AT = SEVERITIES.indexOf('ERROR')
/**
 * A template is new if it did not occur in the two weeks before. The two weeks before those show
 * which sources often have new templates.
 */
const NEW_ERRORS_FROM = 13 * DAY_HOURS

/**
 * Analyses the series of a frame one by one, so that the caller can yield in between: all sources, then the
 * templates, then the totals. The result depends on nothing but the counts that were added.
 */
export class Analysis {
  readonly #frame: Frame
  readonly #length: number
  readonly #total: Float64Array
  readonly #severities: readonly Float64Array[]
  readonly #sources = new Map<string, Whole>()
  readonly #newErrors: NewError[] = []
  readonly #anomalies: FoundAnomaly[] = []
  readonly #changes: TemplateChange[] = []
  #templates = 0
  #series = 0
  #routine = 0
  #novel = 0
  #routineEvents = 0
  #unsureEvents = 0

  /** @param length of each series: the whole hours of the frame, and one more for a running hour */
  constructor(frame: Frame, length: number) {
    this.#frame = frame
    this.#length = length
    this.#total = new Float64Array(length)
    this.#severities = SEVERITIES.map(() => new Float64Array(length))
  }

  /** The anomalies found so far, and earlier ones that they may belong to. */
  get found(): readonly FoundAnomaly[] {
    const { startHour } = this.#frame
    const newErrors = notableErrors(this.#newErrors).map(({ finding, ...key }) =>
      toFound({ ...key, scope: 'template' }, finding, startHour),
    )
    return [...this.#anomalies, ...newErrors]
  }

  /** The groups of what was found, as a run reports them. */
  group(found = this.found): readonly InsightAnomaly[] {
    const { startHour } = this.#frame
    const reportedMs = (startHour + reportedFrom(this.#frame)) * HOUR_MS
    return inOrder(groupAnomalies(found, reportedMs))
  }

  addSource({ source, severities }: SourceSeries): void {
    const total = new Float64Array(this.#length)
    const sums = severities.map((counts) => addInto(total, counts))
    const all = sums.reduce((sum, each) => sum + each, 0)
    addInto(this.#total, total)
    for (const [i, counts] of severities.entries()) {
      const sum = this.#severities[i]
      if (sum !== undefined) addInto(sum, counts)
    }
    const main = SEVERITIES[sums.findIndex((sum) => sum >= NEARLY_ALL * all)] ?? null
    const key = { scope: 'source', source, severity: main, templateId: null } as const
    const whole = { presence: total, shifts: this.#analyse(key, total) }
    this.#sources.set(source, whole)
    for (const [i, severity] of SEVERITIES.entries()) {
      const counts = severities[i]
      if (severity === main || counts === undefined || (sums[i] ?? 0) === 0) continue
      // A severity is as old as its source, so the first errors ever are a spike.
      this.#analyse({ scope: 'severity', source, severity, templateId: null }, counts, whole)
    }
  }

  addTemplate(template: AnalysedTemplate): void {
    const { source, severity, templateId, counts } = template
    this.#templates++
    const whole = this.#sources.get(source)
    const key = { scope: 'template', source, severity, templateId } as const
    this.#analyse(key, counts, { shifts: whole?.shifts ?? [] })
    const { startHour, hours } = this.#frame
    const sourceCounts = whole?.presence ?? new Float64Array(this.#length)
    if (severity === 'ERROR' || severity === 'CRITICAL') {
      const series = { templateId, source, severity, counts, sourceCounts }
      this.#newErrors.push(...newErrorsOf(series, NEW_ERRORS_FROM, hours))
    }
    const first = sourceCounts.findIndex((count) => count > 0)
    const sourceFrom = first === -1 ? this.#length : first
    const change = changeOf(template, { startHour, hours, sourceFrom })
    if (change !== null) this.#changes.push(change)
    this.#routine += template.routine
    this.#routineEvents += template.routineEvents
    this.#unsureEvents += template.unsureEvents
    if (change?.change === 'new') this.#novel += template.routine
  }

  /** Analyses the sums over all sources, if there are several. */
  addTotals(): void {
    if (this.#sources.size < 2) return
    const all = { source: '', templateId: null } as const
    const shifts = this.#analyse({ ...all, scope: 'all', severity: null }, this.#total)
    const whole = { presence: this.#total, shifts }
    for (const [i, severity] of SEVERITIES.entries()) {
      const counts = this.#severities[i]
      if (counts?.some((count) => count > 0) === true)
        this.#analyse({ ...all, scope: 'severity', severity }, counts, whole)
    }
  }

  snapshot({ anomalies, correlations, ...facts }: SnapshotFacts): InsightSnapshot {
    const { startHour, hours } = this.#frame
    const ongoing = anomalies.filter(({ state }) => state === 'ongoing').length
    const events = { counts: this.#total.subarray(0, hours), startHour }
    const failed = new Float64Array(this.#length)
    for (const counts of this.#severities.slice(ERROR_AT)) addInto(failed, counts)
    const errors = { counts: failed.subarray(0, hours), startHour }
    return {
      modelVersion: MODEL_VERSION,
      asOfMs: (startHour + hours) * HOUR_MS,
      series: this.#series,
      ongoing,
      over: anomalies.length - ongoing,
      anomalies: anomalies.slice(0, MAX_SHOWN),
      templates: notableChanges(this.#changes, this.#templates),
      events: forecastNext(events, hours),
      errors: forecastNext(errors, hours),
      correlations,
      health: mlHealthOf({
        ...facts,
        routine: this.#routine,
        novel: this.#novel,
        routineEvents: this.#routineEvents,
        unsureEvents: this.#unsureEvents,
      }),
      learning: this.#learning(),
    }
  }

  /** What cannot be found yet, because the history is too short. */
  #learning(): readonly Learning[] {
    const { startHour, hours } = this.#frame
    const begins = this.#total.findIndex((count) => count > 0)
    if (begins === -1) return LEARNED.map((finds) => ({ finds, fromMs: null }))
    const needed: Record<Learning['finds'], number> = {
      // An hour is evaluated when it is over.
      anomalies: judgedFrom(begins, startHour) + 1,
      anomalies_of_weekends: judgedFrom(begins, startHour, (isOfWeekend) => isOfWeekend) + 1,
      new_templates: knownNewFrom(begins),
      grown_templates: knownGrownFrom(begins, startHour),
      forecast: forecastFrom(begins),
    }
    return LEARNED.filter((finds) => needed[finds] > hours).map((finds) => ({
      finds,
      fromMs: (startHour + needed[finds]) * HOUR_MS,
    }))
  }

  /**
   * @param whole the whole that the series is part of, by default itself
   * @returns its clock
   */
  #analyse(
    key: SeriesKey,
    counts: Float64Array,
    whole: Pick<DetectOptions, 'presence' | 'shifts'> = {},
  ): readonly number[] {
    const { startHour, hours } = this.#frame
    this.#series++
    const options = { from: reportedFrom(this.#frame), hours, ...whole }
    const { findings, shifts } = findWithEarlier({ counts, startHour }, options)
    for (const finding of findings) this.#anomalies.push(toFound(key, finding, startHour))
    return shifts
  }
}

function toFound(key: SeriesKey, finding: Finding, startHour: number): FoundAnomaly {
  const anomaly = toAnomaly(key, finding, startHour)
  const course = finding.course.map(({ to, ...progress }) => {
    const known = { ...progress, endedAtMs: (startHour + to) * HOUR_MS }
    return { ...known, gravity: gravityOf({ ...anomaly, ...known }) }
  })
  return { anomaly, course }
}

function toAnomaly(key: SeriesKey, finding: Finding, startHour: number): InsightAnomaly {
  const toMs = (index: number): number => (startHour + index) * HOUR_MS
  const [startedAtMs, endedAtMs] = [toMs(finding.from), toMs(finding.to)]
  const { scope, source, severity, templateId } = key
  const own = scope === 'severity' ? severity : ''
  const direction = isRise(finding.kind) ? 'up' : 'down'
  const name = [scope, source, own, templateId, direction, startHour + finding.from]
  return {
    id: hashId(name.join('\0')),
    scope,
    kind: finding.kind,
    state: finding.isOngoing ? 'ongoing' : 'over',
    source,
    severity,
    templateId,
    startedAtMs,
    endedAtMs,
    detectedAtMs: toMs(finding.noticedAt + 1),
    observed: finding.observed,
    expected: Math.round(finding.expected * 10) / 10,
    expectedLeast: finding.range[0],
    expectedMost: finding.range[1],
    score: finding.score,
    gravity: gravityOf({ ...finding, scope, severity, startedAtMs, endedAtMs }),
    partOf: null,
  }
}

/** Leaders of groups first, of these the ongoing ones, then by score. */
const inOrder = (anomalies: readonly InsightAnomaly[]): readonly InsightAnomaly[] =>
  anomalies.toSorted(
    (a, b) =>
      Number(a.partOf !== null) - Number(b.partOf !== null) ||
      Number(a.state === 'over') - Number(b.state === 'over') ||
      b.score - a.score ||
      b.startedAtMs - a.startedAtMs ||
      (a.id < b.id ? -1 : 1),
  )

/** @returns the sum of what was added */
function addInto(target: Float64Array, counts: Float64Array): number {
  let sum = 0
  for (let i = 0; i < target.length; i++) {
    const count = counts[i] ?? 0
    target[i] = (target[i] ?? 0) + count
    sum += count
  }
  return sum
}
