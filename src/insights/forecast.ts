import type { Forecast } from '../model/insights.js'
import { fitBaseline, type Baseline } from './baseline.js'
import { expectedRange, surprise } from './negative-binomial.js'
import { quantileOf } from './quantile.js'
import { DAY_HOURS, WEEK_HOURS, type Hours } from './frame.js'
import { cellsOf } from './week-clock.js'
import { HOUR_MS } from '../model/time.js'

const AHEAD_HOURS = 24
const TRAINING_DAYS = 28
const LEAST_DAYS = 4
/**
 * The past days that are forecast again to calibrate the width of the intervals, and the number of
 * the first of them, which only start the calibration.
 */
const TRIED_DAYS = 24
const LEAST_TRIED_DAYS = 3
/** Share of hours that the intervals are to contain. */
export const FORECAST_LEVEL = 0.9
/** Half the width for that share under a normal distribution, without days to calibrate with. */
const NORMAL_WIDTH = 1.645
const LEAST_WIDTH = 1
/** A day whose intervals contained too few of its hours raises the target share by this times the share that lacked. */
const STEP = 0.12
const MOST_SHARE = 0.995

/**
 * Forecasts the next 24 hours by the seasonal baseline. The width of the intervals is the one that
 * the forecasts of the last days needed, so they contain their share for any distribution of the
 * counts. The target share rises after days with anomalies and falls after others.
 *
 * @param whole the number of whole hours; the forecast begins with the next one
 * Sources: split conformal prediction (Lei et al., Distribution-Free Predictive Inference, JASA 2018); adaptive
 * conformal inference (Gibbs and Candès, NeurIPS 2021).
 */
export function forecastNext(hours: Hours, whole: number): Forecast {
  const begins = hours.counts.findIndex((count) => count > 0)
  const firstDay = Math.ceil(begins / DAY_HOURS)
  const today = Math.floor(whole / DAY_HOURS)
  if (begins === -1 || whole < forecastFrom(begins)) return { hours: [], coverage: null }
  const tried = tryDays(hours, firstDay, today)
  const { width, coverage } = calibrate(tried)
  const { baseline, level } = fitUntil(hours, firstDay, today)
  const next = Array.from({ length: AHEAD_HOURS }, (_, i) => {
    const hour = hours.startHour + whole + i
    const expected = level * usualAt(baseline, hour)
    const [low, high] = expectedRange(expected, baseline.dispersion, width)
    return {
      atMs: hour * HOUR_MS,
      expected: Math.round(expected * 10) / 10,
      low: Math.floor(low),
      high: Math.ceil(high),
    }
  })
  return { hours: next, coverage }
}

const usualAt = ({ profile, ahead }: Baseline, hour: number): number =>
  profile[cellsOf(ahead)[hour % WEEK_HOURS] ?? 0] ?? 0

/** The number of whole hours that a forecast needs. @param begins index of the first occurrence */
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

/** For each day, the absolute surprises of its hours under the forecast from the days before it. */
function tryDays(hours: Hours, firstDay: number, today: number): readonly (readonly number[])[] {
  const tried: number[][] = []
  for (let day = Math.max(firstDay + LEAST_DAYS, today - TRIED_DAYS); day < today; day++) {
    const { baseline, level } = fitUntil(hours, firstDay, day)
    const surprises: number[] = []
    for (let i = day * DAY_HOURS; i < (day + 1) * DAY_HOURS; i++) {
      const expected = level * usualAt(baseline, hours.startHour + i)
      surprises.push(Math.abs(surprise(hours.counts[i] ?? 0, expected, baseline.dispersion)))
    }
    tried.push(surprises)
  }
  return tried
}

function widthFor(surprises: readonly number[], level: number): number {
  if (surprises.length < DAY_HOURS) return NORMAL_WIDTH
  const share = Math.min(1, (level * (surprises.length + 1)) / surprises.length)
  const values = Float64Array.from(surprises)
  return Math.max(LEAST_WIDTH, quantileOf(values, values.length, share))
}

interface Calibration {
  readonly width: number
  readonly coverage: number | null
}

/** Checks each day against the interval width from the days before it, and adapts the target of the next width. */
function calibrate(tried: readonly (readonly number[])[]): Calibration {
  let [level, covered, all] = [FORECAST_LEVEL, 0, 0]
  for (const [i, day] of tried.entries()) {
    if (i < LEAST_TRIED_DAYS) continue
    const width = widthFor(tried.slice(0, i).flat(), level)
    const inside = day.filter((each) => each <= width).length
    covered += inside
    all += day.length
    level += STEP * (FORECAST_LEVEL - inside / day.length)
    level = Math.min(MOST_SHARE, Math.max(FORECAST_LEVEL - STEP, level))
  }
  const coverage = all === 0 ? null : Math.round((covered / all) * 1000) / 1000
  return { width: widthFor(tried.flat(), level), coverage }
}
