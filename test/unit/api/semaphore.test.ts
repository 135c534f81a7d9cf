import t from 'tap'
import { createFairSemaphore, createSemaphore } from '../../../src/api/semaphore.js'

/** A task with functions that end it. */
function controlledTask() {
  let end = (): void => undefined
  const done = new Promise<void>((resolve) => {
    end = resolve
  })
  return { end, work: () => done }
}

t.test('tasks beyond the limit wait in order, and more are refused', async (t) => {
  const inTurn = createSemaphore({ atOnce: 2, waiting: 2, refusal: () => new Error('full') })
  const all = Array.from({ length: 4 }, controlledTask)
  const begun: number[] = []
  const ended = all.map(({ work }, i) =>
    inTurn(async () => {
      begun.push(i)
      await work()
      return i
    }),
  )
  t.same(begun, [0, 1])
  await t.rejects(
    inTurn(() => Promise.resolve()),
    { message: 'full' },
  )
  all[1]?.end()
  t.equal(await ended[1], 1)
  t.same(begun, [0, 1, 2])
  for (const one of all) one.end()
  t.same(await Promise.all(ended), [0, 1, 2, 3])
  t.same(begun, [0, 1, 2, 3])
})

t.test('a task that fails frees its place', async (t) => {
  const inTurn = createSemaphore({ atOnce: 1, waiting: 1, refusal: () => new Error('full') })
  const failed = inTurn(() => Promise.reject(new Error('failed')))
  const next = inTurn(() => Promise.resolve('next'))
  await t.rejects(failed, { message: 'failed' })
  t.equal(await next, 'next')
  t.equal(await inTurn(() => Promise.resolve('later')), 'later')
})

t.test('keys take turns, each within its own limit and in order', async (t) => {
  const fair = createFairSemaphore({
    atOnce: 3,
    perKey: 2,
    waitingPerKey: 10,
    refusal: () => new Error('full'),
  })
  const begun: string[] = []
  const tasks = new Map<string, () => void>()
  const start = (name: string): Promise<void> =>
    fair(name.slice(0, 1), async () => {
      begun.push(name)
      const { end, work } = controlledTask()
      tasks.set(name, end)
      await work()
    })
  const end = async (name: string): Promise<void> => {
    tasks.get(name)?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'].map(start)
  await new Promise((resolve) => setImmediate(resolve))
  t.same(begun, ['a1', 'a2', 'b1'], 'two of the first, then one of the next')
  await end('a1')
  t.same(begun.slice(3), ['c1'], 'who has none running')
  await end('b1')
  t.same(begun.slice(4), ['b2'], 'who has the fewest running')
  await end('a2')
  t.same(begun.slice(5), ['a3'])
  await end('c1')
  t.same(begun.slice(6), ['a4'])
  for (const name of ['a3', 'a4', 'b2']) await end(name)
  await Promise.all(all)
})

t.test('only the key whose queue is full is refused', async (t) => {
  const limits = { atOnce: 1, perKey: 1, waitingPerKey: 1 }
  const fair = createFairSemaphore({ ...limits, refusal: () => new Error('full') })
  const { end, work } = controlledTask()
  const all = [fair('a', work), fair('a', work)]
  await t.rejects(fair('a', work), { message: 'full' })
  all.push(fair('b', work))
  end()
  await Promise.all(all)
  await t.resolves(fair('a', () => Promise.resolve()))
})
