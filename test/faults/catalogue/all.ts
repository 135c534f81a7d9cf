import type { Fault } from '../trial.js'
import { clickhouseFaults } from './clickhouse.js'
import { processFaults } from './processes.js'

export const CATALOGUE: readonly Fault[] = [...processFaults, ...clickhouseFaults]
