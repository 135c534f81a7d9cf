/*
 * Sends notices to Slack with a bot token. The first message about an alert starts a thread, later
 * ones are replies in it, and the first is edited when the alert resolves.
 */

import type { Attempt } from './attempt.js'
import { post, type PostReply } from './http-post.js'
import type { Message } from './message.js'
import { slackMessage } from './notice-request.js'

interface SlackBot {
  readonly secret: string
  readonly channel: string
  readonly url?: string
}

const API_URL = 'https://slack.com/api'
/** Error codes of Slack for faults of its own, which are tried again. */
const PASSING: ReadonlySet<string> = new Set([
  'internal_error',
  'fatal_error',
  'service_unavailable',
  'request_timeout',
  'ratelimited',
])

type Result = Omit<Attempt, 'latencyMs'>

/** The receipt consists of the channel and the timestamp of the first message about the alert. */
export async function sendToSlack(
  bot: SlackBot,
  message: Message,
  mayBePrivate: boolean,
): Promise<Result> {
  const call = async (method: string, fields: object): Promise<PostReply> =>
    await post({
      url: `${bot.url ?? API_URL}/${method}`,
      headers: { authorization: `Bearer ${bot.secret}` },
      body: JSON.stringify(fields),
      mayBePrivate,
    })
  const { notices, receipt } = message
  const text = slackMessage(message)
  const [channel, ts] = receipt === null || notices.length > 1 ? [] : receipt.split(' ')
  const thread = ts === undefined ? {} : { thread_ts: ts }
  const sent = toResult(
    await call('chat.postMessage', { channel: channel ?? bot.channel, text, ...thread }),
    notices.length === 1,
  )
  const isOver = notices[0]?.transition.to === 'resolved'
  // The thread has the message already, so a failed edit of the first message is not reported.
  if (sent.outcome === 'sent' && ts !== undefined && isOver)
    await call('chat.update', { channel, ts, text }).catch(() => null)
  return sent
}

function toResult({ status, text }: PostReply, isHead: boolean): Result {
  const reply = toObject(text)
  if (status === 200 && reply['ok'] === true) {
    const { channel, ts } = reply
    const receipt = isHead ? `${String(channel)} ${String(ts)}` : null
    return { outcome: 'sent', status, error: null, receipt }
  }
  const said = typeof reply['error'] === 'string' ? reply['error'] : ''
  const passes = status === 429 || status >= 500 || PASSING.has(said)
  const error = /^[a-z_]{1,60}$/.test(said) ? `Slack says ${said}` : `Slack answered ${status}`
  return { outcome: passes ? 'failed' : 'refused', status, error, receipt: null }
}

function toObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
