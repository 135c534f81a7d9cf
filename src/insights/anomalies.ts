import type { AnomalyKind } from '../model/insights.js'
import {
  belongs,
  deviates,
  judgeOf,
  noticeAt,
  scoreOfWhole,
  seriesOf,
  SILENT_SHARE,
  standsAlone,
  sumOf,
  type Notice,
  type Series,
} from './evidence.js'
import { DAY_HOURS, isWeekend, LASTING_DAYS, LEAD_DAYS, type Hours } from './frame.js'
import { expectedRange } from './negative-binomial.js'
import { fitRolling } from './rolling-baseline.js'

/** An anomaly of one series; hours are indexes of its counts. */
export interface Finding {
  readonly kind: AnomalyKind
  readonly from: number
  /** The hour after its last one. */
  readonly to: number
  /** The hour at whose end it was detected. */
  readonly noticedAt: number
  /** Whether it lasts until the end of the whole hours. */
  readonly isOngoing: boolean
  readonly observed: number
  readonly expected: number
  /** The 99 % interval of what was expected. */
  readonly range: readonly [least: number, most: number]
  /** Standard deviations of a normal distribution that are as unlikely, at most 50. */
  readonly score: number
  /** Its state at each of its hours, the last one included. */
  readonly course: readonly Progress[]
}

/** The state of an anomaly at an earlier hour. */
export type Progress = Pick<Finding, 'to' | 'observed' | 'expected' | 'score'>

export interface DetectOptions {
  /** Index of the first hour whose anomalies are reported, a midnight. */
  readonly from: number
  /** Whole hours; a count at this index is of the running hour. */
  readonly hours: number
  /** Counts that show when the data begin, by default those of the series; earlier zeros are missing data. */
  readonly presence?: Float64Array
  /** The clock of the whole that the series is part of (see `Found`); by default its own. */
  readonly shifts?: readonly number[]
}

export interface Found {
  /** In the order in which they begin. */
  readonly findings: readonly Finding[]
  /** Hours by which the clock of a day is ahead of that of its baseline, for all days that were analysed. */
  readonly shifts: readonly number[]
}

/** More hours than this that do not deviate end an anomaly. */
export const GAP_HOURS = 3
const MAX_SCORE = 50
/** Half the width of a 99 % interval, in standard deviations. */
export const WIDTH_99 = 2.576
/** The least difference between the sums of two days in a row that an anomaly causes. */
const LEAST_DIFFERENCE = 10

/**
 * Finds the spans of a series that its past does not explain.
 *
 * For each hour the sums of the last 1, 2, 3, 6, 12 and 24 hours are compared with their seasonal
 * baseline; the shortest span beyond the threshold is a notice (evidence.ts). An anomaly begins
 * with the deviating hours of a notice. It continues over further notices and deviating hours until
 * four hours in a row do not deviate, or to the midnight after five whole days. After five days no
 * anomaly begins before a gap, because a lasting level is the new normal.
 *
 * A finding is a function of the counts up to its end: notices depend on the four weeks up to their
 * hour, and anomalies that began before the analysed days have ended when the reported days begin.
 */
export const findAnomalies = (hours: Hours, options: DetectOptions): readonly Finding[] =>
  findWithEarlier(hours, options).findings.filter(({ to }) => to > options.from)

/** The anomalies that `findAnomalies` returns, together with earlier ones. */
export function findWithEarlier(hours: Hours, options: DetectOptions): Found {
  if (options.from >= hours.counts.length || !mayHaveAnomalies(hours.counts))
    return { findings: [], shifts: [] }
  const from = Math.max(0, options.from - LEAD_DAYS * DAY_HOURS)
  // A day more than the lead, for the spans that reach back from its first hours.
  const judged = Math.max(0, from - DAY_HOURS)
  const rolling = fitRolling(hours, judged, { presence: hours.counts, ...options })
  const series = seriesOf(hours, rolling, options.hours)
  const found = [true, false].flatMap((isUp) => runsOf(series, from, isUp))
  return { findings: found.toSorted((a, b) => a.from - b.from), shifts: rolling.shifts }
}

/**
 * The first hour of a series that can be judged: a day of its kind, working day or weekend, is known by then.
 *
 * @param begins index of its first occurrence
 * @param startHour hours since 1970 of index 0
 * @param isWanted which kinds
 */
export function judgedFrom(
  begins: number,
  startHour: number,
  isWanted: (isOfWeekend: boolean) => boolean = () => true,
): number {
  const known = new Set<boolean>()
  for (let hour = Math.ceil(begins / DAY_HOURS) * DAY_HOURS; ; hour += DAY_HOURS) {
    const kind = isWeekend(startHour + hour)
    if (known.has(kind) && isWanted(kind)) return hour
    known.add(kind)
  }
}

/** A series without `LEAST_DIFFERENCE` occurrences in any day has none. */
function mayHaveAnomalies(counts: Float64Array): boolean {
  let sum = 0
  for (let i = 0; i < counts.length; i++) {
    sum += (counts[i] ?? 0) - (counts[i - DAY_HOURS] ?? 0)
    if (sum >= LEAST_DIFFERENCE) return true
  }
  return false
}

interface Run {
  readonly isUp: boolean
  readonly from: number
  readonly noticedAt: number
  /** Its earlier ends, each with the greatest score of its notices up to then. */
  readonly steps: Step[]
}

interface Step {
  readonly to: number
  readonly score: number
}

function runsOf(series: Series, from: number, isUp: boolean): readonly Finding[] {
  const runs = new Runs(series, isUp)
  for (let i = from; i < series.hours.counts.length; i++) runs.step(i)
  return runs.end()
}

/**
 * Goes through the hours with one of three states.
 *
 * lasting ─gap─▶ quiet ─notice─▶ open ─gap─▶ quiet;  open ─five days─▶ lasting
 *
 * The first state is `lasting`, so that no anomaly seems to begin with the first analysed hour.
 */
class Runs {
  readonly #series: Series
  readonly #isUp: boolean
  readonly #found: Finding[] = []
  #run: Run | null = null
  #isLasting = true
  /** The number of consecutive hours without a deviation. */
  #quiet = 0
  /** Whether the last run of deviating hours had a notice; its end, and the end of the run before. */
  #isNoticed = true
  #activeTo = 0
  #lastTo = 0

  constructor(series: Series, isUp: boolean) {
    this.#series = series
    this.#isUp = isUp
  }

  step(i: number): void {
    const notice = noticeAt(this.#series, i, this.#isUp)
    const goesOn = notice !== null || belongs(this.#series, i, this.#isUp)
    this.#quiet = goesOn ? 0 : this.#quiet + 1
    if (this.#run !== null && (this.#quiet > GAP_HOURS || isOver(this.#run, i))) this.#close()
    if (this.#quiet > GAP_HOURS) this.#gap()
    if (goesOn) this.#goOn(i, notice)
  }

  end(): readonly Finding[] {
    if (this.#run !== null) this.#close()
    return this.#found
  }

  #close(): void {
    if (this.#run !== null) this.#found.push(toFinding(this.#series, this.#run))
    this.#run = null
    this.#isLasting = true
  }

  #gap(): void {
    this.#isLasting = false
    if (this.#isNoticed) this.#lastTo = this.#activeTo
    this.#isNoticed = false
  }

  #goOn(i: number, notice: Notice | null): void {
    this.#isNoticed ||= notice !== null
    this.#activeTo = i + 1
    const [run, score] = [this.#run, notice?.score ?? 0]
    if (run !== null) {
      // An hour that does not deviate belongs to the anomaly only between deviating ones.
      if (deviates(this.#series, i, this.#isUp))
        run.steps.push({ to: i + 1, score: Math.max(run.steps.at(-1)?.score ?? 0, score) })
    } else if (notice !== null && !this.#isLasting && this.#isOfItsOwn(i, notice))
      this.#run = opened(this.#series, i, { notice, isUp: this.#isUp, lastTo: this.#lastTo })
  }

  /** A notice that overlaps the anomaly before must still be a notice without the hours of that anomaly. */
  #isOfItsOwn(i: number, { span }: Notice): boolean {
    const from = Math.max(this.#lastTo, i + 1 - span)
    return from === i + 1 - span || standsAlone(this.#series, from, i, this.#isUp)
  }
}

/** Whether an hour is the midnight after five whole days of the anomaly. */
const isOver = ({ from }: Run, i: number): boolean =>
  i >= (Math.ceil(from / DAY_HOURS) + LASTING_DAYS) * DAY_HOURS

interface Opening {
  readonly notice: Notice
  readonly isUp: boolean
  /** End of the anomaly before. */
  readonly lastTo: number
}

/** An anomaly that begins with the first deviating hour of the notice's span. */
function opened(series: Series, i: number, { notice, isUp, lastTo }: Opening): Run {
  let from = Math.max(lastTo, i + 1 - notice.span)
  while (from < i && !deviates(series, from, isUp)) from++
  return { isUp, from, noticedAt: i, steps: [{ to: i + 1, score: notice.score }] }
}

function toFinding(series: Series, { isUp, from, noticedAt, steps }: Run): Finding {
  const course = steps.map((step) => progressOf(series, { isUp, from }, step))
  const last = course.at(-1)
  if (last === undefined) throw new Error('bug: an anomaly without an hour')
  const { to, observed, expected } = last
  const judge = judgeOf(series, from, to, sumOf(series, from, to))
  const clumping = judge?.baseline.clumping ?? 1
  const [least, most] = expectedRange(expected / clumping, judge?.spread ?? 1, WIDTH_99)
  const isSilent = observed <= SILENT_SHARE * expected
  return {
    ...last,
    kind: isUp ? 'spike' : isSilent ? 'silence' : 'drop',
    from,
    noticedAt,
    isOngoing: to >= series.whole,
    range: [Math.floor(least * clumping), Math.ceil(most * clumping)],
    course,
  }
}

function progressOf(
  series: Series,
  { isUp, from }: Pick<Run, 'isUp' | 'from'>,
  { to, score }: Step,
): Progress {
  const sum = sumOf(series, from, to)
  const judge = judgeOf(series, from, to, sum)
  const whole = judge === null ? 0 : scoreOfWhole(series, { from, to, isUp }, { sum, judge })
  return {
    to,
    observed: sum.observed,
    expected: sum.expected,
    score: Math.round(Math.min(MAX_SCORE, Math.max(score, whole)) * 10) / 10,
  }
}
