import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { test } from 'tap'
import { createTestPipeline, type TestPipeline } from '../../support/pipeline.js'

/** All threads of the pools. */
const threads: { readonly worker: Worker; readonly isMiner: boolean; isReady: boolean }[] = []
const workerThreads = createRequire(import.meta.url)('node:worker_threads') as {
  Worker: typeof Worker
} // the module object from which Piscina reads the class
/** The next `left` threads exit at their start. Terminating a thread then can end the whole process (Node 20: IsGraphAsync). */
const stillborn = { left: 0 }
workerThreads.Worker = class extends workerThreads.Worker {
  constructor(...[file, options]: ConstructorParameters<typeof Worker>) {
    if (stillborn.left > 0) super('process.exit(1)', { ...options, eval: true })
    else super(file, options)
    stillborn.left = Math.max(0, stillborn.left - 1)
    const data = JSON.stringify(options?.workerData ?? null)
    const thread = { worker: this, isMiner: !data.includes('identity'), isReady: false }
    // The first message says that the thread is ready.
    this.once('message', () => (thread.isReady = true))
    threads.push(thread)
  }
}

function threadsOf(which: 'encoder' | 'miner'): readonly Worker[] {
  const found = threads
    .filter(({ worker, isMiner }) => worker.threadId > 0 && isMiner === (which === 'miner'))
    .map(({ worker }) => worker)
  if (found.length === 0) throw new Error(`there is no ${which}`)
  return found
}

/** Kills a thread that is ready; Piscina does not replace others until it needs them. */
const kill = async (which: 'encoder' | 'miner'): Promise<void> => {
  const isReady = (): boolean =>
    threads.every(({ worker, isReady: ready }) => ready || worker.threadId <= 0)
  for (const until = Date.now() + 10_000; !isReady() && Date.now() < until;) await sleep(5)
  await threadsOf(which).at(-1)?.terminate()
}

const message = (text: string): object => ({ source: 'app', message: text })

const templateIds = async ({ landing }: TestPipeline): Promise<readonly string[]> =>
  (await landing()).map((row) => `${row['message']}: ${row['template_id']}`)

void test('a thread that dies fails its task and is replaced', async (t) => {
  const rig = await createTestPipeline(t)
  await rig.send([message('before')])
  const big = Array.from({ length: 60_000 }, (_, i) => message(`long way ${i} ${'x'.repeat(200)}`))
  const lost = rig.send(big)
  let isLost = false
  lost.catch(() => (isLost = true))
  await sleep(20)
  for (const thread of threadsOf('encoder')) {
    if (!isLost) await thread.terminate()
    await sleep(20)
  }
  await t.rejects(lost, { code: 'dependency_unavailable', details: { dependency: 'workers' } })
  t.match(await rig.send([message('after')]), { accepted: 1 })
  t.same(
    (await rig.landing()).map((row) => row['message']),
    ['before', 'after'],
  )
  t.equal(rig.pipeline.bytes, 0)
})

void test('busy threads are alive without a ping', async (t) => {
  const rig = await createTestPipeline(t)
  await rig.send([message('before')])
  const big = Array.from({ length: 60_000 }, (_, i) => message(`long way ${i} ${'x'.repeat(200)}`))
  let isDone = false
  const sent = rig.send(big).finally(() => (isDone = true))
  await new Promise((resolve) => setTimeout(resolve, 20))
  await rig.pool.ping()
  t.equal(isDone, false, 'it was answered first')
  t.match(await sent, { accepted: 60_000 })
})

void test('an idle thread that dies is replaced', async (t) => {
  const rig = await createTestPipeline(t)
  await rig.send([message('before')])
  await kill('encoder')
  t.match(await rig.send([message('after')]), { accepted: 1 })
})

void test('an error in an idle thread does not affect other threads', async (t) => {
  const rig = await createTestPipeline(t)
  await rig.send([message('before')])
  for (const which of ['encoder', 'miner'] as const)
    threadsOf(which).at(-1)?.emit('error', new Error('out of memory'))
  t.match(await rig.send([message('after')]), { accepted: 1 })
  t.match(await rig.send([message('a signature of its own')]), { accepted: 1 })
})

void test('threads that die at their start are replaced until one lives', async (t) => {
  const rig = await createTestPipeline(t)
  // Neither idle threads nor the wait for a successor keep a process without ports alive.
  const alive = setInterval(() => undefined, 1_000)
  t.teardown(() => clearInterval(alive))
  await rig.send([message('before')])
  for (const which of ['encoder', 'miner'] as const) {
    stillborn.left = 1
    await kill(which)
    for (const until = Date.now() + 10_000; stillborn.left > 0; await sleep(1))
      if (Date.now() > until) throw new Error('the thread has no successor')
    // The dead thread never reports that it is ready, so the task waits for its successor or fails.
    const outcome = await rig
      .send([message(`a signature for the ${which}`)])
      .catch((e: unknown) => e)
    t.match(
      outcome,
      outcome instanceof Error ? { code: 'dependency_unavailable' } : { accepted: 1 },
    )
    t.match(await rig.send([message(`a second signature for the ${which}`)]), { accepted: 1 })
  }
})

void test("a new miner's thread has the numbers and ids of the one before", async (t) => {
  const rig = await createTestPipeline(t)
  for (let i = 0; i < 10; i++) await rig.send([message(`session ${i} opened`), message('idle')])
  const before = rig.templates.all().map(({ no, id }) => `${no} ${id}`)
  await kill('miner')
  await rig.send([message('a signature of its own'), message('session 77 opened')])
  await rig.send([message('session x-y opened'), message('idle and more')])
  const after = rig.templates.all().map(({ no, id }) => `${no} ${id}`)
  t.same(after.slice(0, before.length), before)
  t.equal(new Set(after.map((line) => line.split(' ')[1])).size, after.length)
  const ids = await templateIds(rig)
  const opened = ids.filter((line) => /session \d/.test(line)).map((line) => line.split(': ')[1])
  t.equal(new Set(opened).size, 1)
})

void test('a closed pool starts no thread', async (t) => {
  const { pool } = await createTestPipeline(t)
  await pool.ping()
  await pool.close()
  const started = threads.length
  // A thread that dies is replaced after a tenth of a second.
  await sleep(300)
  t.equal(threads.length, started)
})
