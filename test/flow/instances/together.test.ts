import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { startShared, type Instance, type Shared } from '../../support/instances.js'
import { seeded } from '../../support/landing.js'
import { eventually, WEBHOOK_SECRET } from '../../support/live-service.js'
import {
  countOf,
  ingest,
  launchService,
  logIn,
  settledCount,
  tempDataDir,
} from '../../support/service.js'
import { openTail, type TailRows } from '../../support/tail-socket.js'

/** `npm run test:instances` also tests two concurrent starts on an empty database. */
const isLong = process.env['TEST_LONG'] === '1'
const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
const random = seeded(seed)
/** Connects of WebSockets, and sources that are made, in a minute. */
const LIMIT = 12
const shared = await startShared(t, {
  SOURCE_CREATE_LIMIT: `${LIMIT}/60`,
  WS_LIMITER: `${LIMIT}/60`,
})

if (shared === null) t.plan(0, 'redis-server is not installed')
else await together(shared)

/** What two instances must do once, and both must know. */
async function together(shared: Shared): Promise<void> {
  t.comment(`seed ${seed}`)
  const one = await shared.start()
  let two = await shared.start()
  if (isLong) {
    const migrated = await migrations(shared)
    await t.test('two that start at once on an empty database migrate it once', migrated.atOnce)
    await t.test('one is killed while it migrates', migrated.killed)
  }

  await t.test('a webhook that reaches both counts once', async (t) => {
    const deliver = async (at: typeof one, id: number): Promise<string> => {
      const body = JSON.stringify({
        object_kind: 'pipeline',
        project: { name: 'pump', path_with_namespace: 'plant/pump' },
        object_attributes: { id, ref: 'main', sha: 'a'.repeat(40), status: 'failed' },
      })
      const signature = createHmac('sha256', WEBHOOK_SECRET).update(body).digest('hex')
      const headers = { 'X-Scm-Token': signature }
      const reply = await fetch(`${at.collector}/webhooks/scm`, { method: 'POST', body, headers })
      return ((await reply.json()) as { readonly status: string }).status // of the collector
    }
    const ids = [1, 2, 3, 4, 5]
    for (const id of ids) {
      const outcomes = await Promise.all([one, two, two, one].map((at) => deliver(at, id)))
      t.same(
        outcomes.toSorted(),
        ['accepted', 'duplicate', 'duplicate', 'duplicate'],
        `pipeline ${id}`,
      )
    }
    const caller = await logIn(two)
    t.equal(await settledCount(() => countOf(caller, 'scm.plant/pump'), ids.length), ids.length)
    await shared.redis.kill()
    const alone = await Promise.all([one, two, two, one].map((at) => deliver(at, 1)))
    t.same(new Set(alone), new Set(['duplicate']), 'Redis is away')
    await shared.redis.start()
    for (const { api } of [one, two])
      await eventually(
        async () => await (await fetch(`${api}/metrics`)).text(),
        (metrics) => /state_up 1$/m.test(metrics),
      )
    const after = await Promise.all([one, two, two, one].map((at) => deliver(at, 2)))
    t.same(new Set(after), new Set(['duplicate']), 'Redis is back, and empty')
  })

  await t.test('one computes a KPI snapshot for the WebSockets of both', async (t) => {
    const monitor = await monitorOf(t, shared.redis.url)
    const computed: { readonly atS: number; readonly marks: string }[] = []
    monitor.on('monitor', (time: string, [name, key, value]: readonly string[]) => {
      if (name?.toLowerCase() !== 'set' || key?.endsWith('kpi:snapshot') !== true) return
      computed.push({ atS: Number(time), marks: /^[\w-]* [\w-]*/.exec(value ?? '')?.[0] ?? '' })
    })
    const watching: { total: number }[] = []
    for (const at of [one, one, one, two, two, two]) {
      const { token } = await logIn(at)
      const headers = { authorization: `Bearer ${token}` }
      const socket = new WebSocket(`${at.api.replace('http', 'ws')}/ws/kpis`, { headers })
      t.teardown(() => socket.terminate())
      const seen = { total: -1 }
      socket.on('message', (data: Buffer) => {
        const text = data.toString('utf8')
        if (text.startsWith('{')) seen.total = JSON.parse(text).payload.total_occurrences
      })
      watching.push(seen)
    }
    const before = 5
    for (let body = 1; body <= 4; body++) {
      const sentMs = Date.now()
      await ingest([one, two][body % 2] ?? one, `{"source":"kpis","message":"message ${body}"}`)
      for (const seen of watching)
        await eventually(
          async () => seen.total,
          (total) => total === before + body,
        )
      t.comment(`all of both saw it after ${Date.now() - sentMs} ms`)
    }
    monitor.disconnect()
    t.ok(computed.length >= 4, `${computed.length} snapshots for 6 WebSockets and 4 writes`)
    // Equal versions give an equal snapshot, which is cached for 30 s.
    const again = computed.filter(({ atS, marks }, i) =>
      computed.slice(0, i).some((other) => other.marks === marks && atS - other.atS < 25),
    )
    t.same(again, [], 'none was computed by both')
  })

  await t.test(
    'a tail and an export go on at the other instance, with each event once',
    async (t) => {
      two = await goesOn(t, one, two)
    },
  )

  await t.test('limits count what comes to both', async (t) => {
    const callers = await Promise.all([logIn(one), logIn(two)])
    const created: number[] = []
    for (let i = 0; i < LIMIT + 2; i++) {
      const reply = await callers[i % 2]?.call('POST', '/api/sources', {
        name: `made-${i}`,
        type: 'push',
      })
      created.push(reply?.status ?? 0)
    }
    t.same(created, [...Array.from({ length: LIMIT }, () => 201), 429, 429], 'sources')
    const closed: number[] = []
    for (let i = 0; i < LIMIT + 2; i++) {
      const at = [one, two][i % 2] ?? one
      const headers = { authorization: `Bearer ${callers[0]?.token}` }
      const socket = new WebSocket(`${at.api.replace('http', 'ws')}/ws/kpis`, { headers })
      closed.push(
        await new Promise<number>((resolve) => {
          socket.once('message', () => resolve(0))
          socket.once('close', resolve)
        }),
      )
      socket.terminate()
    }
    t.ok(closed.filter((code) => code === 0).length <= LIMIT, 'WebSockets, with those of before')
    t.same(closed.slice(-2), [1008, 1008], 'at both')
  })
}

interface Exported {
  /** In the order of the export. */
  readonly ids: readonly number[]
  /** The last line; null when the export was cut off. */
  readonly end: unknown
}

/** Exports the source `tailed`, until its end or `most` bytes. */
async function exported(
  at: Instance,
  token: string,
  query: string,
  most = Infinity,
): Promise<Exported> {
  const reply = await fetch(`${at.api}/api/logs/export?source=tailed&order=asc${query}`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const decoder = new TextDecoder()
  let text = ''
  for await (const part of reply.body ?? []) {
    text += decoder.decode(part, { stream: true })
    if (text.length > most) break
  }
  // A line that was cut off has no end.
  const lines = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
  const end = lines.at(-1)?.complete === undefined ? null : lines.pop()
  return { ids: lines.map(({ id }) => id), end }
}

/** Both instances take events, the second restarts, and clients move from one to the other. @returns the second one */
async function goesOn(t: Test, one: Instance, second: Instance): Promise<Instance> {
  let two = second
  let sent = 0
  const send = async (at: Instance, count: number): Promise<void> => {
    const lines = Array.from({ length: count }, () =>
      JSON.stringify({ source: 'tailed', message: `order ${++sent}`, padding: 'x'.repeat(2_000) }),
    )
    const reply = await ingest(at, lines.join('\n'))
    if (reply.status !== 202) throw new Error(await reply.text())
  }
  const { token } = await logIn(one)
  const tailAt = (at: Instance) => openTail({ anyApi: () => at.api, token })
  const few = await tailAt(one)
  const all = await tailAt(two)
  await few.subscribe({ q: 'source:tailed', max: 5 })
  await all.subscribe({ q: 'source:tailed', max: 500 })
  for (let body = 0; body < 4; body++) await send([one, two][body % 2] ?? one, 30)
  const before = await all.untilMatched(sent)
  const { watermark } = before.at(-1) ?? { watermark: '' }
  const stored = sent
  await two.stop()
  await send(one, 20)
  two = await two.again()
  await send(two, 20)
  await few.untilMatched(sent)
  const resumed = await tailAt(one)
  await resumed.subscribe({ q: 'source:tailed', max: 500 }, watermark)
  const after = await resumed.untilMatched(sent - stored)
  const idsOf = (messages: readonly TailRows[]): readonly number[] =>
    messages.flatMap(({ rows }) => rows.map(({ id }) => id))
  const sumOf = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)
  const whole = await exported(two, token, '&fields=id')
  const byId = (ids: readonly number[]) => ids.toSorted((a, b) => a - b)
  t.same(whole.end, { complete: true, rows: sent })
  t.same(
    byId([...idsOf(before), ...idsOf(after)]),
    byId(whole.ids),
    'each event once, resumed at the other',
  )
  const counted = few.rowsOf()
  t.equal(sumOf(counted.map(({ matched }) => matched)), sent, 'the other restarted meanwhile')
  t.equal(
    idsOf(counted).length + sumOf(counted.map(({ left_out: leftOut }) => leftOut)),
    sent,
    'received and left out are what matched',
  )
  const cut = await exported(two, token, '', 60_000)
  t.ok(cut.end === null && cut.ids.length > 0, `${cut.ids.length} lines came before it was cut off`)
  const rest = await exported(one, token, `&fields=id&resume=${cut.ids.at(-1)}`)
  t.same(rest.end, { complete: true, rows: sent - cut.ids.length })
  t.same([...cut.ids, ...rest.ids], whole.ids, 'an export goes on at the other')
  for (const tail of [few, resumed]) tail.end()
  return two
}

/** A command that comes in together with the reply to MONITOR is taken for a reply by ioredis, which then gives up. */
async function monitorOf(t: Test, url: string): Promise<Redis> {
  for (let attempt = 1; attempt <= 20; attempt++) {
    // Not by `Redis.monitor`: the connection that failed would be tried again for ever, and no process that has it ends.
    const monitor = new Redis(url, { monitor: true })
    t.teardown(() => monitor.disconnect())
    const isMonitoring = await new Promise<boolean>((resolve) => {
      monitor.once('monitoring', () => resolve(true))
      monitor.on('error', () => resolve(false))
    })
    if (isMonitoring) return monitor
    monitor.disconnect()
  }
  throw new Error('Redis tells nothing')
}

async function migrations(shared: Shared) {
  const settings = (database: string) => ({
    CLICKHOUSE_DATABASE: database,
    REDIS_PREFIX: `${database}:`,
  })
  const local = shared.server.env['CLICKHOUSE_CLUSTER'] === undefined ? '' : '_local'
  const made = async (database: string): Promise<unknown> => {
    const rows = await shared.rows(`SELECT name, create_table_query AS text FROM system.tables
      WHERE database = '${database}${local}' ORDER BY name`)
    return rows.map(
      ({ name, text }) => `${String(name)}: ${String(text).replaceAll(database, 'x')}`,
    )
  }
  const alone = await shared.start(settings('peace'))
  await alone.stop()
  const expected = await made('peace')

  const check = async (t: Test, database: string): Promise<void> => {
    t.same(await made(database), expected, 'all is as one alone makes it')
    const [users] = await shared.rows(`SELECT countIf(kind = 'user') AS users,
      countIf(kind = 'ingest_key') AS keys FROM ${database}.entities FINAL`)
    t.same(users, { users: 1, keys: 1 }, 'first credentials are made once')
    const blocks = await shared.rows(
      `SELECT first_id, end_id FROM ${database}.id_blocks ORDER BY first_id`,
    )
    const overlaps = blocks.filter((block, i) => {
      const before = blocks[i - 1]
      return before !== undefined && Number(before['end_id']) > Number(block['first_id'])
    })
    t.same(overlaps, [], 'no event id is reserved twice')
  }

  return {
    atOnce: async (t: Test): Promise<void> => {
      const both = [shared.start(settings('both')), shared.start(settings('both'))]
      const [one, two] = await Promise.all(both)
      if (one === undefined || two === undefined) throw new Error('bug: two were started')
      await check(t, 'both')
      const [books] = await shared.rows(
        `SELECT count() AS n, uniqExact(version) AS versions FROM both${local}.schema_migrations`,
      )
      t.equal(books?.['n'], books?.['versions'], 'each migration was applied by one of them')
      for (const each of [one, two]) {
        t.equal((await ingest(each, '{"source":"s","message":"m"}')).status, 202)
        t.match(await each.stop(), { code: 0 })
      }
    },
    killed: async (t: Test): Promise<void> => {
      for (let round = 0; round < 3; round++) {
        const database = `killed_${round}`
        const env = { ...shared.env, ...settings(database), DATA_DIR: tempDataDir(t) }
        const first = launchService(t, env)
        const atTable = Math.floor(random() * 30)
        await eventually(
          () =>
            shared.rows(
              `SELECT count() AS n FROM system.tables WHERE database LIKE '${database}%'`,
            ),
          ([row]) => Number(row?.['n']) >= atTable,
        )
        const second = launchService(t, { ...env, DATA_DIR: tempDataDir(t) })
        await sleep(random() * 100)
        await first.kill()
        const survivor = await second.ready()
        await check(t, database)
        t.equal((await ingest(survivor, '{"source":"s","message":"m"}')).status, 202)
        const caller = await logIn(survivor)
        t.equal(await settledCount(() => countOf(caller, 's'), 1), 1, `killed at table ${atTable}`)
        t.match(await survivor.stop(), { code: 0 })
      }
    },
  }
}
