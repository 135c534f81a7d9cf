import { formatNumber, median, type Metric, type Report } from './report.js'

export interface Difference {
  readonly scenario: string
  readonly metric: string
  readonly unit: string
  readonly before: number
  readonly after: number
  /** after ÷ before */
  readonly ratio: number
  /** share by which runs of the same program differ here */
  readonly noise: number
  readonly verdict: 'better' | 'worse' | 'same' | 'changed'
}

/** What a single run may differ by on a machine that does nothing else; more runs tell their own spread. */
const LEAST_NOISE = 0.05
const SINGLE_RUN_NOISE = 0.15

/** Half of the distance between the extremes, relative to the median. */
function noiseOf({ samples }: Metric): number {
  if (samples.length < 2) return SINGLE_RUN_NOISE
  const middle = Math.abs(median(samples))
  return middle === 0 ? 0 : (Math.max(...samples) - Math.min(...samples)) / 2 / middle
}

/**
 * Compares what two reports have in common. A difference counts only when it is larger than the spread
 * of both sides together.
 */
export function compareReports(before: Report, after: Report): Difference[] {
  return after.scenarios.flatMap((scenario) => {
    const old = before.scenarios.find((one) => one.scenario === scenario.scenario)
    return scenario.metrics.flatMap((metric) => {
      const was = old?.metrics.find(({ name }) => name === metric.name)
      return was === undefined ? [] : [difference(scenario.scenario, was, metric)]
    })
  })
}

function difference(scenario: string, was: Metric, is: Metric): Difference {
  const [before, after] = [median(was.samples), median(is.samples)]
  const noise = Math.max(LEAST_NOISE, noiseOf(was) + noiseOf(is))
  const ratio = before === 0 ? (after === 0 ? 1 : Number.POSITIVE_INFINITY) : after / before
  const { name: metric, unit } = is
  return { scenario, metric, unit, before, after, ratio, noise, verdict: judge(is, ratio, noise) }
}

function judge({ better }: Metric, ratio: number, noise: number): Difference['verdict'] {
  const higher = ratio > 1 + noise
  if (!higher && ratio >= 1 / (1 + noise)) return 'same'
  if (better === 'info') return 'changed'
  return higher === (better === 'higher') ? 'better' : 'worse'
}

/** What got better and worse beyond noise, the largest changes first; then how much stayed the same. */
export function renderComparison(differences: readonly Difference[]): string {
  const size = ({ ratio }: Difference): number => Math.abs(Math.log(Math.max(ratio, 1e-9)))
  const lines: string[] = []
  for (const verdict of ['worse', 'better', 'changed'] as const) {
    const some = differences
      .filter((one) => one.verdict === verdict)
      .sort((a, b) => size(b) - size(a))
    for (const { scenario, metric, unit, before, after, ratio, noise } of some) {
      const change = `${formatNumber(before)} -> ${formatNumber(after)} ${unit}`
      const percent = `± ${(noise * 100).toFixed(0)} %`
      lines.push(
        `${verdict.padEnd(8)} ${ratio.toFixed(2)} x (${percent})  ${scenario}: ${metric}, ${change}`,
      )
    }
  }
  const same = differences.filter(({ verdict }) => verdict === 'same').length
  lines.push(`${same} of ${differences.length} figures are the same within noise`)
  return `${lines.join('\n')}\n`
}
