import type { Contribution, Explanation, InsightAnomaly } from '../model/insights.js'
import { HOUR_MS } from '../model/time.js'
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

/** The span before an anomaly is as long as its own, and at least this long. */
const LEAST_BEFORE_HOURS = 6
const MAX_CONTRIBUTIONS = 5
/** Contributions below this share of the change are noise. */
const LEAST_EXPLAINED = 0.02

/** Compares an anomaly's span with the one before it: which templates, sources and hosts changed most. */
export async function explain(
  rollups: Rollups,
  anomaly: InsightAnomaly,
  options: ExplainOptions,
): Promise<Explanation> {
  const { scope, severity, startedAtMs, endedAtMs } = anomaly
  const spans = spansOf(anomaly)
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
    beforeFromMs: spans.before * HOUR_MS,
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
  const spans = spansOf(anomaly)
  const counted = await rollups.sourceContributions(spans, signal)
  return contributionsOf(
    counted.filter(({ name }) => isWatched(name)),
    lengthsOf(spans),
  )
}

function spansOf({
  scope,
  source,
  severity,
  startedAtMs,
  endedAtMs,
}: InsightAnomaly): ComparedSpans {
  const [from, until] = [startedAtMs / HOUR_MS, endedAtMs / HOUR_MS]
  const before = Math.max(0, from - Math.max(until - from, LEAST_BEFORE_HOURS))
  return { source, severity: scope === 'severity' ? (severity ?? '') : '', before, from, until }
}

const lengthsOf = ({ before, from, until }: ComparedSpans): Lengths => ({
  beforeHours: Math.max(1, from - before),
  duringHours: until - from,
})

/**
 * The contributors whose change of rate is the greatest share of the change of the sum, greatest first.
 * Counts under the name '' belong to the sum only.
 */
export function contributionsOf(
  counted: readonly ContributorCounts[],
  { beforeHours, duringHours }: Lengths,
): readonly Contribution[] {
  const sum = (of: (each: ContributorCounts) => number): number =>
    counted.reduce((all, each) => all + of(each), 0)
  const [before, during] = [sum((each) => each.before), sum((each) => each.during)]
  const change = during / duringHours - before / beforeHours
  if (change === 0) return []
  return counted
    .map((each) => ({
      name: each.name,
      before: tenths(each.before / beforeHours),
      during: tenths(each.during / duringHours),
      explains: thousandths((each.during / duringHours - each.before / beforeHours) / change),
      shareBefore: thousandths(before === 0 ? 0 : each.before / before),
      shareDuring: thousandths(during === 0 ? 0 : each.during / during),
    }))
    .filter(({ name, explains }) => name !== '' && Math.abs(explains) >= LEAST_EXPLAINED)
    .toSorted((a, b) => b.explains - a.explains || (a.name < b.name ? -1 : 1))
    .slice(0, MAX_CONTRIBUTIONS)
}

const tenths = (value: number): number => Math.round(value * 10) / 10
const thousandths = (value: number): number => Math.round(value * 1000) / 1000
