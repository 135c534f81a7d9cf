import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { openLedger, type LedgerReport } from '../../../src/events/ledger.js'
import type { State } from '../../../src/coordination/state.js'
import { DAY_MS } from '../../../src/model/time.js'

const START_MS = Date.parse('2026-01-01T00:00:03.000Z')

type Row = { readonly atMs: number; readonly messages: number; readonly isDead?: boolean }

/** An installation: a clock, what its ClickHouse has, and a state that its instances share. */
function installation(t: Test, kind: State['kind']) {
  const state = createInProcessState({
    onError: (error) => {
      throw error
    },
  })
  const rows: Row[] = []
  const world = { nowMs: START_MS, isDeaf: false, counts: 0, countMs: 0 }
  const store = {
    query: async (_statement: unknown, params: unknown) => {
      const { from_ms, to_ms } = params as { readonly from_ms: number; readonly to_ms: number }
      world.counts++
      world.nowMs += world.countMs
      const within = rows.filter(({ atMs }) => atMs >= from_ms && atMs < to_ms)
      const sum = (isDead: boolean): number =>
        within.reduce((n, row) => ((row.isDead ?? false) === isDead ? n + row.messages : n), 0)
      return [{ stored: sum(false), dead: sum(true) }] as never
    },
  }
  const start = async (self: string) => {
    const pipeline = { oldestMs: 0, waiting: 0 }
    const ledger = await openLedger({
      store,
      state: {
        kind,
        publish: async (channel, message) => {
          if (!world.isDeaf) await state.publish(channel, message)
          // It is delivered before the next step of the test.
          await setImmediate()
        },
        subscribe: state.subscribe,
      },
      self,
      nowMs: () => world.nowMs,
    })
    t.teardown(() => ledger.close())
    ledger.start(pipeline)
    return { ...ledger, pipeline }
  }
  return { world, rows, start }
}

const differenceOf = ({ acknowledged, stored, deadLetters }: LedgerReport): number =>
  acknowledged - stored - deadLetters

test('what is acknowledged, stored and dead is compared up to the oldest that waits', async (t) => {
  const { world, rows, start } = installation(t, 'in-process')
  const ledger = await start('a')
  t.match(await ledger.report(), { acknowledged: 0, stored: 0 }, 'nothing can be compared yet')

  world.nowMs += 20_000
  ledger.acknowledged(START_MS + 8_000, 3)
  rows.push({ atMs: START_MS + 8_000, messages: 2 })
  rows.push({ atMs: START_MS + 8_000, messages: 1, isDead: true })
  const first = await ledger.report()
  t.match(first, { acknowledged: 3, stored: 2, deadLetters: 1, waiting: 0 })
  t.equal(new Date(first.sinceMs).toISOString(), '2026-01-01T00:00:10.000Z')

  ledger.acknowledged(world.nowMs, 5)
  Object.assign(ledger.pipeline, { oldestMs: 0, waiting: 5 })
  world.nowMs += 60_000
  ledger.pipeline.oldestMs = 60_000
  t.match(await ledger.report(), { acknowledged: 3, waiting: 5 }, 'what waits is not compared')

  Object.assign(ledger.pipeline, { oldestMs: 0, waiting: 0 })
  world.nowMs += 5_000
  t.equal(differenceOf(await ledger.report()), 5, 'a message that is lost is missing')
  rows.push({ atMs: START_MS + 20_000, messages: 6 })
  world.nowMs += 5_000
  t.equal(differenceOf(await ledger.report()), -1, 'a message that is stored twice is too many')
})

test('a clock that is set for a while makes no difference', async (t) => {
  const { world, rows, start } = installation(t, 'in-process')
  const ledger = await start('a')
  for (const days of [0, 1, 0, -1, 0, 400, 0]) {
    world.nowMs += days * DAY_MS
    for (let slot = 0; slot < 5; slot++) {
      world.nowMs += 10_000
      ledger.acknowledged(world.nowMs, 7)
      rows.push({ atMs: world.nowMs, messages: 7 })
    }
    t.equal(differenceOf(await ledger.report()), 0, `${days} days`)
    world.nowMs -= days * DAY_MS
  }
  t.equal((await ledger.report()).acknowledged > 0, true)
})

test('all who ask share a count, and the longer it takes the rarer it is', async (t) => {
  const { world, start } = installation(t, 'in-process')
  const ledger = await start('a')
  world.nowMs += 20_000
  world.countMs = 1_000
  const [one, other] = await Promise.all([ledger.report(), ledger.report()])
  t.equal(one, other)
  world.nowMs += 19_000
  t.equal(await ledger.report(), one)
  t.equal(world.counts, 1)
  world.nowMs += 1_000
  await ledger.report()
  t.equal(world.counts, 2, 'after 20 times as long as it took')
  ledger.restart()
  t.match(await ledger.report(), { acknowledged: 0, stored: 0 }, 'a deletion begins anew at once')
  world.nowMs -= 3_600_000
  const later = ledger.report()
  world.nowMs += 3_600_000
  t.not(await later, one, 'a clock that was set back does not keep a report')
})

test('an instance that is starting tells nothing yet, however long it takes', async (t) => {
  const state = createInProcessState({ onError: (error) => t.fail(String(error)) })
  const told: string[] = []
  const ledger = await openLedger({
    store: { query: async () => [] },
    state: {
      kind: 'redis',
      subscribe: state.subscribe,
      publish: async (_, message) => void told.push(message),
    },
    self: 'a',
  })
  ledger.restart()
  await setImmediate()
  t.same(told, [])
  ledger.close()
})

test('a deletion and the passing of a day begin the comparison anew', async (t) => {
  const { world, rows, start } = installation(t, 'in-process')
  const ledger = await start('a')
  world.nowMs += 20_000
  ledger.acknowledged(START_MS + 8_000, 3)
  const deleted = await ledger.deleting(async () => {
    world.nowMs += 15_000
    return rows.splice(0).length
  })
  t.equal(deleted, 0)
  ledger.acknowledged(world.nowMs + 10_000, 2)
  rows.push({ atMs: world.nowMs + 10_000, messages: 2 })
  world.nowMs += 60_000
  t.match(await ledger.report(), { acknowledged: 2, stored: 2 })

  world.nowMs += 25 * 3_600_000
  const later = await ledger.report()
  t.match(later, { acknowledged: 0, stored: 0 })
  t.ok(later.sinceMs >= world.nowMs - 24 * 3_600_000)
})

test('instances count together, and anew when one is gone or all are deaf', async (t) => {
  const { world, rows, start } = installation(t, 'redis')
  const [a, b] = [await start('a'), await start('b')]
  const publish = async (): Promise<void> => {
    await a.publish()
    await b.publish()
  }
  await publish()
  t.ok((await a.report()).sinceMs >= START_MS + 35_000, 'not before they know each other')
  world.nowMs += 30_000
  await publish()
  await b.deleting(async () => undefined)
  t.ok((await a.report()).sinceMs >= world.nowMs, 'a deletion of one is known to the other')

  const atMs = world.nowMs + 10_000
  a.acknowledged(atMs, 3)
  b.acknowledged(atMs, 4)
  rows.push({ atMs, messages: 7 })
  world.nowMs += 30_000
  await publish()
  t.match(await a.report(), { acknowledged: 7, stored: 7 })
  t.match(await b.report(), { acknowledged: 7, stored: 7 })

  b.close()
  world.nowMs += 20_000
  await a.publish()
  t.match(await a.report(), { acknowledged: 7, stored: 7 }, 'up to what it told last')
  world.nowMs += 20_000
  await a.publish()
  t.ok((await a.report()).sinceMs >= world.nowMs, 'then without it')

  world.nowMs += 30_000
  await a.publish()
  world.isDeaf = true
  world.nowMs += 40_000
  await a.publish()
  const { sinceMs: from, untilMs } = await a.report()
  t.equal(from, untilMs, 'nothing is compared when the others may not be heard')
})
