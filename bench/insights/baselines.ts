import type { Alarm, Detector, Graded } from './grade.js'

const WEEK = 168

/** The first judged hour of a series. */
type From<S> = (series: S) => number

/** Detects counts above a multiple of the mean of the last four weeks, or below the mean divided by it. */
export const fixedThreshold =
  <S extends Graded>(from: From<S>) =>
  (factor: number): Detector<S> =>
  (series) =>
    runs(series.counts, from(series), (hour) => {
      const { mean } = lastWeeks(series.counts, hour)
      const count = series.counts[hour] ?? 0
      if (count > mean * factor) return 1
      return count < mean / (factor * 4) ? -1 : 0
    })

/** Detects counts beyond a number of standard deviations from the mean of the last four weeks. */
export const plainZScore =
  <S extends Graded>(from: From<S>) =>
  (deviations: number): Detector<S> =>
  (series) =>
    runs(series.counts, from(series), (hour) => {
      const { mean, deviation } = lastWeeks(series.counts, hour)
      const z = ((series.counts[hour] ?? 0) - mean) / Math.max(deviation, 0.5)
      return Math.abs(z) < deviations ? 0 : Math.sign(z)
    })

interface Moments {
  readonly mean: number
  readonly deviation: number
}

/** The statistics of the four weeks before the day of an hour. */
function lastWeeks(counts: Float64Array, hour: number): Moments {
  const to = hour - (hour % 24)
  const from = Math.max(0, to - 4 * WEEK)
  let [sum, squares] = [0, 0]
  for (let i = from; i < to; i++) {
    const count = counts[i] ?? 0
    sum += count
    squares += count * count
  }
  const mean = sum / (to - from)
  return { mean, deviation: Math.sqrt(Math.max(0, squares / (to - from) - mean * mean)) }
}

/** Joins hours of one direction with gaps of at most three hours, as the engine does. */
function runs(
  counts: Float64Array,
  from: number,
  signAt: (hour: number) => number,
): readonly Alarm[] {
  const found: { kind: Alarm['kind']; from: number; to: number; noticedAt: number }[] = []
  let last = { sign: 0, to: -10 }
  for (let hour = from; hour < counts.length; hour++) {
    const sign = signAt(hour)
    if (sign === 0) continue
    const run = found.at(-1)
    const kind = sign > 0 ? 'spike' : 'drop'
    if (run !== undefined && sign === last.sign && hour <= last.to + 3) run.to = hour + 1
    else found.push({ kind, from: hour, to: hour + 1, noticedAt: hour })
    last = { sign, to: hour + 1 }
  }
  return found
}
