import type { LabelledSeries } from './generate.js'

/** A span that a detector reports; hours are indexes. */
export interface Alarm {
  readonly from: number
  readonly to: number
  /** the hour at whose end it is reported */
  readonly noticedAt: number
}

export interface Grade {
  readonly name: string
  /** alarms that overlap a label, among all */
  readonly precision: number
  /** labels that overlap an alarm, among all */
  readonly recall: number
  /** from the beginning of a label to the end of the hour of its alarm, hours, median */
  readonly delayHours: number
  /** a series and year */
  readonly falseAlarms: number
}

export type Detector = (series: LabelledSeries) => readonly Alarm[]

/** An alarm an hour before or after a label is still of it. */
const SLACK = 1

export function gradeDetector(
  name: string,
  all: readonly LabelledSeries[],
  detect: Detector,
  hours: number,
): Grade {
  let [right, wrong, found, missed] = [0, 0, 0, 0]
  const delays: number[] = []
  for (const series of all) {
    const alarms = detect(series)
    const overlaps = (alarm: Alarm, label: { from: number; to: number }): boolean =>
      alarm.from < label.to + SLACK && alarm.to > label.from - SLACK
    for (const alarm of alarms) {
      if (series.labels.some((label) => overlaps(alarm, label))) right++
      else wrong++
    }
    for (const label of series.labels) {
      const hits = alarms.filter((alarm) => overlaps(alarm, label))
      if (hits.length === 0) missed++
      else {
        found++
        delays.push(
          Math.min(...hits.map(({ noticedAt }) => Math.max(0, noticedAt - label.from) + 1)),
        )
      }
    }
  }
  delays.sort((a, b) => a - b)
  return {
    name,
    precision: right + wrong === 0 ? 1 : right / (right + wrong),
    recall: found + missed === 0 ? 1 : found / (found + missed),
    delayHours: delays[Math.floor(delays.length / 2)] ?? 0,
    falseAlarms: (wrong / all.length / hours) * 24 * 365,
  }
}
