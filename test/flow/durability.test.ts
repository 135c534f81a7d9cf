import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import {
  allEvents,
  countOf,
  enginePid,
  ingest,
  KNOWN,
  logIn,
  settledCount,
  startService,
  tempDataDir,
  type Counts,
  type Service,
} from '../support/service.js'

/** Sends bodies one after the other until told to stop. @returns what was acknowledged */
async function load(service: Service, sender: number, isOver: () => boolean): Promise<number> {
  let acknowledged = 0
  for (let body = 0; !isOver(); body++) {
    const events = Array.from({ length: 50 }, (_, i) => ({
      source: 'load',
      // a third repeats what came before, the others are new
      message: i % 3 === 0 ? 'heartbeat missed' : `job ${sender}-${body}-${i} finished`,
    }))
    const text = events.map((event) => JSON.stringify(event)).join('\n')
    const response = await ingest(service, text).catch(() => null)
    if (response?.status !== 202) continue
    const counts = (await response.json().catch(() => null)) as Counts | null // of the collector
    acknowledged += counts?.accepted ?? 0
  }
  return acknowledged
}

void test('nothing acknowledged is lost or counted twice when the service is killed under load', async (t) => {
  const dataDir = tempDataDir(t)
  let acknowledged = 0
  // what was in the air at a kill may have become durable without its answer
  let inTheAir = 0
  for (const afterMs of [900, 250]) {
    const service = await startService(t, { DATA_DIR: dataDir, ...KNOWN })
    let isOver = false
    const senders = [1, 2, 3].map((sender) => load(service, sender, () => isOver))
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

void test('while the engine is away ingest goes on, the API says so, and counts are exact after', async (t) => {
  const service = await startService(t, { DATA_DIR: tempDataDir(t), ...KNOWN, LOG_LEVEL: 'fatal' })
  const caller = await logIn(service)
  let isOver = false
  const senders = [1, 2].map((sender) => load(service, sender, () => isOver))
  await sleep(500)
  let refusals = 0
  process.kill(enginePid(service), 'SIGKILL')
  const killedAt = Date.now()
  for (let isBack = false; !isBack && Date.now() - killedAt < 20_000; await sleep(20)) {
    const reply = await caller.call('GET', '/api/logs?limit=1')
    isBack = reply.status === 200
    if (isBack) continue
    refusals++
    t.match(
      { status: reply.status, body: await reply.json(), retry: reply.headers.get('retry-after') },
      {
        status: 503,
        body: {
          detail: { code: 'dependency_unavailable', details: { dependency: 'clickhouse' } },
        },
        retry: /^\d+$/,
      },
    )
  }
  // the engine is found anew before it is ended again
  await sleep(500)
  t.ok(refusals > 0, 'the API noticed')
  isOver = true
  const acknowledged = (await Promise.all(senders)).reduce((sum, n) => sum + n, 0)
  t.ok(acknowledged > 0)
  t.equal(await settledCount(() => countOf(caller, 'load'), acknowledged), acknowledged)
  const events = await allEvents(caller, { source: 'load' })
  t.equal(
    events.reduce((sum, event) => sum + event.occurrence_count, 0),
    acknowledged,
  )
  t.match(await service.stop(), { code: 0 })
})

void test('messages that the engine never saw are there after a restart', async (t) => {
  const dataDir = tempDataDir(t)
  const first = await startService(t, { DATA_DIR: dataDir, ...KNOWN, LOG_LEVEL: 'fatal' })
  await ingest(first, JSON.stringify({ source: 'known', message: 'before' }))
  process.kill(enginePid(first), 'SIGKILL')
  const lines = Array.from({ length: 300 }, (_, i) =>
    JSON.stringify({ source: 'fresh', message: `m ${i}` }),
  )
  t.equal((await ingest(first, lines.join('\n'))).status, 202)
  await first.kill()
  const second = await startService(t, { DATA_DIR: dataDir, ...KNOWN })
  const caller = await logIn(second)
  t.equal(await settledCount(() => countOf(caller, 'fresh'), 300), 300)
  const sources = await caller.get<readonly { name: string }[]>('/api/sources')
  t.same(
    sources.map(({ name }) => name),
    ['fresh', 'known'],
    'its source is registered as well',
  )
  await second.stop()
})
