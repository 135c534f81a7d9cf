import type { ListedEvent } from '../model/event.js'
import type { TemplateRegistry } from '../templates/registry.js'
import { templateValues } from '../templates/template-text.js'
import type { Events } from './events.js'
import { toFilter } from './filter.js'

/** Variables are counted over this many newest messages. */
const SAMPLED_MESSAGES = 1000
const SHOWN_VALUES = 10

/** Examples of a template: its newest events, and the most frequent values of its variables. */
export function createTemplateSamples(templates: TemplateRegistry, events: Pick<Events, 'page'>) {
  /** The newest events of a template and of those merged into it. */
  const templateSamples = async (
    id: string,
    limit: number,
    signal?: AbortSignal,
  ): Promise<readonly ListedEvent[]> => {
    const filter = toFilter({
      kind: 'field',
      field: { kind: 'builtin', name: 'template' },
      tests: templates.aliasesOf(id).map((text) => ({ kind: 'equal', text })),
    })
    const query = { filter, fromMs: 0, toMs: null, after: null, limit }
    return (await events.page(query, signal)).events
  }

  const templateVariables = async (
    template: { readonly id: string; readonly text: string },
    signal?: AbortSignal,
  ) => {
    const counts: Map<string, number>[] = []
    for (const event of await templateSamples(template.id, SAMPLED_MESSAGES, signal)) {
      const values = templateValues(template.text, event.message) ?? []
      values.forEach((value, i) => {
        const count = (counts[i] ??= new Map<string, number>())
        count.set(value, (count.get(value) ?? 0) + event.occurrenceCount)
      })
    }
    return counts.map((count, index) => ({ index, values: mostFrequent(count) }))
  }

  return { templateSamples, templateVariables }
}

const mostFrequent = (counts: ReadonlyMap<string, number>) =>
  [...counts]
    .map(([value, count]) => ({ value, count }))
    .toSorted((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
    .slice(0, SHOWN_VALUES)
