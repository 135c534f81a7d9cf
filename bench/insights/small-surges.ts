import { findAnomalies } from '../../src/insights/anomalies.js'
import { surprise } from '../../src/insights/negative-binomial.js'
import { poisson, seeded, type Random } from './random.js'

interface Surge {
  readonly name: string
  readonly meanAt: (hour: number) => number
  readonly factor: number
  readonly hours: number
}

export interface SurgeGrade {
  readonly name: string
  /** Shares of the surges. */
  readonly found: number
  readonly bound: number
  readonly falseAYear: number
}

const WEEK = 168
const YEAR = 8760
const WEEKS = 7
const MONDAY = 4 * 24
const SPANS = [1, 2, 3, 4, 6, 8, 12, 24] as const
/** Years of counts that the threshold of the bound is chosen by. */
const CALIBRATION_YEARS = 40
const seasonal = (hour: number): number => 50 * (1 + 0.8 * Math.cos((2 * Math.PI * hour) / 24))

const SURGES: readonly Surge[] = [
  { name: '× 1.6 for 6 h in 30/h', meanAt: () => 30, factor: 1.6, hours: 6 },
  { name: '× 2 for 3 h in 30/h', meanAt: () => 30, factor: 2, hours: 3 },
  { name: '× 3 for 1 h in seasonal 50/h', meanAt: seasonal, factor: 3, hours: 1 },
  { name: '× 0.5 for 6 h in 30/h', meanAt: () => 30, factor: 0.5, hours: 6 },
]

/**
 * How many small surges of Poisson counts are found, beside the bound: the best detector that knows the true rates, a
 * scan of all spans by their likelihood ratio, at one false alarm a year.
 */
export function gradeSurges(seed: number, tries: number): readonly SurgeGrade[] {
  return SURGES.map((surge) => {
    const random = seeded(seed)
    const threshold = thresholdOf(surge, random)
    let [found, bound, wrong] = [0, 0, 0]
    for (let i = 0; i < tries; i++) {
      const at = (WEEKS - 1) * WEEK + Math.floor((WEEK - 24) * random())
      const isIn = (hour: number): boolean => hour >= at && hour < at + surge.hours
      const counts = Float64Array.from({ length: WEEKS * WEEK }, (_, hour) =>
        poisson(random, surge.meanAt(hour) * (isIn(hour) ? surge.factor : 1)),
      )
      const options = { from: (WEEKS - 2) * WEEK, hours: counts.length }
      const all = findAnomalies({ counts, startHour: MONDAY }, options)
      const hits = all.filter(({ from, to }) => from < at + surge.hours + 1 && to > at - 1)
      if (hits.length > 0) found++
      wrong += all.length - hits.length
      const last = Math.min(counts.length, at + surge.hours)
      if (mostIn(counts, surge, at, last) >= threshold) bound++
    }
    const years = (tries * 2 * WEEK) / YEAR
    return {
      name: surge.name,
      found: found / tries,
      bound: bound / tries,
      falseAYear: wrong / years,
    }
  })
}

/** The greatest surprise of the spans that end in some hours. */
function mostIn(counts: Float64Array, { meanAt }: Surge, from: number, to: number): number {
  let most = 0
  for (let end = from; end < to; end++) {
    let [observed, expected, done] = [0, 0, 0]
    for (const span of SPANS) {
      for (; done < span && done <= end; done++) {
        observed += counts[end - done] ?? 0
        expected += meanAt(end - done)
      }
      most = Math.max(most, Math.abs(surprise(observed, expected, 0)))
    }
  }
  return most
}

/** The surprise that one day in a year exceeds. */
function thresholdOf(surge: Surge, random: Random): number {
  const days: number[] = []
  const counts = new Float64Array(YEAR)
  for (let year = 0; year < CALIBRATION_YEARS; year++) {
    for (let hour = 0; hour < YEAR; hour++) counts[hour] = poisson(random, surge.meanAt(hour))
    for (let hour = 24; hour < YEAR; hour += 24) days.push(mostIn(counts, surge, hour, hour + 24))
  }
  return days.toSorted((a, b) => b - a)[CALIBRATION_YEARS] ?? 0
}

export const renderSurges = (grades: readonly SurgeGrade[]): string =>
  [
    '| surge | found | bound | false alarms a year |',
    '|---|---|---|---|',
    ...grades.map(
      ({ name, found, bound, falseAYear }) =>
        `| ${name} | ${(found * 100).toFixed(0)} % | ${(bound * 100).toFixed(0)} % | ${falseAYear.toFixed(1)} |`,
    ),
  ].join('\n')
