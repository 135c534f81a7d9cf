import { findAnomalies } from '../../src/insights/anomalies.js'
import { forecastNext } from '../../src/insights/forecast.js'
import { fixedThreshold, plainZScore } from './baselines.js'
import { generate, SCOPES, type Label, type LabelledSeries } from './generate.js'
import {
  add,
  delayOf,
  f1Of,
  falseAlarmsOf,
  NOTHING,
  precisionOf,
  recallOf,
  tally,
  type Alarm,
  type Detector,
  type Graded,
  type Interest,
  type Tally,
} from './grade.js'

/** A line of the table: the findings of a detector in each set, and their grades. */
export interface Grade {
  readonly name: string
  readonly sets: readonly Tally[]
}

const WEEK = 168
/** The weeks before the first label, from which detectors learn. */
const QUIET_WEEKS = 5
const WEEKS = 12
/** Hours since 1970 of the first hour, a Monday. */
const MONDAY = 4 * 24
const FROM = QUIET_WEEKS * WEEK
const FORECAST_SERIES = 35

const from = (): number => FROM
const ours: Detector<LabelledSeries> = ({ counts }) =>
  findAnomalies({ counts, startHour: MONDAY }, { from: FROM, hours: counts.length })

const Z_SCORES = [3, 4, 5, 6, 8, 10, 14, 20] as const
const FACTORS = [1.5, 2, 3, 4, 6, 8, 12] as const

/** The upper bound of a simple detector: the threshold with the greatest F1 is chosen with the labels. */
function best<S extends Graded>(
  all: readonly S[],
  first: (series: S) => number,
  detectors: readonly Detector<S>[],
): Tally {
  return detectors
    .map((detect) => tally(all, detect, first))
    .reduce((top, each) => (f1Of(each) > f1Of(top) ? each : top))
}

/** The two simple detectors, each with its best threshold. */
export const simple = <S extends Graded>(
  all: readonly S[],
  first: (series: S) => number,
): Readonly<Record<'plain z-score' | 'fixed threshold', Tally>> => ({
  'plain z-score': best(all, first, Z_SCORES.map(plainZScore(first))),
  'fixed threshold': best(all, first, FACTORS.map(fixedThreshold(first))),
})

const of = (
  kinds: readonly Alarm['kind'][],
  labels: readonly Label['kind'][],
): Interest<Label> => ({
  alarm: ({ kind }) => kinds.includes(kind),
  label: ({ kind }) => labels.includes(kind),
})
const KINDS = {
  spikes: of(['spike'], ['burst', 'surge']),
  drops: of(['drop'], ['drop']),
  silence: of(['silence'], ['outage']),
} as const

/** Precision, recall and delay on generated weeks, compared with two simple detectors with their best thresholds. */
export function gradeSeeds(seeds: readonly number[], series: number): readonly Grade[] {
  const lines = new Map<string, Tally[]>()
  const note = (name: string, set: Tally): void => {
    lines.set(name, [...(lines.get(name) ?? []), set])
  }
  for (const seed of seeds) {
    const all = generate({ seed, series, weeks: WEEKS, quietWeeks: QUIET_WEEKS })
    const found = new Map(all.map((each) => [each, ours(each)]))
    const insights: Detector<LabelledSeries> = (each) => found.get(each) ?? []
    note('insights', tally(all, insights, from))
    for (const [name, set] of Object.entries(simple(all, from))) note(name, set)
    for (const [name, interest] of Object.entries(KINDS))
      note(`insights, ${name}`, tally(all, insights, from, interest))
    for (const scope of SCOPES)
      note(`insights, by ${scope}`, tally(pick(all, { scope }), insights, from))
    for (const shape of new Set(all.map((each) => each.shape)))
      note(`insights, ${shape}`, tally(pick(all, { shape }), insights, from))
  }
  return Array.from(lines, ([name, sets]) => ({ name, sets }))
}

const pick = (
  all: readonly LabelledSeries[],
  { shape, scope }: Partial<Pick<LabelledSeries, 'shape' | 'scope'>>,
): readonly LabelledSeries[] =>
  all.filter((each) => each.shape === (shape ?? each.shape) && each.scope === (scope ?? each.scope))

/** The share of hours within the 90 % intervals of forecasts, which are made every 29 h. */
export function gradeForecast(seed: number, series = FORECAST_SERIES): number {
  let [inside, all] = [0, 0]
  for (const { counts } of generate({ seed, series, weeks: 8, quietWeeks: 9 })) {
    for (let whole = 40 * 24 + 5; whole + 24 <= counts.length; whole += 29) {
      const known = { counts: counts.slice(0, whole), startHour: MONDAY }
      for (const [i, { low, high }] of forecastNext(known, whole).hours.entries()) {
        const count = counts[whole + i] ?? 0
        all++
        if (count >= low && count <= high) inside++
      }
    }
  }
  return inside / all
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`

/** The figure of all sets together, and in brackets that of the worst set when there are several. */
export function renderGrades(grades: readonly Grade[]): string {
  const rows = grades.map(({ name, sets }) => {
    const all = sets.reduce(add, NOTHING)
    const share = (of: (set: Tally) => number): string => {
      const worst = sets.length > 1 ? ` (${percent(Math.min(...sets.map(of)))})` : ''
      return `${percent(of(all))}${worst}`
    }
    const alarms = falseAlarmsOf(all).toFixed(2)
    return `| ${name} | ${share(precisionOf)} | ${share(recallOf)} | ${delayOf(all)} h | ${alarms} |`
  })
  return [
    '| detector | precision | recall | median delay | false alarms a series and year |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}
