import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { seeded } from '../../support/landing.js'
import { eventually } from '../../support/live-service.js'
import { startShared, type Instance, type Shared } from '../../support/instances.js'
import { INGEST_KEY, logIn } from '../../support/service.js'
import { contradictions } from '../../faults/count.js'
import { tablesOf } from '../../faults/installation.js'
import { MINUTE_MS } from '../../../src/model/time.js'

/** `npm run test:instances` tries more of each. */
const isLong = process.env['TEST_LONG'] === '1'
const ROUNDS = isLong ? 3 : 1
const BODY = 40
const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
const random = seeded(seed)
const shared = await startShared(t)

if (shared === null) t.plan(0, 'redis-server is not installed')
else await ledgers(shared)

interface Sent {
  /** Bodies with the reply 202. */
  readonly acknowledged: Set<string>
  /** Bodies without a reply or with an error: each is stored completely or not at all. */
  readonly unknown: Set<string>
}

/** Whatever is done to two instances, what they acknowledged is counted once. */
async function ledgers(shared: Shared): Promise<void> {
  t.comment(`seed ${seed}`)
  const instances = [await shared.start(), await shared.start()]
  const [, second] = instances
  if (second === undefined) throw new Error('bug: two were started')
  let bodies = 0

  const send = async (source: string, sent: Sent): Promise<void> => {
    const name = `${++bodies}`
    const text = Array.from({ length: BODY }, (_, i) =>
      JSON.stringify({ source, trace_id: `body-${name}`, message: `message ${i} of it` }),
    ).join('\n')
    // A client without a reply sends its next body to the other instance.
    const { collector } = instances[bodies % 2] as Instance // one of two
    const reply = await fetch(`${collector}/ingest`, {
      method: 'POST',
      headers: { authorization: `Bearer ${INGEST_KEY}` },
      body: text,
    }).catch(() => null)
    if (reply?.status === 202) sent.acknowledged.add(name)
    else {
      sent.unknown.add(name)
      await sleep(20)
    }
    await reply?.text().catch(() => '')
  }

  /** Sends to both while something happens. */
  const underLoad = async (source: string, what: () => Promise<void>): Promise<Sent> => {
    const sent: Sent = { acknowledged: new Set(), unknown: new Set() }
    const state = { isOver: false }
    const sender = async (): Promise<void> => {
      while (!state.isOver) await send(source, sent)
    }
    const senders = [sender(), sender(), sender(), sender()]
    await sleep(500)
    await what()
    await sleep(500)
    state.isOver = true
    await Promise.all(senders)
    return sent
  }

  const balance = async (t: Test, source: string, sent: Sent): Promise<void> => {
    for (const { api } of instances)
      await eventually(
        async () => await (await fetch(`${api}/metrics`)).text(),
        (metrics) => /wal_records 0$/m.test(metrics),
        MINUTE_MS,
      )
    const rows = await shared.rows(`
      SELECT substring(trace_id, 6) AS body, sum(n) AS n, uniqExact(message) AS messages
      FROM events WHERE source = '${source}' GROUP BY trace_id`)
    const wrong = rows.filter(({ n, messages }) => n !== BODY || messages !== BODY)
    t.same(wrong, [], 'every body is there once and whole')
    const found = new Set(rows.map(({ body }) => String(body)))
    t.same(
      [...sent.acknowledged].filter((name) => !found.has(name)),
      [],
      `${sent.acknowledged.size} acknowledged bodies are there, ${sent.unknown.size} were not answered`,
    )
    t.ok(sent.acknowledged.size > 10)
    t.same(
      [...found].filter((name) => !sent.acknowledged.has(name) && !sent.unknown.has(name)),
      [],
    )
    const tables = tablesOf(shared.server.engine)
    t.teardown(() => tables.close())
    t.same(await contradictions(tables.query), [], 'all tables agree')
    t.same(
      await shared.rows(
        `SELECT sum(p1 + p2 + p3 + p4) AS n FROM series_1s WHERE source = '${source}'`,
      ),
      [{ n: rows.length * BODY }],
      'the seconds have no more',
    )
  }

  const again = async (at: number): Promise<void> => {
    const instance = instances[at] as Instance // one of two
    instances[at] = await instance.again()
  }

  await t.test('a rolling restart', { skip: !isLong }, async (t) => {
    const sent = await underLoad('rolling', async () => {
      for (let round = 0; round < ROUNDS; round++)
        for (const at of [0, 1]) {
          t.match(await instances[at]?.stop(), { code: 0 })
          await again(at)
        }
    })
    await balance(t, 'rolling', sent)
  })

  await t.test('an instance is killed', async (t) => {
    const sent = await underLoad('killed', async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const at = Math.floor(random() * 2)
        await sleep(random() * 800)
        await instances[at]?.kill()
        await again(at)
      }
    })
    await balance(t, 'killed', sent)
  })

  const { shards } = shared.server
  const killShard = async (): Promise<void> => {
    const shard = shards[Math.floor(random() * shards.length)]
    const pid = shard?.pid()
    shard?.kill()
    await eventually(
      async () => shard?.pid() ?? pid,
      (now) => now !== pid,
    )
  }

  if (shards.length > 1)
    await t.test('shards are killed while both ingest, and one is away for long', async (t) => {
      const sent = await underLoad('shards', async () => {
        for (let round = 0; round < 2 * ROUNDS; round++) {
          await sleep(300 + random() * 1_200)
          await killShard()
        }
        const away = shards[Math.floor(random() * shards.length)]
        await away?.down()
        await sleep(3_000)
        await away?.up()
      })
      await balance(t, 'shards', sent)
    })

  if (shards.length > 1)
    await t.test('a shard is killed, and an instance with what it had begun', async (t) => {
      const sent = await underLoad('begun', async () => {
        for (let round = 0; round < ROUNDS; round++) {
          const at = Math.floor(random() * 2)
          await sleep(random() * 800)
          const killing = killShard()
          await sleep(random() * 300)
          await instances[at]?.kill()
          await killing
          await again(at)
        }
      })
      await balance(t, 'begun', sent)
    })

  await t.test('Redis is emptied, and killed', async (t) => {
    const redis = new Redis(shared.redis.url)
    redis.on('error', () => undefined)
    const sent = await underLoad('redis', async () => {
      for (let round = 0; round < ROUNDS; round++) {
        await redis.flushall()
        await sleep(300 + random() * 500)
        await shared.redis.kill()
        await sleep(300 + random() * 500)
        await shared.redis.start()
      }
    })
    redis.disconnect()
    await balance(t, 'redis', sent)
  })

  await t.test(
    'dead letters are replayed once, whichever instance is killed meanwhile',
    { skip: !isLong },
    async (t) => {
      const letters = 60
      const lines = Array.from({ length: letters }, (_, i) =>
        JSON.stringify({
          message: `letter ${i}`,
          timestamp: '1960-01-01T00:00:00Z',
          source: 'post',
        }),
      )
      const headers = { authorization: `Bearer ${INGEST_KEY}` }
      await fetch(`${instances[0]?.collector}/ingest`, {
        method: 'POST',
        headers,
        body: lines.join('\n'),
      })
      const counted = async (): Promise<readonly number[]> => {
        const [row] = await shared.rows(`SELECT count() AS n, uniqExact(raw) AS messages,
        countIf(reason = 'timestamp_out_of_range') AS old FROM dead_letters`)
        return [Number(row?.['n']), Number(row?.['messages']), Number(row?.['old'])]
      }
      await eventually(counted, ([n]) => n === letters)
      for (let round = 0; round < ROUNDS; round++) {
        // Each replay rejects them again, so a second replay would leave two dead letters.
        const at = round % 2
        const [asked, other] = [instances[at] as Instance, instances[1 - at] as Instance] // two of two
        const caller = await eventually(
          () => logIn(asked).catch(() => null),
          (found) => found !== null,
        )
        const replaying = caller
          ?.call('POST', '/api/monitoring/dead-letters/replay', {})
          .catch(() => null)
        await sleep(random() * 400)
        await asked.kill()
        await replaying
        const second = await eventually(
          () => logIn(other).catch(() => null),
          (found) => found !== null,
        )
        // The lock of the killed instance expires after 15 s; until then replies are 503.
        const reply = await second?.call('POST', '/api/monitoring/dead-letters/replay', {})
        t.ok([200, 503].includes(reply?.status ?? 0), `${reply?.status}`)
        await again(at)
        await eventually(
          async () =>
            (
              await (
                await logIn(instances[at] as Instance)
              ).call('POST', '/api/monitoring/dead-letters/replay', {})
            ).status,
          (status) => status === 200,
          90_000,
        )
        t.same(await counted(), [letters, letters, letters], `round ${round}`)
      }
    },
  )
}
