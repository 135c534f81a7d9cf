import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { Fault } from './trial.js'

export interface Options {
  readonly seed: number
  /** ids of faults; none = all */
  readonly only: readonly string[]
  /** times the rounds of a short run */
  readonly rounds: number
  /** faults that are tried at the same time */
  readonly lanes: number
  /** times the length of what lasts */
  readonly stretch: number
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
  }
}

/** The seed of one fault: the same whatever else is tried beside it. */
export function seedOf(seed: number, id: string): number {
  let hash = seed | 0
  for (const char of id) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193)
  return hash >>> 0
}

export const usage = (faults: readonly Fault[]): string =>
  [
    'Usage: npm run test:faults -- [options]',
    '',
    ...faults.map(({ id, title }) => `  ${id.padEnd(20)} ${title}`),
    '',
  ].join('\n')
