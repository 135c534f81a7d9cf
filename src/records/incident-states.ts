import { AppError } from '../model/errors.js'

export const INCIDENT_STATUSES = [
  'open',
  'acknowledged',
  'investigating',
  'resolved',
  'closed',
] as const
export type IncidentStatus = (typeof INCIDENT_STATUSES)[number]

/**
 * open ──▶ acknowledged ──▶ investigating ──▶ resolved ──▶ closed
 * Forward skips up to resolved; resolved and closed ─▶ open is a reopen.
 */
const NEXT = {
  open: ['acknowledged', 'investigating', 'resolved'],
  acknowledged: ['investigating', 'resolved'],
  investigating: ['resolved'],
  resolved: ['closed', 'open'],
  closed: ['open'],
} as const satisfies Record<IncidentStatus, readonly IncidentStatus[]>

/** Where an incident stands, and since when; times in ms since 1970. */
export interface Progress {
  readonly status: IncidentStatus
  /** when it last left `open`, by whichever way; a reopen keeps it */
  readonly acknowledgedAtMs: number | null
  /** set in `resolved` and `closed` only */
  readonly resolvedAtMs: number | null
  /** set in `closed` only */
  readonly closedAtMs: number | null
}

export const OPENED: Progress = {
  status: 'open',
  acknowledgedAtMs: null,
  resolvedAtMs: null,
  closedAtMs: null,
}

/** @throws AppError invalid_transition */
export function advance(progress: Progress, to: IncidentStatus, atMs: number): Progress {
  const { status: from, acknowledgedAtMs, resolvedAtMs } = progress
  const allowed: readonly IncidentStatus[] = NEXT[from]
  if (!allowed.includes(to)) {
    throw new AppError('invalid_transition', `an incident that is ${from} can not become ${to}`, {
      details: { from, to, allowed },
    })
  }
  if (to === 'open') return { ...OPENED, acknowledgedAtMs }
  return {
    status: to,
    acknowledgedAtMs: from === 'open' ? atMs : acknowledgedAtMs,
    resolvedAtMs: to === 'resolved' ? atMs : resolvedAtMs,
    closedAtMs: to === 'closed' ? atMs : null,
  }
}
