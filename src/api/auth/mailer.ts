import { setTimeout as sleep } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import type { Config } from '../../config.js'
import { backoffMs } from '../../lib/backoff.js'

export interface Notice {
  readonly to: string
  readonly subject: string
  readonly text: string
}

export interface Mailer {
  /** Sends it when it can. Never throws. */
  readonly send: (notice: Notice) => void
  readonly close: () => void
}

interface MailerDeps {
  /** `smtp://user:password@host:587`, or `smtps://`. */
  readonly url: string
  readonly from: string
  /** Whether the server must speak TLS. */
  readonly requireTls: boolean
  readonly log: { warn(fields: object, text: string): void }
  readonly retry?: { readonly baseMs: number; readonly maxMs: number }
}

/** Notices that wait for the mail server; the oldest of more is lost. */
const WAITING = 1_000
/** With the pauses between them some ten minutes. */
const ATTEMPTS = 8
const RETRY = { baseMs: 2_000, maxMs: 300_000 }
const TIMEOUT_MS = 30_000

/** @returns null where no mail server is set */
export function openMailer(
  { smtpUrl, mailFrom, allowPlaintext }: Config,
  log: MailerDeps['log'],
): Mailer | null {
  if (smtpUrl === null) return null
  const isHere = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(new URL(smtpUrl).hostname)
  const requireTls = !isHere && !allowPlaintext
  return createMailer({ url: smtpUrl, from: mailFrom, requireTls, log })
}

/** Sends notices one after another over SMTP. */
export function createMailer({ url, from, requireTls, log, retry = RETRY }: MailerDeps): Mailer {
  const timeouts = { connectionTimeout: TIMEOUT_MS, socketTimeout: TIMEOUT_MS }
  const transport = createTransport({ url, requireTLS: requireTls, ...timeouts })
  const queue: Notice[] = []
  const end = new AbortController()
  let isSending = false

  const deliver = async ({ to, subject, text }: Notice): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      try {
        // As an object the address is not parsed, so that it is one address whatever characters it has.
        await transport.sendMail({ from, to: { name: '', address: to }, subject, text })
        return
      } catch (err) {
        if (isRefused(err) || attempt === ATTEMPTS || end.signal.aborted)
          return log.warn({ err }, 'a notice to a user was not sent')
      }
      await sleep(backoffMs(attempt, retry), undefined, { signal: end.signal }).catch(
        () => undefined,
      )
    }
  }
  const run = async (): Promise<void> => {
    if (isSending) return
    isSending = true
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await deliver(next)
    isSending = false
  }
  return {
    send: (notice) => {
      if (end.signal.aborted) return
      if (queue.length >= WAITING) {
        queue.shift()
        log.warn({}, 'too many notices to users wait; the oldest is lost')
      }
      queue.push(notice)
      void run()
    },
    close: () => {
      end.abort()
      queue.length = 0
      transport.close()
    },
  }
}

/** Whether the mail server will not take it later either. */
const isRefused = (error: unknown): boolean =>
  error instanceof Error && 'responseCode' in error && Number(error.responseCode) >= 500
