import { createTransport } from 'nodemailer'

export interface Mail {
  readonly to: readonly string[]
  readonly subject: string
  readonly text: string
  /** The id of the message, and the id of the message that it answers. */
  readonly messageId?: string
  readonly references?: string
}

export interface Smtp {
  readonly from: string
  /** @throws when the server does not accept the message */
  readonly send: (mail: Mail) => Promise<void>
  readonly close: () => void
}

/** The settings of mails. */
interface MailSettings {
  readonly smtpUrl: string | null
  readonly mailFrom: string
  readonly allowPlaintext: boolean
}

export interface SmtpSettings {
  /** `smtp://user:password@host:587`, or `smtps://`. */
  readonly url: string
  readonly from: string
  /** Whether the server must speak TLS. */
  readonly requireTls: boolean
}

const TIMEOUT_MS = 30_000

/** @returns null where no mail server is set */
export const openSmtp = ({ smtpUrl: url, mailFrom: from, allowPlaintext }: MailSettings) =>
  url === null ? null : createSmtp({ url, from, requireTls: requiresTls(url, allowPlaintext) })

export function createSmtp({ url, from, requireTls }: SmtpSettings): Smtp {
  const timeouts = { connectionTimeout: TIMEOUT_MS, socketTimeout: TIMEOUT_MS }
  const transport = createTransport({ url, requireTLS: requireTls, ...timeouts })
  return {
    from,
    async send({ to, references, ...mail }) {
      // An address in an object is not parsed, so it stays a single address whatever characters it
      // has.
      const addresses = to.map((address) => ({ name: '', address }))
      const thread = references === undefined ? {} : { inReplyTo: references, references }
      await transport.sendMail({ from, to: addresses, ...mail, ...thread })
    },
    close: () => transport.close(),
  }
}

/** Whether a server may be used without TLS: it is this machine, or plain text is allowed. */
const requiresTls = (url: string, allowPlaintext: boolean): boolean =>
  !allowPlaintext && !/^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(new URL(url).hostname)

/** Whether the mail server refused the message permanently. */
export const isRefused = (error: unknown): boolean =>
  error instanceof Error && 'responseCode' in error && Number(error.responseCode) >= 500
