import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { Fault } from './trial.js'

export interface Options {
  readonly seed: number
  /** Ids of faults, on a cluster words of their names; none for all. */
  readonly only: readonly string[]
  /** Multiplies the rounds of a short run. */
  readonly rounds: number
  /** The number of faults that are tried concurrently. */
  readonly lanes: number
  /** Multiplies the durations of faults. */
  readonly stretch: number
  /** Writes the tables into the guide to reliability. */
  readonly docs: boolean
  /** Runs the sabotages only. */
  readonly sabotageOnly: boolean
  /** Runs a few quick faults once each, for every change. */
  readonly isShort: boolean
  /** No fault begins after this many seconds. */
  readonly budgetS: number
  /** Faults on two instances, two shards and Redis, instead of those on a single service. */
  readonly isCluster: boolean
  /** The file in which outcomes of several runs are added up; null for none. */
  readonly results: string | null
}

/** @returns null when help is asked for */
export function readOptions(argv: readonly string[]): Options | null {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      seed: { type: 'string', default: String(randomInt(1, 2 ** 31)) },
      only: { type: 'string', default: '' },
      rounds: { type: 'string', default: '1' },
      lanes: { type: 'string', default: '3' },
      stretch: { type: 'string', default: '1' },
      docs: { type: 'boolean', default: false },
      sabotage: { type: 'boolean', default: false },
      short: { type: 'boolean', default: false },
      budget: { type: 'string', default: 'Infinity' },
      cluster: { type: 'boolean', default: false },
      results: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  return {
    seed: Number(values.seed),
    only: values.only.split(',').filter((id) => id !== ''),
    rounds: Number(values.rounds),
    lanes: Number(values.lanes),
    stretch: Number(values.stretch),
    docs: values.docs,
    sabotageOnly: values.sabotage,
    isShort: values.short,
    budgetS: Number(values.budget),
    isCluster: values.cluster,
    results: values.results ?? null,
  }
}

/** The seed of a fault is independent of the other faults. */
export function seedOf(seed: number, id: string): number {
  let hash = seed | 0
  for (const char of id) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193)
  return hash >>> 0
}

export const usage = (faults: readonly Fault[]): string =>
  [
    'Usage: npm run test:faults -- [options]',
    '',
    '  --seed N       the same moments again',
    '  --only A,B     only these faults, and nothing broken on purpose; with --cluster words of their names',
    '  --rounds X     times as many rounds, e.g. 20 or 0.5',
    '  --stretch X    outages that last so many times longer',
    '  --lanes N      faults that are tried at the same time (3)',
    '  --sabotage     only what is broken on purpose',
    '  --short        only the few faults that every change has to survive, once each',
    '  --budget S     begins nothing after so many seconds',
    '  --cluster      faults on two instances, two shards and Redis, for an hour or the seconds of --budget',
    '  --results F    adds the outcomes to those that earlier runs have kept in this file',
    '  --docs         writes the tables into src/docs/reliability.md, of the results file where there is one',
    '',
    ...faults.map(({ id, title }) => `  ${id.padEnd(20)} ${title}`),
    '',
  ].join('\n')
