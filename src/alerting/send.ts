/* Makes one attempt to send a notice and returns its outcome. */

import type { Smtp } from '../lib/smtp.js'
import { AddressError } from './addresses.js'
import type { Attempt } from './attempt.js'
import type { Target } from './channel.js'
import { sendMail } from './email.js'
import { post } from './http-post.js'
import type { Message } from './message.js'
import { plainText, slackMessage, toRequest } from './notice-request.js'
import { sendToSlack } from './slack-bot.js'

/** Statuses of 4xx that are tried again; any other 4xx is final. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 425, 429])

export type Send = (target: Target, message: Message) => Promise<Attempt>

interface SendDeps {
  readonly mayBePrivate: boolean
  /** Null when no mail server is set. */
  readonly smtp: Smtp | null
  /** How long a receiver may take; by default that of a POST request. */
  readonly timeoutMs?: number
}

export const createSend =
  (deps: SendDeps): Send =>
  async (target, message) => {
    const sinceMs = performance.now()
    const result = await call(deps, target, message).catch(toFailure)
    return { ...result, latencyMs: Math.round(performance.now() - sinceMs) }
  }

type Result = Omit<Attempt, 'latencyMs'>

async function call(
  { mayBePrivate, smtp, timeoutMs }: SendDeps,
  target: Target,
  message: Message,
): Promise<Result> {
  if (target.type === 'email') return await sendMail(smtp, target.to, message)
  if (target.type === 'slack_bot') return await sendToSlack(target, message, mayBePrivate)
  const posted = toRequest(target, message, Date.now())
  const { status } = await post({ ...posted, mayBePrivate, ...(timeoutMs && { timeoutMs }) })
  if (status >= 200 && status < 300) return { outcome: 'sent', status, error: null, receipt: null }
  const error = `the receiver answered ${status}`
  const isFinal = status >= 300 && status < 500 && !PASSING_STATUSES.has(status)
  return { outcome: isFinal ? 'refused' : 'failed', status, error, receipt: null }
}

/** Error messages of libraries may quote what was sent, so only the kind of error is kept. */
function toFailure(error: unknown): Result {
  if (error instanceof AddressError)
    return { outcome: 'refused', status: null, error: error.message, receipt: null }
  const code: unknown = Object(error).code
  // Only the time-out aborts a request.
  const isTimeout = error instanceof Error && error.name === 'AbortError'
  const reason = isTimeout ? 'no answer in time' : typeof code === 'string' ? code : 'no connection'
  return { outcome: 'failed', status: null, error: reason, receipt: null }
}

/** The request of a message with its secrets hidden, for previews. */
export function shownRequest(target: Target, message: Message): string {
  if (target.type === 'email') return plainText(message)
  if (target.type === 'slack_bot') return slackMessage(message)
  const { secret: _secret, ...open } = { secret: '', ...target }
  return toRequest({ ...open, secret: HIDDEN } as typeof target, message, Date.now()).body // the same kind
}
const HIDDEN = 'https://hidden.invalid/'
