import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Caught } from './table.js'
import type { Result } from './trial.js'

/** The outcome of a fault over all its trials. */
export interface Tally {
  readonly times: number
  readonly acknowledged: number
  readonly lost: number
  readonly doubled: number
  /** The number of trials with other problems. */
  readonly failed: number
  /** The reason why it was not tried, or null. */
  readonly skipped: string | null
}

/** The outcome of a sabotage: the id of the fault that detected it, or null. */
export interface Notice {
  readonly by: string | null
  readonly lost: number
  readonly doubled: number
}

/** Outcomes of several runs, by the ids of faults and sabotages. */
export interface Results {
  readonly seeds: readonly number[]
  readonly faults: Readonly<Record<string, Tally>>
  readonly sabotages: Readonly<Record<string, Notice>>
}

const NONE: Results = { seeds: [], faults: {}, sabotages: {} }

/** Reads the outcomes of earlier runs. */
export function readResults(file: string | null): Results {
  if (file === null || !existsSync(file)) return NONE
  return JSON.parse(readFileSync(file, 'utf8')) as Results // our own file
}

export const writeResults = (file: string, results: Results): void =>
  writeFileSync(file, `${JSON.stringify(results, null, 1)}\n`)

export function withFault(results: Results, result: Result): Results {
  const { fault, rounds, acknowledged, lost, doubled, problems, skipped } = result
  const before = results.faults[fault.id]
  const tally: Tally = {
    times: (before?.times ?? 0) + rounds,
    acknowledged: (before?.acknowledged ?? 0) + acknowledged,
    lost: (before?.lost ?? 0) + lost,
    doubled: (before?.doubled ?? 0) + doubled,
    failed: (before?.failed ?? 0) + (problems.length > 0 ? 1 : 0),
    skipped: before !== undefined && before.skipped === null ? null : skipped,
  }
  return { ...results, faults: { ...results.faults, [fault.id]: tally } }
}

export const withSabotage = (
  results: Results,
  { sabotage, by, lost, doubled }: Caught,
): Results => ({
  ...results,
  sabotages: { ...results.sabotages, [sabotage.id]: { by: by?.id ?? null, lost, doubled } },
})

export const withSeed = (results: Results, seed: number): Results =>
  results.seeds.includes(seed) ? results : { ...results, seeds: [...results.seeds, seed] }
