import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { ENGINE_NICE, WORKER_NICE } from '../../src/lib/nice.js'
import {
  allEvents,
  countOf,
  enginePid,
  ingest,
  KNOWN,
  load,
  logIn,
  settledCount,
  startService,
  tempDataDir,
} from '../support/service.js'
import { signal } from '../support/signals.js'

void test('while the engine is away ingest goes on, the API says so, and counts are exact after', async (t) => {
  const service = await startService(t, { DATA_DIR: tempDataDir(t), ...KNOWN, LOG_LEVEL: 'fatal' })
  const caller = await logIn(service)
  const { pid } = service
  const usual = niceOf(pid, pid)
  const nicer = (of: number, increment: number): number =>
    threadsOf(of).filter((thread) => niceOf(of, thread) === usual + increment).length
  t.equal(nicer(pid, WORKER_NICE), 3, 'two encoders and the miner let the event loop go first')
  t.ok(nicer(enginePid(service), ENGINE_NICE) > 20, 'so does the engine')
  t.equal(sessionOf(enginePid(service)), sessionOf(pid), 'nice values count within a session')
  t.equal(oomOf(enginePid(service)), oomOf(pid) + 100, 'the kernel ends it first')

  let isOver = false
  const senders = [1, 2].map((sender) => load(service, sender, () => isOver))
  await sleep(500)
  let refusals = 0
  signal(enginePid(service), 'SIGKILL')
  for (let isBack = false; !isBack; await sleep(20)) {
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
  signal(enginePid(first), 'SIGKILL')
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

function threadsOf(pid: number): readonly number[] {
  return readdirSync(`/proc/${pid}/task`).map(Number)
}

const oomOf = (pid: number): number => Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'))

/** The niceness of a thread: the 17th field behind its name in brackets. */
const niceOf = (pid: number, thread: number): number => statOf(pid, thread, 16)

/** The session of a process: the 4th field behind its name. */
const sessionOf = (pid: number): number => statOf(pid, pid, 3)

function statOf(pid: number, thread: number, field: number): number {
  const [, fields] = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8').split(') ')
  return Number(fields?.split(' ')[field])
}
