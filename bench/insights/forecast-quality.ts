import { forecastNext } from '../../src/insights/forecast.js'
import { simulate, type SimulatedSource } from './simulate.js'

export interface ForecastGrade {
  /** Shares of hours within the intervals of 90 %: of an anomaly, of up to five days after one, and others. */
  readonly inAnomalies: number
  readonly after: number
  readonly others: number
  readonly all: number
}

const MONDAY = 4 * 24
const FIRST_DAY = 36
/** Hours from one forecast to the next. */
const EVERY = 29
const AHEAD = 24
/** Hours before a forecast that its level is taken from. */
const LEVEL = 5 * 24

/** How often the intervals of forecasts hold, of all messages of simulated sources. */
export function gradeForecasts(
  seeds: readonly number[],
  { sources, weeks }: { readonly sources: number; readonly weeks: number },
): ForecastGrade {
  const grades = { inAnomalies: tally(), after: tally(), others: tally() }
  for (const seed of seeds)
    for (const source of simulate({ seed, sources, weeks, quietWeeks: 5 })) {
      const counts = totalOf(source)
      const hasLabel = (first: number, end: number): boolean =>
        source.labels.some(({ from, to }) => from < end && to > first)
      for (let whole = FIRST_DAY * 24 + 5; whole + AHEAD <= counts.length; whole += EVERY) {
        const isAfter = hasLabel(whole - LEVEL, whole)
        const known = { counts: counts.slice(0, whole), startHour: MONDAY }
        for (const [i, { low, high }] of forecastNext(known, whole).hours.entries()) {
          const hour = whole + i
          const kind = hasLabel(hour, hour + 1) ? 'inAnomalies' : isAfter ? 'after' : 'others'
          const count = counts[hour] ?? 0
          grades[kind].all++
          if (count >= low && count <= high) grades[kind].inside++
        }
      }
    }
  const { inAnomalies, after, others } = grades
  const all = tally()
  for (const { inside, all: hours } of [inAnomalies, after, others]) {
    all.inside += inside
    all.all += hours
  }
  return {
    inAnomalies: shareOf(inAnomalies),
    after: shareOf(after),
    others: shareOf(others),
    all: shareOf(all),
  }
}

interface Tally {
  inside: number
  all: number
}

const tally = (): Tally => ({ inside: 0, all: 0 })

const shareOf = ({ inside, all }: Tally): number => inside / Math.max(1, all)

function totalOf({ templates }: SimulatedSource): Float64Array {
  const total = new Float64Array(templates[0]?.counts.length ?? 0)
  for (const { counts } of templates)
    for (let i = 0; i < total.length; i++) total[i] = (total[i] ?? 0) + (counts[i] ?? 0)
  return total
}
