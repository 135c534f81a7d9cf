import type { Forecast } from '../model/insights.js'
import { cellOf, fitBaseline, type Baseline, type Hours } from './baseline.js'
import { expectedRange, surprise } from './negative-binomial.js'
import { quantileOf } from './quantile.js'
import { DAY_HOURS } from './frame.js'
import { HOUR_MS } from '../model/time.js'

const AHEAD_HOURS = 24
const TRAINING_DAYS = 28
const LEAST_DAYS = 4
/** Days whose forecasts are made again to calibrate the width of the intervals. */
const TRIED_DAYS = 12
/** Share of hours that the intervals are to contain. */
export const FORECAST_LEVEL = 0.9
/** Half the width for that share under a normal distribution, without days to calibrate with. */
const NORMAL_WIDTH = 1.645
const LEAST_WIDTH = 1

/**
 * Forecasts the next 24 hours by the seasonal baseline. The width of the intervals is what the forecasts of the last
 * days needed, so they contain their share whatever the distribution of the counts is.
 *
 * @param whole how many whole hours there are; the forecast begins with the next one
 * Source: split conformal prediction (Lei et al., Distribution-Free Predictive Inference, JASA 2018).
 */
export function forecastNext(hours: Hours, whole: number): Forecast {
  const begins = hours.counts.findIndex((count) => count > 0)
  const firstDay = Math.ceil(begins / DAY_HOURS)
  const today = Math.floor(whole / DAY_HOURS)
  if (begins === -1 || whole < forecastFrom(begins)) return { hours: [], coverage: null }
  const tried = tryDays(hours, firstDay, today)
  const width = widthFor(tried.flat())
  const { baseline, level } = fitUntil(hours, firstDay, today)
  const next = Array.from({ length: AHEAD_HOURS }, (_, i) => {
    const hour = hours.startHour + whole + i
    const expected = level * (baseline.profile[cellOf(hour)] ?? 0)
    const [low, high] = expectedRange(expected, baseline.dispersion, width)
    return {
      atMs: hour * HOUR_MS,
      expected: Math.round(expected * 10) / 10,
      low: Math.floor(low),
      high: Math.ceil(high),
    }
  })
  return { hours: next, coverage: coverageOf(tried) }
}

/** How many whole hours a forecast needs. @param begins index of the first occurrence */
export const forecastFrom = (begins: number): number =>
  (Math.ceil(begins / DAY_HOURS) + LEAST_DAYS) * DAY_HOURS

interface Fit {
  readonly baseline: Baseline
  readonly level: number
}

function fitUntil(hours: Hours, firstDay: number, day: number): Fit {
  const from = Math.max(firstDay, day - TRAINING_DAYS) * DAY_HOURS
  const { baseline, levels } = fitBaseline(hours, from, day * DAY_HOURS)
  return { baseline, level: levels.at(-1) ?? 1 }
}

/** By day the absolute surprises of its hours under the forecast that the days before it give. */
function tryDays(hours: Hours, firstDay: number, today: number): readonly (readonly number[])[] {
  const tried: number[][] = []
  for (let day = Math.max(firstDay + LEAST_DAYS, today - TRIED_DAYS); day < today; day++) {
    const { baseline, level } = fitUntil(hours, firstDay, day)
    const surprises: number[] = []
    for (let i = day * DAY_HOURS; i < (day + 1) * DAY_HOURS; i++) {
      const expected = level * (baseline.profile[cellOf(hours.startHour + i)] ?? 0)
      surprises.push(Math.abs(surprise(hours.counts[i] ?? 0, expected, baseline.dispersion)))
    }
    tried.push(surprises)
  }
  return tried
}

function widthFor(surprises: readonly number[]): number {
  if (surprises.length < DAY_HOURS) return NORMAL_WIDTH
  const share = Math.min(1, (FORECAST_LEVEL * (surprises.length + 1)) / surprises.length)
  const values = Float64Array.from(surprises)
  return Math.max(LEAST_WIDTH, quantileOf(values, values.length, share))
}

/** Cross-validated: each day is judged by the width that the other days give. */
function coverageOf(tried: readonly (readonly number[])[]): number | null {
  if (tried.length < 3) return null
  let [covered, all] = [0, 0]
  for (const [i, day] of tried.entries()) {
    const width = widthFor(tried.filter((_, other) => other !== i).flat())
    covered += day.filter((each) => each <= width).length
    all += day.length
  }
  return Math.round((covered / all) * 1000) / 1000
}
