/*
 * The state machine of a group of a rule. It does no I/O and reads no clock, so the same
 * observations give the same transitions on every instance.
 *
 *   inactive ─crossed─▶ pending ─crossed for `for`─▶ firing ─calm─▶ recovering ─calm for `keep_firing_for`─▶ resolved
 *                       pending ─not crossed─▶ inactive        recovering ─not calm─▶ firing
 *
 * A value between the two thresholds of a rule is neither crossed nor calm. A resolved group is
 * inactive. A group that begins to fire or resolves for the fifth time within an hour is flapping:
 * it then resolves only after a quarter of an hour of calm.
 */

import { HOUR_MS, MINUTE_MS } from '../model/time.js'

export type GroupState = 'inactive' | 'pending' | 'firing' | 'recovering'

export interface GroupStatus {
  readonly state: GroupState
  /** When the state began. */
  readonly sinceMs: number
  /** The number of its last transition; 0 before the first. */
  readonly seq: number
  /** When it began to fire; 0 while it does not. */
  readonly firingSinceMs: number
  /** The number of the transition by which it began to fire. */
  readonly firingSeq: number
  /** When it began to fire or resolved, within the last hour. */
  readonly flips: readonly number[]
  readonly isFlapping: boolean
}

export interface Observation {
  readonly atMs: number
  readonly verdict: 'crossed' | 'between' | 'calm'
}

export interface Transition {
  readonly from: GroupState
  readonly to: GroupState | 'resolved'
  readonly atMs: number
}

interface Delays {
  readonly forMs: number
  readonly keepFiringMs: number
}

interface Step {
  readonly status: GroupStatus
  readonly transition: Transition | null
}

export const INACTIVE: GroupStatus = {
  state: 'inactive',
  sinceMs: 0,
  seq: 0,
  firingSinceMs: 0,
  firingSeq: 0,
  flips: [],
  isFlapping: false,
}

const FLIPS_OF_FLAPPING = 5
const QUIET_MS = 15 * MINUTE_MS

export function step(status: GroupStatus, delays: Delays, { atMs, verdict }: Observation): Step {
  const to = nextState(status, delays, { atMs, verdict })
  if (to === status.state) return { status, transition: null }
  const transition: Transition = { from: status.state, to, atMs }
  return { status: afterwards(status, transition), transition }
}

function nextState(
  { state, sinceMs, isFlapping }: GroupStatus,
  { forMs, keepFiringMs }: Delays,
  { atMs, verdict }: Observation,
): GroupState | 'resolved' {
  const lastedMs = atMs - sinceMs
  const calmMs = isFlapping ? Math.max(keepFiringMs, QUIET_MS) : keepFiringMs
  if (state === 'firing' || state === 'recovering') {
    if (verdict !== 'calm') return 'firing'
    const calmForMs = state === 'firing' ? 0 : lastedMs
    return calmForMs >= calmMs ? 'resolved' : 'recovering'
  }
  if (verdict !== 'crossed') return 'inactive'
  const crossedForMs = state === 'inactive' ? 0 : lastedMs
  return crossedForMs >= forMs ? 'firing' : 'pending'
}

function afterwards(status: GroupStatus, { from, to, atMs }: Transition): GroupStatus {
  // The number is at least the time in seconds, so that it grows even when the earlier history was deleted.
  const seq = Math.max(status.seq + 1, Math.floor(atMs / 1000))
  const recent = status.flips.filter((flipMs) => flipMs > atMs - HOUR_MS)
  const common = { sinceMs: atMs, seq }
  if (to === 'resolved' || to === 'inactive') {
    // A quarter of an hour of calm ends flapping.
    const kept = status.isFlapping ? [] : recent
    const flips = to === 'resolved' ? latest([...kept, atMs]) : kept
    return { ...INACTIVE, ...common, flips }
  }
  const begins = to === 'firing' && from !== 'recovering'
  if (!begins) return { ...status, ...common, state: to, flips: recent }
  const flips = latest([...recent, atMs])
  const isFlapping = flips.length >= FLIPS_OF_FLAPPING
  return { ...common, state: to, firingSinceMs: atMs, firingSeq: seq, flips, isFlapping }
}

const latest = (flips: readonly number[]): readonly number[] => flips.slice(-FLIPS_OF_FLAPPING)

/** Whether a transition is notified. Changes between firing and recovering are not. */
export const isNotified = ({ from, to }: Transition): boolean =>
  to === 'resolved' || (to === 'firing' && from !== 'recovering' && from !== to)
