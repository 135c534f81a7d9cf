import { measureCost } from '../insights/cost.js'
import { gradeForecast, gradeSeeds } from '../insights/quality.js'
import { gradeNab, readNab } from '../insights/nab.js'
import { add, falseAlarmsOf, NOTHING, precisionOf, recallOf } from '../insights/grade.js'
import { watchProcesses } from '../lib/footprint.js'
import type { BenchOptions } from '../lib/options.js'
import type { Metric, ScenarioResult } from '../lib/report.js'

const SERIES = 210
/** CPU seconds that a run may take, ClickHouse included. */
const MOST_S = 5
const LIMIT = { metric: 'limit: ClickHouse reads the same hours once', label: 'one bare read' }

/** The cost of an insight run, and its precision and recall on generated weeks. */
export async function runInsightsBench(
  options: BenchOptions,
  seed: number,
): Promise<ScenarioResult> {
  const metrics: Metric[] = []
  const note = (name: string, unit: string, value: number, better: Metric['better']): void => {
    const metric = { name, unit, samples: [value], better }
    metrics.push(unit === 'CPU s' && name !== LIMIT.metric ? { ...metric, limit: LIMIT } : metric)
  }
  const used = watchProcesses(null)
  const { runs, bareS, peakRssBytes } = await measureCost(seed)
  note(LIMIT.metric, 'CPU s', bareS, 'info')
  for (const { name, nodeS, engineS } of runs) {
    note(`${name}, service`, 'CPU s', nodeS, 'lower')
    note(`${name}, ClickHouse`, 'CPU s', engineS, 'lower')
  }
  note('peak RSS of ClickHouse', 'MiB', peakRssBytes / 1024 ** 2, 'info')
  note('anomalies of the first run', '', runs[0]?.anomalies ?? 0, 'info')
  for (const { name, sets } of gradeSeeds([seed], SERIES).slice(0, 3)) {
    const all = sets.reduce(add, NOTHING)
    note(`precision, ${name}`, '', precisionOf(all), 'higher')
    note(`recall, ${name}`, '', recallOf(all), 'higher')
    note(`false alarms a series and year, ${name}`, '', falseAlarmsOf(all), 'lower')
  }
  note('forecast, share of hours in 90 % intervals', '', gradeForecast(seed), 'info')
  metrics.push(...used())
  const nab = options.nab === null ? [] : gradeNab(readNab(options.nab)).slice(0, 3)
  for (const { name, sets } of nab) {
    const all = sets.reduce(add, NOTHING)
    note(`NAB: precision, ${name}`, '', precisionOf(all), 'higher')
    note(`NAB: recall, ${name}`, '', recallOf(all), 'higher')
  }
  const skipped =
    options.nab === null ? ['the real series of NAB: needs --nab FOLDER, a checkout of it'] : []
  const checks = runs.map(({ name, nodeS, engineS }) => ({
    name: `under ${MOST_S} CPU s`,
    ok: nodeS + engineS < MOST_S,
    detail: `${name} took ${(nodeS + engineS).toFixed(2)}`,
  }))
  const facts = { sources: 1000, templates: 10_000, days: 33, series: SERIES, seed }
  return { scenario: 'insights', options: facts, metrics, checks, skipped, curves: [] }
}
