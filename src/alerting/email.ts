import { createHash } from 'node:crypto'

import { isRefused, type Smtp } from '../lib/smtp.js'
import type { Attempt } from './attempt.js'
import { textOf, type Message } from './message.js'
import { plainText } from './notice-request.js'
import type { Notice } from './notices.js'

/** Sends notices as one mail. Later mails about an alert are replies to its first one, so that mail programs show a thread. */
export async function sendMail(
  smtp: Smtp | null,
  to: readonly string[],
  message: Message,
): Promise<Omit<Attempt, 'latencyMs'>> {
  if (smtp === null) return failure('refused', 'SMTP_URL is not set')
  const { title } = textOf(message, (text) => text)
  try {
    // A line break in a subject would begin another header.
    const subject = title.replaceAll(/[\r\n]+/g, ' ')
    const text = `${plainText(message).replace('\n', '\n\n')}\n`
    await smtp.send({ to, subject, text, ...threadOf(message.notices, smtp.from) })
    return { outcome: 'sent', status: null, error: null, receipt: null }
  } catch (error) {
    return failure(isRefused(error) ? 'refused' : 'failed', reasonOf(error))
  }
}

/** The server's text may quote a mail address, so it is left out. */
function reasonOf(error: unknown): string {
  const code: unknown = Object(error).responseCode
  return typeof code === 'number'
    ? `the mail server said ${code}`
    : 'the mail server did not answer'
}

const failure = (outcome: 'refused' | 'failed', error: string) => ({
  outcome,
  status: null,
  error,
  receipt: null,
})

function threadOf(notices: readonly Notice[], from: string) {
  const domain = /@([\w.-]+)/.exec(from)?.[1] ?? 'localhost'
  const idOf = (name: string): string => `<${name}@${domain}>`
  const [notice, ...others] = notices
  if (notice === undefined || others.length > 0) {
    const ids = notices.map(({ id }) => id).join(' ')
    return { messageId: idOf(createHash('sha256').update(ids).digest('hex').slice(0, 32)) }
  }
  const { alertId, to } = notice.transition
  const first = idOf(`${alertId ?? notice.id}.${notice.channelId}`)
  const isFirst = to === 'firing' && notice.kind === 'transition'
  return isFirst ? { messageId: first } : { messageId: idOf(notice.id), references: first }
}
