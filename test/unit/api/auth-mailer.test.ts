/** Notices to users over SMTP, with a real server. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test, type Test } from 'tap'
import { createMailer } from '../../../src/api/auth/mailer.js'
import { createSmtp } from '../../../src/lib/smtp.js'
import { startMailServer } from '../../support/mail-server.js'
import { until } from '../../support/state-contract.js'

const notice = (to: string) => ({ to, subject: 'Your account', text: 'It was changed.\n' })
const retry = { baseMs: 1, maxMs: 5 }
const from = 'logs@example.com'

function mailer(t: Test, url: string, requireTls = false) {
  const warnings: string[] = []
  const log = { warn: (_fields: object, text: string) => void warnings.push(text) }
  const made = createMailer({ smtp: createSmtp({ url, from, requireTls }), log, retry })
  t.teardown(() => made.close())
  return { ...made, warnings }
}

void test('a notice reaches the one address of its user', async (t) => {
  const { mails, port } = await startMailServer(t)
  const { send, warnings } = mailer(t, `smtp://127.0.0.1:${port}`)
  send(notice('ann@example.com'))
  send(notice('eve,ann@example.com'))
  await until(() => mails.length + warnings.length === 2)
  t.same(mails[0]?.to, ['ann@example.com'])
  t.match(mails[0]?.text, /From: logs@example\.com\r\nTo: .*ann@example\.com/)
  t.match(mails[0]?.text, /Subject: Your account\r\n[^]*It was changed\./)
  t.ok(
    mails.every(({ to }) => to.length === 1 && to[0] !== 'eve'),
    'a comma makes no two addresses',
  )
})

void test('a server that is busy is tried again, one that refuses is not', async (t) => {
  let tries = 0
  const { mails, port } = await startMailServer(t, {
    onRcptTo({ address }, _session, done) {
      tries++
      const code = address.startsWith('no') ? 550 : 451
      done(tries < 3 ? Object.assign(new Error('not now'), { responseCode: code }) : null)
    },
  })
  const { send, warnings } = mailer(t, `smtp://127.0.0.1:${port}`)
  send(notice('ann@example.com'))
  await until(() => mails.length === 1)
  t.equal(tries, 3)
  tries = 0
  send(notice('no@example.com'))
  await until(() => warnings.length === 1)
  t.equal(tries, 1)
  t.same(warnings, ['a notice to a user was not sent'])
})

void test('without TLS nothing is sent where it is required', async (t) => {
  const { mails, port } = await startMailServer(t)
  const { send, warnings } = mailer(t, `smtp://127.0.0.1:${port}`, true)
  send(notice('ann@example.com'))
  await until(() => warnings.length === 1)
  t.same(mails, [])
})

void test('a server that is away delays nobody, and the queue is bounded', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const address = taken.address()
  const port = address === null || typeof address === 'string' ? 0 : address.port
  await new Promise<void>((resolve) => taken.close(() => resolve()))
  const { send, close, warnings } = mailer(t, `smtp://127.0.0.1:${port}`)
  for (let i = 0; i < 1_100; i++) send(notice(`u${i}@example.com`))
  t.ok(warnings.filter((text) => text.startsWith('too many')).length >= 99)
  close()
  send(notice('late@example.com'))
})
