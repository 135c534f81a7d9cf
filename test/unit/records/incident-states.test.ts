import { array, assert, constantFrom, integer, property, record } from 'fast-check'
import { test } from 'tap'
import {
  INCIDENT_STATUSES,
  OPENED,
  advance,
  type IncidentStatus,
  type IncidentProgress,
} from '../../../src/records/incidents.js'

const ALLOWED = new Set([
  'open acknowledged',
  'open investigating',
  'open resolved',
  'acknowledged investigating',
  'acknowledged resolved',
  'investigating resolved',
  'resolved closed',
  'resolved open',
  'closed open',
])

/** A record in a status, with what such a record has. */
function standing(status: IncidentStatus): IncidentProgress {
  const isOver = status === 'resolved' || status === 'closed'
  return {
    status,
    acknowledgedAtMs: status === 'open' ? null : 10,
    resolvedAtMs: isOver ? 20 : null,
    closedAtMs: status === 'closed' ? 30 : null,
  }
}

void test('exactly the transitions of the machine are possible', async (t) => {
  for (const from of INCIDENT_STATUSES) {
    for (const to of INCIDENT_STATUSES) {
      const move = () => advance(standing(from), to, 40)
      if (ALLOWED.has(`${from} ${to}`)) t.equal(move().status, to, `${from} → ${to}`)
      else t.throws(move, { code: 'invalid_transition', details: { from, to } }, `${from} → ${to}`)
    }
  }
})

void test('a reopen clears when it was resolved and closed, and keeps when it was acknowledged', async (t) => {
  t.strictSame(advance(standing('closed'), 'open', 40), { ...OPENED, acknowledgedAtMs: 10 })
})

void test('no sequence of transitions leaves an inconsistent record', async () => {
  const moves = array(
    record({ to: constantFrom(...INCIDENT_STATUSES), waitMs: integer({ min: 0, max: 1_000 }) }),
    { maxLength: 60 },
  )
  assert(
    property(moves, (steps) => {
      let [progress, nowMs] = [OPENED, 1_000]
      for (const { to, waitMs } of steps) {
        nowMs += waitMs
        const before = progress
        try {
          progress = advance(before, to, nowMs)
        } catch {
          if (progress !== before) return false
        }
        if (!isConsistent(progress, nowMs)) return false
      }
      return true
    }),
  )
})

function isConsistent(progress: IncidentProgress, nowMs: number): boolean {
  const { status, acknowledgedAtMs, resolvedAtMs, closedAtMs } = progress
  const isOver = status === 'resolved' || status === 'closed'
  const times = [acknowledgedAtMs, resolvedAtMs, closedAtMs].filter((ms) => ms !== null)
  const inOrder = [...times, nowMs].every((ms, i, all) => i === 0 || (all[i - 1] ?? 0) <= ms)
  return (
    (status === 'open' || acknowledgedAtMs !== null) &&
    (resolvedAtMs !== null) === isOver &&
    (closedAtMs !== null) === (status === 'closed') &&
    inOrder
  )
}
