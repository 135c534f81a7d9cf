import type { ListedEvent } from '../model/event.js'
import { templateValues } from '../templates/template-text.js'
import { PRIORITIES } from '../model/event.js'
import type { TemplateDirectory } from '../events/template-stats.js'
import type { Ingestion } from '../assembly/ingestion.js'

/** newest messages whose values are counted */
const SAMPLED_MESSAGES = 1000
const SHOWN_VALUES = 10

/** What the rest knows of templates: texts, corrections and redirects. */
export const toDirectory = ({
  templates,
  sequencer,
}: Pick<Ingestion, 'templates' | 'sequencer'>): TemplateDirectory => ({
  describe(id) {
    const template = templates.byId(id)
    if (template === undefined) return null
    const override = sequencer.overrideOf(template.id)
    return {
      id: template.id,
      text: template.text,
      override: override === null ? null : (PRIORITIES[override] ?? null),
    }
  },
  redirects: () => templates.redirects(),
})

/** The newest events of a template and of those merged into it. */
export const samplesOf =
  ({ templates, events }: Pick<Ingestion, 'templates' | 'events'>) =>
  (id: string, limit: number, signal?: AbortSignal): Promise<readonly ListedEvent[]> =>
    events.page(
      {
        filter: {
          severities: [],
          priorities: [],
          types: [],
          sources: null,
          environments: [],
          templateIds: templates.aliasesOf(id),
          search: '',
        },
        fromMs: 0,
        toMs: null,
        after: null,
        limit,
      },
      signal,
    )

/** The most frequent values of each variable, over the newest messages of the template. */
export const variablesOf =
  (ingestion: Pick<Ingestion, 'templates' | 'events'>) =>
  async (template: { readonly id: string; readonly text: string }, signal?: AbortSignal) => {
    const counts: Map<string, number>[] = []
    for (const event of await samplesOf(ingestion)(template.id, SAMPLED_MESSAGES, signal)) {
      const values = templateValues(template.text, event.message) ?? []
      values.forEach((value, i) => {
        const count = (counts[i] ??= new Map<string, number>())
        count.set(value, (count.get(value) ?? 0) + event.occurrenceCount)
      })
    }
    return counts.map((count, index) => ({ index, values: mostFrequent(count) }))
  }

const mostFrequent = (counts: ReadonlyMap<string, number>) =>
  [...counts]
    .map(([value, count]) => ({ value, count }))
    .toSorted((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
    .slice(0, SHOWN_VALUES)
