import { poisson, seeded, type Random } from './random.js'

/**
 * A second generator, by other rules than generate.ts: the counts of a source are those of its templates, as a service
 * makes them. Users work by the clock of a time zone, come in sessions (so the variance grows with the mean and
 * not with its square), the level walks at random, jobs run by schedule, holidays come, and incidents hit templates.
 * It was written before anything was tuned, and nothing is tuned on its seeds from HELD_BACK on.
 */

export const INCIDENTS = [
  'silence',
  'drop',
  'error_ratio',
  'new_error',
  'critical',
  'surge',
] as const
/** A change that is the new normal on the next day. */
export const CHANGES = ['job_moved', 'clock_shifted'] as const
export type SimulatedKind = (typeof INCIDENTS)[number] | (typeof CHANGES)[number] | 'holiday'

/** Hours are indexes of the counts. */
export interface SimulatedLabel {
  readonly kind: SimulatedKind
  readonly from: number
  /** The hour after the last one; of a change the end of its first two days. */
  readonly to: number
  /**
   * How far its counts are from those without it, in standard deviations for an observer who knows
   * the true rates: the bound of what can be detected.
   */
  readonly deviations: number
}

type PlacedLabel = Omit<SimulatedLabel, 'deviations'>

export interface SimulatedTemplate {
  readonly severity: 'INFO' | 'WARNING' | 'ERROR' | 'CRITICAL'
  readonly counts: Float64Array
}

export interface SimulatedSource {
  readonly name: string
  readonly templates: readonly SimulatedTemplate[]
  readonly labels: readonly SimulatedLabel[]
}

export interface SimulateOptions {
  readonly seed: number
  readonly sources: number
  readonly weeks: number
  /** The weeks before the first label. */
  readonly quietWeeks: number
  /** Without labels, so that everything found is a false alarm. */
  readonly isClean?: boolean
}

/** Seeds from here on are for checking only. */
export const HELD_BACK = 500

const DAY = 24
const WEEK = 168
/** Most of a day's hours from one label to the next. */
const LEAST_PAUSE_HOURS = 90
const MOST_PAUSE_HOURS = 330
const CHANGE_HOURS = 2 * DAY

/** The properties of a source, all drawn once. */
interface Plan {
  readonly rate: number
  /** Relative traffic at 00, 04, 08, 12, 16 and 20 o'clock, with straight lines between. */
  readonly knots: readonly number[]
  readonly weekend: number
  /** Hours by which the clock is ahead. */
  readonly zone: number
  /** Messages of a session; 1 = single messages. */
  readonly session: number
  /** Daily steps of the logarithm of the level. */
  readonly walk: number
  /** Bursts of retries, about one a week, whose sizes follow a Pareto distribution. */
  readonly storms: number
  readonly holidays: ReadonlySet<number>
}

const KNOTS = {
  steady: [1, 1, 1, 1, 1, 1],
  people: [0.25, 0.1, 0.8, 1.5, 1.6, 0.9],
  office: [0.02, 0.02, 1.4, 1.6, 1.8, 0.1],
  night: [1.8, 1.5, 0.4, 0.3, 0.5, 1.3],
} as const
const ROLES = Object.keys(KNOTS) as readonly (keyof typeof KNOTS)[]

const between = (random: Random, least: number, most: number): number =>
  least * (most / least) ** random()

const pick = <T>(random: Random, all: readonly T[]): T => {
  const one = all[Math.floor(random() * all.length)]
  if (one === undefined) throw new Error('bug: nothing to pick from')
  return one
}

/** @returns the sources of one installation */
export const simulate = (options: SimulateOptions): readonly SimulatedSource[] =>
  Array.from({ length: options.sources }, (_, i) =>
    simulateOne(options, i, seeded(options.seed * 7919 + i * 104_729 + 13)),
  )

function simulateOne(options: SimulateOptions, i: number, random: Random): SimulatedSource {
  const role = ROLES[i % ROLES.length] ?? 'steady'
  const days = options.weeks * 7
  const isSteady = role === 'steady'
  const plan: Plan = {
    rate: between(random, 20, isSteady ? 400 : 4000),
    knots: KNOTS[role],
    weekend: isSteady ? 1 : role === 'office' ? 0.1 : 0.5 + 0.5 * random(),
    zone: Math.floor(random() * DAY),
    session: isSteady && random() < 0.5 ? 1 : between(random, 1, 6),
    walk: 0.005 + 0.025 * random(),
    storms: random() < 0.25 ? 1 : 0,
    holidays: new Set(role === 'office' ? [daysToWorkday(Math.floor(random() * days))] : []),
  }
  const placed = options.isClean === true ? [] : placeLabels(options, random)
  const holidays = Array.from(plan.holidays, (day) => ({
    kind: 'holiday' as const,
    from: day * DAY - plan.zone,
    to: (day + 1) * DAY - plan.zone,
    deviations: 0,
  }))
  const { templates, labels } = makeTemplates(plan, placed, { hours: days * DAY, random })
  return { name: `${role}-${i}`, templates, labels: [...labels, ...holidays] }
}

const daysToWorkday = (day: number): number => (day % 7 >= 5 ? day - (day % 7) + 3 : day)

function placeLabels(
  { weeks, quietWeeks }: SimulateOptions,
  random: Random,
): readonly PlacedLabel[] {
  const kinds = [...INCIDENTS, ...CHANGES]
  const labels: PlacedLabel[] = []
  const taken = new Set<SimulatedKind>()
  let at = quietWeeks * WEEK + 20 + 100 * random()
  while (at < weeks * WEEK - 60) {
    const left = kinds.filter(
      (kind) => !taken.has(kind) || (kind !== 'new_error' && kind !== 'critical'),
    )
    const kind = pick(
      random,
      left.filter((each) => !taken.has(each) || !CHANGES.some((one) => one === each)),
    )
    taken.add(kind)
    const from = Math.floor(at)
    const isChange = CHANGES.some((one) => one === kind)
    const hours = isChange
      ? CHANGE_HOURS
      : Math.round(between(random, 3, kind === 'silence' ? 40 : 18))
    labels.push({ kind, from, to: from + hours })
    at += hours + LEAST_PAUSE_HOURS + (MOST_PAUSE_HOURS - LEAST_PAUSE_HOURS) * random()
  }
  return labels
}

interface Making {
  readonly hours: number
  readonly random: Random
}

/** Traffic relative to the average at an hour by the clock of the source. */
function trafficAt({ knots, weekend, holidays }: Plan, local: number): number {
  const [day, clock] = [Math.floor(local / DAY), ((local % DAY) + DAY) % DAY]
  const at = clock / 4
  const [before, after] = [knots[Math.floor(at) % 6] ?? 1, knots[(Math.floor(at) + 1) % 6] ?? 1]
  const base = before + (after - before) * (at % 1)
  const isFree = ((day % 7) + 7) % 7 >= 5 || holidays.has(day)
  return base * (isFree ? weekend : 1)
}

function makeTemplates(
  plan: Plan,
  labels: readonly PlacedLabel[],
  { hours, random }: Making,
): Pick<SimulatedSource, 'templates' | 'labels'> {
  const level = levelsOf(plan, hours / DAY, random)
  const shift = pick(random, [-2, -1, 1, 2])
  const shifted = labels.find(({ kind }) => kind === 'clock_shifted')
  const localOf = (hour: number): number =>
    hour + plan.zone + (shifted !== undefined && hour >= shifted.from ? shift : 0)
  const meanAt = (hour: number): number =>
    plan.rate * (level[Math.floor(hour / DAY)] ?? 1) * trafficAt(plan, localOf(hour))
  const factors = factorsOf(labels, hours, random)
  const ordinary = 3 + Math.floor(random() * 4)
  const shares = Array.from({ length: ordinary }, (_, k) => (1 / (k + 1)) ** 1.2)
  const all = shares.reduce((sum, share) => sum + share, 0)
  const storms = stormsOf(plan, hours, random)
  const errorShares = errorSharesOf(labels, hours, random)
  const made: SimulatedTemplate[] = [
    errorsOf(meanAt, errorShares, { hours, random, storms, factors }),
    { severity: 'INFO', counts: jobOf(labels, { hours, random, plan, localOf, factors }) },
    { severity: 'ERROR', counts: incidentOf('new_error', labels, { hours, random }) },
    { severity: 'CRITICAL', counts: incidentOf('critical', labels, { hours, random }) },
  ]
  for (const [k, share] of shares.entries()) {
    const counts = Float64Array.from({ length: hours }, (_, hour) =>
      inSessions(random, ((meanAt(hour) * share) / all) * (factors[hour] ?? 1), plan.session),
    )
    made.push({ severity: k === 2 ? 'WARNING' : 'INFO', counts })
  }
  const deviationsOf = (label: PlacedLabel): number => {
    if (label.kind === 'new_error' || label.kind === 'critical') return KNOWN
    let [expected, changed] = [0, 0]
    for (let hour = label.from; hour < label.to; hour++) {
      const isOfErrors = label.kind === 'error_ratio'
      const mean = meanAt(hour) * (isOfErrors ? (errorShares[0] ?? 0) : 1)
      const factor = isOfErrors ? (errorShares[hour] ?? 0) / (errorShares[0] ?? 1) : factors[hour]
      expected += mean
      changed += mean * Math.abs((factor ?? 1) - 1)
    }
    const clumping = label.kind === 'error_ratio' ? 1 : 2 * plan.session - 1
    return changed / Math.sqrt(clumping * Math.max(expected, 0.5))
  }
  return {
    templates: made,
    labels: labels.map((label) => ({ ...label, deviations: deviationsOf(label) })),
  }
}

/** The deviations of an event that is never expected. */
const KNOWN = 50

/** A compound Poisson count: sessions come at random, each of a geometric number of messages. */
function inSessions(random: Random, mean: number, session: number): number {
  if (session <= 1) return poisson(random, mean)
  const sessions = poisson(random, mean / session)
  if (sessions > 300)
    return poisson(
      random,
      mean + Math.sqrt(mean * session) * (random() + random() + random() + random() - 2) * 1.7,
    )
  let sum = 0
  for (let i = 0; i < sessions; i++)
    sum += 1 + Math.floor(Math.log(1 - random()) / Math.log(1 - 1 / session))
  return sum
}

/** The level walks at random and returns slowly to 1. */
function levelsOf({ walk }: Plan, days: number, random: Random): readonly number[] {
  let log = 0
  return Array.from({ length: days }, () => {
    log = 0.95 * log + walk * (random() + random() + random() - 1.5) * 2
    return Math.exp(log)
  })
}

/** The factors by which incidents multiply the ordinary messages. */
function factorsOf(labels: readonly PlacedLabel[], hours: number, random: Random): Float64Array {
  const factors = new Float64Array(hours).fill(1)
  for (const { kind, from, to } of labels) {
    const [drop, surge] = [0.05 + 0.45 * random(), between(random, 1.6, 5)]
    const factor = kind === 'silence' ? 0 : kind === 'drop' ? drop : kind === 'surge' ? surge : 1
    for (let hour = from; hour < to; hour++) factors[hour] = factor
  }
  return factors
}

/** Hours with extra errors that belong to the source: a few a week, of a Pareto size. */
function stormsOf({ storms, rate }: Plan, hours: number, random: Random): Float64Array {
  const extra = new Float64Array(hours)
  for (let hour = 0; hour < hours; hour++)
    if (random() < (storms * 4) / WEEK) extra[hour] = 0.05 * rate * (1 - random()) ** -0.7
  return extra
}

interface Errors extends Making {
  readonly storms: Float64Array
  readonly factors: Float64Array
}

/** The errors' share of the messages, by hour; that of the first hour is the usual one. */
function errorSharesOf(
  labels: readonly PlacedLabel[],
  hours: number,
  random: Random,
): Float64Array {
  const share = between(random, 0.002, 0.03)
  const raised = new Float64Array(hours).fill(share)
  for (const { kind, from, to } of labels) {
    const most = Math.min(0.6, share * between(random, 5, 30) + 0.02)
    if (kind === 'error_ratio') raised.fill(most, from, to)
  }
  return raised
}

function errorsOf(
  meanAt: (hour: number) => number,
  shares: Float64Array,
  { hours, random, storms, factors }: Errors,
): SimulatedTemplate {
  const counts = Float64Array.from({ length: hours }, (_, hour) =>
    poisson(
      random,
      (meanAt(hour) * (shares[hour] ?? 0) + (storms[hour] ?? 0)) * (factors[hour] ?? 1),
    ),
  )
  return { severity: 'ERROR', counts }
}

interface Job extends Making {
  readonly plan: Plan
  readonly localOf: (hour: number) => number
  readonly factors: Float64Array
}

/** A job that runs every night, begins within ten minutes of its time, and takes up to two hours. */
function jobOf(
  labels: readonly PlacedLabel[],
  { hours, random, plan, localOf, factors }: Job,
): Float64Array {
  const counts = new Float64Array(hours)
  const moved = labels.find(({ kind }) => kind === 'job_moved')?.from ?? hours
  const [starts, lasts, size] = [
    DAY * random(),
    0.3 + 1.5 * random(),
    plan.rate * between(random, 0.3, 3),
  ]
  const movedBy = 2 + Math.floor(9 * random())
  for (let hour = 0; hour < hours; hour++) {
    const clock = (localOf(hour) + (hour >= moved ? movedBy : 0)) % DAY
    const from = starts + (random() - 0.5) / 3
    const within = Math.min(clock + 1, from + lasts) - Math.max(clock, from)
    if (within > 0 && factors[hour] !== 0) counts[hour] = poisson(random, (size * within) / lasts)
  }
  return counts
}

/** Messages that were never seen before: errors for hours, or a few that are critical. */
function incidentOf(
  wanted: 'new_error' | 'critical',
  labels: readonly PlacedLabel[],
  { hours, random }: Making,
): Float64Array {
  const counts = new Float64Array(hours)
  for (const { kind, from, to } of labels) {
    if (kind !== wanted) continue
    const rate = wanted === 'critical' ? between(random, 0.3, 5) : between(random, 4, 60)
    for (let hour = from; hour < to; hour++) counts[hour] = poisson(random, rate)
    counts[from] = Math.max(1, counts[from] ?? 0)
  }
  return counts
}
