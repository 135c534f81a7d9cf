import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'

export interface Metric {
  readonly name: string
  readonly unit: string
  /** One per repeat. */
  readonly samples: readonly number[]
  /** The direction of an improvement; `info` for neither. */
  readonly better: 'higher' | 'lower' | 'info'
  /** The figure of the same scenario that this one is compared with. */
  readonly limit?: Limit
}

export interface Limit {
  readonly metric: string
  /** The text after the ratio in a report. */
  readonly label: string
}

/** A correctness check and its result. */
export interface Check {
  readonly name: string
  readonly ok: boolean
  readonly detail: string
}

export interface ScenarioResult {
  readonly scenario: string
  readonly options: Readonly<Record<string, string | number | boolean>>
  readonly metrics: readonly Metric[]
  readonly checks: readonly Check[]
  /** The skipped measurements, each with the reason. */
  readonly skipped: readonly string[]
  /** Latency in ms at each percentile, for plots. */
  readonly curves: readonly Curve[]
}

export interface Curve {
  readonly name: string
  readonly points: readonly (readonly [percentile: number, ms: number])[]
}

export interface Report {
  readonly version: 1
  readonly startedAt: string
  readonly command: string
  readonly machine: string
  /** The commit of the measured checkout, with a + for uncommitted changes; absent outside of a checkout. */
  readonly commit?: string
  readonly node: string
  readonly scenarios: readonly ScenarioResult[]
}

export const median = (samples: readonly number[]): number => {
  const sorted = [...samples].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const high = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? high : ((sorted[middle - 1] ?? Number.NaN) + high) / 2
}

/** The median over the runs of a figure divided by the limit of the same run; null without a limit. */
export function ratioToLimit(metric: Metric, all: readonly Metric[]): number | null {
  const limit = all.find(({ name }) => name === metric.limit?.metric)
  if (limit === undefined) return null
  const paired = metric.samples.length === limit.samples.length
  const ratio = paired
    ? median(metric.samples.map((value, i) => value / (limit.samples[i] ?? Number.NaN)))
    : median(metric.samples) / median(limit.samples)
  return Number.isFinite(ratio) ? ratio : null
}

/** The ratio with the name of its limit, such as `3.1 x bare JSON.parse`; empty without a limit. */
export function ratioText(metric: Metric, all: readonly Metric[]): string {
  const ratio = ratioToLimit(metric, all)
  return ratio === null ? '' : `${formatNumber(ratio)} x ${metric.limit?.label ?? ''}`
}

export const machine = (): string => {
  const gib = (totalmem() / 1024 ** 3).toFixed(0)
  const load = (loadavg()[0] ?? 0).toFixed(1)
  return `${cpus()[0]?.model ?? 'unknown CPU'}, ${availableParallelism()} cores, ${gib} GiB, load ${load} at the start`
}

/** Joins several runs of a scenario: the samples of all runs, and every check. */
export function joinRuns(runs: readonly ScenarioResult[]): ScenarioResult {
  const [first] = runs
  if (first === undefined) throw new Error('bug: no run to join')
  const names = [...new Set(runs.flatMap((run) => run.metrics.map(({ name }) => name)))]
  const metrics = names.map((name) => {
    const all = runs.flatMap((run) => run.metrics.filter((metric) => metric.name === name))
    const [one] = all
    if (one === undefined) throw new Error('bug: a metric without a sample')
    return { ...one, samples: all.flatMap(({ samples }) => samples) }
  })
  return {
    ...first,
    metrics,
    checks: runs.flatMap(({ checks }) => checks),
    skipped: [...new Set(runs.flatMap(({ skipped }) => skipped))],
    curves: runs.at(-1)?.curves ?? [],
  }
}

/** A table for a terminal. */
export function renderText(report: Report): string {
  const lines = [report.machine, `${softwareOf(report)}, ${report.command}`, '']
  for (const result of report.scenarios) lines.push(...renderScenario(result), '')
  return lines.join('\n')
}

export const softwareOf = ({ node, commit }: Report): string =>
  commit === undefined ? `Node ${node}` : `Node ${node}, commit ${commit}`

function renderScenario(result: ScenarioResult): string[] {
  const options = Object.entries(result.options).map(([name, value]) => `${name} ${value}`)
  const rows = result.metrics.map((metric) => [
    metric.name,
    formatNumber(median(metric.samples)),
    metric.unit,
    rangeText(metric, '..'),
    ratioText(metric, result.metrics),
  ])
  const width = (column: number): number =>
    Math.max(0, ...rows.map((row) => row[column]?.length ?? 0))
  const [a, b, c, d] = [width(0), width(1), width(2), width(3)]
  return [
    `== ${result.scenario} (${options.join(', ')})`,
    ...rows.map(([name = '', value = '', unit = '', range = '', ratio = '']) =>
      `  ${name.padEnd(a)}  ${value.padStart(b)} ${unit.padEnd(c)}  ${range.padEnd(d)}  ${ratio}`.trimEnd(),
    ),
    ...renderChecks(result.checks),
    ...result.skipped.map((reason) => `  skipped: ${reason}`),
  ]
}

/** The extremes of several runs; empty for a single run. */
export const rangeText = ({ samples }: Metric, between: string): string =>
  samples.length < 2
    ? ''
    : `${formatNumber(Math.min(...samples))} ${between} ${formatNumber(Math.max(...samples))}`

/** Passed checks by name, failed ones with their figures. */
function renderChecks(checks: readonly Check[]): string[] {
  const right = checks.filter(({ ok }) => ok)
  const wrong = checks.filter(({ ok }) => !ok)
  const names = [...new Set(right.map(({ name }) => name))]
  return [
    ...(names.length === 0 ? [] : [`  ${right.length} checks hold: ${names.join(', ')}`]),
    ...wrong.map(({ name, detail }) => `  WRONG ${name}: ${detail}`),
  ]
}

/** At least three significant digits, with separated thousands. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '-'
  const magnitude = Math.abs(value)
  const digits = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3
  return value.toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
}
