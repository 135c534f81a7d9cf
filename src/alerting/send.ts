/* Sends a notice once, and tells how it went. */

import { AddressError } from './addresses.js'
import type { Target } from './channel.js'
import { post } from './http-post.js'
import { toRequest, type Notice } from './notice.js'

export interface Attempt {
  readonly outcome: 'sent' | 'refused' | 'failed'
  /** Of HTTP; null without a reply. */
  readonly status: number | null
  readonly latencyMs: number
  /** Holds no secret; null when it was sent. */
  readonly error: string | null
  /** What the receiver calls its message; null where it has no name. */
  readonly receipt: string | null
}

/** These pass; any other 4xx is final. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 425, 429])

/** @param notices one; or several, for a channel that has digests */
export type Send = (target: Target, notices: readonly Notice[]) => Promise<Attempt>

export const createSend =
  (mayBePrivate: boolean): Send =>
  async (target, notices) => {
    const sinceMs = performance.now()
    const result = await call(target, notices, mayBePrivate).catch(toFailure)
    return { ...result, latencyMs: Math.round(performance.now() - sinceMs) }
  }

type Result = Omit<Attempt, 'latencyMs'>

async function call(
  target: Target,
  notices: readonly Notice[],
  mayBePrivate: boolean,
): Promise<Result> {
  const { status } = await post({ ...toRequest(target, notices, Date.now()), mayBePrivate })
  if (status >= 200 && status < 300) return { outcome: 'sent', status, error: null, receipt: null }
  const error = `the receiver answered ${status}`
  const isFinal = status >= 300 && status < 500 && !PASSING_STATUSES.has(status)
  return { outcome: isFinal ? 'refused' : 'failed', status, error, receipt: null }
}

/** Messages of libraries may quote what was sent, so only the kind of an error is told. */
function toFailure(error: unknown): Result {
  if (error instanceof AddressError)
    return { outcome: 'refused', status: null, error: error.message, receipt: null }
  const code: unknown = Object(error).code
  const isTimeout = error instanceof Error && error.name === 'TimeoutError'
  const told = isTimeout ? 'no answer in time' : typeof code === 'string' ? code : 'no connection'
  return { outcome: 'failed', status: null, error: told, receipt: null }
}
