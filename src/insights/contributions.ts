import type { Contribution } from '../model/insights.js'

export interface PartCounts {
  readonly name: string
  /** occurrences in the span before and in the span itself */
  readonly before: number
  readonly during: number
}

export interface Spans {
  readonly beforeHours: number
  readonly duringHours: number
}

const MAX_PARTS = 5
/** parts that explain less are noise */
const LEAST_EXPLAINED = 0.02

/**
 * The parts that explain the most of a change, with how much of it is theirs. What has no name is part of the whole,
 * and is not told.
 */
export function contributionsOf(
  parts: readonly PartCounts[],
  { beforeHours, duringHours }: Spans,
): readonly Contribution[] {
  const sum = (of: (part: PartCounts) => number): number =>
    parts.reduce((all, part) => all + of(part), 0)
  const [before, during] = [sum((part) => part.before), sum((part) => part.during)]
  const change = during / duringHours - before / beforeHours
  if (change === 0) return []
  return parts
    .map((part) => ({
      name: part.name,
      before: tenths(part.before / beforeHours),
      during: tenths(part.during / duringHours),
      explains: thousandths((part.during / duringHours - part.before / beforeHours) / change),
      shareBefore: thousandths(before === 0 ? 0 : part.before / before),
      shareDuring: thousandths(during === 0 ? 0 : part.during / during),
    }))
    .filter(({ name, explains }) => name !== '' && Math.abs(explains) >= LEAST_EXPLAINED)
    .toSorted((a, b) => b.explains - a.explains || (a.name < b.name ? -1 : 1))
    .slice(0, MAX_PARTS)
}

const tenths = (value: number): number => Math.round(value * 10) / 10
const thousandths = (value: number): number => Math.round(value * 1000) / 1000
