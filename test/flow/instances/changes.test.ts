import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { seeded } from '../../support/landing.js'
import { eventually } from '../../support/live-service.js'
import { startShared, type Instance, type Shared } from '../../support/instances.js'
import { ingest, logIn, type Caller, type Item } from '../../support/service.js'
import { startUnrulyClickHouse } from '../../support/unruly-clickhouse.js'
import { MINUTE_MS } from '../../../src/model/time.js'

/** `npm run test:instances` tries everything; each outage takes the time until an instance counts as away. */
const isLong = process.env['TEST_LONG'] === '1'
const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
const random = seeded(seed)
const shared = await startShared(t)

if (shared === null) t.plan(0, 'redis-server is not installed')
else await deletionsAndCorrections(shared)

/** One instance has the way to ClickHouse that this test shuts; the other one always gets through. */
async function deletionsAndCorrections(shared: Shared): Promise<void> {
  t.comment(`seed ${seed}`)
  const door = await startUnrulyClickHouse(t, random, shared.server)
  let one = await shared.start()
  let two = await shared.start({ CLICKHOUSE_URL: door.env['CLICKHOUSE_URL'] ?? '' })
  let caller = await logIn(one)
  const { token } = caller
  let sent = 0

  const send = async (to: Instance, source: string, n: number): Promise<void> => {
    const lines = Array.from({ length: n }, (_, i) =>
      // Every third message is a repeat.
      JSON.stringify({ source, message: i % 3 === 0 ? 'heartbeat' : `job ${sent++} is done` }),
    )
    const reply = await ingest(to, lines.join('\n'))
    if (reply.status !== 202) throw new Error(`${reply.status} ${await reply.text()}`)
  }
  const remove = async (path: string, by: Caller = caller): Promise<number> =>
    (await by.call('DELETE', path)).status
  const metricOf = async (instance: Instance, name: string): Promise<number> => {
    const text = await (await fetch(`${instance.api}/metrics`)).text()
    return Number(new RegExp(`${name} (\\d+)$`, 'm').exec(text)?.[1])
  }
  const logged = (instance: Instance): Promise<number> => metricOf(instance, 'wal_records')
  const written = async (): Promise<void> => {
    for (const instance of [one, two])
      await eventually(
        () => logged(instance),
        (n) => n === 0,
        MINUTE_MS,
      )
  }
  /** What every table counts of a source. */
  const counts = async (source: string): Promise<Readonly<Record<string, unknown>>> => {
    const sum = (table: string): string =>
      `(SELECT sum(p1 + p2 + p3 + p4) FROM ${table} WHERE source = '${source}')`
    const [row] = await shared.rows(`SELECT
      (SELECT sum(n) FROM events WHERE source = '${source}') +
      (SELECT sum(n) FROM event_occurrences WHERE source = '${source}' AND id IN (SELECT id FROM events)) AS events,
      ${sum('series_1s')} AS seconds, ${sum('series_1m')} AS minutes, ${sum('series_1h')} AS hours,
      ${sum('series_1d')} AS days, ${sum('template_stats')} AS templates,
      ${sum('template_totals')} AS totals`)
    return row ?? {}
  }
  const all = (n: number): object =>
    Object.fromEntries(
      'events seconds minutes hours days templates totals'.split(' ').map((key) => [key, n]),
    )
  const names = async (by: Caller): Promise<readonly string[]> =>
    (await by.get<readonly { name: string }[]>('/api/sources')).map(({ name }) => name)

  await t.test('a source goes while both take its messages', async (t) => {
    await Promise.all([send(one, 'stays', 30), send(two, 'stays', 60)])
    const later = { sent: 0 }
    const state = { isDeleted: false, isOver: false }
    const sender = async (instance: Instance): Promise<void> => {
      while (!state.isOver) {
        await send(instance, 'goes', 30)
        if (state.isDeleted) later.sent += 30
      }
    }
    const senders = [sender(one), sender(two), sender(two)]
    await sleep(1_500)
    const startedMs = Date.now()
    t.equal(await remove('/api/sources/goes'), 200)
    t.comment(`deleted in ${Date.now() - startedMs} ms`)
    // Messages sent during the deletion may be deleted or not.
    await sleep(50)
    const [before] = await shared.rows(
      "SELECT max(received_at) < now64(3) - 60 AS is_old FROM events WHERE source = 'goes'",
    )
    t.ok(before)
    state.isDeleted = true
    await sleep(700)
    state.isOver = true
    await Promise.all(senders)
    await written()
    const counted = await counts('goes')
    t.same(counted, all(Number(counted['events'])), 'all tables agree')
    t.ok(Number(counted['events']) >= later.sent, `${later.sent} came after`)
    t.same(await counts('stays'), all(90))
    t.equal(await remove('/api/sources/goes'), 200)
    await written()
    t.same(await counts('goes'), all(0))
    t.notOk((await names(await logIn(two))).includes('goes'))
  })

  await t.test(
    'what waits at an instance without ClickHouse does not come back',
    { skip: !isLong },
    async (t) => {
      await send(two, 'kept', 30)
      await send(two, 'gone', 30)
      await written()
      door.mood = 'gone'
      for (let i = 0; i < 5; i++) {
        await send(two, 'gone', 60)
        await send(two, 'kept', 60)
      }
      await send(one, 'gone', 30)
      t.equal(await remove('/api/sources/gone'), 200)
      t.same(await counts('gone'), all(0))
      // The second instance has not read the deletion yet, but these messages are newer.
      await sleep(20)
      await send(two, 'gone', 21)
      await send(one, 'gone', 9)
      door.mood = 'well'
      await written()
      t.same(await counts('kept'), all(330))
      t.same(await counts('gone'), all(30), 'only what came after it')
      for (const by of [caller, await logIn(two)]) t.ok((await names(by)).includes('gone'))
      const [row] = await shared.rows(
        "SELECT count() AS n, uniqExact(id) AS ids FROM events WHERE source = 'gone'",
      )
      t.equal(row?.['n'], row?.['ids'])
      t.equal(await remove('/api/sources/gone'), 200)
      t.same(await counts('gone'), all(0))
    },
  )

  await t.test('an instance that was killed with a full WAL comes back without it', async (t) => {
    const moods = ['reply lost', 'gone', 'half sent'] as const
    for (const mood of isLong ? moods : moods.slice(0, 1)) {
      const [lost, kept] = [`lost ${mood}`, `kept ${mood}`]
      door.mood = mood
      for (let i = 0; i < 4; i++) {
        await send(two, lost, 30)
        await send(two, kept, 30)
        await sleep(random() * 400)
      }
      await two.kill()
      const registered = (await names(caller)).includes(lost)
      // The source is registered on this instance only; its first message registers it on the other.
      if (!registered) await send(one, lost, 30)
      t.equal(await remove(`/api/sources/${encodeURIComponent(lost)}`), 200, mood)
      await send(one, lost, 3)
      door.mood = 'well'
      two = await two.again()
      await written()
      t.same(await counts(kept), all(120), `${mood}: nothing of others is lost or doubled`)
      t.same(await counts(lost), all(3), `${mood}: only what came after it`)
    }
  })

  await t.test(
    'the instance with the request is killed: another one carries it out',
    { skip: !isLong },
    async (t) => {
      await send(two, 'orphan', 30)
      await send(one, 'orphan', 30)
      await written()
      door.mood = 'silent'
      await send(two, 'orphan', 30)
      const asked = remove('/api/sources/orphan').catch(() => 0)
      await eventually(
        () => shared.rows("SELECT count() AS n FROM entities FINAL WHERE kind = 'shared_change'"),
        ([row]) => Number(row?.['n']) > 0,
      )
      await sleep(random() * 300)
      await one.kill()
      t.equal(await asked, 0, 'it had not been done')
      door.mood = 'well'
      await eventually(
        () => counts('orphan'),
        (found) => JSON.stringify(found) === JSON.stringify(all(0)),
        MINUTE_MS,
      )
      one = await one.again()
      caller = await logIn(one)
      await written()
      t.same(await counts('orphan'), all(0))
      await eventually(
        () => shared.rows("SELECT count() AS n FROM entities FINAL WHERE kind = 'shared_change'"),
        ([row]) => Number(row?.['n']) === 0,
      )
    },
  )

  await t.test(
    'Redis is emptied while an instance is disconnected',
    { skip: !isLong },
    async (t) => {
      door.mood = 'gone'
      await send(two, 'flushed', 60)
      await send(one, 'flushed', 30)
      const redis = new Redis(shared.redis.url)
      await redis.flushall()
      t.equal(await remove('/api/sources/flushed', { ...caller, ...(await logIn(one)) }), 200)
      await redis.flushall()
      await redis.quit()
      door.mood = 'well'
      await written()
      t.same(await counts('flushed'), all(0))
      caller = await logIn(one)
      t.not(caller.token, token)
    },
  )

  await t.test(
    'everything is cleared while an instance is disconnected',
    { skip: !isLong },
    async (t) => {
      door.mood = 'gone'
      await send(two, 'stays', 60)
      await ingest(two, '{"message":"of no source"}')
      t.equal(await remove('/api/monitoring/clear-all'), 200)
      await sleep(20)
      await send(two, 'stays', 9)
      door.mood = 'well'
      await written()
      t.same(await counts('stays'), all(9))
      t.same(await shared.rows('SELECT count() AS n FROM dead_letters'), [{ n: 0 }])
    },
  )

  await t.test('repeats that wait elsewhere count under the corrected priority', async (t) => {
    const moods = ['well', 'gone'] as const
    for (const mood of isLong ? moods : moods.slice(0, 1)) {
      const source = `pumps ${mood}`
      const line = JSON.stringify({ source, message: 'the pump stands still', severity: 'ERROR' })
      await ingest(two, line)
      await written()
      const { items } = await caller.get<{ items: readonly Item[] }>(
        `/api/logs?source=${encodeURIComponent(source)}`,
      )
      const [event] = items
      const priority = event?.priority === 'P4' ? 'P1' : 'P4'
      const state = { isOver: false, sent: 1 }
      const repeat = async (): Promise<void> => {
        while (!state.isOver) {
          await ingest(two, `${line}\n${line}`)
          state.sent += 2
        }
      }
      door.mood = mood
      const repeating = repeat()
      await sleep(900)
      const path = `/api/logs/${event?.id}/priority`
      t.equal((await caller.call('PATCH', path, { priority })).status, 200)
      if (mood === 'well') await sleep(300)
      state.isOver = true
      await repeating
      door.mood = 'well'
      await written()
      const column = priority.toLowerCase()
      for (const table of 'series_1s series_1m series_1h series_1d template_stats'.split(' '))
        t.same(
          await shared.rows(`SELECT sum(${column}) AS now, sum(p1 + p2 + p3 + p4) AS all
            FROM ${table} WHERE source = '${source}'`),
          [{ now: state.sent, all: state.sent }],
          `${mood}: ${table}`,
        )
    }
  })

  await t.test('a disabled source is known everywhere within a second', async (t) => {
    const dropped = async (to: Instance): Promise<number> => {
      const reply = await ingest(to, '{"source":"stays","message":"is it on?"}')
      return ((await reply.json()) as { readonly dropped: number }).dropped // of the collector
    }
    t.equal(await dropped(two), 0)
    const toggle = async (enabled: boolean): Promise<number> => {
      const reply = await caller.call('POST', `/api/sources/stays/toggle?enabled=${enabled}`)
      t.equal(reply.status, 200, await reply.text())
      return Date.now()
    }
    const disabledMs = await toggle(false)
    await eventually(
      () => dropped(two),
      (n) => n === 1,
    )
    t.comment(`${Date.now() - disabledMs} ms without being asked`)
    await toggle(true)
    const other = await logIn(two)
    await eventually(
      () => other.get<readonly { readonly enabled: boolean }[]>('/api/sources'),
      (sources) => sources.every(({ enabled }) => enabled),
    )
    t.equal(await dropped(two), 0, 'its collector takes part in a change made at its API')
  })
}
