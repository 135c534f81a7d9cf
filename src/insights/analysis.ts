import { hashBytes } from '../lib/hash.js'
import { SEVERITIES, type Severity } from '../model/event.js'
import type {
  Correlation,
  InsightAnomaly,
  InsightSnapshot,
  TemplateChange,
} from '../model/insights.js'
import { findAnomalies, type Finding } from './anomalies.js'
import { contributionsOf, type PartCounts, type Spans } from './contributions.js'
import { forecastNext } from './forecast.js'
import { LookMemos, noMemo } from './look-memos.js'
import { mlHealthOf } from './ml-health.js'
import { DAY_HOURS, watchedFrom, type Frame, type SeriesKey } from './series.js'
import { MOSTLY, withWholes } from './wholes.js'
import { changeOf, notableChanges, type TemplateSeries } from './template-changes.js'
import { HOUR_MS } from '../model/time.js'

/** What a source counted, by hour of the frame. */
export interface SourceSeries {
  readonly source: string
  /** in the order of SEVERITIES */
  readonly severities: readonly Float64Array[]
  /** index of the first hour that is not as it was at the last look; null: no memo is to be kept */
  readonly changedAt: number | null
}

/** What a template counted, with what the last 24 h say of its priorities. */
export interface CountedTemplate extends TemplateSeries {
  /** as of a source; and what else than the id tells series apart whose memos are kept */
  readonly changedAt: number | null
  readonly members: string
  /** occurrences below P1 */
  readonly routine: number
  /** events below P1, and those with a confidence under a half */
  readonly routineEvents: number
  readonly unsureEvents: number
}

/** A span of an anomaly whose parts should be counted, indexes of the frame. */
export interface WantedSpan {
  readonly anomalyId: string
  /** '' = any */
  readonly source: string
  /** null = all */
  readonly severity: Severity | null
  /** of hosts: those of a template are known by its severity only */
  readonly hostSeverity: Severity | null
  readonly beforeFrom: number
  readonly from: number
  readonly to: number
}

/** What parts counted in the span of an anomaly and before, by the anomaly's id. */
export type PartsByAnomaly = ReadonlyMap<string, readonly PartCounts[]>

export interface ClosingFacts {
  /** from the last occurrence below P1 to the moment of the look */
  readonly dataAgeHours: number
  /** counts in the spans of `wanted` */
  readonly templates: PartsByAnomaly
  readonly hosts: PartsByAnomaly
  /** those that `anomalies` was told */
  readonly sources: PartsByAnomaly
  readonly corrections: number
  readonly agreeing: number
}

const MODEL_VERSION = 'insights-1'
/** a severity that is nearly all of its source is not looked at twice */
const NEARLY_ALL = 0.9
const MAX_SHOWN = 200
const MAX_CORRELATED = 10
/** the span before an anomaly is as long as it, but at least this long */
const LEAST_BEFORE_HOURS = 6
const NEAR_HOURS = 2
const ERROR_AT = SEVERITIES.indexOf('ERROR')

interface LookOptions {
  readonly changedAt: number | null
  readonly begins?: number
  readonly members?: string
}

/**
 * Looks at every series of a frame, one at a time: the caller pauses between them as it likes. All sources come
 * before the templates. The result depends on nothing but what was added.
 */
export class Analysis {
  readonly #frame: Frame
  readonly #length: number
  readonly #memos: LookMemos
  readonly #total: Float64Array
  readonly #severities: readonly Float64Array[]
  #sources = 0
  readonly #sourceFrom = new Map<string, number>()
  readonly #anomalies: InsightAnomaly[] = []
  readonly #changes: TemplateChange[] = []
  #templates = 0
  #series = 0
  #routine = 0
  #novel = 0
  #routineEvents = 0
  #unsureEvents = 0

  /**
   * @param length counts of each series: the whole hours of the frame, and one more for a running hour
   * @param memos of the looks before; the result is the same without them
   */
  constructor(frame: Frame, length: number, memos = new LookMemos()) {
    this.#frame = frame
    this.#length = length
    this.#memos = memos
    memos.begin(frame.startHour, `${frame.hours} ${length}`)
    this.#total = new Float64Array(length)
    this.#severities = SEVERITIES.map(() => new Float64Array(length))
  }

  addSource({ source, severities, changedAt }: SourceSeries): void {
    const total = new Float64Array(this.#length)
    const sums = severities.map((counts) => addInto(total, counts))
    const all = sums.reduce((sum, each) => sum + each, 0)
    addInto(this.#total, total)
    for (const [i, counts] of severities.entries()) {
      const sum = this.#severities[i]
      if (sum !== undefined) addInto(sum, counts)
    }
    this.#sources++
    const from = total.findIndex((count) => count > 0)
    this.#sourceFrom.set(source, from === -1 ? this.#length : from)
    const main = SEVERITIES[sums.findIndex((sum) => sum >= NEARLY_ALL * all)] ?? null
    this.#look({ scope: 'source', source, severity: main, templateId: null }, total, { changedAt })
    for (const [i, severity] of SEVERITIES.entries()) {
      const counts = severities[i]
      if (severity === main || counts === undefined || (sums[i] ?? 0) === 0) continue
      // errors are as old as their source: the first ever are errors where none were
      this.#look({ scope: 'severity', source, severity, templateId: null }, counts, {
        changedAt,
        begins: from,
      })
    }
  }

  addTemplate(template: CountedTemplate): void {
    const { source, severity, templateId, counts, changedAt, members } = template
    this.#templates++
    const key = { scope: 'template', source, severity, templateId } as const
    this.#look(key, counts, { changedAt, members })
    const sourceFrom = this.#sourceFrom.get(source) ?? this.#length
    const { startHour, hours } = this.#frame
    const change = changeOf(template, { startHour, hours, sourceFrom })
    if (change !== null) this.#changes.push(change)
    this.#routine += template.routine
    this.#routineEvents += template.routineEvents
    this.#unsureEvents += template.unsureEvents
    if (change?.change === 'new') this.#novel += template.routine
  }

  /** Looks at everything together, once and last. @returns the spans whose sources `anomalies` should be told */
  wholes(): readonly WantedSpan[] {
    if (this.#sources < 2) return []
    const anew = { changedAt: null }
    const all = { source: '', templateId: null } as const
    this.#look({ ...all, scope: 'all', severity: null }, this.#total, anew)
    const begins = this.#total.findIndex((count) => count > 0)
    for (const [i, severity] of SEVERITIES.entries()) {
      const counts = this.#severities[i]
      if (counts?.some((count) => count > 0) === true)
        this.#look({ ...all, scope: 'severity', severity }, counts, { ...anew, begins })
    }
    return this.#anomalies.filter(isOfAll).map((each) => this.#spanOf(each))
  }

  /**
   * @param sources by their counts in the spans of `wholes`, by anomaly
   * @returns all, each part after its whole
   */
  anomalies(sources: PartsByAnomaly): readonly InsightAnomaly[] {
    const told = this.#anomalies.filter(
      (each) => !isOfAll(each) || !this.#isOfOneSource(each, sources.get(each.id) ?? []),
    )
    return inOrder(withWholes(told))
  }

  /** The spans whose templates and hosts `finish` should be told, of the gravest anomalies. */
  wanted(anomalies: readonly InsightAnomaly[]): readonly WantedSpan[] {
    return anomalies
      .filter(({ partOf }) => partOf === null)
      .slice(0, MAX_CORRELATED)
      .map((anomaly) => this.#spanOf(anomaly))
  }

  finish(anomalies: readonly InsightAnomaly[], facts: ClosingFacts): InsightSnapshot {
    const { startHour, hours } = this.#frame
    const ongoing = anomalies.filter(({ state }) => state === 'ongoing').length
    const whole = { counts: this.#total.subarray(0, hours), startHour }
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
      events: forecastNext(whole, hours),
      errors: forecastNext(errors, hours),
      correlations: this.wanted(anomalies).map((span) => this.#correlate(span, anomalies, facts)),
      health: mlHealthOf({
        dataAgeHours: facts.dataAgeHours,
        routine: this.#routine,
        novel: this.#novel,
        routineEvents: this.#routineEvents,
        unsureEvents: this.#unsureEvents,
        corrections: facts.corrections,
        agreeing: facts.agreeing,
      }),
    }
  }

  /** One source explains it: then its own anomaly says more, or it has only begun. */
  #isOfOneSource(anomaly: InsightAnomaly, sources: readonly PartCounts[]): boolean {
    const [first] = contributionsOf(sources, spansOf(this.#spanOf(anomaly)))
    return first !== undefined && first.explains >= MOSTLY
  }

  #look(
    key: SeriesKey,
    counts: Float64Array,
    { changedAt, begins, members = '' }: LookOptions,
  ): void {
    const { startHour, hours } = this.#frame
    this.#series++
    const watched = { from: watchedFrom(this.#frame), hours }
    const options = begins === undefined ? watched : { ...watched, begins }
    const { scope, source, severity, templateId } = key
    const own = scope === 'severity' ? severity : templateId
    const name = `${scope}\0${source}\0${own ?? ''}\0${members}`
    const memo = changedAt === null ? noMemo() : this.#memos.of(name)
    const last = this.#length - 1
    if ((changedAt ?? 0) <= last) memo.findings = null
    if ((changedAt ?? 0) < last - (last % DAY_HOURS)) memo.training = null
    memo.findings ??= findAnomalies({ counts, startHour }, options, memo)
    for (const finding of memo.findings) this.#anomalies.push(toAnomaly(key, finding, startHour))
  }

  #spanOf({ id, source, severity, scope, startedAtMs, endedAtMs }: InsightAnomaly): WantedSpan {
    const from = startedAtMs / HOUR_MS - this.#frame.startHour
    const to = endedAtMs / HOUR_MS - this.#frame.startHour
    const beforeFrom = Math.max(0, from - Math.max(to - from, LEAST_BEFORE_HOURS))
    const narrow = scope === 'severity' ? severity : null
    const hostSeverity = scope === 'template' ? severity : narrow
    return { anomalyId: id, source, severity: narrow, hostSeverity, beforeFrom, from, to }
  }

  #correlate(
    span: WantedSpan,
    anomalies: readonly InsightAnomaly[],
    { templates, sources, hosts }: ClosingFacts,
  ): Correlation {
    const { startHour } = this.#frame
    const { anomalyId, beforeFrom, from, to } = span
    return {
      anomalyId,
      fromMs: (startHour + from) * HOUR_MS,
      toMs: (startHour + to) * HOUR_MS,
      beforeFromMs: (startHour + beforeFrom) * HOUR_MS,
      templates: contributionsOf(templates.get(anomalyId) ?? [], spansOf(span)),
      sources: contributionsOf(sources.get(anomalyId) ?? [], spansOf(span)),
      hosts: contributionsOf(hosts.get(anomalyId) ?? [], spansOf(span)),
      alsoAffected: affectedWith(span, anomalies, startHour),
    }
  }
}

const spansOf = ({ beforeFrom, from, to }: WantedSpan): Spans => ({
  beforeHours: Math.max(1, from - beforeFrom),
  duringHours: to - from,
})

function affectedWith(
  { source, from }: WantedSpan,
  anomalies: readonly InsightAnomaly[],
  startHour: number,
): Correlation['alsoAffected'] {
  const at = (startHour + from) * HOUR_MS
  return anomalies
    .filter(
      (other) =>
        other.scope === 'source' &&
        other.source !== source &&
        Math.abs(other.startedAtMs - at) <= NEAR_HOURS * HOUR_MS,
    )
    .slice(0, MAX_CORRELATED)
    .map((other) => ({ source: other.source, anomalyId: other.id }))
}

/** Over all sources. */
const isOfAll = ({ source }: InsightAnomaly): boolean => source === ''

function toAnomaly(key: SeriesKey, finding: Finding, startHour: number): InsightAnomaly {
  const moment = (index: number): number => (startHour + index) * HOUR_MS
  const { scope, source, severity, templateId } = key
  const own = scope === 'severity' ? severity : ''
  const name = [scope, source, own, templateId, finding.direction, startHour + finding.from]
  return {
    id: idOf(name.join('\0')),
    scope,
    kind: finding.kind,
    state: finding.isOngoing ? 'ongoing' : 'over',
    source,
    severity,
    templateId,
    startedAtMs: moment(finding.from),
    endedAtMs: moment(finding.to),
    detectedAtMs: moment(finding.noticedAt + 1),
    observed: finding.observed,
    expected: Math.round(finding.expected * 10) / 10,
    expectedLeast: finding.range[0],
    expectedMost: finding.range[1],
    score: finding.score,
    partOf: null,
  }
}

function idOf(name: string): string {
  const bytes = new TextEncoder().encode(name)
  const hash = new Int32Array([0x5bd1e995, 0x1b873593])
  hashBytes(bytes, 0, bytes.length, hash)
  return [...hash].map((part) => (part >>> 0).toString(16).padStart(8, '0')).join('')
}

/** Those on their own first, of these the ongoing, then by score. */
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
