import type { Static } from '@sinclair/typebox'

import type { TemplateSchema } from '../../api/schemas/series.js'
import { runParams, type Run } from '../explore/answers.js'
import type { Snapshot, TemplateChange } from '../insights/insight-answers.js'
import { call, pathWith } from '../lib/api.js'
import { joined } from '../lib/query-edit.js'

export type Template = Static<typeof TemplateSchema>

interface Group {
  readonly by: { readonly template: string | null }
  readonly values: { readonly count: number | null }
  readonly series?: readonly {
    readonly t: string
    readonly values: { readonly count: number | null }
  }[]
}
interface StatsReply {
  readonly groups: readonly Group[]
  readonly group_count: number
}

/** A template with its counts in a time range. */
export interface Counted {
  readonly id: string
  readonly count: number
  /** Counts of equal steps over the range. */
  readonly series: readonly number[]
  /** Null for events without a template. */
  readonly template: Template | null
  /** Its change according to the analysis of the last days. */
  readonly change: TemplateChange['change'] | null
}

export interface Templates {
  readonly rows: readonly Counted[]
  /** The number of templates in the range. */
  readonly known: number
  /** The number of most frequent templates from which the rows were chosen. */
  readonly compared: number
  readonly total: number
  /** When the first of all templates was seen; a template of that age is not new. */
  readonly firstMs: number
}

export type InOrder = (a: Counted, b: Counted) => number

const STEPS = 48
/** The most templates that are listed, which is the most groups of a query with series. */
const MOST = 100
/** The most templates that are sorted, which is the most groups of a query without series. */
const COMPARED = 1000
const TEXTS = 200
const PATH = '/api/logs/meta/templates'

/** The step of the series in whole seconds. */
const stepOf = ({ span }: Run): number =>
  Math.max(1, Math.ceil((span.toMs - span.fromMs) / 1000 / STEPS))

/** @param inOrder the order; null for the most frequent first */
export async function askTemplates(
  run: Run,
  inOrder: InOrder | null,
  signal: AbortSignal,
): Promise<Templates> {
  const [most, sum, changes] = await Promise.all([
    askGroups(run, { step: `${stepOf(run)}s`, top: MOST }, signal),
    call<StatsReply>(pathWith('/api/logs/stats', { ...runParams(run), metrics: 'count' }), {
      signal,
    }),
    changesOf(signal),
  ])
  const known = most.group_count
  const isMore = inOrder !== null && known > MOST
  const { groups } = isMore ? await askGroups(run, { top: COMPARED }, signal) : most
  const texts = await textsOf(groups, signal)
  const byId = new Map(texts.map((one) => [one.template_id, one]))
  const toCounted = (group: Group): Counted => {
    const id = group.by.template ?? ''
    return {
      id,
      count: group.values.count ?? 0,
      series: seriesOf(group, run),
      template: byId.get(id) ?? null,
      change: changes.get(id) ?? null,
    }
  }
  const all = groups.map(toCounted)
  const rows = (inOrder === null ? all : all.toSorted(inOrder)).slice(0, MOST)
  return {
    rows: isMore ? await withSeries(rows, run, signal) : rows,
    known,
    compared: groups.length,
    total: sum.groups[0]?.values.count ?? 0,
    firstMs: Math.min(...texts.map((one) => Date.parse(one.first_seen))),
  }
}

const askGroups = (
  run: Run,
  asked: { readonly step?: string; readonly top: number },
  signal: AbortSignal,
): Promise<StatsReply> =>
  call(
    pathWith('/api/logs/stats', { ...runParams(run), by: 'template', metrics: 'count', ...asked }),
    { signal },
  )

/** The most frequent templates, and the texts of the others on demand. */
async function textsOf(
  groups: readonly Group[],
  signal: AbortSignal,
): Promise<readonly Template[]> {
  const most = await call<readonly Template[]>(pathWith(PATH, { limit: TEXTS }), { signal })
  const isKnown = new Set(most.map((one) => one.template_id))
  const others = groups.flatMap(({ by: { template: id } }) =>
    id === null || isKnown.has(id) ? [] : [id],
  )
  const parts = await Promise.all(
    Array.from({ length: Math.ceil(others.length / MOST) }, (_, i) =>
      call<readonly Template[]>(
        pathWith(PATH, {
          template_id: others.slice(i * MOST, (i + 1) * MOST).join(),
          limit: TEXTS,
        }),
        { signal },
      ),
    ),
  )
  return [...most, ...parts.flat()]
}

async function withSeries(
  rows: readonly Counted[],
  run: Run,
  signal: AbortSignal,
): Promise<readonly Counted[]> {
  const ids = rows.flatMap(({ id }) => (id === '' ? [] : [id]))
  const only = { ...run, line: joined([run.line, `template:${ids.join()}`]) }
  const { groups } = await askGroups(only, { step: `${stepOf(run)}s`, top: MOST }, signal)
  const byId = new Map(groups.map((group) => [group.by.template, group]))
  return rows.map((row) => {
    const group = byId.get(row.id)
    return group === undefined ? row : { ...row, series: seriesOf(group, run) }
  })
}

function seriesOf({ series = [] }: Group, run: Run): readonly number[] {
  const counts = Array.from({ length: STEPS }, () => 0)
  for (const { t, values: part } of series) {
    const at = Math.floor((Date.parse(t) - run.span.fromMs) / 1000 / stepOf(run))
    counts[Math.max(0, Math.min(STEPS - 1, at))] = part.count ?? 0
  }
  return counts
}

/**
 * The templates that are new, reappeared, grew or vanished.
 *
 * @returns an empty map before the first analysis
 */
async function changesOf(signal: AbortSignal) {
  const snapshot = await call<Snapshot>('/api/ai-insights/snapshot', { signal }).catch(() => null)
  const all = snapshot?.emerging_templates ?? []
  return new Map(all.map((one) => [one.template_id, one.change]))
}
