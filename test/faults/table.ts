import { CATALOGUE } from './catalogue/all.js'
import type { Results, Tally } from './results.js'
import { SABOTAGES, type Sabotage } from './sabotage.js'
import type { Fault } from './trial.js'

/** The outcome of a sabotage; `by` is null when no fault detected it. */
export interface Caught {
  readonly sabotage: Sabotage
  readonly by: Fault | null
  readonly lost: number
  readonly doubled: number
}

const BEGIN = '<!-- faults: written by `npm run test:faults -- --docs` -->'
const END = '<!-- /faults -->'

/** The tables of the guide to reliability: the faults and the sabotages. */
export const renderTables = (results: Results): string =>
  [renderFaults(results), renderSabotages(results)].filter((table) => table !== '').join('\n')

function renderFaults({ faults, seeds }: Results): string {
  const rows = CATALOGUE.flatMap(({ id, title }) => {
    const tally = faults[id]
    return tally === undefined ? [] : [`| ${title} | ${timesOf(tally)} | ${countsOf(tally)} |`]
  })
  if (rows.length === 0) return ''
  const sum = (of: (tally: Tally) => number): string =>
    String(Object.values(faults).reduce((total, tally) => total + of(tally), 0))
  const all = ['times', 'acknowledged', 'lost', 'doubled'] as const
  const totals = all.map((name) => sum((tally) => tally[name])).join(' | ')
  const head = ['| fault | times | acknowledged | lost | doubled |', '|---|---|---|---|---|']
  const note = `Acknowledged are messages; seeds ${seeds.join(', ')}.`
  return [...head, ...rows, `| together | ${totals} |`, '', note, ''].join('\n')
}

const timesOf = ({ times, failed, skipped }: Tally): string => {
  if (skipped !== null) return `not tried: ${skipped}`
  return failed === 0 ? String(times) : `${times} (${failed} not survived as it must be)`
}

const countsOf = ({ acknowledged, lost, doubled }: Tally): string =>
  [acknowledged, lost, doubled].join(' | ')

function renderSabotages({ sabotages }: Results): string {
  const rows = SABOTAGES.flatMap(({ id, title }) => {
    const notice = sabotages[id]
    if (notice === undefined) return []
    const by = CATALOGUE.find((fault) => fault.id === notice.by)?.title ?? 'nothing'
    return [`| ${title} | ${by} | ${notice.lost} | ${notice.doubled} |`]
  })
  if (rows.length === 0) return ''
  const head = ['| broken on purpose | noticed by | lost | doubled |', '|---|---|---|---|']
  return [...head, ...rows, ''].join('\n')
}

/** @throws Error when the guide has no section for the tables */
export function intoGuide(guide: string, tables: string): string {
  const [from, to] = [guide.indexOf(BEGIN), guide.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`the guide lacks ${BEGIN} … ${END}`)
  return `${guide.slice(0, from + BEGIN.length)}\n\n${tables}\n${guide.slice(to)}`
}
