import { LRUCache } from 'lru-cache'
import type { Audit } from '../records/audit.js'
import type { Metrics } from '../telemetry/metrics.js'
import { MINUTE_MS } from '../model/time.js'
import { networkOf } from '../http/address.js'

/** The kinds of refused credentials, each with the route and outcome of its entry in the audit trail. */
const KINDS = {
  ingest_key: { action: 'ingest', outcome: 'unauthorized' },
  webhook_signature: { action: 'scmWebhook', outcome: 'invalid_signature' },
  api_token: { action: 'authenticate', outcome: 'unauthorized' },
  refresh_token: { action: 'refresh', outcome: 'refresh_token_reused' },
} as const

export type IntrusionKind = keyof typeof KINDS

/** Wrong or reused credentials, which mean that somebody guesses, or that a sender has an outdated one. */
export interface Intrusions {
  /** Counts the refusal in the metrics, and records it in the audit trail at a limited rate. Never throws. */
  readonly note: (kind: IntrusionKind, from: Intruder) => void
}

interface Intruder {
  readonly address: string
  /** The owner of the credential; '' if there is none. */
  readonly actorId?: string
}

interface IntrusionDeps {
  readonly audit: Pick<Audit, 'record'>
  readonly metrics: Pick<Metrics, 'credentialRefused'>
  readonly nowMs?: () => number
}

/**
 * The audit trail gets an entry a minute for each kind and address, and at most this many in all,
 * because it is kept for 400 days.
 */
const PER_MINUTE = 30
const ADDRESSES = 10_000

export function createIntrusions({ audit, metrics, nowMs = Date.now }: IntrusionDeps): Intrusions {
  /** The number of refusals left out since the last entry, by kind and address. */
  const recent = new LRUCache<string, { untilMs: number; leftOut: number }>({ max: ADDRESSES })
  const all = { untilMs: 0, entries: 0 }

  /**
   * @returns the number of refusals left out before this one; null when this one is left out too
   */
  const take = (key: string): number | null => {
    const own = recent.get(key) ?? { untilMs: 0, leftOut: 0 }
    recent.set(key, own)
    if (nowMs() >= all.untilMs) Object.assign(all, { untilMs: nowMs() + MINUTE_MS, entries: 0 })
    if (nowMs() < own.untilMs || all.entries >= PER_MINUTE) {
      own.leftOut++
      return null
    }
    const { leftOut } = own
    Object.assign(own, { untilMs: nowMs() + MINUTE_MS, leftOut: 0 })
    all.entries++
    return leftOut
  }
  return {
    note: (kind, { address, actorId = '' }) => {
      metrics.credentialRefused(kind)
      const leftOut = take(`${kind} ${networkOf(address)}`)
      if (leftOut === null) return
      const detail = leftOut === 0 ? {} : { left_out: leftOut }
      void audit.record({ ...KINDS[kind], actorId, target: '', ip: address, detail })
    },
  }
}
