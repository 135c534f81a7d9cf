import { Analysis, type CountedTemplate } from '../insights/analysis.js'
import type { PartCounts } from '../insights/contributions.js'
import { frameEndingAt } from '../insights/series.js'
import { SEVERITIES, type Severity } from '../model/event.js'
import type { InsightAnomaly, InsightSnapshot } from '../model/insights.js'
import {
  SOURCE_PAGE,
  type HourSpan,
  type InsightSeries,
  type TemplateTotal,
} from '../store/insight-series.js'

export interface RunParts {
  readonly series: InsightSeries
  /** registered and not disabled: what is switched off is silent on purpose */
  readonly isWatched: (source: string) => boolean
  /** the template that answers for an id today */
  readonly canonical: (templateId: string) => string
  /** the program ends: the run rejects with its reason */
  readonly signal: AbortSignal
  readonly agreement: () => { readonly corrections: number; readonly agreeing: number }
}

export interface Moment {
  /** hours since 1970, the one after the last whole hour that counts */
  readonly endHour: number
  /** whether the hour that begins there is looked at too, as far as it has come */
  readonly withRunning: boolean
}

export interface RunResult {
  readonly snapshot: InsightSnapshot
  /** all, also those the snapshot has no room for */
  readonly anomalies: readonly InsightAnomaly[]
  /** what it took: time of this thread and of ClickHouse, ms */
  readonly costMs: number
}

/** templates a query: some megabytes of JSON at most */
const TEMPLATE_PAGE = 500
/** templates that are looked at; bounded by what mining keeps, this bounds a lookup over many sources */
const MAX_TEMPLATES = 200_000
/** this thread also takes messages: it is given back this often */
const SLICE_MS = 8
const SEVERITY_COLUMNS = ['debug', 'info', 'warning', 'error', 'critical'] as const

/** Reads the rollups in pages, looks at every series and gives the thread back in between. */
export async function runInsights(parts: RunParts, moment: Moment): Promise<RunResult> {
  const frame = frameEndingAt(moment.endHour)
  const until = moment.endHour + (moment.withRunning ? 1 : 0)
  const span = { from: frame.startHour, until }
  const clock = new SliceClock(parts.signal)
  const analysis = new Analysis(frame, until - frame.startHour)
  await addSources(parts, analysis, span, clock)
  await addTemplates(parts, analysis, span, clock)
  const anomalies = analysis.anomalies()
  const found = new Map<string, readonly PartCounts[]>()
  for (const wanted of analysis.wanted(anomalies)) {
    const { source, severity, beforeFrom, from, to } = wanted
    const query = {
      source,
      severity: severity ?? ('' as const),
      before: frame.startHour + beforeFrom,
      from: frame.startHour + from,
      until: frame.startHour + to,
    }
    const rows = await clock.wait(parts.series.parts(query))
    found.set(wanted.anomalyId, rows)
  }
  await clock.pause()
  const snapshot = analysis.finish(anomalies, { parts: found, ...parts.agreement() })
  return { snapshot, anomalies, costMs: clock.totalMs() }
}

/** Counts what a run takes, and gives the thread back when a slice is used up. */
class SliceClock {
  #startedAt = performance.now()
  #ownMs = 0
  #waitedMs = 0
  readonly #signal: AbortSignal

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** What is waited for is ClickHouse's time. */
  async wait<T>(work: Promise<T>): Promise<T> {
    this.#stop()
    const from = performance.now()
    const result = await work
    this.#waitedMs += performance.now() - from
    this.#startedAt = performance.now()
    return result
  }

  async pause(): Promise<void> {
    if (performance.now() - this.#startedAt < SLICE_MS) return
    this.#stop()
    await new Promise((resolve) => setImmediate(resolve))
    this.#signal.throwIfAborted()
    this.#startedAt = performance.now()
  }

  totalMs(): number {
    this.#stop()
    return this.#ownMs + this.#waitedMs
  }

  #stop(): void {
    this.#ownMs += performance.now() - this.#startedAt
    this.#startedAt = performance.now()
  }
}

async function addSources(
  { series, isWatched }: RunParts,
  analysis: Analysis,
  span: HourSpan,
  clock: SliceClock,
): Promise<void> {
  const length = span.until - span.from
  for (let after = ''; ;) {
    const page = await clock.wait(series.sources(span, after))
    for (const row of page) {
      if (!isWatched(row.source)) continue
      analysis.addSource({
        source: row.source,
        severities: SEVERITY_COLUMNS.map((column) => toCounts(length, row.at, row[column])),
        lastRoutineAt: row.routine_at,
      })
      await clock.pause()
    }
    const last = page.at(-1)
    if (last === undefined || page.length < SOURCE_PAGE) return
    after = last.source
  }
}

async function addTemplates(
  parts: RunParts,
  analysis: Analysis,
  span: HourSpan,
  clock: SliceClock,
): Promise<void> {
  const { series, isWatched } = parts
  const all = await clock.wait(series.templateTotals(span.from))
  const watched = all.filter(({ source }) => isWatched(source)).slice(0, MAX_TEMPLATES)
  const groups = groupTotals(watched, parts.canonical)
  const length = span.until - span.from
  const merged = new Map<string, CountedTemplate>()
  for (let i = 0; i < watched.length; i += TEMPLATE_PAGE) {
    const page = watched.slice(i, i + TEMPLATE_PAGE)
    const [first, last] = [page[0]?.template ?? '', page.at(-1)?.template ?? '']
    for (const row of await clock.wait(series.templates(span, first, last))) {
      const id = parts.canonical(row.template)
      const group = groups.get(id)
      if (group === undefined) continue
      const counted = {
        ...describe(id, group),
        counts: toCounts(length, row.at, row.n),
        routine: row.routine,
        routineEvents: row.routine_events,
        unsureEvents: row.unsure_events,
      }
      if (group.length === 1) analysis.addTemplate(counted)
      else merged.set(id, joined(merged.get(id), counted))
      await clock.pause()
    }
  }
  for (const [, template] of [...merged].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    analysis.addTemplate(template)
    await clock.pause()
  }
}

/** Templates that were merged are one. */
function groupTotals(
  totals: readonly TemplateTotal[],
  canonical: (id: string) => string,
): ReadonlyMap<string, readonly TemplateTotal[]> {
  const groups = new Map<string, TemplateTotal[]>()
  for (const total of totals) {
    const id = canonical(total.template)
    const group = groups.get(id)
    if (group === undefined) groups.set(id, [total])
    else group.push(total)
  }
  return groups
}

function describe(
  id: string,
  group: readonly TemplateTotal[],
): Pick<CountedTemplate, 'templateId' | 'source' | 'severity' | 'firstSeenMs' | 'lastSeenMs'> {
  return {
    templateId: id,
    source: group[0]?.source ?? '',
    severity: mainSeverity(group),
    firstSeenMs: Math.min(...group.map(({ first_ms: ms }) => ms)),
    lastSeenMs: Math.max(...group.map(({ last_ms: ms }) => ms)),
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

function joined(known: CountedTemplate | undefined, more: CountedTemplate): CountedTemplate {
  if (known === undefined) return more
  return {
    ...known,
    counts: known.counts.map((count, i) => count + (more.counts[i] ?? 0)),
    routine: known.routine + more.routine,
    routineEvents: known.routineEvents + more.routineEvents,
    unsureEvents: known.unsureEvents + more.unsureEvents,
  }
}

/** A correction moves counts to another priority: parts of an hour can be negative, not their sum. */
function toCounts(length: number, at: readonly number[], n: readonly number[]): Float64Array {
  const counts = new Float64Array(length)
  for (let i = 0; i < at.length; i++) {
    const index = at[i] ?? 0
    counts[index] = (counts[index] ?? 0) + (n[i] ?? 0)
  }
  return counts
}
