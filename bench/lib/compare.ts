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
  /** The later figure divided by the earlier one. */
  readonly ratio: number
  /** The ratio of both figures relative to their limits, which a slower machine does not change; null without limits. */
  readonly toLimit: number | null
  /** Relative spread between runs of one program. */
  readonly noise: number
  readonly verdict: 'better' | 'worse' | 'same' | 'changed'
}

/** The comparison of two results of a scenario. */
export interface Compared {
  readonly scenario: string
  /** Both numbers of events when they differ so much that growth is compared; else null. */
  readonly grown: { readonly from: number; readonly to: number } | null
  /** Other differing options, such as `sources 16 -> 100`. */
  readonly otherOptions: readonly string[]
  readonly differences: readonly Difference[]
  /** Figures in one of the reports only. */
  readonly alone: number
}

/** The assumed spread of a single run on an otherwise idle machine; several runs have a measured spread. */
const LEAST_NOISE = 0.05
const SINGLE_RUN_NOISE = 0.15
/** A database in --data grows a little with each run, because it is filled up to the present. */
const SAME_SCALE = 1.2
/** The allowed growth of a latency from one scale to another. */
const MOST_GROWTH = 2

/** Half of the distance between the extremes, relative to the median. */
function noiseOf({ samples }: Metric): number {
  if (samples.length < 2) return SINGLE_RUN_NOISE
  const middle = Math.abs(median(samples))
  return middle === 0 ? 0 : (Math.max(...samples) - Math.min(...samples)) / 2 / middle
}

/**
 * Compares the common figures of two reports. A difference counts only when it is larger than the spreads
 * of both reports together.
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

/** Renders, by scenario, the significant changes, or the growth with the number of events. */
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

/** The largest changes first, then the number of unchanged figures. */
function renderChanges(differences: readonly Difference[]): string[] {
  const lines: string[] = []
  for (const verdict of ['worse', 'better', 'changed'] as const) {
    const some = differences.filter((one) => one.verdict === verdict)
    for (const one of some.sort((a, b) => size(b) - size(a))) {
      const percent = `± ${(one.noise * 100).toFixed(0)} %`
      const ofLimit = one.toLimit === null ? '' : `, to its limit ${one.toLimit.toFixed(2)} x`
      lines.push(
        `  ${verdict.padEnd(8)} ${one.ratio.toFixed(2)} x (${percent}${ofLimit})  ${changeOf(one)}`,
      )
    }
  }
  const same = differences.filter(({ verdict }) => verdict === 'same').length
  lines.push(`  ${same} of ${differences.length} figures are the same within noise`)
  return lines
}

/** With another number of events every ratio is listed, and those beyond the allowed growth are flagged. */
function renderGrowth(differences: readonly Difference[]): string[] {
  const sorted = [...differences].sort((a, b) => b.ratio - a.ratio)
  const lines = sorted.map((one) => {
    const flag = isMuch(one) ? `> ${MOST_GROWTH} x` : ''
    return `  ${`${one.ratio.toFixed(2)} x`.padStart(9)} ${flag.padEnd(5)} ${changeOf(one)}`
  })
  const judged = differences.filter(isJudged)
  for (const kind of new Set(judged.map(kindOf))) {
    const some = judged.filter((one) => kindOf(one) === kind)
    const much = some.filter(isMuch).length
    lines.push(`  ${kind}: ${much} of ${some.length} grew more than ${MOST_GROWTH} x`)
  }
  return lines
}

/** The percentile of a latency, else the unit. */
const kindOf = ({ metric, unit }: Difference): string => /, (p\d+)$/.exec(metric)?.[1] ?? unit

/** Whether a smaller figure is better. */
const isJudged = ({ better, metric }: Difference): boolean =>
  better === 'lower' && !metric.startsWith('limit: ')

const isMuch = (one: Difference): boolean => isJudged(one) && one.ratio > MOST_GROWTH

const changeOf = ({ metric, before, after, unit }: Difference): string =>
  `${metric}, ${formatNumber(before)} -> ${formatNumber(after)} ${unit}`.trimEnd()
