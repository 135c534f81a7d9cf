import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../../config.js'
import { backoffMs } from '../../lib/backoff.js'
import type { LogAt } from '../../telemetry/log.js'
import { isRefused, openSmtp, type Smtp } from '../../lib/smtp.js'

export interface Notice {
  readonly to: string
  readonly subject: string
  readonly text: string
}

export interface Mailer {
  /** Queues a notice for sending. Never throws. */
  readonly send: (notice: Notice) => void
  readonly close: () => void
}

interface MailerDeps {
  readonly smtp: Smtp
  readonly log: LogAt<'warn'>
  readonly retry?: { readonly baseMs: number; readonly maxMs: number }
}

/** The most notices that wait for the mail server; beyond it the oldest is dropped. */
const WAITING = 1_000
/** With the pauses between them, the attempts take some ten minutes. */
const ATTEMPTS = 8
const RETRY = { baseMs: 2_000, maxMs: 300_000 }

/** @returns null when no mail server is set */
export function openMailer(config: Config, log: LogAt<'warn'>): Mailer | null {
  const smtp = openSmtp(config)
  return smtp === null ? null : createMailer({ smtp, log })
}

/** Sends notices one after another over SMTP. */
export function createMailer({ smtp, log, retry = RETRY }: MailerDeps): Mailer {
  const queue: Notice[] = []
  const end = new AbortController()
  let isSending = false

  const deliver = async ({ to, subject, text }: Notice): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      try {
        await smtp.send({ to: [to], subject, text })
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
      smtp.close()
    },
  }
}
