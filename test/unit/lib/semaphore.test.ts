import t from 'tap'
import { createSemaphore } from '../../../src/lib/semaphore.js'

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
