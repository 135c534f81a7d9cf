import type { Severity } from '../model/event.js'
import { GAP_HOURS, type Finding, type Progress } from './anomalies.js'
import { DAY_HOURS } from './frame.js'
import { surprise } from './negative-binomial.js'

/** The counts of an ERROR or CRITICAL template, with those of its source. */
export interface ErrorSeries {
  readonly templateId: string
  readonly source: string
  readonly severity: Severity
  readonly counts: Float64Array
  readonly sourceCounts: Float64Array
}

export interface NewError {
  readonly templateId: string
  readonly source: string
  readonly severity: Severity
  readonly finding: Finding
}

/**
 * A template is new when it did not occur for `NEW_AFTER_HOURS`, and its source had messages in that time before the last
 * `SETTLING_HOURS`.
 */
const NEW_AFTER_HOURS = 13 * DAY_HOURS
const SETTLING_HOURS = 2 * DAY_HOURS
/** A source with this many new errors in an equal time before often has new errors. */
const USUAL_TIMES = 4
/** After a day, the template's own counts show whether they are usual. */
const MOST_HOURS = DAY_HOURS
/** The expected count of a template that was never seen. Its spread is that of a series of which nothing is known. */
const EXPECTED_AN_HOUR = 0.05
const UNKNOWN_DISPERSION = 0.35
const MAX_SCORE = 50

/** @returns every beginning of a new template in the hours from one on */
export function newErrorsOf(
  { templateId, source, severity, counts, sourceCounts }: ErrorSeries,
  from: number,
  whole: number,
): readonly NewError[] {
  const found: NewError[] = []
  let last = Number.NEGATIVE_INFINITY
  for (let i = 0; i < counts.length; i++) {
    if ((counts[i] ?? 0) === 0) continue
    const isNew = i - last > NEW_AFTER_HOURS
    last = i
    if (i < from || !isNew || !isKnown(sourceCounts, i)) continue
    found.push({ templateId, source, severity, finding: findingAt(counts, i, whole) })
  }
  return found
}

function isKnown(counts: Float64Array, at: number): boolean {
  for (let i = Math.max(0, at - NEW_AFTER_HOURS); i < at - SETTLING_HOURS; i++)
    if ((counts[i] ?? 0) > 0) return true
  return false
}

function findingAt(counts: Float64Array, from: number, whole: number): Finding {
  const course: Progress[] = []
  let [to, observed] = [from, 0]
  const until = Math.min(counts.length, from + MOST_HOURS)
  for (let i = from; i < until && i <= to + GAP_HOURS; i++) {
    if ((counts[i] ?? 0) === 0) continue
    to = i + 1
    observed += counts[i] ?? 0
    course.push({
      to,
      observed,
      expected: EXPECTED_AN_HOUR * (to - from),
      score: scoreOf(observed),
    })
  }
  return {
    kind: 'new',
    from,
    to,
    noticedAt: from,
    isOngoing: to >= whole,
    observed,
    expected: EXPECTED_AN_HOUR * (to - from),
    range: [0, 1],
    score: scoreOf(observed),
    course,
  }
}

function scoreOf(observed: number): number {
  const score = Math.min(MAX_SCORE, surprise(observed, EXPECTED_AN_HOUR, UNKNOWN_DISPERSION))
  return Math.round(score * 10) / 10
}

/** Leaves out new errors of sources that often have some, unless they are CRITICAL. */
export function notableErrors(all: readonly NewError[]): readonly NewError[] {
  return all.filter(({ source, severity, finding }) => {
    const before = all.filter(
      (other) =>
        other.source === source &&
        other.finding.from < finding.from &&
        other.finding.from >= finding.from - NEW_AFTER_HOURS,
    )
    return severity === 'CRITICAL' || before.length < USUAL_TIMES
  })
}
