import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { TRANSITION } from '../../support/transition.js'
import { createDeliveryLog } from '../../../src/alerting/delivery-log.js'
import { AppError } from '../../../src/model/errors.js'
import { createLog } from '../../../src/telemetry/log.js'

const notice = (id: string) =>
  ({ id, key: id, kind: 'transition', channelId: 'c', transition: TRANSITION }) as const

/** A log whose ClickHouse is away as long as it says so. */
function createAway() {
  const stored: (readonly object[])[] = []
  const world = { isAway: true, stored }
  const log = createDeliveryLog(
    {
      query: async () => [],
      insertRows: async (_table, rows) => {
        if (world.isAway) throw new AppError('dependency_unavailable', 'clickhouse is away')
        stored.push([...rows])
      },
    },
    createLog('silent'),
  )
  return { world, log }
}

void test('what was sent while ClickHouse was away is recorded when it is back', async (t) => {
  const { world, log } = createAway()
  log.record({ notice: notice('n1'), attempt: 1, outcome: 'sent', receipt: 'C1 17.5' })
  await sleep(10)
  log.record({ notice: notice('n2'), attempt: 1, outcome: 'sent' })
  t.equal(await log.receiptOf('alert', 'c'), 'C1 17.5', 'its message is known meanwhile')
  world.isAway = false
  while (world.stored.length === 0) await sleep(20)
  t.match(world.stored, [[{ notice_id: 'n1' }, { notice_id: 'n2' }]])
  t.equal(await log.receiptOf('alert', 'c'), null, 'ClickHouse is asked again')
  await log.close()
})

void test('the end does not wait for a ClickHouse that is away', async (t) => {
  const { world, log } = createAway()
  log.record({ notice: notice('n1'), attempt: 1, outcome: 'sent' })
  await sleep(10)
  await log.close()
  t.same(world.stored, [])
})
