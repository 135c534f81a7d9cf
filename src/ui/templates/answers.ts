import type { Static } from '@sinclair/typebox'

import type { TemplateSchema } from '../../api/schemas/series.js'
import { runParams, type Run } from '../explore/answers.js'
import type { Snapshot, TemplateChange } from '../insights/insight-answers.js'
import { call, pathWith } from '../lib/api.js'

export type Template = Static<typeof TemplateSchema>

interface StatsReply {
  readonly groups: readonly {
    readonly by: { readonly template: string | null }
    readonly values: { readonly count: number | null }
    readonly series?: readonly {
      readonly t: string
      readonly values: { readonly count: number | null }
    }[]
  }[]
  readonly group_count: number
}

/** A template with what it counts in a time range. */
export interface Counted {
  readonly id: string
  readonly count: number
  /** Counts of equal steps over the range. */
  readonly series: readonly number[]
  /** Null for events without a template. */
  readonly template: Template | null
  /** What the analysis of the last days says of it. */
  readonly change: TemplateChange['change'] | null
}

export interface Templates {
  readonly rows: readonly Counted[]
  /** How many there are in the range; the most frequent ones are listed. */
  readonly known: number
  readonly total: number
  /** When the first of all templates was seen; what is as old as the installation is not new. */
  readonly firstMs: number
}

const STEPS = 48
const MOST = 100
const TEXTS = 200
const PATH = '/api/logs/meta/templates'

/** Counts are by whole seconds. */
const stepOf = ({ span }: Run): number =>
  Math.max(1, Math.ceil((span.toMs - span.fromMs) / 1000 / STEPS))

export async function askTemplates(run: Run, signal: AbortSignal): Promise<Templates> {
  const stepS = stepOf(run)
  const asked = {
    ...runParams(run),
    by: 'template',
    metrics: 'count',
    step: `${stepS}s`,
    top: MOST,
  }
  const [stats, most, changes] = await Promise.all([
    call<StatsReply>(pathWith('/api/logs/stats', asked), { signal }),
    call<readonly Template[]>(pathWith(PATH, { limit: TEXTS }), { signal }),
    changesOf(signal),
  ])
  const ids = stats.groups.map(({ by }) => by.template ?? '')
  const rare = ids.filter((id) => id !== '' && most.every((one) => one.template_id !== id))
  const texts = [
    ...most,
    ...(rare.length === 0
      ? []
      : await call<readonly Template[]>(
          pathWith(PATH, { template_id: rare.join(), limit: TEXTS }),
          { signal },
        )),
  ]
  const byId = new Map(texts.map((one) => [one.template_id, one]))
  const rows = stats.groups.map(({ by, values, series = [] }) => {
    const counts = Array.from({ length: STEPS }, () => 0)
    for (const { t, values: part } of series) {
      const at = Math.floor((Date.parse(t) - run.span.fromMs) / 1000 / stepS)
      counts[Math.max(0, Math.min(STEPS - 1, at))] = part.count ?? 0
    }
    const id = by.template ?? ''
    return {
      id,
      count: values.count ?? 0,
      series: counts,
      template: byId.get(id) ?? null,
      change: changes.get(id) ?? null,
    }
  })
  return {
    rows,
    known: stats.group_count,
    total: rows.reduce((sum, { count }) => sum + count, 0),
    firstMs: Math.min(...texts.map((one) => Date.parse(one.first_seen))),
  }
}

/** What is new, has come back, grown or vanished. @returns nothing before the first analysis */
async function changesOf(signal: AbortSignal) {
  const snapshot = await call<Snapshot>('/api/ai-insights/snapshot', { signal }).catch(() => null)
  const all = snapshot?.emerging_templates ?? []
  return new Map(all.map((one) => [one.template_id, one.change]))
}
