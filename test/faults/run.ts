import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CATALOGUE, ESSENTIAL } from './catalogue/all.js'
import { removeAll } from './installation.js'
import { readOptions, seedOf, usage, type Options } from './options.js'
import {
  readResults,
  withFault,
  withSabotage,
  withSeed,
  writeResults,
  type Results,
} from './results.js'
import { SABOTAGES, sabotagedMain, type Sabotage } from './sabotage.js'
import { tryCluster } from './cluster.js'
import { Promptness } from './promptness.js'
import { renderTables, intoGuide, type Caught } from './table.js'
import { tryFault, type Fault, type Result } from './trial.js'

const GUIDE = fileURLToPath(new URL('../../../src/docs/reliability.md', import.meta.url))
/** A single round may strike at a time at which nothing can be lost. */
const SABOTAGE_TRIES = 8
const say = (text: string): void => void process.stderr.write(`${text}\n`)

async function main(given: Options, promptness: Promptness): Promise<void> {
  const faults = chosen(given)
  say(`seed ${given.seed}: ${given.lanes} faults at a time`)
  let kept = withSeed(readResults(given.results), given.seed)
  const keep = (next: Results): void => {
    kept = next
    // Results are written after each fault, because a run may be interrupted.
    if (given.results !== null) writeResults(given.results, kept)
  }
  const broken = given.only.length === 0 ? SABOTAGES : []
  const results: Result[] = []
  const caught: Caught[] = []
  const untilMs = performance.now() + given.budgetS * 1000
  const isLate = (): boolean => performance.now() > untilMs
  const late: string[] = []
  const work = [
    ...broken.map((sabotage) => async () => {
      if (isLate()) return void late.push(sabotage.title)
      const one = await sabotaged(sabotage, given, promptness)
      caught.push(one)
      keep(withSabotage(kept, one))
    }),
    ...faults.map((fault) => async () => {
      if (isLate()) return void late.push(fault.title)
      const one = await tried(fault, given, promptness)
      results.push(one)
      keep(withFault(kept, one))
    }),
  ]
  await inLanes(work, given.lanes)
  const tables = renderTables(kept)
  if (given.docs) writeFileSync(GUIDE, intoGuide(readFileSync(GUIDE, 'utf8'), tables))
  process.stdout.write(toTap(results, caught, late))
  process.stderr.write(tables)
  const isWell = results.every(isSurvived) && caught.every(({ by }) => by !== null)
  process.exitCode = isWell ? 0 : 1
}

function chosen({ only, isShort, sabotageOnly }: Options): readonly Fault[] {
  if (sabotageOnly) return []
  if (only.length > 0) return CATALOGUE.filter(({ id }) => only.includes(id))
  return isShort ? CATALOGUE.filter(({ id }) => ESSENTIAL.includes(id)) : CATALOGUE
}

async function inLanes(work: readonly (() => Promise<void>)[], lanes: number): Promise<void> {
  const waiting = [...work]
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next()
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

async function tried(
  fault: Fault,
  { seed, rounds, stretch, isShort }: Options,
  promptness: Promptness,
): Promise<Result> {
  const result = await tryFault(fault, {
    seed: seedOf(seed, fault.id),
    rounds: isShort ? 1 : Math.max(1, Math.round(fault.rounds * rounds)),
    stretch,
    note: (text) => say(`  ${fault.id}: ${text}`),
    promptness,
  })
  say(
    `${fault.id}: ${result.rounds} rounds in ${result.seconds} s, ${result.acknowledged} acknowledged, ` +
      `${result.lost} lost, ${result.doubled} doubled${result.skipped === null ? '' : `, skipped: ${result.skipped}`}`,
  )
  for (const problem of result.problems) say(`    ${problem}`)
  return result
}

/** Repeats the fault that must detect the sabotage until it does. */
async function sabotaged(
  sabotage: Sabotage,
  { seed, stretch }: Options,
  promptness: Promptness,
): Promise<Caught> {
  const { main: copy, dir } = sabotagedMain(sabotage)
  const fault = CATALOGUE.find(({ id }) => id === sabotage.caughtBy)
  if (fault === undefined) throw new Error(`bug: there is no fault ${sabotage.caughtBy}`)
  try {
    for (let attempt = 0; attempt < SABOTAGE_TRIES; attempt++) {
      const { lost, doubled, problems } = await tryFault(fault, {
        seed: seedOf(seed + attempt, fault.id),
        rounds: 1,
        stretch,
        main: copy,
        note: () => undefined,
        promptness,
      })
      say(`sabotage ${sabotage.id}: ${fault.id} finds ${lost} lost, ${doubled} doubled`)
      if (lost + doubled > 0) return { sabotage, by: fault, lost, doubled }
      for (const problem of problems) say(`    ${problem}`)
    }
    return { sabotage, by: null, lost: 0, doubled: 0 }
  } finally {
    removeAll(dir)
  }
}

const isSurvived = ({ lost, doubled, problems }: Result): boolean =>
  lost === 0 && doubled === 0 && problems.length === 0

function toTap(
  results: readonly Result[],
  caught: readonly Caught[],
  late: readonly string[],
): string {
  const lines = [
    ...late.map((title) => `ok - ${title} # SKIP no time is left`),
    ...results.map((result) => {
      if (result.skipped !== null) return `ok - ${result.fault.id} # SKIP ${result.skipped}`
      const line = `${result.rounds} × ${result.fault.title}, seed ${result.seed}`
      return isSurvived(result)
        ? `ok - ${line}`
        : `not ok - ${line}: ${result.lost} lost, ${result.doubled} doubled ${result.problems.join('; ').replaceAll(/[\n#]/g, ' ')}`
    }),
    ...caught.map(
      ({ sabotage, by }) =>
        `${by === null ? 'not ok' : 'ok'} - the suite notices: ${sabotage.title}`,
    ),
  ]
  return ['TAP version 14', ...lines, `1..${lines.length}`, ''].join('\n')
}

const CLUSTER_BUDGET_S = 3_600

/** Two instances, two shards and Redis; a seed gives the order of the faults. */
async function mainOfCluster(
  { seed, budgetS, only }: Options,
  promptness: Promptness,
): Promise<void> {
  say(`seed ${seed}: a cluster`)
  const { rounds, acknowledged, lost, doubled, problems } = await tryCluster({
    seed,
    budgetS: Number.isFinite(budgetS) ? budgetS : CLUSTER_BUDGET_S,
    only,
    promptness,
    note: (text) => say(`  ${text}`),
  })
  for (const problem of problems) say(`    ${problem}`)
  const counted = `${acknowledged} messages acknowledged, ${lost} lost, ${doubled} doubled`
  const isWell = rounds > 0 && lost === 0 && doubled === 0 && problems.length === 0
  process.stdout.write(
    `TAP version 14\n${isWell ? 'ok' : 'not ok'} - ${rounds} faults on a cluster, seed ${seed}: ${counted}\n1..1\n`,
  )
  process.exitCode = isWell ? 0 : 1
}

const options = readOptions(process.argv.slice(2))
if (options === null) process.stdout.write(usage(CATALOGUE))
else {
  const promptness = await Promptness.start()
  try {
    await (options.isCluster ? mainOfCluster : main)(options, promptness)
  } finally {
    await promptness.stop()
  }
}
