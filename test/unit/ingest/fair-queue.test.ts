import * as fc from 'fast-check'
import { test } from 'tap'
import { FairQueue, TASK_MS, type FairJob } from '../../../src/ingest/fair-queue.js'

interface TestJob extends FairJob {
  readonly no: number
}

let count = 0
const job = (owner: string, bytes = 1000): TestJob => ({
  owner,
  bytes,
  estimatedMs: 0,
  no: count++,
})

/** Encodes everything with one thread, which ends a task after TASK_MS; a byte takes `msPerByte[owner]`. @returns the jobs in the order of their end */
function drain(queue: FairQueue<TestJob>, msPerByte: Readonly<Record<string, number>>): TestJob[] {
  const done: TestJob[] = []
  while (queue.length > 0) {
    const jobs = queue.take(false)
    let ms = 0
    let ended = 0
    for (const each of jobs) {
      const took = each.bytes * (msPerByte[each.owner] ?? 0)
      queue.measured(each, took)
      ended++
      ms += took
      if (ms > TASK_MS) break
    }
    queue.putBack(jobs.slice(ended))
    queue.end(jobs)
    done.push(...jobs.slice(0, ended))
  }
  return done
}

void test('each owner gets an equal share of the time, whatever it sends', (t) => {
  const queue = new FairQueue<TestJob>(1)
  const cost = { cheap: 1e-5, dear: 1e-2 }
  for (let i = 0; i < 50; i++) queue.push(job('dear'))
  for (let i = 0; i < 50; i++) queue.push(job('cheap'))
  const order = drain(queue, cost)
  const lastCheap = order.findLastIndex(({ owner }) => owner === 'cheap')
  const before = order.slice(0, lastCheap).filter(({ owner }) => owner === 'dear')
  t.ok(before.length < 10, `${before.length} dear bodies before the last cheap one`)
  t.equal(order.length, 100)
  t.end()
})

void test('an owner that comes late does not make up for its idle time', (t) => {
  const queue = new FairQueue<TestJob>(1)
  const cost = { early: 1e-2, late: 1e-2 }
  for (let i = 0; i < 100; i++) queue.push(job('early'))
  drain(queue, cost)
  for (let i = 0; i < 20; i++) {
    queue.push(job('early'))
    queue.push(job('late'))
  }
  const half = drain(queue, cost).slice(0, 20)
  t.ok(half.some(({ owner }) => owner === 'early'))
  t.ok(half.some(({ owner }) => owner === 'late'))
  t.end()
})

void test('a body that takes long, and a busy owner, leave a thread to the others', (t) => {
  const queue = new FairQueue<TestJob>(1)
  queue.push(job('a', 16e6))
  queue.push(job('b', 16e6))
  queue.push(job('a'))
  t.equal(queue.next(true), null, 'the first bodies are heavy')
  const first = queue.take(false)
  t.match(first, [{ owner: 'a', bytes: 16e6 }])
  t.ok((first[0]?.estimatedMs ?? 0) > TASK_MS)
  t.equal(queue.next(true), null, 'a has a task, and that of b is heavy')
  queue.push(job('c'))
  t.match(queue.take(true), [{ owner: 'c' }])
  queue.end(first)
  t.match(queue.take(true), [{ owner: 'a', bytes: 1000 }])
  t.end()
})

void test('a large body shares its task with bodies of its owner only', (t) => {
  const queue = new FairQueue<TestJob>(1)
  for (const owner of ['noise', 'shop', 'noise']) queue.push(job(owner, 200_000))
  for (const owner of ['noise', 'shop', 'desk', 'shop']) queue.push(job(owner))
  const tasks: string[][] = []
  while (queue.length > 0) {
    const jobs = queue.take(false)
    queue.end(jobs)
    tasks.push(jobs.map(({ owner, bytes }) => `${owner} ${bytes}`))
  }
  for (const task of tasks)
    if (task.some((name) => name.endsWith('200000')))
      t.equal(new Set(task.map((name) => name.split(' ')[0])).size, 1, task.join())
  t.ok(tasks.some((task) => new Set(task.map((name) => name.split(' ')[0])).size > 1))
  t.end()
})

void test('a body that is encoded again counts twice', (t) => {
  const queue = new FairQueue<TestJob>(1)
  for (const owner of ['a', 'b', 'a', 'b']) queue.push(job(owner, 1_500_000))
  const encode = (jobs: readonly TestJob[]): void => {
    for (const each of jobs) queue.measured(each, 30)
    queue.end(jobs)
  }
  const first = queue.take(false)
  encode(first)
  t.ok(queue.again(first) > TASK_MS, 'the time is known by now')
  t.match(queue.next(false), { owner: 'b' }, 'a has a task')
  encode(first)
  encode(queue.take(false))
  t.match(queue.take(false), [{ owner: 'b' }], 'a had its share with one body')
  t.end()
})

void test('every body is taken once, in the order of its owner', (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(4), fc.nat(100_000)), { maxLength: 300 }),
      fc.array(fc.nat(20), { minLength: 1, maxLength: 20 }),
      (sent, done) => {
        const queue = new FairQueue<TestJob>(1)
        const pushed = sent.map(([owner, bytes]) => job(String(owner), bytes + 1))
        for (const each of pushed) queue.push(each)
        const taken: TestJob[] = []
        for (let round = 0; queue.length > 0; round++) {
          const jobs = queue.take(false)
          // The worker ends some of the task's bodies, at least one.
          const ended = 1 + (done[round % done.length] ?? 0)
          for (const each of jobs.slice(0, ended)) queue.measured(each, 1)
          queue.putBack(jobs.slice(ended))
          queue.end(jobs)
          taken.push(...jobs.slice(0, ended))
        }
        if (taken.length !== pushed.length) return false
        return ['0', '1', '2', '3', '4'].every((name) => {
          const of = (jobs: readonly TestJob[]): readonly number[] =>
            jobs.filter(({ owner }) => owner === name).map(({ no }) => no)
          return String(of(taken)) === String(of(pushed))
        })
      },
    ),
  )
  t.end()
})
