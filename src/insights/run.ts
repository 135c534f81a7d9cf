import { Analysis, type CountedTemplate, type PartsByAnomaly, type WantedSpan } from './analysis.js'
import type { PartCounts } from './contributions.js'
import { frameEndingAt, type Frame } from './series.js'
import { SEVERITIES, type Severity } from '../model/event.js'
import type { InsightAnomaly, InsightSnapshot } from '../model/insights.js'
import { sourceKey, type TemplateDay } from './rows.js'
import type {
  HourSpan,
  InsightSeries,
  KeyRange,
  SourceName,
  TemplateTotal,
} from './stored-series.js'
import { CountTable, type InsightMemory } from './counts.js'
import { countParts, type CountedSpan } from './parts.js'
import type { SliceClock } from './slice-clock.js'

export interface RunParts {
  readonly series: InsightSeries
  /** registered and not disabled: what is switched off is silent on purpose */
  readonly isWatched: (source: string) => boolean
  /** the template that answers for an id today */
  readonly canonical: (templateId: string) => string
  /** a person has given the template its priority */
  readonly isCorrected: (templateId: string) => boolean
  readonly agreement: () => { readonly corrections: number; readonly agreeing: number }
  readonly memory: InsightMemory
  readonly clock: SliceClock
}

export interface Moment {
  /** hours since 1970, the one after the last whole hour that counts */
  readonly endHour: number
  /** whether the hour that begins there is looked at too, as far as it has come */
  readonly withRunning: boolean
  /** the hour that the look is made in, or is made for */
  readonly nowHour: number
}

export interface RunResult {
  readonly snapshot: InsightSnapshot
  /** all, also those the snapshot has no room for */
  readonly anomalies: readonly InsightAnomaly[]
  /** what it took: time of this thread and of ClickHouse, ms */
  readonly costMs: number
}

/** templates that are looked at; bounded by what mining keeps, this bounds a lookup over many sources */
const MAX_TEMPLATES = 200_000
const DAY_HOURS = 24
const SEVERITY_COLUMNS = ['debug', 'info', 'warning', 'error', 'critical'] as const
const ALL_IDS: KeyRange = { first: '0'.repeat(16), last: 'f'.repeat(16) }
const NEVER = Number.MAX_SAFE_INTEGER
const NO_DAY: TemplateDay = { routine: 0, routineEvents: 0, unsureEvents: 0 }

interface Run extends RunParts {
  readonly frame: Frame
  readonly span: HourSpan
  readonly marks: ReadonlyMap<number, string>
  readonly analysis: Analysis
}

/**
 * Reads the hours of the rollups that changed since the last look with the same memory, looks at every series and
 * gives the thread back in between. The result is the same whatever the memory holds.
 */
export async function runInsights(parts: RunParts, moment: Moment): Promise<RunResult> {
  const { series, memory, clock } = parts
  const frame = frameEndingAt(moment.endHour)
  const span = { from: frame.startHour, until: moment.endHour + (moment.withRunning ? 1 : 0) }
  const marks = await clock.wait(series.marks(span))
  const run: Run = {
    ...parts,
    frame,
    span,
    marks: new Map(marks.map(({ hour, mark }) => [hour, mark])),
    analysis: new Analysis(frame, span.until - span.from, memory.memos),
  }
  const names = await clock.wait(series.sourceNames(span))
  const watched = names.filter(({ source }) => parts.isWatched(source))
  await addSources(run, names)
  await addTemplates(run)
  const sources = await sourceParts(run)
  const anomalies = run.analysis.anomalies(sources)
  const counted = await otherParts(run, run.analysis.wanted(anomalies))
  await clock.pause()
  const routineAt = watched.reduce((last, { routine_at: hour }) => Math.max(last, hour), 0)
  const snapshot = run.analysis.finish(anomalies, {
    ...counted,
    sources,
    dataAgeHours: routineAt === 0 ? 0 : Math.max(0, moment.nowHour - 1 - routineAt),
    ...parts.agreement(),
  })
  memory.sources.forgetChanges()
  memory.templates.forgetChanges()
  return { snapshot, anomalies, costMs: clock.totalMs() }
}

const pagesOf = <T>(all: readonly T[], size: number): readonly (readonly T[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) =>
    all.slice(i * size, (i + 1) * size),
  )

/** The table that is kept, when everything fits into it; else one for a page. */
function tableFor(kept: CountTable, pages: number): CountTable {
  if (pages <= 1) return kept
  kept.clear()
  return new CountTable()
}

async function addSources(run: Run, names: readonly SourceName[]): Promise<void> {
  const { series, memory, clock, analysis, frame, span, marks } = run
  const scratch = SEVERITIES.map(() => new Float64Array(span.until - span.from))
  const pages = pagesOf(names, memory.limits.sources)
  for (const page of pages) {
    const table = tableFor(memory.sources, pages.length)
    const range = { first: page[0]?.source ?? '', last: page.at(-1)?.source ?? '' }
    const read = (part: HourSpan) => series.sources(part, range)
    await table.refresh({ span, marks, read, series: page.length * SEVERITIES.length }, clock)
    for (const { source } of page) {
      if (!run.isWatched(source)) continue
      let changedAt = NEVER
      for (const [i, counts] of scratch.entries())
        changedAt = Math.min(
          changedAt,
          table.read(sourceKey(source, i), counts.fill(0), frame.startHour),
        )
      const kept = pages.length === 1 ? changedAt : null
      analysis.addSource({ source, severities: scratch, changedAt: kept })
      await clock.pause()
    }
  }
}

/** A template that others were merged into: its series are summed over all pages. */
interface Joined {
  readonly counts: Float64Array
  changedAt: number
}

async function addTemplates(run: Run): Promise<void> {
  const { series, memory, clock, analysis, frame, span, marks } = run
  const all = (await clock.wait(series.templateTotals(span.from))).slice(0, MAX_TEMPLATES)
  const lastDay = { from: span.until - DAY_HOURS, until: span.until }
  const days = await clock.wait(series.templateDay(lastDay))
  const groups = groupTotals(run, all)
  const joined = new Map<string, Joined>()
  const tell = (id: string, { counts, changedAt }: Joined): void =>
    analysis.addTemplate({
      ...describe(run, id, groups.get(id) ?? [], days),
      counts,
      changedAt: pages.length === 1 ? changedAt : null,
    })
  const scratch = new Float64Array(span.until - span.from)
  const pages = pagesOf(all, memory.limits.templates)
  for (const page of pages) {
    const table = tableFor(memory.templates, pages.length)
    const range = pages.length === 1 ? ALL_IDS : rangeOf(page)
    const read = (part: HourSpan) => series.templates(part, range)
    await table.refresh({ span, marks, read, series: page.length }, clock)
    for (const { template } of page) {
      const id = run.canonical(template)
      const group = groups.get(id)
      if (group === undefined) continue
      const target =
        group.length === 1 ? { counts: scratch.fill(0), changedAt: NEVER } : joinedOf(id)
      const changedAt = table.read(template, target.counts, frame.startHour)
      target.changedAt = Math.min(target.changedAt, changedAt)
      if (group.length === 1) tell(id, target)
      await clock.pause()
    }
  }
  for (const [id, target] of [...joined].toSorted(([a], [b]) => (a < b ? -1 : 1))) tell(id, target)
  if (pages.length === 1) settle(run)

  function joinedOf(id: string): Joined {
    const known = joined.get(id)
    if (known !== undefined) return known
    const made = { counts: new Float64Array(scratch.length), changedAt: NEVER }
    joined.set(id, made)
    return made
  }
}

const rangeOf = (page: readonly TemplateTotal[]): KeyRange => ({
  first: page[0]?.template ?? '',
  last: page.at(-1)?.template ?? '',
})

/** Templates of watched sources; those that were merged are one. */
function groupTotals(
  { isWatched, canonical }: RunParts,
  totals: readonly TemplateTotal[],
): ReadonlyMap<string, readonly TemplateTotal[]> {
  const groups = new Map<string, TemplateTotal[]>()
  for (const total of totals) {
    if (!isWatched(total.source)) continue
    const id = canonical(total.template)
    const group = groups.get(id)
    if (group === undefined) groups.set(id, [total])
    else group.push(total)
  }
  return groups
}

/** What a person has settled is not unsure, whatever it was when its events came. */
function describe(
  { isCorrected }: RunParts,
  id: string,
  group: readonly TemplateTotal[],
  days: ReadonlyMap<string, TemplateDay>,
): Omit<CountedTemplate, 'counts' | 'changedAt'> {
  const own = group.map(({ template }) => days.get(template) ?? NO_DAY)
  const sum = (of: (day: TemplateDay) => number): number =>
    own.reduce((all, day) => all + of(day), 0)
  return {
    templateId: id,
    members: group.length === 1 ? '' : group.map(({ template }) => template).join(' '),
    source: group[0]?.source ?? '',
    severity: mainSeverity(group),
    firstSeenMs: Math.min(...group.map(({ first_ms: ms }) => ms)),
    lastSeenMs: Math.max(...group.map(({ last_ms: ms }) => ms)),
    routine: sum(({ routine }) => routine),
    routineEvents: sum(({ routineEvents }) => routineEvents),
    unsureEvents: isCorrected(id) ? 0 : sum(({ unsureEvents }) => unsureEvents),
  }
}

/** The most frequent one, of equals the worse. */
function mainSeverity(group: readonly TemplateTotal[]): Severity {
  let [best, most]: [Severity, number] = ['INFO', -1]
  for (const [i, column] of SEVERITY_COLUMNS.entries()) {
    const count = group.reduce((sum, total) => sum + total[column], 0)
    if (count >= most && count > 0) [best, most] = [SEVERITIES[i] ?? best, count]
  }
  return best
}

/**
 * The two rollups are written one after the other, so they can be read half way. Hours whose sums differ are read
 * again at the next look, and kept as they are when that brings nothing else.
 */
function settle({ span, marks, memory: { sources, templates, unequal } }: Run): void {
  for (let hour = span.from; hour < span.until; hour++) {
    const state = `${marks.get(hour) ?? ''} ${sources.sumOf(hour)} ${templates.sumOf(hour)}`
    const isEqual = sources.sumOf(hour) === templates.sumOf(hour)
    if (isEqual || unequal.get(hour) === state) continue
    unequal.set(hour, state)
    sources.forget(hour)
    templates.forget(hour)
  }
  for (const hour of unequal.keys()) if (hour < span.from) unequal.delete(hour)
}

/** What sources counted in the spans of anomalies of all together. */
async function sourceParts({
  series,
  analysis,
  clock,
  frame,
  isWatched,
}: Run): Promise<PartsByAnomaly> {
  const found = new Map<string, readonly PartCounts[]>()
  for (const wanted of analysis.wholes()) {
    const { severity, before, from, until } = toSpan(wanted, frame)
    const query = { severity: severity ?? ('' as const), before, from, until }
    const rows = await clock.wait(series.sourceParts(query))
    found.set(
      wanted.anomalyId,
      rows.filter(({ name }) => isWatched(name)),
    )
  }
  return found
}

/** What templates and hosts counted in the spans of the gravest anomalies. */
async function otherParts(
  { series, clock, frame }: Run,
  all: readonly WantedSpan[],
): Promise<Record<'templates' | 'hosts', PartsByAnomaly>> {
  const [templates, hosts] = [
    new Map<string, readonly PartCounts[]>(),
    new Map<string, readonly PartCounts[]>(),
  ]
  for (const wanted of all) {
    const parts = await clock.wait(countParts(series, toSpan(wanted, frame)))
    templates.set(wanted.anomalyId, parts.templates)
    hosts.set(wanted.anomalyId, parts.hosts)
  }
  return { templates, hosts }
}

const toSpan = (wanted: WantedSpan, frame: Frame): CountedSpan => ({
  source: wanted.source,
  severity: wanted.severity,
  hostSeverity: wanted.hostSeverity,
  before: frame.startHour + wanted.beforeFrom,
  from: frame.startHour + wanted.from,
  until: frame.startHour + wanted.to,
})
