import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { eventually } from '../support/live-service.js'
import {
  allEvents,
  countOf,
  KNOWN,
  load,
  logIn,
  settledCount,
  startService,
  tempDataDir,
} from '../support/service.js'

void test('nothing acknowledged is lost or counted twice when the service is killed under load', async (t) => {
  const dataDir = tempDataDir(t)
  let acknowledged = 0
  // A request at the time of the kill may have become durable without a reply.
  let inTheAir = 0
  for (const afterMs of [900, 250]) {
    const service = await startService(t, { DATA_DIR: dataDir, ...KNOWN })
    let isOver = false
    let taken = 0
    const senders = [1, 2, 3].map((sender) =>
      load(
        service,
        sender,
        () => isOver,
        (count) => (taken = count),
      ),
    )
    await eventually(
      async () => taken,
      (count) => count > 0,
    )
    await sleep(afterMs)
    const ended = service.kill()
    isOver = true
    await ended
    acknowledged += (await Promise.all(senders)).reduce((sum, n) => sum + n, 0)
    inTheAir += senders.length * 50
  }
  const service = await startService(t, { DATA_DIR: dataDir, ...KNOWN })
  const caller = await logIn(service)
  const counted = await settledCount(() => countOf(caller, 'load'), acknowledged)
  t.comment(`${acknowledged} acknowledged, ${counted} counted`)
  t.ok(acknowledged > 0)
  t.ok(counted >= acknowledged, `${acknowledged - counted} are lost`)
  t.ok(counted <= acknowledged + inTheAir, `${counted - acknowledged} too many`)
  t.equal(counted % 50, 0, 'bodies are whole')
  const events = await allEvents(caller, { source: 'load' })
  t.equal(
    events.reduce((sum, event) => sum + event.occurrence_count, 0),
    counted,
  )
  t.equal(new Set(events.map(({ id }) => id)).size, events.length)
  const jobs = events.filter(({ message }) => message.startsWith('job'))
  t.ok(
    jobs.every((event) => event.occurrence_count <= 2),
    'the same names were sent in two runs at most',
  )
  await service.stop()
})
