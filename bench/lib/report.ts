import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'

/** One measured figure. */
export interface Metric {
  readonly name: string
  readonly unit: string
  /** one per repeat */
  readonly samples: readonly number[]
  /** which direction is an improvement; `info`: neither */
  readonly better: 'higher' | 'lower' | 'info'
}

/** Something that must be so, and whether it was. */
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
  /** what was left out, and why */
  readonly skipped: readonly string[]
  /** for plots: latency in ms at each percentile */
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
  readonly node: string
  readonly scenarios: readonly ScenarioResult[]
}

export const median = (samples: readonly number[]): number => {
  const sorted = [...samples].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const high = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? high : ((sorted[middle - 1] ?? Number.NaN) + high) / 2
}

export const machine = (): string => {
  const gib = (totalmem() / 1024 ** 3).toFixed(0)
  const load = (loadavg()[0] ?? 0).toFixed(1)
  return `${cpus()[0]?.model ?? 'unknown CPU'}, ${availableParallelism()} cores, ${gib} GiB, load ${load} at the start`
}

/** The same scenario, run several times: samples side by side, every check kept. */
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
  const lines = [report.machine, `Node ${report.node}, ${report.command}`, '']
  for (const result of report.scenarios) lines.push(...renderScenario(result), '')
  return lines.join('\n')
}

function renderScenario(result: ScenarioResult): string[] {
  const options = Object.entries(result.options).map(([name, value]) => `${name} ${value}`)
  const rows = result.metrics.map(({ name, unit, samples }) => [
    name,
    formatNumber(median(samples)),
    unit,
    samples.length < 2
      ? ''
      : `${formatNumber(Math.min(...samples))} .. ${formatNumber(Math.max(...samples))}`,
  ])
  const width = (column: number): number =>
    Math.max(0, ...rows.map((row) => row[column]?.length ?? 0))
  const [a, b, c] = [width(0), width(1), width(2)]
  return [
    `== ${result.scenario} (${options.join(', ')})`,
    ...rows.map(([name = '', value = '', unit = '', range = '']) =>
      `  ${name.padEnd(a)}  ${value.padStart(b)} ${unit.padEnd(c)}  ${range}`.trimEnd(),
    ),
    ...renderChecks(result.checks),
    ...result.skipped.map((reason) => `  skipped: ${reason}`),
  ]
}

/** What is right by name only, what is wrong with its figures. */
function renderChecks(checks: readonly Check[]): string[] {
  const right = checks.filter(({ ok }) => ok)
  const wrong = checks.filter(({ ok }) => !ok)
  const names = [...new Set(right.map(({ name }) => name))]
  return [
    ...(names.length === 0 ? [] : [`  ${right.length} checks hold: ${names.join(', ')}`]),
    ...wrong.map(({ name, detail }) => `  WRONG ${name}: ${detail}`),
  ]
}

/** Three digits and more; thousands are separated. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '-'
  const magnitude = Math.abs(value)
  const digits = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3
  return value.toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
}
