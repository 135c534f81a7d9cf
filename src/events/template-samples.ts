import type { ListedEvent } from '../model/event.js'
import type { TemplateRegistry } from '../templates/registry.js'
import { templateValues } from '../templates/template-text.js'
import type { Events } from './events.js'
import { toFilter } from './filter.js'

/** The number of newest messages whose variables are counted. */
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
    return counts.map((count, index) => ({
      index,
      values: mostFrequent(count),
      numbers: numbersOf(count),
    }))
  }

  return { templateSamples, templateVariables }
}

const mostFrequent = (counts: ReadonlyMap<string, number>) =>
  [...counts]
    .map(([value, count]) => ({ value, count }))
    .toSorted((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
    .slice(0, SHOWN_VALUES)

/** Numbers as messages have them, perhaps with a unit: 12, -0.5, 87ms, 93%. */
const NUMBER = /^(-?\d{1,15}(?:\.\d{1,9})?)(%|[a-zA-Zµ]{0,3})$/

/** The median and the 95th percentile of a variable whose values are all numbers of one unit; null for others. */
export function numbersOf(counts: ReadonlyMap<string, number>) {
  const numbers: { readonly value: number; readonly count: number }[] = []
  const units = new Set<string>()
  for (const [text, count] of counts) {
    const match = NUMBER.exec(text)
    if (match === null) return null
    numbers.push({ value: Number(match[1]), count })
    units.add(match[2] ?? '')
  }
  const [unit] = units
  if (unit === undefined || units.size > 1) return null
  const sorted = numbers.toSorted((a, b) => a.value - b.value)
  const all = sorted.reduce((sum, { count }) => sum + count, 0)
  const percentile = (share: number): number => {
    let rest = Math.ceil(share * all)
    return sorted.find(({ count }) => (rest -= count) <= 0)?.value ?? 0
  }
  return { p50: percentile(0.5), p95: percentile(0.95), unit }
}
