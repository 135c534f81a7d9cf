import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findAnomalies } from '../../src/insights/anomalies.js'
import { NOTHING, tally, type Detector, type Graded } from './grade.js'
import { simple, type Grade } from './quality.js'
import { HOUR_MS } from '../../src/model/time.js'

/** A series of the Numenta Anomaly Benchmark, as the sums of its hours. */
export interface NabSeries extends Graded {
  readonly name: string
  /** hours since 1970 of index 0, a midnight */
  readonly startHour: number
  /** first hour that is graded */
  readonly from: number
}

const DAY_HOURS = 24
/** the benchmark grades nothing in the first part of a series, which detectors learn from */
const PROBATION = 0.15
/** the engine needs some days of a series before it judges it */
const LEAST_DAYS = 10
/** folders of series that count something; the others are temperatures, loads and prices */
const COUNTED = /^(realTweets|realKnownCause\/nyc_taxi|realAWSCloudwatch\/elb_request)/

/**
 * Reads the series that are counts, with their windows, from a checkout of github.com/numenta/NAB.
 *
 * @throws Error when the folder is not one
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

/** @param csv lines of `2014-07-01 00:00:00,10844` after a head, in UTC as far as we know */
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
    // the last hour is not whole
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

/** Precision, recall and delay on them, beside the two simple detectors at their best; each series alone, too. */
export function gradeNab(all: readonly NabSeries[]): readonly Grade[] {
  const from = (series: NabSeries): number => series.from
  // windows that were over before the first hour that is graded are nobody's to find
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
