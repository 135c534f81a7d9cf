import {
  formatNumber,
  median,
  type Metric,
  ratioToLimit,
  type Report,
  type ScenarioResult,
} from './report.js'

export interface Difference {
  readonly scenario: string
  readonly metric: string
  readonly unit: string
  readonly better: Metric['better']
  readonly before: number
  readonly after: number
  /** after ÷ before */
  readonly ratio: number
  /** the same of what both are to their limits, which a slower machine does not change; null without limits */
  readonly toLimit: number | null
  /** share by which runs of the same program differ here */
  readonly noise: number
  readonly verdict: 'better' | 'worse' | 'same' | 'changed'
}

/** What two results of a scenario have in common. */
export interface Compared {
  readonly scenario: string
  /** numbers of events when they are so far apart that it is growth that is compared; else null */
  readonly grown: { readonly from: number; readonly to: number } | null
  /** `sources 16 -> 100`, of options that differ otherwise */
  readonly otherOptions: readonly string[]
  readonly differences: readonly Difference[]
  /** figures that only one side has */
  readonly alone: number
}

/** What a single run may differ by on a machine that does nothing else; more runs tell their own spread. */
const LEAST_NOISE = 0.05
const SINGLE_RUN_NOISE = 0.15
/** a database that is kept and made up to the present holds a little more each time */
const SAME_SCALE = 1.2
/** what a question may grow by from one scale to another */
const MOST_GROWTH = 2

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
export function compareReports(before: Report, after: Report): Compared[] {
  return after.scenarios.flatMap((scenario) => {
    const old = before.scenarios.find((one) => one.scenario === scenario.scenario)
    return old === undefined ? [] : [compareScenario(old, scenario)]
  })
}

function compareScenario(old: ScenarioResult, fresh: ScenarioResult): Compared {
  const { scenario } = fresh
  const differences = fresh.metrics.flatMap((metric) => {
    const was = old.metrics.find(({ name }) => name === metric.name)
    if (was === undefined) return []
    const [past, now] = [ratioToLimit(was, old.metrics), ratioToLimit(metric, fresh.metrics)]
    const toLimit = past === null || now === null ? null : now / past
    return [difference(scenario, was, metric, toLimit)]
  })
  const [from, to] = [Number(old.options['events']), Number(fresh.options['events'])]
  const grown = Math.max(from / to, to / from) > SAME_SCALE ? { from, to } : null
  const names = [...new Set([...Object.keys(old.options), ...Object.keys(fresh.options)])]
  const otherOptions = names
    .filter((name) => name !== 'events' && old.options[name] !== fresh.options[name])
    .map((name) => `${name} ${old.options[name] ?? '-'} -> ${fresh.options[name] ?? '-'}`)
  const alone = old.metrics.length + fresh.metrics.length - 2 * differences.length
  return { scenario, grown, otherOptions, differences, alone }
}

function difference(scenario: string, was: Metric, is: Metric, toLimit: number | null): Difference {
  const [before, after] = [median(was.samples), median(is.samples)]
  const noise = Math.max(LEAST_NOISE, noiseOf(was) + noiseOf(is))
  const ratio = before === 0 ? (after === 0 ? 1 : Number.POSITIVE_INFINITY) : after / before
  const { name: metric, unit, better } = is
  const verdict = judge(is, ratio, noise)
  return { scenario, metric, unit, better, before, after, ratio, toLimit, noise, verdict }
}

function judge({ better }: Metric, ratio: number, noise: number): Difference['verdict'] {
  const higher = ratio > 1 + noise
  if (!higher && ratio >= 1 / (1 + noise)) return 'same'
  if (better === 'info') return 'changed'
  return higher === (better === 'higher') ? 'better' : 'worse'
}

/** By scenario: what got better and worse beyond noise, or how the figures grew with the number of events. */
export function renderComparison(compared: readonly Compared[]): string {
  if (compared.length === 0) return 'the two have no scenario in common\n'
  const lines = compared.flatMap((one) => [
    `== ${one.scenario}${one.grown === null ? '' : `: ${formatNumber(one.grown.from)} -> ${formatNumber(one.grown.to)} events`}`,
    ...(one.otherOptions.length === 0 ? [] : [`  other options: ${one.otherOptions.join(', ')}`]),
    ...(one.grown === null ? renderChanges(one.differences) : renderGrowth(one.differences)),
    ...(one.alone === 0 ? [] : [`  ${one.alone} figures are on one side only`]),
    '',
  ])
  return lines.join('\n')
}

const size = ({ ratio }: Difference): number => Math.abs(Math.log(Math.max(ratio, 1e-9)))

/** The largest changes first; then how much stayed the same. */
function renderChanges(differences: readonly Difference[]): string[] {
  const lines: string[] = []
  for (const verdict of ['worse', 'better', 'changed'] as const) {
    const some = differences.filter((one) => one.verdict === verdict)
    for (const one of some.sort((a, b) => size(b) - size(a))) {
      const percent = `± ${(one.noise * 100).toFixed(0)} %`
      const held = one.toLimit === null ? '' : `, to its limit ${one.toLimit.toFixed(2)} x`
      lines.push(
        `  ${verdict.padEnd(8)} ${one.ratio.toFixed(2)} x (${percent}${held})  ${changeOf(one)}`,
      )
    }
  }
  const same = differences.filter(({ verdict }) => verdict === 'same').length
  lines.push(`  ${same} of ${differences.length} figures are the same within noise`)
  return lines
}

/** More events are no other version: every ratio is told, and which is more than it may be. */
function renderGrowth(differences: readonly Difference[]): string[] {
  const sorted = [...differences].sort((a, b) => b.ratio - a.ratio)
  const lines = sorted.map((one) => {
    const mark = isMuch(one) ? `> ${MOST_GROWTH} x` : ''
    return `  ${`${one.ratio.toFixed(2)} x`.padStart(9)} ${mark.padEnd(5)} ${changeOf(one)}`
  })
  const judged = differences.filter(isJudged)
  for (const kind of new Set(judged.map(kindOf))) {
    const some = judged.filter((one) => kindOf(one) === kind)
    const much = some.filter(isMuch).length
    lines.push(`  ${kind}: ${much} of ${some.length} grew more than ${MOST_GROWTH} x`)
  }
  return lines
}

/** `p50` of questions, else the unit. */
const kindOf = ({ metric, unit }: Difference): string => /, (p\d+)$/.exec(metric)?.[1] ?? unit

/** Times and costs: what is better when there is less of it. */
const isJudged = ({ better, metric }: Difference): boolean =>
  better === 'lower' && !metric.startsWith('limit: ')

const isMuch = (one: Difference): boolean => isJudged(one) && one.ratio > MOST_GROWTH

const changeOf = ({ metric, before, after, unit }: Difference): string =>
  `${metric}, ${formatNumber(before)} -> ${formatNumber(after)} ${unit}`.trimEnd()
