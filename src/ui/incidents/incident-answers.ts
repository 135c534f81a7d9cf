import type { Priority } from '../../model/event.js'
import { call } from '../lib/api.js'

export const STATUSES = ['open', 'acknowledged', 'investigating', 'resolved', 'closed'] as const
export type Status = (typeof STATUSES)[number]

/** The next statuses of each status; the first is the usual one. */
export const NEXT: Readonly<Record<Status, readonly Status[]>> = {
  open: ['acknowledged', 'investigating', 'resolved'],
  acknowledged: ['investigating', 'resolved'],
  investigating: ['resolved'],
  resolved: ['closed', 'open'],
  closed: ['open'],
}

export const MOVES: Readonly<Record<Status, string>> = {
  open: 'Reopen',
  acknowledged: 'Acknowledge',
  investigating: 'Investigate',
  resolved: 'Resolve',
  closed: 'Close',
}

/** A query with its result at that time. */
export interface Evidence {
  readonly q: string
  readonly from: string
  readonly to: string
  readonly count: number
}

export interface IncidentFacts {
  readonly id: string
  readonly title: string
  readonly description: string
  readonly severity: Priority
  readonly status: Status
  readonly source: string | null
  readonly assignee_id: string | null
  readonly alert_ids: readonly string[]
  readonly event_ids: readonly number[]
  readonly evidence: readonly Evidence[]
  readonly created_by: string
  readonly created_at: string
  readonly updated_at: string
  readonly acknowledged_at: string | null
  readonly resolved_at: string | null
}

export interface Incident extends IncidentFacts {
  readonly timeline: readonly {
    readonly at: string
    readonly actor_id: string
    readonly kind: 'created' | 'changed' | 'transition' | 'note'
    readonly text: string
  }[]
}

/** The initial fields of an incident. */
export interface Draft {
  readonly title: string
  readonly severity: Priority
  readonly source: string | null
  readonly event_ids: readonly number[]
  readonly alert_ids?: readonly string[]
  readonly evidence: readonly Evidence[]
}

export const openIncident = (draft: Draft & { readonly description: string }): Promise<Incident> =>
  call('/api/incidents', { method: 'POST', json: draft })

export const addEvidence = (incident: IncidentFacts, draft: Draft): Promise<Incident> =>
  call(`/api/incidents/${incident.id}`, {
    method: 'PATCH',
    json: {
      event_ids: [...new Set([...incident.event_ids, ...draft.event_ids])],
      evidence: [...incident.evidence, ...draft.evidence],
    },
  })

export const transition = (id: string, to: Status): Promise<Incident> =>
  call(`/api/incidents/${id}/transition`, { method: 'POST', json: { to } })
