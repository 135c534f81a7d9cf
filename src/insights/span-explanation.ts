/*
 * Explains what changed in a time range: which templates, sources and hosts of a query's events
 * occur more or less often than in the equally long time before. All values of both are counted;
 * those beyond the most frequent 10,000 only add to the totals.
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
  /** The counts cover the newest parts of both spans, from these times on. */
  readonly completeFromMs: number
}

const MAX_VALUES = 10_000
const ERRORS = ['ERROR', 'CRITICAL'] as const

/** @throws AppError dependency_unavailable */
export async function explainSpan(
  events: Pick<Events, 'counts'>,
  { question, names }: SpanQuery,
  signal?: AbortSignal,
): Promise<SpanExplanation> {
  const { fromMs, toMs } = question
  const before = { ...question, fromMs: Math.max(0, 2 * fromMs - toMs), toMs: fromMs }
  const counted = async (name: BuiltinField, areErrors = false) => {
    const field = { kind: 'builtin', name } as const
    const by = { field, stepS: 0, counted: 'occurrences', top: MAX_VALUES, names } as const
    const asked = (of: EventQuestion) => (areErrors ? errorsOf(of) : of)
    const during = await events.counts(asked(question), by, signal)
    return { during, earlier: await events.counts(asked(before), by, signal) }
  }
  const explained = async (name: BuiltinField) => {
    const { during, earlier } = await counted(name)
    const errors = await counted(name, true)
    const all = { before: earlier.answer, during: during.answer }
    const ofErrors = { before: errors.earlier.answer, during: errors.during.answer }
    const contributions = toContributions(all, ofErrors, {
      beforeHours: (fromMs - earlier.completeFromMs) / HOUR_MS,
      duringHours: (toMs - during.completeFromMs) / HOUR_MS,
    })
    return { contributions, during, earlier }
  }
  const [templates, sources, hosts] = [
    await explained('template'),
    await explained('source'),
    await explained('host'),
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

interface CountedSpans {
  readonly before: Counted
  readonly during: Counted
}

/** The same query, restricted to ERROR and CRITICAL. */
function errorsOf<T extends EventQuestion>(question: T): T {
  const { severities } = question.filter
  const errors = ERRORS.filter((severity) => severities?.includes(severity) ?? true)
  return { ...question, filter: { ...question.filter, severities: errors } }
}

const countsOf = ({ values }: Counted): ReadonlyMap<string, number> =>
  new Map(values.map(({ value, count }) => [value, count]))

function toContributions(
  { before, during }: CountedSpans,
  errors: CountedSpans,
  lengths: Parameters<typeof contributionsOf>[1],
): readonly Contribution[] {
  const [countsBefore, countsDuring] = [countsOf(before), countsOf(during)]
  const [errorsBefore, errorsDuring] = [countsOf(errors.before), countsOf(errors.during)]
  const names = new Set([...countsBefore.keys(), ...countsDuring.keys()])
  const known = Array.from(names, (name) => ({
    name,
    before: countsBefore.get(name) ?? 0,
    during: countsDuring.get(name) ?? 0,
    errors: { before: errorsBefore.get(name) ?? 0, during: errorsDuring.get(name) ?? 0 },
  }))
  const sumOf = (values: Iterable<number>): number => [...values].reduce((a, b) => a + b, 0)
  const others = {
    name: '',
    before: before.total - sumOf(countsBefore.values()),
    during: during.total - sumOf(countsDuring.values()),
  }
  return contributionsOf([...known, others], lengths)
}
