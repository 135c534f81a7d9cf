import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { test } from 'tap'
import { createTestPipeline, type TestPipeline } from '../../support/pipeline.js'

/** every thread the pool started, told apart by its file */
const threads: { readonly worker: Worker; readonly isOwner: boolean }[] = []
const workerThreads = createRequire(import.meta.url)('node:worker_threads') as {
  Worker: typeof Worker
} // the object that the pool's package takes its threads from
/** so many of the next threads end while they start; to terminate one then can end the whole process (Node 20: IsGraphAsync) */
const stillborn = { left: 0 }
workerThreads.Worker = class extends workerThreads.Worker {
  constructor(...[file, options]: ConstructorParameters<typeof Worker>) {
    if (stillborn.left > 0) super('process.exit(1)', { ...options, eval: true })
    else super(file, options)
    stillborn.left = Math.max(0, stillborn.left - 1)
    const data = JSON.stringify(options?.workerData ?? null)
    threads.push({ worker: this, isOwner: !data.includes('hashSeed') })
  }
}

/** The thread of the newest pool. */
function threadOf(which: 'encoder' | 'owner'): Worker {
  const living = threads.filter(({ worker }) => worker.threadId > 0)
  const found = living.findLast(({ isOwner }) => isOwner === (which === 'owner'))
  if (found === undefined) throw new Error(`there is no ${which}`)
  return found.worker
}

const kill = async (which: 'encoder' | 'owner'): Promise<void> => {
  await threadOf(which).terminate()
}

const message = (text: string): object => ({ source: 'app', message: text })

const templateIds = async ({ landing }: TestPipeline): Promise<readonly string[]> =>
  (await landing()).map((row) => `${row['message']}: ${row['template_id']}`)

void test('a thread that dies takes its task with it and is replaced', async (t) => {
  const rig = await createTestPipeline(t)
  await rig.send([message('before')])
  const big = Array.from({ length: 60_000 }, (_, i) => message(`long way ${i} ${'x'.repeat(200)}`))
  const lost = rig.send(big)
  await new Promise((resolve) => setTimeout(resolve, 20))
  await kill('encoder')
  await t.rejects(lost, { code: 'dependency_unavailable', details: { dependency: 'workers' } })
  t.match(await rig.send([message('after')]), { accepted: 1 })
  t.same(
    (await rig.landing()).map((row) => row['message']),
    ['before', 'after'],
  )
  t.equal(rig.pipeline.bytes, 0)
})

void test('threads that have much to do are well, and are not asked', async (t) => {
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

void test('a thread that dies without work is replaced as well', async (t) => {
  const rig = await createTestPipeline(t)
  await rig.send([message('before')])
  await kill('encoder')
  t.match(await rig.send([message('after')]), { accepted: 1 })
})

void test("an error in a thread that has nothing to do is nobody else's end", async (t) => {
  const rig = await createTestPipeline(t)
  await rig.send([message('before')])
  for (const which of ['encoder', 'owner'] as const)
    threadOf(which).emit('error', new Error('out of memory'))
  t.match(await rig.send([message('after')]), { accepted: 1 })
  t.match(await rig.send([message('a shape of its own')]), { accepted: 1 })
})

void test('a thread that dies while it starts is replaced until one lives', async (t) => {
  const rig = await createTestPipeline(t)
  await rig.send([message('before')])
  for (const which of ['encoder', 'owner'] as const) {
    stillborn.left = 1
    await kill(which)
    for (const until = Date.now() + 10_000; stillborn.left > 0; await sleep(1))
      if (Date.now() > until) throw new Error('the thread has no successor')
    // which never says that it is ready; the task waits for it, or dies with it
    const told = await rig.send([message(`a shape for the ${which}`)]).catch((e: unknown) => e)
    t.match(told, told instanceof Error ? { code: 'dependency_unavailable' } : { accepted: 1 })
    t.match(await rig.send([message(`a second shape for the ${which}`)]), { accepted: 1 })
  }
})

void test('the owner of the templates begins anew with the numbers and ids it had', async (t) => {
  const rig = await createTestPipeline(t)
  for (let i = 0; i < 10; i++) await rig.send([message(`session ${i} opened`), message('idle')])
  const before = rig.templates.all().map(({ no, id }) => `${no} ${id}`)
  await kill('owner')
  await rig.send([message('a shape of its own'), message('session 77 opened')])
  await rig.send([message('session x-y opened'), message('idle and more')])
  const after = rig.templates.all().map(({ no, id }) => `${no} ${id}`)
  t.same(after.slice(0, before.length), before)
  t.equal(new Set(after.map((line) => line.split(' ')[1])).size, after.length)
  const ids = await templateIds(rig)
  const opened = ids.filter((line) => /session \d/.test(line)).map((line) => line.split(': ')[1])
  t.equal(new Set(opened).size, 1)
})
