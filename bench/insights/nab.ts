import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findAnomalies } from '../../src/insights/anomalies.js'
import { NOTHING, tally, type Detector, type Graded } from './grade.js'
import { simple, type Grade } from './quality.js'
import { HOUR_MS } from '../../src/model/time.js'

/** A series of the Numenta Anomaly Benchmark, as the sums of its hours. */
export interface NabSeries extends Graded {
  readonly name: string
  /** Hours since 1970 of index 0, a midnight. */
  readonly startHour: number
  /** The first graded hour. */
  readonly from: number
}

const DAY_HOURS = 24
/** The share of a series at its beginning that the benchmark does not grade, because detectors learn from it. */
const PROBATION = 0.15
/** The days of a series that the engine learns from before it judges. */
const LEAST_DAYS = 10
/** The folders with counts; the others contain temperatures, loads and prices. */
const COUNTED = /^(realTweets|realKnownCause\/nyc_taxi|realAWSCloudwatch\/elb_request)/

/**
 * Reads the series of counts, with their labelled windows, from a checkout of github.com/numenta/NAB.
 *
 * @throws Error when the folder is no such checkout
 */
export function readNab(folder: string): readonly NabSeries[] {
  const labels = join(folder, 'labels', 'combined_windows.json')
  if (!existsSync(labels)) throw new Error(`${folder} has no labels/combined_windows.json`)
  const windows = JSON.parse(readFileSync(labels, 'utf8')) as Readonly<
    Record<string, readonly (readonly [from: string, to: string])[]>
  > // the benchmark's own file
  const data = join(folder, 'data')
  return readdirSync(data, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.csv') && COUNTED.test(name))
    .toSorted()
    .map((name) => toSeries(name, readFileSync(join(data, name), 'utf8'), windows[name] ?? []))
}

/** @param csv lines of `2014-07-01 00:00:00,10844` after a head; the times are assumed to be UTC */
export function toSeries(
  name: string,
  csv: string,
  windows: readonly (readonly [from: string, to: string])[],
): NabSeries {
  const rows = csv.trim().split(/\r?\n/).slice(1)
  const times = rows.map((row) => hourOf(row.slice(0, row.indexOf(','))))
  const first = times[0] ?? 0
  const startHour = first - (first % DAY_HOURS)
  const counts = new Float64Array((times.at(-1) ?? first) - startHour)
  for (const [i, row] of rows.entries()) {
    const at = (times[i] ?? 0) - startHour
    // The last hour is incomplete.
    if (at < counts.length) counts[at] = (counts[at] ?? 0) + Number(row.split(',')[1])
  }
  const probation = Math.ceil(first - startHour + PROBATION * counts.length)
  return {
    name: name.replace(/\.csv$/, ''),
    counts,
    startHour,
    from: Math.max(probation, LEAST_DAYS * DAY_HOURS),
    labels: windows.map(([from, to]) => ({
      from: hourOf(from) - startHour,
      to: hourOf(to) + 1 - startHour,
    })),
  }
}

const hourOf = (time: string): number =>
  Math.floor(Date.parse(`${time.slice(0, 19).replace(' ', 'T')}Z`) / HOUR_MS)

const ours: Detector<NabSeries> = ({ counts, startHour, from }) =>
  findAnomalies({ counts, startHour }, { from, hours: counts.length })

/** Precision, recall and delay on NAB, compared with two tuned simple detectors; for all series and for each one. */
export function gradeNab(all: readonly NabSeries[]): readonly Grade[] {
  const from = (series: NabSeries): number => series.from
  // Windows that end before the first graded hour do not count.
  const graded = all.map((series) => ({
    ...series,
    labels: series.labels.filter(({ to }) => to > series.from),
  }))
  return [
    { name: 'insights', sets: [tally(graded, ours, from)] },
    ...Object.entries(simple(graded, from)).map(([name, set]) => ({ name, sets: [set] })),
    ...graded.map((series) => ({
      name: `insights, ${series.name}`,
      sets: [series.labels.length === 0 ? NOTHING : tally([series], ours, from)],
    })),
  ]
}
