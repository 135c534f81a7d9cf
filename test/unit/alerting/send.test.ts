import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'tap'
import { createSend } from '../../../src/alerting/send.js'
import { INACTIVE } from '../../../src/alerting/machine.js'
import type { LoggedTransition } from '../../../src/alerting/log.js'

const TRANSITION: LoggedTransition = {
  id: 'transition',
  ruleId: 'rule',
  ruleVersion: 1,
  ruleName: 'rule',
  severity: 'P2',
  groupBy: [],
  group: [],
  from: 'inactive',
  to: 'firing',
  atMs: 0,
  alertId: 'alert',
  value: 1,
  q: '',
  windowFromMs: 0,
  windowToMs: 0,
  reason: null,
  status: { ...INACTIVE, state: 'firing', seq: 1, flips: [] },
}
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
