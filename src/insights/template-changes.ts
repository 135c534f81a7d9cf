import type { Severity } from '../model/event.js'
import type { TemplateChange, TemplateChangeKind } from '../model/insights.js'
import { surprise, twoSidedChance } from './negative-binomial.js'
import { quantileOf } from './quantile.js'
import { DAY_HOURS, isWeekend } from './frame.js'
import { HOUR_MS } from '../model/time.js'

export interface TemplateSeries {
  readonly templateId: string
  readonly source: string
  /** The severity of most occurrences. */
  readonly severity: Severity
  readonly counts: Float64Array
  /** Over all stored time. */
  readonly firstSeenMs: number
  readonly lastSeenMs: number
}

interface Context {
  /** Hours since 1970 of index 0. */
  readonly startHour: number
  /** Whole hours. */
  readonly hours: number
  /** Index of the first occurrence of the template's source. */
  readonly sourceFrom: number
}

const BASELINE_DAYS = 27
/** Days of history that are needed to detect growth. */
const LEAST_DAYS = 7
/** Days of the same kind, working day or weekend, that are needed to detect growth. */
const LEAST_ALIKE_DAYS = 3
/** A day of 24 h with more hours than this of both a working day and a weekend is compared only with days like it. */
const MIXED_FROM_HOURS = 4
/** A template reappears after at least this pause. */
const AWAY_HOURS = 7 * DAY_HOURS
/** The pause must also be this multiple of its longest pause before. */
const AWAY_FACTOR = 2
const NOTABLE = 4
const RATIO = 2
const LEAST_DISPERSION = 0.15
/** False discovery rate of grown, shrunk and vanished templates. */
const FALSE_SHARE = 0.01
const MAX_CHANGES = 100
/** The median of the chi-squared distribution with one degree of freedom. */
const MEDIAN_OF_SQUARE = 0.455
const scratch = new Float64Array(BASELINE_DAYS)
const squares = new Float64Array(BASELINE_DAYS)

/**
 * Compares a template's last 24 h with the days before, working days with working days and weekends with weekends.
 *
 * @returns null when they do not differ
 */
export function changeOf(template: TemplateSeries, context: Context): TemplateChange | null {
  const { hours, sourceFrom } = context
  const historyDays = Math.floor((hours - DAY_HOURS - sourceFrom) / DAY_HOURS)
  if (hours < knownNewFrom(sourceFrom)) return null
  const count = sumOf(template.counts, hours - DAY_HOURS, hours)
  const isNew = template.firstSeenMs >= (context.startHour + hours - DAY_HOURS) * HOUR_MS
  if (isNew) return count === 0 ? null : described(template, 'new', count, 1 / historyDays)
  if (count > 0 && hasReappeared(template.counts, hours))
    return described(template, 'reappeared', count, 1 / historyDays)
  if (historyDays < LEAST_DAYS) return null
  return growthOf(template, count, Math.min(historyDays, BASELINE_DAYS), context)
}

/**
 * The number of whole hours that are needed to detect new templates.
 *
 * @param sourceFrom index of the source's first occurrence
 */
export const knownNewFrom = (sourceFrom: number): number => sourceFrom + 2 * DAY_HOURS

/** The same for templates that grew, shrank or vanished; `startHour` is that of index 0, in hours since 1970. */
export function knownGrownFrom(sourceFrom: number, startHour: number): number {
  for (let hours = sourceFrom + (LEAST_DAYS + 1) * DAY_HOURS; ; hours++) {
    const days = Math.floor((hours - sourceFrom) / DAY_HOURS) - 1
    if (alikeDays(startHour + hours, days).length >= LEAST_ALIKE_DAYS) return hours
  }
}

function growthOf(
  template: TemplateSeries,
  count: number,
  days: number,
  { startHour, hours }: Context,
): TemplateChange | null {
  const alike = alikeDays(startHour + hours, days)
  const known = alike.length
  if (known < LEAST_ALIKE_DAYS) return null
  for (const [i, day] of alike.entries()) {
    const to = hours - day * DAY_HOURS
    scratch[i] = sumOf(template.counts, to - DAY_HOURS, to)
  }
  const mean = Math.max(quantileOf(scratch, known, 0.5), middleMean(known))
  for (let i = 0; i < known; i++)
    squares[i] =
      (((scratch[i] ?? 0) - mean) ** 2 / MEDIAN_OF_SQUARE - mean) / Math.max(mean, 1) ** 2
  const dispersion = Math.sqrt(Math.max(0, quantileOf(squares, known, 0.5)))
  const spread = Math.max(LEAST_DISPERSION, dispersion)
  const score = surprise(count, mean, spread)
  const isGrown = score >= NOTABLE && count >= RATIO * mean && !isUsual(count, known)
  const isShrunk = score <= -NOTABLE && count <= mean / RATIO
  if (!isGrown && !isShrunk) return null
  const change = isGrown ? 'grown' : count === 0 ? 'vanished' : 'shrunk'
  return { ...described(template, change, count, mean), chance: twoSidedChance(score) }
}

/** @returns which of the days of 24 h before the last one are of its kind, the newest first */
function alikeDays(endHour: number, days: number): readonly number[] {
  const own = kindOf(endHour)
  const all = Array.from({ length: days }, (_, i) => i + 1)
  return all.filter((day) => kindOf(endHour - day * DAY_HOURS) === own)
}

/** Whether most of the 24 hours are of a weekend. Where many are of both kinds, also which kind comes first. */
function kindOf(endHour: number): string {
  const [first, last] = [isWeekend(endHour - DAY_HOURS), isWeekend(endHour - 1)]
  if (first === last) return `${first}`
  const hoursOfLast = ((endHour % DAY_HOURS) + DAY_HOURS) % DAY_HOURS
  if (hoursOfLast <= MIXED_FROM_HOURS) return `${first}`
  return hoursOfLast >= DAY_HOURS - MIXED_FROM_HOURS ? `${last}` : `${first} ${last}`
}

/** Interquartile mean: the median of days with few occurrences is coarse. */
function middleMean(known: number): number {
  const sorted = scratch.slice(0, known).sort()
  const [from, to] = [Math.floor(known / 4), Math.ceil((known * 3) / 4)]
  return sumOf(sorted, from, to) / Math.max(1, to - from)
}

/** Whether two of the days before had at least 80 % of the count. */
const isUsual = (count: number, known: number): boolean => {
  let as = 0
  for (let i = 0; i < known; i++) if ((scratch[i] ?? 0) >= count * 0.8) as++
  return as >= 2
}

/** Whether a pause far longer than any before ended in the last 24 h. */
function hasReappeared(counts: Float64Array, hours: number): boolean {
  let back = hours - DAY_HOURS
  while (back < hours && counts[back] === 0) back++
  if (back >= hours) return false
  let last = back - 1
  while (last >= 0 && counts[last] === 0) last--
  if (last === -1) return true
  const pause = back - last
  return pause >= AWAY_HOURS && pause >= AWAY_FACTOR * longestPause(counts, last)
}

function longestPause(counts: Float64Array, until: number): number {
  let [last, longest] = [-1, 0]
  for (let i = 0; i <= until; i++) {
    if (counts[i] === 0) continue
    if (last !== -1) longest = Math.max(longest, i - last)
    last = i
  }
  return longest
}

const described = (
  { templateId, source, severity, firstSeenMs, lastSeenMs }: TemplateSeries,
  change: TemplateChangeKind,
  count: number,
  expected: number,
): TemplateChange => ({
  change,
  templateId,
  source,
  severity,
  count,
  expected: Math.round(expected * 100) / 100,
  chance: twoSidedChance(surprise(count, expected, LEAST_DISPERSION)),
  firstSeenMs,
  lastSeenMs,
})

function sumOf(counts: Float64Array, from: number, to: number): number {
  let sum = 0
  for (let i = Math.max(0, from); i < to; i++) sum += counts[i] ?? 0
  return sum
}

const RANK = { CRITICAL: 0, ERROR: 1, WARNING: 2, INFO: 3, DEBUG: 4 } as const

/**
 * The significant changes, the worst severities first: of grown, shrunk and vanished templates those that control the
 * false discovery rate.
 *
 * @param compared how many templates were tested
 * Source: Benjamini and Hochberg, Controlling the False Discovery Rate, 1995.
 */
export function notableChanges(
  changes: readonly TemplateChange[],
  compared: number,
): readonly TemplateChange[] {
  const isTested = ({ change }: TemplateChange): boolean =>
    change === 'grown' || change === 'shrunk' || change === 'vanished'
  const chances = changes.filter(isTested).map(({ chance }) => chance)
  chances.sort((a, b) => a - b)
  let limit = 0
  for (const [i, chance] of chances.entries())
    if (chance <= (FALSE_SHARE * (i + 1)) / Math.max(1, compared)) limit = chance
  return changes
    .filter((each) => !isTested(each) || each.chance <= limit)
    .toSorted(
      (a, b) =>
        RANK[a.severity] - RANK[b.severity] ||
        a.chance - b.chance ||
        b.count - a.count ||
        (a.templateId < b.templateId ? -1 : 1),
    )
    .slice(0, MAX_CHANGES)
}
