import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { State } from '../../src/coordination/state.js'
import { MINUTE_MS } from '../../src/model/time.js'

/**
 * The contract of every `State`. Each call of `make` returns another connection to the same state where that is
 * possible, else the same object.
 */
export function stateContract(suite: Test, make: () => Promise<State>): void {
  void suite.test('a value is there until its time is over', async (t) => {
    const state = await make()
    t.equal(await state.get('v1'), null)
    await state.set('v1', 'ä\u0000b', MINUTE_MS)
    t.equal(await state.get('v1'), 'ä\u0000b')
    await state.set('v1', 'short', 20)
    await until(async () => (await state.get('v1')) === null)
  })

  void suite.test('set-if-absent succeeds once, and again after its time', async (t) => {
    const [a, b] = [await make(), await make()]
    const wins = await Promise.all([a, b, a, b].map((s) => s.setIfAbsent('once', 'x', MINUTE_MS)))
    t.equal(wins.filter(Boolean).length, 1)
    await a.setIfAbsent('briefly', 'x', 30)
    await until(() => b.setIfAbsent('briefly', 'y', MINUTE_MS))
    t.equal(await a.get('briefly'), 'y')
  })

  void suite.test('set-if-absent leaves value and lifetime as they were', async (t) => {
    const state = await make()
    await state.set('kept', 'first', 1_000)
    t.equal(await state.setIfAbsent('kept', 'second', MINUTE_MS), false)
    t.equal(await state.get('kept'), 'first')
    await until(async () => (await state.get('kept')) === null)
  })

  void suite.test('compare-and-set lets one of many through and sets the lifetime', async (t) => {
    const [a, b] = [await make(), await make()]
    await a.set('cas', 'one', MINUTE_MS)
    const wins = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        (i % 2 ? a : b).compareAndSet('cas', 'one', `w${i}`, MINUTE_MS),
      ),
    )
    t.equal(wins.filter(Boolean).length, 1)
    const winner = `w${wins.indexOf(true)}`
    t.equal(await a.get('cas'), winner)
    t.equal(await a.compareAndSet('cas-none', 'one', 'two', 1_000), false)
    t.equal(await a.get('cas-none'), null)
    t.equal(await a.compareAndSet('cas', winner, 'last', 20), true)
    await until(async () => (await a.get('cas')) === null)
  })

  void suite.test('delete removes, and does not mind an absent key', async (t) => {
    const state = await make()
    await state.set('gone', 'x', MINUTE_MS)
    await state.delete('gone')
    await state.delete('gone')
    t.equal(await state.get('gone'), null)
  })

  windowContract(suite, make)
  signalContract(suite, make)
  lockContract(suite, make)

  void suite.test('ping measures, and the status is ok', async (t) => {
    const state = await make()
    t.ok((await state.ping()) >= 0)
    const seen: string[] = []
    const end = state.onStatus((status) => seen.push(status))
    end()
    t.strictSame(seen, ['ok'])
  })
}

function windowContract(suite: Test, make: () => Promise<State>): void {
  void suite.test('two instances share a limit exactly', async (t) => {
    const [a, b] = [await make(), await make()]
    const verdicts = await Promise.all(
      Array.from({ length: 50 }, (_, i) => (i % 2 ? a : b).consume('shared', 10, 60)),
    )
    const allowed = verdicts.filter((v) => v.allowed)
    t.equal(allowed.length, 10)
    t.strictSame(
      allowed.map((v) => v.remaining).toSorted((x, y) => x - y),
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    )
    for (const refused of verdicts.filter((v) => !v.allowed)) {
      t.ok(refused.retryAfterS >= 55 && refused.retryAfterS <= 60, `${refused.retryAfterS}`)
      t.equal(refused.remaining, 0)
    }
  })

  void suite.test('a window frees itself, and what was refused did not count', async (t) => {
    const state = await make()
    const spend = async () => (await state.consume('frees', 3, 1)).allowed
    for (let i = 0; i < 3; i++) t.equal(await spend(), true)
    for (let i = 0; i < 5; i++) t.equal(await spend(), false)
    for (let i = 0; i < 3; i++) await until(spend)
    t.equal(await spend(), false)
  })

  void suite.test('cost is spent whole or not at all', async (t) => {
    const state = await make()
    t.match(await state.consume('cost', 10, 60, 7), { allowed: true, remaining: 3 })
    t.match(await state.consume('cost', 10, 60, 4), { allowed: false, remaining: 0 })
    t.match(await state.consume('cost', 10, 60, 3), { allowed: true, remaining: 0 })
    t.match(await state.consume('cost-much', 10, 60, 11), { allowed: false, retryAfterS: 60 })
    t.match(await state.consume('cost-much', 10, 60, 10), { allowed: true }, 'nothing was spent')
  })

  void suite.test('a great limit is exact too', async (t) => {
    const state = await make()
    let allowed = 0
    for (let i = 0; i < 60; i++) {
      const batch = Array.from({ length: 20 }, () => state.consume('great', 1_000, 60))
      allowed += (await Promise.all(batch)).filter((v) => v.allowed).length
    }
    t.equal(allowed, 1_000)
  })
}

function signalContract(suite: Test, make: () => Promise<State>): void {
  void suite.test(
    'a message reaches every subscriber of its channel until it leaves',
    async (t) => {
      const [a, b] = [await make(), await make()]
      const seen: string[] = []
      const endA = await a.subscribe('news', (m) => seen.push(`a:${m}`))
      const endB = await b.subscribe('news', (m) => seen.push(`b:${m}`))
      const endOther = await b.subscribe('other', (m) => seen.push(`other:${m}`))
      await a.publish('news', '1')
      await until(() => seen.length >= 2)
      endA()
      endA()
      await b.publish('news', '2')
      await until(() => seen.length >= 3)
      await delay(30)
      endB()
      endOther()
      t.strictSame(seen.toSorted(), ['a:1', 'b:1', 'b:2'])
    },
  )

  void suite.test(
    'a subscriber that throws does not stop the delivery to the others',
    async (t) => {
      const state = await make()
      const seen: string[] = []
      const ends = [
        await state.subscribe('rough', () => {
          throw new Error('boom')
        }),
        await state.subscribe('rough', (m) => seen.push(m)),
      ]
      await state.publish('rough', 'x')
      await until(() => seen.length > 0)
      for (const end of ends) end()
      t.strictSame(seen, ['x'])
    },
  )
}

function lockContract(suite: Test, make: () => Promise<State>): void {
  void suite.test('a lock has one holder at a time, and every waiter gets it', async (t) => {
    const [a, b] = [await make(), await make()]
    let inside = 0
    let runs = 0
    const work = (state: State): Promise<void> =>
      state.withLock('one', 5_000, async () => {
        t.equal(++inside, 1)
        runs++
        await delay(5)
        inside--
      })
    await Promise.all(Array.from({ length: 8 }, (_, i) => work(i % 2 ? a : b)))
    t.equal(runs, 8)
  })

  void suite.test('locks of other keys do not wait, results and errors pass through', async (t) => {
    const state = await make()
    const result = await state.withLock('outer', 5_000, () =>
      state.withLock('inner', 5_000, async () => 'done'),
    )
    t.equal(result, 'done')
    await t.rejects(
      state.withLock('outer', 5_000, async () => {
        throw new Error('inside')
      }),
      { message: 'inside' },
    )
    t.equal(await state.withLock('outer', 5_000, async () => 'free again'), 'free again')
  })

  void suite.test('a lock is renewed for as long as the work lasts', async (t) => {
    const [a, b] = [await make(), await make()]
    let inside = true
    const long = a.withLock('long', 500, async (lease) => {
      await delay(1_200)
      inside = false
      return lease.signal.aborted
    })
    await delay(20)
    await b.withLock('long', 500, async () => t.equal(inside, false))
    t.equal(await long, false, 'never lost')
  })
}

/** Waits until a condition is true, at most for the test's timeout. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(5)
}
