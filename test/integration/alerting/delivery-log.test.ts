import { test } from 'tap'
import { createDeliveryLog } from '../../../src/alerting/delivery-log.js'
import { createAlertLog, type LoggedTransition } from '../../../src/alerting/alert-log.js'
import { INACTIVE } from '../../../src/alerting/machine.js'
import { noticesOf } from '../../../src/alerting/notices.js'
import { DAY_MS } from '../../../src/model/time.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { applySchema } from '../../support/landing.js'
import { createLog } from '../../../src/telemetry/log.js'

const transition = (id: string, atMs: number): LoggedTransition => ({
  id,
  ruleId: 'rule',
  ruleVersion: 1,
  ruleName: 'rule',
  severity: 'P2',
  groupBy: ['host'],
  group: [id],
  from: 'inactive',
  to: 'firing',
  atMs,
  alertId: `alert of ${id}`,
  value: 1,
  q: '',
  windowFromMs: atMs - 1_000,
  windowToMs: atMs,
  startedAtMs: atMs,
  channels: ['channel'],
  reason: null,
  status: { ...INACTIVE, state: 'firing', seq: 1, flips: [] },
})

void test('what is kept back for longer than a day is not forgotten', async (t) => {
  const server = await startTestServer()
  const { store, drop } = await createTestDatabase(server)
  t.teardown(async () => {
    await drop()
    await server.stop()
  })
  await applySchema(store)
  const nowMs = Date.now()
  const all = {
    held: transition('held', nowMs - 3 * DAY_MS),
    'sent later': transition('sent later', nowMs - 3 * DAY_MS),
    old: transition('old', nowMs - 3 * DAY_MS),
    new: transition('new', nowMs - 1_000),
  }
  const silent = createLog('silent')
  await createAlertLog(store, silent).append(Object.values(all), new AbortController().signal)
  const log = createDeliveryLog(store, silent)
  const record = (of: LoggedTransition, attempt: number, outcome: 'held' | 'sent'): void => {
    for (const notice of noticesOf(of)) log.record({ notice, attempt, outcome })
  }
  record(all.held, 0, 'held')
  record(all['sent later'], 0, 'held')
  record(all['sent later'], 1, 'sent')
  record(all.old, 1, 'sent')
  await log.close()
  const recent: string[] = []
  for await (const some of log.recent()) recent.push(...some.map(({ id }) => id))
  t.same(recent, ['held', 'new'])
})
