import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CATALOGUE } from './catalogue/all.js'
import { removeAll } from './installation.js'
import { readOptions, seedOf, usage, type Options } from './options.js'
import { SABOTAGES, sabotagedMain, type Sabotage } from './sabotage.js'
import { renderSabotage, renderTable, intoReadme, type Caught } from './table.js'
import { tryFault, type Fault, type Result } from './trial.js'

const README = fileURLToPath(new URL('../../../README.md', import.meta.url))
const say = (text: string): void => void process.stderr.write(`${text}\n`)

const options = readOptions(process.argv.slice(2))
if (options === null) process.stdout.write(usage(CATALOGUE))
else await main(options)

async function main(given: Options): Promise<void> {
  const faults = CATALOGUE.filter(({ id }) => given.only.length === 0 || given.only.includes(id))
  say(`seed ${given.seed}: ${given.lanes} faults at a time`)
  const results = given.sabotageOnly
    ? []
    : await inLanes(faults, given, (fault) => one(fault, given))
  const wanted = given.only.length === 0 ? SABOTAGES : []
  const caught = await inLanes(wanted, given, (sabotage) => sabotaged(sabotage, given))
  const table = `${renderTable(results, given.seed)}\n${renderSabotage(caught)}`
  if (given.readme) writeFileSync(README, intoReadme(readFileSync(README, 'utf8'), table))
  process.stdout.write(toTap(results, caught))
  process.stderr.write(table)
  const isWell = results.every(isSurvived) && caught.every(({ by }) => by !== null)
  process.exitCode = isWell ? 0 : 1
}

async function inLanes<T, R>(
  all: readonly T[],
  { lanes }: Options,
  work: (one: T) => Promise<R>,
): Promise<R[]> {
  const waiting = [...all.entries()]
  const results: R[] = []
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
      results[next[0]] = await work(next[1])
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return results
}

async function one(fault: Fault, { seed, rounds, stretch }: Options): Promise<Result> {
  const result = await tryFault(fault, {
    seed: seedOf(seed, fault.id),
    rounds: Math.max(1, Math.round(fault.rounds * rounds)),
    stretch,
    note: (text) => say(`  ${fault.id}: ${text}`),
  })
  say(
    `${fault.id}: ${result.rounds} rounds in ${result.seconds} s, ${result.acknowledged} acknowledged, ` +
      `${result.lost} lost, ${result.doubled} doubled${result.skipped === null ? '' : `, skipped: ${result.skipped}`}`,
  )
  for (const problem of result.problems) say(`    ${problem}`)
  return result
}

/** Tries the faults that must notice until one does. */
async function sabotaged(sabotage: Sabotage, { seed, stretch }: Options): Promise<Caught> {
  const { main: copy, dir } = sabotagedMain(sabotage)
  try {
    for (const fault of CATALOGUE.filter(({ id }) => sabotage.caughtBy.includes(id))) {
      const { lost, doubled } = await tryFault(fault, {
        seed: seedOf(seed, fault.id),
        rounds: fault.rounds,
        stretch,
        main: copy,
        note: () => undefined,
      })
      say(`sabotage ${sabotage.id}: ${fault.id} finds ${lost} lost, ${doubled} doubled`)
      if (lost + doubled > 0) return { sabotage, by: fault, lost, doubled }
    }
    return { sabotage, by: null, lost: 0, doubled: 0 }
  } finally {
    removeAll(dir)
  }
}

const isSurvived = ({ lost, doubled, problems }: Result): boolean =>
  lost === 0 && doubled === 0 && problems.length === 0

function toTap(results: readonly Result[], caught: readonly Caught[]): string {
  const lines = [
    ...results.map((result) => {
      if (result.skipped !== null) return `ok - ${result.fault.id} # SKIP ${result.skipped}`
      const told = `${result.rounds} × ${result.fault.title}, seed ${result.seed}`
      return isSurvived(result)
        ? `ok - ${told}`
        : `not ok - ${told}: ${result.lost} lost, ${result.doubled} doubled ${result.problems.join('; ').replaceAll(/[\n#]/g, ' ')}`
    }),
    ...caught.map(
      ({ sabotage, by }) =>
        `${by === null ? 'not ok' : 'ok'} - the suite notices: ${sabotage.title}`,
    ),
  ]
  return ['TAP version 14', ...lines, `1..${lines.length}`, ''].join('\n')
}
