import type { Fault } from '../trial.js'
import { clickhouseFaults } from './clickhouse.js'
import { diskFaults } from './disk.js'
import { processFaults } from './processes.js'
import { stateFaults } from './state.js'

// what waits longest comes first, so that the rest is tried beside it
const FIRST = ['hung-clickhouse', 'kill-starting', 'kill-both']
const all = [...processFaults, ...clickhouseFaults, ...stateFaults, ...diskFaults]

export const CATALOGUE: readonly Fault[] = [
  ...all.filter(({ id }) => FIRST.includes(id)),
  ...all.filter(({ id }) => !FIRST.includes(id)),
]
