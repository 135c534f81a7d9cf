import { forecastNext } from '../../src/insights/forecast.js'
import { simulate, type SimulatedSource } from './simulate.js'

export interface ForecastGrade {
  /** Shares of hours within the intervals of 90 %: of forecasts for hours with a label, and of the others. */
  readonly inAnomalies: number
  readonly outside: number
  readonly all: number
}

const MONDAY = 4 * 24
const FIRST_DAY = 36
/** Hours from one forecast to the next. */
const EVERY = 29
const AHEAD = 24

/** How often the intervals of forecasts hold, of all messages of simulated sources. */
export function gradeForecasts(
  seeds: readonly number[],
  { sources, weeks }: { readonly sources: number; readonly weeks: number },
): ForecastGrade {
  const within = { inside: 0, all: 0 }
  const outside = { inside: 0, all: 0 }
  for (const seed of seeds)
    for (const source of simulate({ seed, sources, weeks, quietWeeks: 5 })) {
      const counts = totalOf(source)
      for (let whole = FIRST_DAY * 24 + 5; whole + AHEAD <= counts.length; whole += EVERY) {
        const hasLabel = source.labels.some(({ from, to }) => from < whole + AHEAD && to > whole)
        const into = hasLabel ? within : outside
        const known = { counts: counts.slice(0, whole), startHour: MONDAY }
        for (const [i, { low, high }] of forecastNext(known, whole).hours.entries()) {
          const count = counts[whole + i] ?? 0
          into.all++
          if (count >= low && count <= high) into.inside++
        }
      }
    }
  const share = ({ inside, all }: typeof within): number => inside / Math.max(1, all)
  const both = { inside: within.inside + outside.inside, all: within.all + outside.all }
  return { inAnomalies: share(within), outside: share(outside), all: share(both) }
}

function totalOf({ templates }: SimulatedSource): Float64Array {
  const total = new Float64Array(templates[0]?.counts.length ?? 0)
  for (const { counts } of templates)
    for (let i = 0; i < total.length; i++) total[i] = (total[i] ?? 0) + (counts[i] ?? 0)
  return total
}
