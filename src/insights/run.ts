import { SEVERITIES, type Severity } from '../model/event.js'
import type { Correlation, InsightAnomaly, InsightSnapshot } from '../model/insights.js'
import { HOUR_MS } from '../model/time.js'
import type { TemplateDirectory } from '../templates/directory.js'
import { Analysis, type AnalysedTemplate } from './analysis.js'
import { MOSTLY, type FoundAnomaly } from './anomaly-groups.js'
import { contributingSources, explain } from './explanation.js'
import { DAY_HOURS, frameEndingAt } from './frame.js'
import type { Agreement } from './ml-health.js'
import {
  addHours,
  type HourlyCounts,
  type HourSpan,
  type Rollups,
  type SourceName,
  type TemplateDay,
  type TemplateTotal,
} from './rollups.js'
import type { SliceClock } from './slice-clock.js'

export interface RunDeps {
  readonly rollups: Rollups
  /** Whether a source is registered and enabled. The silence of others is intended, so they are left out. */
  readonly isWatched: (source: string) => boolean
  readonly directory: TemplateDirectory
  readonly agreement: () => Agreement
  readonly clock: SliceClock
  readonly pageSizes?: typeof PAGE_SIZES
}

/** The time that a run is made for; hours since 1970. */
export interface RunTime {
  /** The hour after the last whole one that is analysed. */
  readonly endHour: number
  /** Whether the hour that begins there is included so far as it has passed. */
  readonly withRunning: boolean
  /** The hour of the run, which the age of the data is measured from. */
  readonly nowHour: number
}

export interface RunResult {
  readonly snapshot: InsightSnapshot
  /** All anomalies; the snapshot has the first 200. */
  readonly anomalies: readonly InsightAnomaly[]
  /** Ms of this thread and of ClickHouse. */
  readonly costMs: number
}

const MAX_TEMPLATES = 200_000
/** A page is one query: at most 800 hours of 22 bytes for a source, of 6 bytes for a template. */
const PAGE_SIZES = { sources: 1_000, templates: 4_000 }
const MAX_EXPLAINED = 10
/** Sources whose anomalies begin within this time of another are affected by it too. */
const NEAR_MS = 2 * HOUR_MS
const SEVERITY_COLUMNS = ['debug', 'info', 'warning', 'error', 'critical'] as const
const NO_DAY: TemplateDay = { routine: 0, routineEvents: 0, unsureEvents: 0 }

interface Run extends Required<RunDeps> {
  readonly span: HourSpan
  readonly analysis: Analysis
}

/**
 * Computes a snapshot of 39 days of hourly counts.
 *
 * 1. Reads the counts of the sources by severity, page by page, and finds the anomalies of each series.
 * 2. Reads the counts of the templates; finds their anomalies, and those whose last 24 h differ from before.
 * 3. Finds the anomalies of the sums over all sources, and drops those that a single source explains.
 * 4. Groups anomalies that coincide, and explains the gravest groups by the templates, sources and hosts that
 *    changed most.
 * 5. Forecasts the next 24 hours of all events and of errors, and grades priorities and templates (ML health).
 *
 * Nothing is kept from run to run, so the same counts give the same snapshot. A run yields the thread every 8 ms;
 * what it costs is in bench/NOTES.md (insights).
 */
export async function runInsights(deps: RunDeps, time: RunTime): Promise<RunResult> {
  const { rollups, clock, isWatched } = deps
  const frame = frameEndingAt(time.endHour)
  const span = { from: frame.startHour, until: time.endHour + (time.withRunning ? 1 : 0) }
  const run: Run = {
    pageSizes: PAGE_SIZES,
    ...deps,
    span,
    analysis: new Analysis(frame, span.until - span.from),
  }
  const names = await clock.wait(rollups.sourceNames(span))
  await addSources(run, names)
  await addTemplates(run)
  run.analysis.addTotals()
  const anomalies = run.analysis.group(await withoutThoseOfOneSource(run))
  const correlations = await explainGravest(run, anomalies)
  await clock.pause()
  const routineHours = names
    .filter(({ source }) => isWatched(source))
    .map(({ routine_at: hour }) => hour)
  const routineAt = routineHours.reduce((last, hour) => Math.max(last, hour), 0)
  const snapshot = run.analysis.snapshot({
    anomalies,
    correlations,
    dataAgeHours: routineAt === 0 ? 0 : Math.max(0, time.nowHour - 1 - routineAt),
    ...deps.agreement(),
  })
  return { snapshot, anomalies, costMs: clock.totalMs() }
}

const pagesOf = <T>(all: readonly T[], size: number): readonly (readonly T[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) =>
    all.slice(i * size, (i + 1) * size),
  )

async function addSources(run: Run, names: readonly SourceName[]): Promise<void> {
  const { rollups, clock, analysis, span, isWatched, pageSizes } = run
  const severities = SEVERITIES.map(() => new Float64Array(span.until - span.from))
  for (const page of pagesOf(names, pageSizes.sources)) {
    const range = { first: page[0]?.source ?? '', last: page.at(-1)?.source ?? '' }
    const bySource = await clock.wait(rollups.sourceHours(span, range))
    for (const { source } of page) {
      if (!isWatched(source)) continue
      fill(severities, span.from, bySource.get(source) ?? [])
      analysis.addSource({ source, severities })
      await clock.pause()
    }
  }
}

function fill(
  severities: readonly Float64Array[],
  startHour: number,
  counted: readonly HourlyCounts[],
): void {
  for (const [i, counts] of severities.entries()) {
    counts.fill(0)
    const hours = counted[i]
    if (hours !== undefined) addHours(counts, startHour, hours)
  }
}

/** Templates that were merged are one series, which is complete only after the last page. */
async function addTemplates(run: Run): Promise<void> {
  const { rollups, clock, analysis, span, directory, pageSizes } = run
  const totals = (await clock.wait(rollups.templateTotals(span.from))).slice(0, MAX_TEMPLATES)
  const lastDay = { from: span.until - DAY_HOURS, until: span.until }
  const days = await clock.wait(rollups.templateDay(lastDay))
  const merged = mergeTotals(run, totals)
  const sums = new Map<string, Float64Array>()
  const add = (id: string, counts: Float64Array): void =>
    analysis.addTemplate({ ...describe(directory, id, merged.get(id) ?? [], days), counts })
  const single = new Float64Array(span.until - span.from)
  for (const page of pagesOf(totals, pageSizes.templates)) {
    const range = { first: page[0]?.template ?? '', last: page.at(-1)?.template ?? '' }
    const byTemplate = await clock.wait(rollups.templateHours(span, range))
    for (const { template } of page) {
      const id = canonicalOf(directory, template)
      const members = merged.get(id)
      if (members === undefined) continue
      const isSingle = members.length === 1
      const counts = isSingle ? single.fill(0) : sumOf(id)
      const counted = byTemplate.get(template)
      if (counted !== undefined) addHours(counts, span.from, counted)
      if (isSingle) add(id, counts)
      await clock.pause()
    }
  }
  for (const [id, counts] of [...sums].toSorted(([a], [b]) => (a < b ? -1 : 1))) add(id, counts)

  function sumOf(id: string): Float64Array {
    const known = sums.get(id)
    if (known !== undefined) return known
    const made = new Float64Array(single.length)
    sums.set(id, made)
    return made
  }
}

const canonicalOf = (directory: TemplateDirectory, id: string): string =>
  directory.describe(id)?.id ?? id

/** @returns the totals of watched sources, by the id of the template that they were merged into */
function mergeTotals(
  { isWatched, directory }: Run,
  totals: readonly TemplateTotal[],
): ReadonlyMap<string, readonly TemplateTotal[]> {
  const merged = new Map<string, TemplateTotal[]>()
  for (const total of totals) {
    if (!isWatched(total.source)) continue
    const id = canonicalOf(directory, total.template)
    const others = merged.get(id)
    if (others === undefined) merged.set(id, [total])
    else others.push(total)
  }
  return merged
}

function describe(
  directory: TemplateDirectory,
  id: string,
  totals: readonly TemplateTotal[],
  days: ReadonlyMap<string, TemplateDay>,
): Omit<AnalysedTemplate, 'counts'> {
  const own = totals.map(({ template }) => days.get(template) ?? NO_DAY)
  const sum = (of: (day: TemplateDay) => number): number =>
    own.reduce((all, day) => all + of(day), 0)
  // A corrected priority is certain, whatever the confidence stored with the events.
  const isCorrected = (directory.describe(id)?.override ?? null) !== null
  return {
    templateId: id,
    source: totals[0]?.source ?? '',
    severity: mainSeverity(totals),
    firstSeenMs: Math.min(...totals.map(({ first_ms: ms }) => ms)),
    lastSeenMs: Math.max(...totals.map(({ last_ms: ms }) => ms)),
    routine: sum(({ routine }) => routine),
    routineEvents: sum(({ routineEvents }) => routineEvents),
    unsureEvents: isCorrected ? 0 : sum(({ unsureEvents }) => unsureEvents),
  }
}

/** The most frequent severity, of equals the worse. */
function mainSeverity(totals: readonly TemplateTotal[]): Severity {
  let [best, most]: [Severity, number] = ['INFO', -1]
  for (const [i, column] of SEVERITY_COLUMNS.entries()) {
    const count = totals.reduce((sum, total) => sum + total[column], 0)
    if (count >= most && count > 0) [best, most] = [SEVERITIES[i] ?? best, count]
  }
  return best
}

/** Leaves out anomalies over all sources that a single source explains, because that source has an anomaly of its own. */
async function withoutThoseOfOneSource(run: Run): Promise<readonly FoundAnomaly[]> {
  const { rollups, clock, analysis } = run
  const kept: FoundAnomaly[] = []
  for (const each of analysis.found) {
    const { anomaly } = each
    if (anomaly.source === '') {
      const [first] = await clock.wait(contributingSources(rollups, anomaly, run))
      if (first !== undefined && first.explains >= MOSTLY) continue
    }
    kept.push(each)
  }
  return kept
}

async function explainGravest(
  run: Run,
  anomalies: readonly InsightAnomaly[],
): Promise<readonly Correlation[]> {
  const { rollups, clock } = run
  const correlations: Correlation[] = []
  for (const anomaly of anomalies.filter(({ partOf }) => partOf === null).slice(0, MAX_EXPLAINED)) {
    const explanation = await clock.wait(explain(rollups, anomaly, run))
    const alsoAffected = affectedWith(anomaly, anomalies)
    correlations.push({ anomalyId: anomaly.id, ...explanation, alsoAffected })
  }
  return correlations
}

const affectedWith = (
  { source, startedAtMs }: InsightAnomaly,
  anomalies: readonly InsightAnomaly[],
): Correlation['alsoAffected'] =>
  anomalies
    .filter(
      (other) =>
        other.scope === 'source' &&
        other.source !== source &&
        Math.abs(other.startedAtMs - startedAtMs) <= NEAR_MS,
    )
    .slice(0, MAX_EXPLAINED)
    .map((other) => ({ source: other.source, anomalyId: other.id }))
