import { normal, poisson, type Random, seeded } from './random.js'

/** A generated anomaly; hours are indexes into the series. */
export interface Label {
  readonly kind: 'burst' | 'outage' | 'drop' | 'surge' | 'deploy'
  readonly from: number
  /** The hour after the last one. */
  readonly to: number
}

/** The kind of a series; a smaller part of the logs has smaller counts. */
export const SCOPES = ['source', 'severity', 'template'] as const

export interface LabelledSeries {
  readonly shape: string
  readonly scope: (typeof SCOPES)[number]
  readonly counts: Float64Array
  readonly labels: readonly Label[]
}

export interface GenerateOptions {
  readonly seed: number
  readonly series: number
  readonly weeks: number
  /** The weeks before the first label. */
  readonly quietWeeks: number
}

const DEPLOY_HOURS = 96
/** The share of a source's occurrences of a severity or a template. */
const PARTS = { source: [1, 1], severity: [0.02, 0.3], template: [0.002, 0.1] } as const
/** Occurrences per hour. */
const LEAST_RATE = 0.02

/** A gamma variate (Marsaglia and Tsang, 2000); shapes below 1 by their boost from shape + 1. */
function gamma(random: Random, shape: number): number {
  if (shape < 1) return gamma(random, shape + 1) * (1 - random()) ** (1 / shape)
  const d = shape - 1 / 3
  const c = 1 / Math.sqrt(9 * d)
  for (;;) {
    const x = normal(random)
    const v = (1 + c * x) ** 3
    if (v > 0 && Math.log(1 - random()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v
  }
}

/** The daily and weekly pattern of a kind of log source, and its variance. */
interface Shape {
  readonly name: string
  /** The range of the average occurrences per hour, drawn on a logarithmic scale. */
  readonly rate: readonly number[]
  readonly daily: number
  readonly weekend: number
  /** Dispersion of an hour beyond a Poisson distribution. */
  readonly noise: number
  /** Autocorrelation of the deviations at lag 1. */
  readonly memory: number
  /** The share of hours with an ordinary burst. */
  readonly bursts: number
  /** A job in one hour of every day or of every week, or none. */
  readonly job: 'daily' | 'weekly' | 'none'
}

const SHAPES: readonly Shape[] = [
  {
    name: 'web',
    rate: [200, 50_000],
    daily: 0.8,
    weekend: 0.7,
    noise: 0.1,
    memory: 0.5,
    bursts: 0,
    job: 'none',
  },
  {
    name: 'office',
    rate: [50, 5000],
    daily: 2.2,
    weekend: 0.12,
    noise: 0.15,
    memory: 0.4,
    bursts: 0,
    job: 'none',
  },
  {
    name: 'machine',
    rate: [20, 20_000],
    daily: 0,
    weekend: 1,
    noise: 0.05,
    memory: 0.2,
    bursts: 0,
    job: 'daily',
  },
  {
    name: 'weekly job',
    rate: [20, 2000],
    daily: 0.4,
    weekend: 0.9,
    noise: 0.15,
    memory: 0.3,
    bursts: 0,
    job: 'weekly',
  },
  {
    name: 'bursty',
    rate: [5, 500],
    daily: 0.3,
    weekend: 1,
    noise: 0.4,
    memory: 0.5,
    bursts: 0.03,
    job: 'none',
  },
  {
    name: 'errors',
    rate: [0.5, 20],
    daily: 0.5,
    weekend: 0.8,
    noise: 0.3,
    memory: 0.3,
    bursts: 0,
    job: 'none',
  },
  {
    name: 'rare',
    rate: [0.02, 0.5],
    daily: 0,
    weekend: 1,
    noise: 0.2,
    memory: 0,
    bursts: 0,
    job: 'none',
  },
]

/** Generates weeks of hourly counts of log sources, with labelled anomalies. */
export function generate(options: GenerateOptions): readonly LabelledSeries[] {
  return Array.from({ length: options.series }, (_, i) => {
    const shape = SHAPES[i % SHAPES.length]
    const scope = SCOPES[Math.floor(i / SHAPES.length) % SCOPES.length]
    if (shape === undefined || scope === undefined) throw new Error('bug: no shape')
    const random = seeded(options.seed * 1_000_003 + i)
    const [least, most] = PARTS[scope]
    const part = least * (most / least) ** random()
    const rate = shape.rate.map((each) => Math.max(LEAST_RATE, each * part))
    return { ...generateOne({ ...shape, rate }, options, random), scope }
  })
}

function generateOne(
  shape: Shape,
  options: GenerateOptions,
  random: Random,
): Omit<LabelledSeries, 'scope'> {
  const hours = options.weeks * 168
  const means = meansOf(shape, hours, random)
  const labels = placeLabels(options, random)
  const effects = new Float64Array(hours).fill(1)
  const added = new Float64Array(hours)
  const typical = means.reduce((sum, mean) => sum + mean, 0) / hours
  const kept: Label[] = []
  const deploy = deployIn(options, random)
  if (deploy !== null) {
    const factor = random() < 0.5 ? 0.35 + 0.2 * random() : 1.8 + random()
    for (let hour = deploy.from; hour < hours; hour++) effects[hour] = factor
    if (isVisible({ ...deploy, kind: 'drop' }, means)) kept.push(deploy)
  }
  for (const label of labels) {
    if (!isVisible(label, means) || isNear(label, deploy)) continue
    kept.push(label)
    apply(label, { effects, added, typical: shape.bursts > 0 ? 3 * typical : typical, random })
  }
  let wave = 0
  const counts = Float64Array.from(means, (mean, hour) => {
    wave = shape.memory * wave + Math.sqrt(1 - shape.memory ** 2) * normal(random)
    const wobble = Math.exp(shape.noise * wave - shape.noise ** 2 / 2)
    const spread = gamma(random, 4 / shape.noise ** 2) / (4 / shape.noise ** 2)
    const burst = random() < shape.bursts ? typical * (3 + 8 * random()) : 0
    return poisson(
      random,
      (mean * wobble * spread + burst) * (effects[hour] ?? 1) + (added[hour] ?? 0),
    )
  })
  return { shape: shape.name, counts, labels: kept }
}

function meansOf(shape: Shape, hours: number, random: Random): Float64Array {
  const [least = LEAST_RATE, most = LEAST_RATE] = shape.rate
  const rate = least * (most / least) ** random()
  const peak = 24 * random()
  const trend = (random() - 0.5) * 0.012
  const job = {
    hour: Math.floor(24 * random()),
    day: Math.floor(7 * random()),
    size: 2 + 6 * random(),
  }
  const means = new Float64Array(hours)
  for (let hour = 0; hour < hours; hour++) {
    const [day, weekday, clock] = [Math.floor(hour / 24), Math.floor(hour / 24) % 7, hour % 24]
    const angle = (2 * Math.PI * (clock - peak)) / 24
    const season = Math.exp(shape.daily * Math.cos(angle) - shape.daily / 4)
    const weekend = weekday >= 5 ? shape.weekend : 1
    const runs = clock === job.hour && (shape.job === 'daily' || weekday === job.day)
    const extra = shape.job !== 'none' && runs ? rate * job.size : 0
    means[hour] = rate * season * weekend * (1 + trend) ** day + extra
  }
  return means
}

/** In every third series a release shifts the level permanently; any alarm within days of it counts as right. */
function deployIn({ weeks, quietWeeks }: GenerateOptions, random: Random): Label | null {
  const at = Math.floor((quietWeeks + 1 + (weeks - quietWeeks - 2) * random()) * 168)
  return random() < 1 / 3 ? { kind: 'deploy', from: at, to: at + DEPLOY_HOURS } : null
}

const isNear = ({ from, to }: Label, deploy: Label | null): boolean =>
  deploy !== null && from < deploy.to + 48 && to > deploy.from - 24

/** One or two anomalies per fortnight, some days apart. */
function placeLabels({ weeks, quietWeeks }: GenerateOptions, random: Random): Label[] {
  const kinds = ['burst', 'outage', 'drop', 'surge'] as const
  const labels: Label[] = []
  for (
    let at = quietWeeks * 168 + 10 + 160 * random();
    at < weeks * 168 - 30;
    at += 120 + 260 * random()
  ) {
    const kind = kinds[Math.floor(random() * kinds.length)] ?? 'burst'
    const length = kind === 'burst' ? 1 + Math.floor(3 * random()) : 4 + Math.floor(14 * random())
    labels.push({ kind, from: Math.floor(at), to: Math.floor(at) + length })
  }
  return labels
}

/** An outage of a daily job, or of an office at night, cannot be detected within hours. */
function isVisible({ kind, from, to }: Label, means: Float64Array): boolean {
  const expected = means.subarray(from, to).reduce((sum, mean) => sum + mean, 0)
  if (kind === 'outage') return expected >= 40
  if (kind === 'drop') return expected >= 200
  return true
}

interface Effects {
  readonly effects: Float64Array
  readonly added: Float64Array
  readonly typical: number
  readonly random: Random
}

function apply({ kind, from, to }: Label, { effects, added, typical, random }: Effects): void {
  const size = random()
  for (let hour = from; hour < to; hour++) {
    if (kind === 'outage') effects[hour] = 0
    if (kind === 'drop') effects[hour] = (effects[hour] ?? 1) * (0.1 + 0.25 * size)
    if (kind === 'surge') added[hour] = typical * (1.5 + 2 * size) + 10
    if (kind === 'burst') added[hour] = typical * (4 + 12 * size) + 25
  }
}
