import { firstCellOf, fitBaseline, type Baseline, type Fitted, type Hours } from './baseline.js'
import { DAY_HOURS } from './series.js'

/** What the days before the ones that are looked at have taught of a series. */
export interface Training {
  /** index of its first hour */
  readonly begins: number
  /** first index that is looked at, and the day of the last one */
  readonly from: number
  readonly lastDay: number
  /** from the day of `from` on */
  readonly baselines: readonly (Baseline | null)[]
  readonly levels: readonly number[]
}

/** A series that is looked at again and again: what was learned serves while its past days stay as they are. */
export interface SeriesMemo {
  training: Training | null
}

const TRAINING_DAYS = 21
const MATURE_DAYS = 14

export function train(
  hours: Hours,
  { begins, from, lastDay }: Pick<Training, 'begins' | 'from' | 'lastDay'>,
): Training {
  const firstDay = Math.ceil(begins / DAY_HOURS)
  const baselines: (Baseline | null)[] = []
  const levels: number[] = []
  let fitted = -1
  let known: Fitted | null = null
  let trainedFrom = 0
  for (let day = Math.floor(from / DAY_HOURS); day <= lastDay; day++) {
    const until = trainingEnd(hours, firstDay, day)
    if (until !== fitted) {
      fitted = until
      trainedFrom = Math.max(firstDay, until - TRAINING_DAYS)
      const [first, last] = [trainedFrom * DAY_HOURS, until * DAY_HOURS]
      known = fitBaseline(hours, first, last, hours.counts.length)
    }
    baselines.push(known?.baseline ?? null)
    levels.push(known?.levels[day - trainedFrom] ?? 1)
  }
  // copies have no room to grow: thousands are kept
  return { begins, from, lastDay, baselines: baselines.slice(), levels: levels.slice() }
}

let meansPool = new Float64Array(0)
let excessPool = new Float64Array(0)

/** Expected counts from the first hour that is looked at; reused from series to series. */
export function meansOf(
  { counts, startHour }: Hours,
  { from, baselines, levels }: Training,
): Float64Array {
  if (meansPool.length < counts.length) meansPool = new Float64Array(counts.length)
  for (const [day, baseline] of baselines.entries()) {
    const [midnight, level] = [from + day * DAY_HOURS, levels[day] ?? 1]
    const cell = firstCellOf(startHour + midnight)
    const until = Math.min(midnight + DAY_HOURS, counts.length)
    for (let i = midnight; i < until; i++)
      meansPool[i] = level * (baseline?.profile[cell + i - midnight] ?? 0)
  }
  return meansPool
}

/** What was more than expected up to each hour, so that the excess of a span is one subtraction. */
export function excessOf(counts: Float64Array, means: Float64Array, from: number): Float64Array {
  if (excessPool.length <= counts.length) excessPool = new Float64Array(counts.length + 1)
  let sum = 0
  for (let i = from; i < counts.length; i++) {
    excessPool[i] = sum
    sum += (counts[i] ?? 0) - (means[i] ?? 0)
  }
  excessPool[counts.length] = sum
  return excessPool
}

/** A profile is learned anew every Monday, in the first two weeks of a series every day. */
function trainingEnd({ startHour }: Hours, firstDay: number, day: number): number {
  const weekday = (startHour / DAY_HOURS + day + 3) % 7
  const monday = day - weekday
  return monday - firstDay >= MATURE_DAYS ? monday : day
}
