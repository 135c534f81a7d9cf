/** Counts by going through all occurrences in JavaScript: what histograms, facets, stats and lists are compared with. */
import { isMeant, leavesOf, type Model, type ModelEvent } from './query-model.js'
import type { Field, Query } from '../../src/query/ast.js'

/** An event with the times of its messages. */
export interface CountedEvent extends ModelEvent {
  readonly occurrences: readonly { readonly atMs: number; readonly n: number }[]
}

export interface ModelRange {
  readonly fromMs: number
  readonly toMs: number
}

/** An event of a range, with its occurrences in it. */
export interface EventInRange {
  readonly event: CountedEvent
  readonly occurrences: CountedEvent['occurrences']
  readonly count: number
}

/** The events that a query means and that have occurrences in the range, in the order of the list. */
export function eventsWithin(
  events: readonly CountedEvent[],
  query: Query,
  { range, model }: { readonly range: ModelRange; readonly model: Model },
): readonly EventInRange[] {
  return events
    .filter((event) => isMeant(event, query, model))
    .map((event) => {
      const occurrences = event.occurrences.filter(
        ({ atMs }) => atMs >= range.fromMs && atMs < range.toMs,
      )
      return { event, occurrences, count: sumOf(occurrences.map(({ n }) => n)) }
    })
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.event.tsMs - a.event.tsMs || b.event.id - a.event.id)
}

export const sumOf = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)

/** The text by which an event is counted; '' for none. */
export function textOf(event: ModelEvent, field: Field, model: Model): string {
  if (field.kind === 'attribute')
    return leavesOf(event).find(([path]) => path === field.name)?.[1] ?? ''
  const { severity, priority, type, source, environment, host } = event
  const texts: Readonly<Record<string, string>> = {
    severity,
    priority,
    type,
    source,
    environment,
    host,
    trace: event.traceId,
    span: event.spanId,
    template: model.redirects[event.templateId] ?? event.templateId,
    application:
      Object.entries(model.applications).find(([, sources]) =>
        sources.includes(event.source),
      )?.[0] ?? '',
  }
  const text = texts[field.name]
  if (text === undefined) throw new Error(`${field.name} is not counted`)
  return text
}

/** Values with their counts, most frequent first, equally frequent ones in the order of their bytes. */
export function ranked(
  counted: readonly (readonly [value: string, n: number])[],
): readonly { readonly value: string; readonly count: number }[] {
  const counts = new Map<string, number>()
  for (const [value, n] of counted)
    if (value !== '') counts.set(value, (counts.get(value) ?? 0) + n)
  return Array.from(counts, ([value, count]) => ({ value, count })).toSorted(
    (a, b) => b.count - a.count || Buffer.compare(Buffer.from(a.value), Buffer.from(b.value)),
  )
}
