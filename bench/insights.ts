import { pathToFileURL } from 'node:url'
import { findAnomalies } from '../src/insights/anomalies.js'
import { forecastNext } from '../src/insights/forecast.js'
import { fixedThreshold, plainZScore } from './insights/baselines.js'
import { measureCost } from './insights/cost.js'
import { generate, type LabelledSeries } from './insights/generate.js'
import { gradeDetector, type Detector, type Grade } from './insights/grade.js'

const WEEK = 168
/** Weeks before the first label: what detectors learn from. */
const QUIET_WEEKS = 5
const WEEKS = 12
/** hours since 1970 of the first hour, a Monday */
const MONDAY = 4 * 24
/** the seed that thresholds were tuned on is 1 */
const SEED = 77

const ours: Detector = ({ counts }) =>
  findAnomalies({ counts, startHour: MONDAY }, { from: QUIET_WEEKS * WEEK, hours: counts.length })

/** The best that a simple detector can do: its own threshold chosen for the greatest F1, on the labels. */
function best(
  name: string,
  all: readonly LabelledSeries[],
  thresholds: readonly number[],
  make: (threshold: number) => Detector,
): Grade {
  const hours = (WEEKS - QUIET_WEEKS) * WEEK
  const f1 = ({ precision, recall }: Grade): number =>
    (2 * precision * recall) / Math.max(1e-9, precision + recall)
  const grades = thresholds.map((threshold) =>
    gradeDetector(`${name} ${threshold}`, all, make(threshold), hours),
  )
  return grades.reduce((top, grade) => (f1(grade) > f1(top) ? grade : top))
}

/** Precision, recall and delay on generated weeks, beside two simple detectors at their best. */
export function gradeAll(seed: number, series: number): readonly Grade[] {
  const all = generate({ seed, series, weeks: WEEKS, quietWeeks: QUIET_WEEKS })
  const hours = (WEEKS - QUIET_WEEKS) * WEEK
  const from = QUIET_WEEKS * WEEK
  const shapes = [...new Set(all.map(({ shape }) => shape))]
  return [
    gradeDetector('insights', all, ours, hours),
    best('plain z-score', all, [3, 4, 5, 6, 8, 10, 14, 20], plainZScore(from)),
    best('fixed threshold', all, [1.5, 2, 3, 4, 6, 8, 12], fixedThreshold(from)),
    ...shapes.map((shape) =>
      gradeDetector(
        `insights, ${shape}`,
        all.filter((each) => each.shape === shape),
        ours,
        hours,
      ),
    ),
  ]
}

/** Share of hours that the intervals of forecasts held, by the hour before the forecast's. */
export function gradeForecast(seed: number, series: number): number {
  let [held, all] = [0, 0]
  for (const { counts } of generate({ seed, series, weeks: 8, quietWeeks: 9 })) {
    for (let whole = 40 * 24 + 5; whole + 24 <= counts.length; whole += 29) {
      const known = { counts: counts.slice(0, whole), startHour: MONDAY }
      for (const [i, { low, high }] of forecastNext(known, whole).hours.entries()) {
        const count = counts[whole + i] ?? 0
        all++
        if (count >= low && count <= high) held++
      }
    }
  }
  return held / all
}

function table(grades: readonly Grade[]): string {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
  const rows = grades.map(
    ({ name, precision, recall, delayHours, falseAlarms }) =>
      `| ${name} | ${percent(precision)} | ${percent(recall)} | ${delayHours} h | ${falseAlarms.toFixed(2)} |`,
  )
  return [
    '| detector | precision | recall | median delay | false alarms a series and year |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}

async function main(): Promise<void> {
  const words = process.argv.slice(2)
  if (words.includes('--help')) {
    process.stdout.write('usage: insights.js [--cost] [SEED]   --cost also fills a ClickHouse\n')
    return
  }
  const seed = Number(words.find((word) => /^\d+$/.test(word)) ?? SEED)
  process.stdout.write(`seed ${seed}\n${table(gradeAll(seed, 700))}\n`)
  const coverage = gradeForecast(seed, 35)
  process.stdout.write(`forecast intervals of 90 % held ${(coverage * 100).toFixed(1)} %\n`)
  if (words.includes('--cost')) process.stdout.write(`${await measureCost(seed)}\n`)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main()
