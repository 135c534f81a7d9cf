import type { AnomalyKind } from '../../src/model/insights.js'
import type { Label } from './generate.js'

/** A reported span; hours are indexes. */
export interface Alarm {
  readonly kind: AnomalyKind
  readonly from: number
  readonly to: number
  /** The hour at whose end it is reported. */
  readonly noticedAt: number
}

/** Tallies of a detector, which can be summed over sets. */
export interface Tally {
  /** Alarms that overlap a label, and all others. */
  readonly right: number
  readonly wrong: number
  /** Hours from the beginning of each detected label to the report of its first alarm. */
  readonly delays: readonly number[]
  readonly missed: number
  readonly seriesHours: number
}

export interface Graded {
  readonly counts: Float64Array
  readonly labels: readonly Pick<Label, 'from' | 'to'>[]
}

export type Detector<S extends Graded> = (series: S) => readonly Alarm[]

/** Selects labels and alarms to grade; an alarm is right when it overlaps any label, selected or not. */
export interface Interest<L> {
  readonly label: (label: L) => boolean
  readonly alarm: (alarm: Alarm) => boolean
}

export const NOTHING: Tally = { right: 0, wrong: 0, delays: [], missed: 0, seriesHours: 0 }

export const add = (a: Tally, b: Tally): Tally => ({
  right: a.right + b.right,
  wrong: a.wrong + b.wrong,
  delays: [...a.delays, ...b.delays],
  missed: a.missed + b.missed,
  seriesHours: a.seriesHours + b.seriesHours,
})

export const precisionOf = ({ right, wrong }: Tally): number =>
  right + wrong === 0 ? 1 : right / (right + wrong)

export const recallOf = ({ delays, missed }: Tally): number =>
  delays.length + missed === 0 ? 1 : delays.length / (delays.length + missed)

export const f1Of = (tally: Tally): number => {
  const [precision, recall] = [precisionOf(tally), recallOf(tally)]
  return (2 * precision * recall) / Math.max(1e-9, precision + recall)
}

export const delayOf = ({ delays }: Tally): number =>
  delays.toSorted((a, b) => a - b)[Math.floor(delays.length / 2)] ?? 0

/** False alarms per series and year. */
export const falseAlarmsOf = ({ wrong, seriesHours }: Tally): number =>
  (wrong / Math.max(1, seriesHours)) * 24 * 365

/** An alarm within one hour of a label counts as overlapping. */
const SLACK = 1

/** @param from the first judged index */
export function tally<S extends Graded>(
  all: readonly S[],
  detect: Detector<S>,
  from: (series: S) => number,
  { label: isMeant, alarm: isOfInterest }: Interest<S['labels'][number]> = EVERYTHING,
): Tally {
  let [right, wrong, missed, seriesHours] = [0, 0, 0, 0]
  const delays: number[] = []
  for (const series of all) {
    const alarms = detect(series)
    seriesHours += series.counts.length - from(series)
    for (const alarm of alarms.filter(isOfInterest)) {
      if (series.labels.some((label) => overlaps(alarm, label))) right++
      else wrong++
    }
    for (const label of series.labels.filter(isMeant)) {
      const hits = alarms.filter((alarm) => overlaps(alarm, label))
      if (hits.length === 0) missed++
      else delays.push(Math.min(...hits.map((hit) => Math.max(0, hit.noticedAt - label.from) + 1)))
    }
  }
  return { right, wrong, delays, missed, seriesHours }
}

const EVERYTHING: Interest<unknown> = { label: () => true, alarm: () => true }

const overlaps = (alarm: Alarm, label: Pick<Label, 'from' | 'to'>): boolean =>
  alarm.from < label.to + SLACK && alarm.to > label.from - SLACK
