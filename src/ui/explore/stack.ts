import type { Histogram } from './answers.js'
import { templateText } from './templates-known.js'

/** From the bottom up. The worst severities are on top, where they stand out. */
const FIXED: ReadonlyMap<string | null, readonly string[]> = new Map([
  ['severity', ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL']],
  ['priority', ['P4', 'P3', 'P2', 'P1']],
])
const COLORS = 5
const MOST_OF_NAME = 24
/** Stands for occurrences with other values than the most frequent ones, or without a value. */
const OTHER = '\u0000other'

/** The name of a value that bars are stacked by, as the legend shows it. */
export function partName(name: string, by: string | null): string {
  if (name === OTHER) return 'other'
  const text = by === 'template' ? templateText(name).replaceAll('<*>', '∗') : ''
  return text.length > MOST_OF_NAME ? `${text.slice(0, MOST_OF_NAME)}…` : text || name
}

/** The values that a histogram is stacked by, from the bottom up. */
export function orderOf({ by, values, total }: Histogram): readonly string[] {
  const names = values.map(({ value }) => value)
  const fixed = FIXED.get(by)
  if (fixed !== undefined) return fixed.filter((name) => names.includes(name))
  const isWhole = values.reduce((sum, { count }) => sum + count, 0) === total
  return isWhole ? names : [...names, OTHER]
}

/** Colours by value, as names of the style sheet's tokens. */
export function colorsOf(histogram: Histogram): ReadonlyMap<string, string> {
  const isFixed = FIXED.has(histogram.by)
  return new Map(
    orderOf(histogram).map((name, i) => [
      name,
      name === OTHER
        ? 'var(--series-other)'
        : isFixed
          ? `var(--${name.toLowerCase()})`
          : `var(--series-${i % COLORS})`,
    ]),
  )
}

type Bucket = Histogram['buckets'][number]

/** The height of one value's part of a bar. */
export const partOf = ({ total, values }: Bucket, name: string): number =>
  name === OTHER
    ? total - Object.values(values).reduce((sum, n) => sum + n, 0)
    : Number(values[name]) || 0 // what every object has, such as `constructor`, is no number
