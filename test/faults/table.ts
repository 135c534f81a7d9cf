import type { Sabotage } from './sabotage.js'
import type { Fault, Result } from './trial.js'

/** What became of a program whose invariant was broken on purpose; `by` is null when nothing noticed. */
export interface Caught {
  readonly sabotage: Sabotage
  readonly by: Fault | null
  readonly lost: number
  readonly doubled: number
}

const BEGIN = '<!-- faults: written by `npm run test:faults -- --readme` -->'
const END = '<!-- /faults -->'

/** The table of the README. */
export function renderTable(results: readonly Result[], seed: number): string {
  const rows = results.map(
    ({ fault, rounds, acknowledged, lost, doubled, skipped }) =>
      `| ${fault.title} | ${skipped === null ? rounds : `not tried: ${skipped}`} | ${acknowledged} | ${lost} | ${doubled} | ${seed} |`,
  )
  return [
    '| fault | times | acknowledged | lost | doubled | seed |',
    '|---|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

export function renderSabotage(caught: readonly Caught[]): string {
  const rows = caught.map(
    ({ sabotage, by, lost, doubled }) =>
      `| ${sabotage.title} | ${by === null ? 'nothing' : by.title} | ${lost} | ${doubled} |`,
  )
  return [
    '| broken on purpose | noticed by | lost | doubled |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

/** @throws Error when the README has no place for the tables */
export function intoReadme(readme: string, tables: string): string {
  const [from, to] = [readme.indexOf(BEGIN), readme.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`README.md lacks ${BEGIN} … ${END}`)
  return `${readme.slice(0, from + BEGIN.length)}\n\n${tables}\n${readme.slice(to)}`
}
