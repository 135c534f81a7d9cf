import { hashBytes } from '../lib/hash.js'
import { SEVERITIES, type Severity } from '../model/event.js'
import type {
  Correlation,
  InsightAnomaly,
  InsightSnapshot,
  TemplateChange,
} from '../model/insights.js'
import { findAnomalies, type Finding } from './anomalies.js'
import { contributionsOf, type PartCounts } from './contributions.js'
import { forecastNext } from './forecast.js'
import { mlHealthOf } from './ml-health.js'
import { watchedFrom, type Frame, type SeriesKey } from './series.js'
import { changeOf, notableChanges, type TemplateSeries } from './template-changes.js'

/** What a source counted, by hour of the frame. */
export interface SourceSeries {
  readonly source: string
  /** in the order of SEVERITIES */
  readonly severities: readonly Float64Array[]
  /** index of its last hour with occurrences below P1, -1 without */
  readonly lastRoutineAt: number
}

/** What a template counted, with what the last 24 h say of its priorities. */
export interface CountedTemplate extends TemplateSeries {
  /** occurrences below P1 */
  readonly routine: number
  /** events below P1, and those with a confidence under a half */
  readonly routineEvents: number
  readonly unsureEvents: number
}

/** A span of an anomaly whose templates should be counted, indexes of the frame. */
export interface WantedSpan {
  readonly anomalyId: string
  /** '' = any */
  readonly source: string
  /** null = all */
  readonly severity: Severity | null
  readonly beforeFrom: number
  readonly from: number
  readonly to: number
}

export interface ClosingFacts {
  /** templates by their counts in the spans, by anomaly */
  readonly parts: ReadonlyMap<string, readonly PartCounts[]>
  readonly corrections: number
  readonly agreeing: number
}

const HOUR_MS = 3_600_000
const MODEL_VERSION = 'insights-1'
/** a severity that is nearly all of its source is not looked at twice */
const NEARLY_ALL = 0.9
/** share of a change that makes it the matter of one of its parts */
const MOSTLY = 0.8
const MAX_SHOWN = 200
const MAX_CORRELATED = 10
/** the span before an anomaly is as long as it, but at least this long */
const LEAST_BEFORE_HOURS = 6
const NEAR_HOURS = 2
const ERROR_AT = SEVERITIES.indexOf('ERROR')

/**
 * Looks at every series of a frame, one at a time: the caller pauses between them as it likes. All sources come
 * before the templates. The result depends on nothing but what was added.
 */
export class Analysis {
  readonly #frame: Frame
  readonly #length: number
  readonly #total: Float64Array
  readonly #errors: Float64Array
  /** totals by source */
  readonly #sources = new Map<string, Float64Array>()
  readonly #sourceFrom = new Map<string, number>()
  readonly #anomalies: InsightAnomaly[] = []
  readonly #changes: TemplateChange[] = []
  #isTotalLooked = false
  #templates = 0
  #series = 0
  #lastRoutineAt = -1
  #routine = 0
  #novel = 0
  #routineEvents = 0
  #unsureEvents = 0

  /** @param length counts of each series: the whole hours of the frame, and one more for a running hour */
  constructor(frame: Frame, length: number) {
    this.#frame = frame
    this.#length = length
    this.#total = new Float64Array(length)
    this.#errors = new Float64Array(length)
  }

  addSource({ source, severities, lastRoutineAt }: SourceSeries): void {
    const total = new Float64Array(this.#length)
    const sums = severities.map((counts) => addInto(total, counts))
    const all = sums.reduce((sum, each) => sum + each, 0)
    addInto(this.#total, total)
    for (const counts of severities.slice(ERROR_AT)) addInto(this.#errors, counts)
    this.#sources.set(source, total)
    const from = total.findIndex((count) => count > 0)
    this.#sourceFrom.set(source, from === -1 ? this.#length : from)
    this.#lastRoutineAt = Math.max(this.#lastRoutineAt, lastRoutineAt)
    const main = SEVERITIES[sums.findIndex((sum) => sum >= NEARLY_ALL * all)] ?? null
    this.#look({ scope: 'source', source, severity: main, templateId: null }, total)
    for (const [i, severity] of SEVERITIES.entries()) {
      const counts = severities[i]
      if (severity === main || counts === undefined || (sums[i] ?? 0) === 0) continue
      // errors are as old as their source: the first ever are errors where none were
      this.#look({ scope: 'severity', source, severity, templateId: null }, counts, from)
    }
  }

  addTemplate(template: CountedTemplate): void {
    const { source, severity, templateId, counts } = template
    this.#templates++
    this.#look({ scope: 'template', source, severity, templateId }, counts)
    const sourceFrom = this.#sourceFrom.get(source) ?? this.#length
    const { startHour, hours } = this.#frame
    const change = changeOf(template, { startHour, hours, sourceFrom })
    if (change !== null) this.#changes.push(change)
    this.#routine += template.routine
    this.#routineEvents += template.routineEvents
    this.#unsureEvents += template.unsureEvents
    if (change?.change === 'new') this.#novel += template.routine
  }

  /** Anomalies of everything together are looked for last. @returns all, each part after its whole */
  anomalies(): readonly InsightAnomaly[] {
    if (!this.#isTotalLooked && this.#sources.size > 1)
      this.#look({ scope: 'all', source: '', severity: null, templateId: null }, this.#total)
    this.#isTotalLooked = true
    const told = this.#anomalies.filter(
      (each) => each.scope !== 'all' || !this.#isOfOneSource(each),
    )
    return inOrder(withWholes(told))
  }

  /** The spans whose templates `finish` should be told, of the gravest anomalies. */
  wanted(anomalies: readonly InsightAnomaly[]): readonly WantedSpan[] {
    return anomalies
      .filter(({ partOf, scope }) => partOf === null && scope !== 'template')
      .slice(0, MAX_CORRELATED)
      .map((anomaly) => this.#spanOf(anomaly))
  }

  finish(anomalies: readonly InsightAnomaly[], facts: ClosingFacts): InsightSnapshot {
    const { startHour, hours } = this.#frame
    const ongoing = anomalies.filter(({ state }) => state === 'ongoing').length
    const whole = { counts: this.#total.subarray(0, hours), startHour }
    const errors = { counts: this.#errors.subarray(0, hours), startHour }
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
        dataAgeHours: this.#lastRoutineAt < 0 ? 0 : Math.max(0, hours - 1 - this.#lastRoutineAt),
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
  #isOfOneSource(anomaly: InsightAnomaly): boolean {
    const { beforeFrom, from, to } = this.#spanOf(anomaly)
    const [first] = contributionsOf(this.#sourceParts(beforeFrom, from, to), {
      beforeHours: Math.max(1, from - beforeFrom),
      duringHours: to - from,
    })
    return first !== undefined && first.explains >= MOSTLY
  }

  #sourceParts(beforeFrom: number, from: number, to: number): readonly PartCounts[] {
    return [...this.#sources].map(([name, counts]) => ({
      name,
      before: sumOf(counts, beforeFrom, from),
      during: sumOf(counts, from, to),
    }))
  }

  #look(key: SeriesKey, counts: Float64Array, begins?: number): void {
    const { startHour, hours } = this.#frame
    this.#series++
    const watched = { from: watchedFrom(this.#frame), hours }
    const options = begins === undefined ? watched : { ...watched, begins }
    for (const finding of findAnomalies({ counts, startHour }, options))
      this.#anomalies.push(toAnomaly(key, finding, startHour))
  }

  #spanOf({ id, source, severity, scope, startedAtMs, endedAtMs }: InsightAnomaly): WantedSpan {
    const from = startedAtMs / HOUR_MS - this.#frame.startHour
    const to = endedAtMs / HOUR_MS - this.#frame.startHour
    const beforeFrom = Math.max(0, from - Math.max(to - from, LEAST_BEFORE_HOURS))
    const narrow = scope === 'severity' ? severity : null
    return { anomalyId: id, source, severity: narrow, beforeFrom, from, to }
  }

  #correlate(
    span: WantedSpan,
    anomalies: readonly InsightAnomaly[],
    { parts }: ClosingFacts,
  ): Correlation {
    const { startHour } = this.#frame
    const { anomalyId, beforeFrom, from, to } = span
    const hours = { beforeHours: Math.max(1, from - beforeFrom), duringHours: to - from }
    return {
      anomalyId,
      fromMs: (startHour + from) * HOUR_MS,
      toMs: (startHour + to) * HOUR_MS,
      beforeFromMs: (startHour + beforeFrom) * HOUR_MS,
      templates: contributionsOf(parts.get(anomalyId) ?? [], hours),
      sources:
        span.source === '' ? contributionsOf(this.#sourceParts(beforeFrom, from, to), hours) : [],
      alsoAffected: affectedWith(span, anomalies, startHour),
    }
  }
}

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

/**
 * Names for each the anomaly of its source, or of its severity, that goes the same way at the same time. Where one
 * severity brings about most of what its source does, it is the other way round: errors that soar are told as such.
 */
function withWholes(anomalies: readonly InsightAnomaly[]): readonly InsightAnomaly[] {
  const wholes = new Map<string, InsightAnomaly[]>()
  for (const anomaly of anomalies) {
    if (anomaly.scope !== 'source' && anomaly.scope !== 'severity') continue
    const known = wholes.get(anomaly.source)
    if (known === undefined) wholes.set(anomaly.source, [anomaly])
    else known.push(anomaly)
  }
  const leaders = new Map<string, string>()
  for (const part of anomalies.filter(isOfTrouble))
    for (const whole of wholes.get(part.source) ?? [])
      if (isWholeOf(whole, part) && leads(part, whole)) leaders.set(whole.id, part.id)
  return anomalies.map((anomaly) => {
    const whole = (wholes.get(anomaly.source) ?? [])
      .filter((each) => isWholeOf(each, anomaly))
      .toSorted((a, b) => (a.scope === b.scope ? 0 : a.scope === 'source' ? -1 : 1))[0]
    const id = whole?.id ?? anomaly.id
    const partOf = leaders.get(id) ?? id
    return partOf === anomaly.id ? anomaly : { ...anomaly, partOf }
  })
}

const isOfTrouble = ({ scope, severity }: InsightAnomaly): boolean =>
  scope === 'severity' && (severity === 'ERROR' || severity === 'CRITICAL')

const leads = (part: InsightAnomaly, whole: InsightAnomaly): boolean =>
  Math.abs(part.observed - part.expected) >= MOSTLY * Math.abs(whole.observed - whole.expected)

function isWholeOf(whole: InsightAnomaly, part: InsightAnomaly): boolean {
  if (part.scope !== 'severity' && part.scope !== 'template') return false
  if (whole.scope === 'severity' && (part.scope === 'severity' || whole.severity !== part.severity))
    return false
  const isSameWay = (whole.kind === 'spike') === (part.kind === 'spike')
  return isSameWay && whole.startedAtMs < part.endedAtMs && part.startedAtMs < whole.endedAtMs
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

function sumOf(counts: Float64Array, from: number, to: number): number {
  let sum = 0
  for (let i = from; i < to; i++) sum += counts[i] ?? 0
  return sum
}
