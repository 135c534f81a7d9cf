/* What can be computed of the numbers of an attribute, as SQL. */

/** The functions of an attribute's numbers, in SQL of the number and of its occurrences. */
const OF_NUMBERS = {
  avg: (v) => `sum(${v} * occurrences) / sumIf(occurrences, isNotNull(${v}))`,
  sum: (v) => `sum(${v} * occurrences)`,
  min: (v) => `min(${v})`,
  max: (v) => `max(${v})`,
  p50: (v) => `quantileExactWeighted(0.5)(${v}, toUInt64(occurrences))`,
  p75: (v) => `quantileExactWeighted(0.75)(${v}, toUInt64(occurrences))`,
  p90: (v) => `quantileExactWeighted(0.9)(${v}, toUInt64(occurrences))`,
  p95: (v) => `quantileExactWeighted(0.95)(${v}, toUInt64(occurrences))`,
  p99: (v) => `quantileExactWeighted(0.99)(${v}, toUInt64(occurrences))`,
} as const satisfies Record<string, (value: string) => string>

export type NumberFunction = keyof typeof OF_NUMBERS
export const NUMBER_FUNCTIONS: readonly string[] = Object.keys(OF_NUMBERS)
/** @returns SQL of a function of an attribute's number, over rows with `occurrences` */
export const numberSql = (of: NumberFunction, value: string): string => OF_NUMBERS[of](value)
export const isNumberFunction = (name: string): name is NumberFunction =>
  Object.hasOwn(OF_NUMBERS, name)
