import { once } from 'node:events'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

interface Test {
  teardown(end: () => Promise<void>): void
}

/** A mail server that keeps what it gets. */
export async function startMailServer(t: Test, options: SMTPServerOptions = {}) {
  const mails: { to: string[]; text: string }[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    ...options,
    onData(stream, { envelope }, done) {
      let text = ''
      stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      stream.on('end', () => {
        mails.push({ to: envelope.rcptTo.map(({ address }) => address), text })
        done()
      })
    },
  })
  server.on('error', () => undefined)
  const listener = server.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { mails, port: address.port }
}
