import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'tap'
import { TRANSITION } from '../../support/transition.js'
import { createSend } from '../../../src/alerting/send.js'

const notice = {
  id: 'notice',
  key: 'key',
  kind: 'transition',
  channelId: 'c',
  transition: TRANSITION,
} as const
const message = { notices: [notice], receipt: null, facts: null, template: null }

void test('a receiver that does not answer is tried again', async (t) => {
  const server = createServer((socket) => void socket.on('error', () => undefined))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo // it listens on TCP
  const send = createSend({ mayBePrivate: true, smtp: null, timeoutMs: 50 })
  const attempt = await send({ type: 'webhook', url: `http://127.0.0.1:${port}/` }, message)
  t.match(attempt, { outcome: 'failed', status: null, error: 'no answer in time' })
})

void test('a name of a forbidden address is final', async (t) => {
  const send = createSend({ mayBePrivate: false, smtp: null })
  const attempt = await send({ type: 'webhook', url: 'http://localhost:9/' }, message)
  t.match(attempt, { outcome: 'refused', status: null, error: /not sent to private addresses/ })
})
