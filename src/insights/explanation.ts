import type { Contribution, Explanation, InsightAnomaly } from '../model/insights.js'
import { HOUR_MS } from '../model/time.js'
import { DAY_HOURS, WEEK_HOURS } from './frame.js'
import type { ComparedSpans, ContributorCounts, Rollups } from './rollups.js'

interface ExplainOptions {
  readonly isWatched: (source: string) => boolean
  readonly signal?: AbortSignal
}

/** Hours of the two spans that are compared. */
interface Lengths {
  readonly beforeHours: number
  readonly duringHours: number
}

const WEEKS_COMPARED = 3
/** With fewer weeks of history an anomaly is compared with the days before. */
const LEAST_WEEKS = 2
const DAYS_COMPARED = 6
/** Without a whole day it is compared with the hours before: as many as it has, but at least this many. */
const LEAST_BEFORE_HOURS = 6
const MAX_CONTRIBUTIONS = 5
/** Contributions below this share of the change are noise. */
const LEAST_EXPLAINED = 0.02
/** Errors are notably more when they exceed the expected count by this many of its standard deviations. */
const NOTABLE_DEVIATIONS = 3

/**
 * Compares an anomaly's span with the same hours of the weeks before, and finds the templates,
 * sources and hosts that changed most.
 */
export async function explain(
  rollups: Rollups,
  anomaly: InsightAnomaly,
  options: ExplainOptions,
): Promise<Explanation> {
  const { scope, severity, startedAtMs, endedAtMs } = anomaly
  const spans = await spansOf(rollups, anomaly, options.signal)
  // Hosts are counted by source and severity only, so those of a template are of its main severity.
  const hostSeverity = scope === 'template' ? (severity ?? '') : spans.severity
  const [templates, sources, hosts] = await Promise.all([
    rollups.templateContributions(spans, options.signal),
    anomaly.source === '' ? contributingSources(rollups, anomaly, options) : [],
    rollups.hostContributions({ ...spans, severity: hostSeverity }, options.signal),
  ])
  const lengths = lengthsOf(spans)
  return {
    fromMs: startedAtMs,
    toMs: endedAtMs,
    beforeFromMs: (spans.earlier[0] ?? spans.from) * HOUR_MS,
    templates: contributionsOf(templates, lengths),
    sources,
    hosts: contributionsOf(hosts, lengths),
  }
}

/** The watched sources that explain the most of an anomaly over all sources. */
export async function contributingSources(
  rollups: Rollups,
  anomaly: InsightAnomaly,
  { isWatched, signal }: ExplainOptions,
): Promise<readonly Contribution[]> {
  const spans = await spansOf(rollups, anomaly, signal)
  const counted = await rollups.sourceContributions(spans, signal)
  return contributionsOf(
    counted.filter(({ name }) => isWatched(name)),
    lengthsOf(spans),
  )
}

async function spansOf(
  rollups: Rollups,
  { scope, source, severity, startedAtMs, endedAtMs }: InsightAnomaly,
  signal: AbortSignal | undefined,
): Promise<ComparedSpans> {
  const [from, until] = [startedAtMs / HOUR_MS, endedAtMs / HOUR_MS]
  const past = { from: from - WEEKS_COMPARED * WEEK_HOURS, until: from }
  const first = (await rollups.firstHour(source, past, signal)) ?? from
  const ownSeverity = scope === 'severity' ? (severity ?? '') : ''
  return { source, severity: ownSeverity, earlier: usualHours(from, until, first), from, until }
}

/** The hours, ascending, that a span is compared with. @param first hour of its source */
export function usualHours(from: number, until: number, first: number): readonly number[] {
  const own = Array.from({ length: until - from }, (_, i) => from + i)
  const before = (step: number, times: number): readonly number[] =>
    Array.from({ length: times }, (_, i) => step * (times - i)).filter(
      (hours) => from - hours >= first,
    )
  const days = Math.ceil((until - from) / DAY_HOURS)
  const weeks = before(WEEK_HOURS, WEEKS_COMPARED)
  const isYoung = weeks.length < LEAST_WEEKS
  const shifts = isYoung ? before(days * DAY_HOURS, Math.floor(DAYS_COMPARED / days)) : weeks
  if (shifts.length > 0) return shifts.flatMap((hours) => own.map((hour) => hour - hours))
  const length = Math.min(from, Math.max(until - from, LEAST_BEFORE_HOURS))
  return Array.from({ length }, (_, i) => from - length + i)
}

const lengthsOf = ({ earlier, from, until }: ComparedSpans): Lengths => ({
  beforeHours: Math.max(1, earlier.length),
  duringHours: until - from,
})

/**
 * The contributors to a change: first those with notably more errors, because in an outage
 * everything else decreases, then those with the greatest share of the total change. Counts under
 * the name '' only add to the total.
 */
export function contributionsOf(
  counted: readonly ContributorCounts[],
  lengths: Lengths,
): readonly Contribution[] {
  const { beforeHours, duringHours } = lengths
  const sum = (of: (each: ContributorCounts) => number): number =>
    counted.reduce((all, each) => all + of(each), 0)
  const [before, during] = [sum((each) => each.before), sum((each) => each.during)]
  const change = during / duringHours - before / beforeHours
  if (change === 0) return []
  const grown = new Map(counted.map((each) => [each.name, moreErrors(each, lengths)]))
  const grownOf = ({ name }: { readonly name: string }): number => grown.get(name) ?? 0
  return counted
    .map((each) => ({
      name: each.name,
      before: tenths(each.before / beforeHours),
      during: tenths(each.during / duringHours),
      explains: thousandths((each.during / duringHours - each.before / beforeHours) / change),
      shareBefore: thousandths(before === 0 ? 0 : each.before / before),
      shareDuring: thousandths(during === 0 ? 0 : each.during / during),
      hasMoreErrors: grownOf(each) > 0,
    }))
    .filter(
      ({ name, explains, hasMoreErrors }) =>
        name !== '' && (hasMoreErrors || Math.abs(explains) >= LEAST_EXPLAINED),
    )
    .toSorted(
      (a, b) => grownOf(b) - grownOf(a) || b.explains - a.explains || (a.name < b.name ? -1 : 1),
    )
    .slice(0, MAX_CONTRIBUTIONS)
}

/** The number of errors beyond the expected ones; 0 unless they are notably more. */
function moreErrors({ errors }: ContributorCounts, { beforeHours, duringHours }: Lengths): number {
  if (errors === undefined) return 0
  const expected = (errors.before / beforeHours) * duringHours
  const more = errors.during - expected
  return more > NOTABLE_DEVIATIONS * Math.sqrt(expected + 1) ? more : 0
}

const tenths = (value: number): number => Math.round(value * 10) / 10
const thousandths = (value: number): number => Math.round(value * 1000) / 1000
