/*
 * What changed in a time range: which templates, sources and hosts of a query's events occur more or less often than in the
 * time before, which is as long. All values of both are counted; those beyond the most frequent 10,000 are in the sums alone.
 */

import type { Events } from '../events/events.js'
import type { FieldNames } from '../events/field-expression.js'
import type { EventQuestion } from '../events/occurrences.js'
import type { Contribution, Explanation } from '../model/insights.js'
import { HOUR_MS } from '../model/time.js'
import type { BuiltinField } from '../query/ast.js'
import { contributionsOf } from './explanation.js'

export interface SpanQuery {
  readonly question: EventQuestion & { readonly toMs: number }
  readonly names: FieldNames
}

export interface SpanExplanation extends Explanation {
  /** Occurrences. */
  readonly totalBefore: number
  readonly totalDuring: number
  /** The counts are of the newest parts of both spans from these times on. */
  readonly completeFromMs: number
}

const MAX_VALUES = 10_000

/** @throws AppError dependency_unavailable */
export async function explainSpan(
  events: Pick<Events, 'counts'>,
  { question, names }: SpanQuery,
  signal?: AbortSignal,
): Promise<SpanExplanation> {
  const { fromMs, toMs } = question
  const before = { ...question, fromMs: Math.max(0, 2 * fromMs - toMs), toMs: fromMs }
  const counted = async (name: BuiltinField) => {
    const field = { kind: 'builtin', name } as const
    const by = { field, stepS: 0, counted: 'occurrences', top: MAX_VALUES, names } as const
    const [during, earlier] = [
      await events.counts(question, by, signal),
      await events.counts(before, by, signal),
    ]
    const contributions = toContributions(earlier.answer, during.answer, {
      beforeHours: (fromMs - earlier.completeFromMs) / HOUR_MS,
      duringHours: (toMs - during.completeFromMs) / HOUR_MS,
    })
    return { contributions, during, earlier }
  }
  const [templates, sources, hosts] = [
    await counted('template'),
    await counted('source'),
    await counted('host'),
  ]
  const all = [templates, sources, hosts]
  return {
    fromMs,
    toMs,
    beforeFromMs: before.fromMs,
    templates: templates.contributions,
    sources: sources.contributions,
    hosts: hosts.contributions,
    totalBefore: sources.earlier.answer.total,
    totalDuring: sources.during.answer.total,
    completeFromMs: Math.max(
      ...all.map(({ during }) => during.completeFromMs),
      ...all.map(({ earlier }) =>
        earlier.completeFromMs === before.fromMs ? fromMs : earlier.completeFromMs + toMs - fromMs,
      ),
    ),
  }
}

type Counted = Awaited<ReturnType<Events['counts']>>['answer']

function toContributions(
  before: Counted,
  during: Counted,
  lengths: Parameters<typeof contributionsOf>[1],
): readonly Contribution[] {
  const countsBefore = new Map(before.values.map(({ value, count }) => [value, count]))
  const countsDuring = new Map(during.values.map(({ value, count }) => [value, count]))
  const names = new Set([...countsBefore.keys(), ...countsDuring.keys()])
  const known = Array.from(names, (name) => ({
    name,
    before: countsBefore.get(name) ?? 0,
    during: countsDuring.get(name) ?? 0,
  }))
  const sumOf = (values: Iterable<number>): number => [...values].reduce((a, b) => a + b, 0)
  const others = {
    name: '',
    before: before.total - sumOf(countsBefore.values()),
    during: during.total - sumOf(countsDuring.values()),
  }
  return contributionsOf([...known, others], lengths)
}
