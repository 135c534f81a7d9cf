import { operate, type Told } from './operate.js'
import {
  CHANGES,
  INCIDENTS,
  simulate,
  type SimulatedKind,
  type SimulatedLabel,
  type SimulatedSource,
} from './simulate.js'

const DAY = 24
const WEEK = 168
const QUIET_WEEKS = 5
/** An overlap within one hour counts. */
const SLACK = 1
/** Deviations from which on a label can be detected with less than one false alarm a year and series. */
const KNOWABLE = 5
/** For this long after a change was reported, the same change is not reported again. */
const AGAIN_DAYS = 9

export interface KindGrade {
  readonly kind: SimulatedKind
  readonly labels: number
  /** Labels that an observer who knows the true rates could detect; the others are not graded. */
  readonly knowable: number
  readonly found: number
  readonly alerted: number
  /** Hours from the beginning of a label to its first alert. */
  readonly delays: readonly number[]
}

export interface OperationGrade {
  readonly kinds: readonly KindGrade[]
  readonly sourceYears: number
  readonly right: number
  readonly wrong: readonly Told[]
  readonly rightAlerts: number
  readonly wrongAlerts: readonly Told[]
  /** Anomalies on the days after a change, when it should be the new normal. */
  readonly toldAgain: number
}

export interface OperationOptions {
  readonly seeds: readonly number[]
  readonly sources: number
  readonly weeks: number
}

/** Grades the anomalies and alerts of simulated installations by their labels, as an operator would see them. */
export async function gradeOperation(options: OperationOptions): Promise<OperationGrade> {
  const { seeds, sources, weeks } = options
  const grades: OperationGrade[] = []
  for (const seed of seeds) {
    const all = simulate({ seed, sources, weeks, quietWeeks: QUIET_WEEKS })
    const from = QUIET_WEEKS * WEEK
    const told = await operate(all, from)
    const isGraded = ({ to }: Told): boolean => to > from
    grades.push(gradeOne(all, told.anomalies.filter(isGraded), told.alerts.filter(isGraded)))
  }
  const sum = (of: (grade: OperationGrade) => number): number =>
    grades.reduce((total, grade) => total + of(grade), 0)
  const kinds = [...INCIDENTS, ...CHANGES, 'holiday' as const].map((kind) => {
    const own = grades.flatMap((grade) => grade.kinds.filter((each) => each.kind === kind))
    const add = (of: (each: KindGrade) => number): number =>
      own.reduce((total, each) => total + of(each), 0)
    return {
      kind,
      labels: add((each) => each.labels),
      knowable: add((each) => each.knowable),
      found: add((each) => each.found),
      alerted: add((each) => each.alerted),
      delays: own.flatMap(({ delays }) => delays),
    }
  })
  return {
    kinds,
    sourceYears: (seeds.length * sources * (weeks - QUIET_WEEKS)) / 52,
    right: sum(({ right }) => right),
    wrong: grades.flatMap(({ wrong }) => wrong),
    rightAlerts: sum(({ rightAlerts }) => rightAlerts),
    wrongAlerts: grades.flatMap(({ wrongAlerts }) => wrongAlerts),
    toldAgain: sum(({ toldAgain }) => toldAgain),
  }
}

const overlaps = (told: Told, label: SimulatedLabel): boolean =>
  told.from < label.to + SLACK && told.to > label.from - SLACK

function gradeOne(
  sources: readonly SimulatedSource[],
  anomalies: readonly Told[],
  alerts: readonly Told[],
): OperationGrade {
  const labelsOf = new Map(sources.map(({ name, labels }) => [name, labels]))
  const isRight = (told: Told): boolean =>
    (labelsOf.get(told.source) ?? []).some((label) => overlaps(told, label))
  const isAgain = (told: Told): boolean =>
    (labelsOf.get(told.source) ?? []).some(
      ({ kind, from, to }) =>
        CHANGES.some((each) => each === kind) &&
        told.from >= to &&
        told.from < from + AGAIN_DAYS * DAY,
    )
  const kinds = [...INCIDENTS, ...CHANGES, 'holiday' as const].map((kind) => {
    const all = sources.flatMap(({ name, labels: own }) =>
      own.filter((label) => label.kind === kind).map((label) => ({ name, label })),
    )
    const isGraded = ({ label }: (typeof all)[number]): boolean =>
      INCIDENTS.every((each) => each !== kind) || label.deviations >= KNOWABLE
    const labels = all.filter(isGraded)
    const hit = (told: readonly Told[], name: string, label: SimulatedLabel): readonly Told[] =>
      told.filter((each) => each.source === name && overlaps(each, label))
    const firstAlerts = labels.map(({ name, label }) =>
      hit(alerts, name, label).map(({ at }) => at - label.from),
    )
    return {
      kind,
      labels: all.length,
      knowable: labels.length,
      found: labels.filter(({ name, label }) => hit(anomalies, name, label).length > 0).length,
      alerted: firstAlerts.filter((each) => each.length > 0).length,
      delays: firstAlerts.filter((each) => each.length > 0).map((each) => Math.min(...each)),
    }
  })
  const wrong = anomalies.filter((told) => !isRight(told))
  return {
    kinds,
    sourceYears: 0,
    right: anomalies.length - wrong.length,
    wrong: wrong.filter((told) => !isAgain(told)),
    rightAlerts: alerts.filter(isRight).length,
    wrongAlerts: alerts.filter((told) => !isRight(told)),
    toldAgain: wrong.filter(isAgain).length,
  }
}

const share = (part: number, whole: number): string =>
  whole === 0 ? '-' : `${((part / whole) * 100).toFixed(1)} %`

export function renderOperation(grade: OperationGrade): string {
  const { kinds, sourceYears, right, wrong, wrongAlerts, rightAlerts, toldAgain } = grade
  const rows = kinds.map(({ kind, labels, knowable, found, alerted, delays }) => {
    const sorted = delays.toSorted((a, b) => a - b)
    const at = (part: number): number => sorted[Math.floor((sorted.length - 1) * part)] ?? 0
    return `| ${kind} | ${labels} | ${knowable} | ${share(found, knowable)} | ${share(alerted, knowable)} | ${at(0.5)} h | ${at(0.9)} h |`
  })
  return [
    '| label | labels | knowable | found | alerted | median delay of the alert | of nine in ten |',
    '|---|---|---|---|---|---|---|',
    ...rows,
    `precision ${share(right, right + wrong.length)}; of a source and year ${(wrong.length / sourceYears).toFixed(2)} false anomalies, ` +
      `${(wrongAlerts.length / sourceYears).toFixed(2)} false alerts (${rightAlerts} right); told again after a change: ${toldAgain}`,
    ...wrongAlerts.map(lineOf),
  ].join('\n')
}

const lineOf = ({ source, scope, kind, name, from, to, ...told }: Told): string =>
  `false: ${kind} of ${scope} ${name} of ${source}, hours ${from} to ${to}, ${told.observed} for ${told.expected}, ` +
  `score ${told.score}, gravity ${told.gravity}`
