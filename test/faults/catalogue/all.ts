import type { Fault } from '../trial.js'
import { changeFaults } from './changes.js'
import { clickhouseFaults } from './clickhouse.js'
import { diskFaults } from './disk.js'
import { processFaults } from './processes.js'
import { startFaults } from './starts.js'
import { stateFaults } from './state.js'
import { upgradeFaults } from './upgrades.js'

// The longest faults come first, so that the others run beside them.
const FIRST = [
  'power-cut-merged',
  'clickhouse-minutes',
  'reply-late',
  'hung-clickhouse',
  'kill-starting',
  'kill-both',
]
const all = [
  ...processFaults,
  ...startFaults,
  ...clickhouseFaults,
  ...stateFaults,
  ...diskFaults,
  ...changeFaults,
  ...upgradeFaults,
]

export const CATALOGUE: readonly Fault[] = [
  ...all.filter(({ id }) => FIRST.includes(id)),
  ...all.filter(({ id }) => !FIRST.includes(id)),
]

/** The faults of a short run: the quickest of each kind. */
export const ESSENTIAL: readonly string[] = [
  'kill-both',
  'kill-clickhouse',
  'kill-worker',
  'sigterm',
  'clickhouse-gone',
  'insert-late',
  'redis-killed',
  'disk-full',
  'flipped-entry',
  'power-cut',
  'power-cut-merged',
]
