/* Sends a notice once, and tells how it went. */

import type { Smtp } from '../lib/smtp.js'
import { AddressError } from './addresses.js'
import type { Attempt } from './attempt.js'
import type { Target } from './channel.js'
import { sendMail } from './email.js'
import { post } from './http-post.js'
import type { Message } from './message.js'
import { plainText, slackMessage, toRequest } from './notice.js'
import { sendToSlack } from './slack-bot.js'

/** These pass; any other 4xx is final. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 425, 429])

export type Send = (target: Target, message: Message) => Promise<Attempt>

interface SendDeps {
  readonly mayBePrivate: boolean
  /** Null where no mail server is set. */
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

/** Messages of libraries may quote what was sent, so only the kind of an error is told. */
function toFailure(error: unknown): Result {
  if (error instanceof AddressError)
    return { outcome: 'refused', status: null, error: error.message, receipt: null }
  const code: unknown = Object(error).code
  // A request is aborted by its time-out alone.
  const isTimeout = error instanceof Error && error.name === 'AbortError'
  const reason = isTimeout ? 'no answer in time' : typeof code === 'string' ? code : 'no connection'
  return { outcome: 'failed', status: null, error: reason, receipt: null }
}

/** What a message says, without secrets. */
export function shownRequest(target: Target, message: Message): string {
  if (target.type === 'email') return plainText(message)
  if (target.type === 'slack_bot') return slackMessage(message)
  const { secret: _secret, ...open } = { secret: '', ...target }
  return toRequest({ ...open, secret: HIDDEN } as typeof target, message, Date.now()).body // the same kind
}
const HIDDEN = 'https://hidden.invalid/'
