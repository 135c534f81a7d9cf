import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { createStore } from '../../src/clickhouse/client.js'
import { startTestServer } from '../support/clickhouse.js'
import { eventually } from '../support/live-service.js'
import {
  countOf,
  ingest,
  KNOWN,
  load,
  logIn,
  runToEnd,
  settledCount,
  startService,
  tempDataDir,
  upload,
  type Caller,
  type Item,
  type Service,
} from '../support/service.js'

/** What is stored apart from the messages under load. */
async function furnish(service: Service, caller: Caller): Promise<void> {
  const lines = [
    ...Array.from({ length: 60 }, (_, i) => ({
      source: 'shop',
      message: `order ${i} paid in ${i * 3} ms`,
    })),
    ...Array.from({ length: 30 }, () => ({
      source: 'shop',
      level: 'error',
      message: 'payment timed out',
    })),
  ]
  await ingest(service, lines.map((line) => JSON.stringify(line)).join('\n'))
  await ingest(service, 'not json\n{"source":"shop"}')
  const file = {
    type: 'txt',
    source: 'old',
    text: '2005-06-03 ERROR disk full\n2005-06-03 INFO up\n',
  } as const
  await upload(service, caller, file)
  await caller.call('POST', '/api/users', {
    email: 'kim@example.com',
    password: 'a long password',
    role: 'manager',
  })
  await caller.call('POST', '/api/applications', {
    name: 'web',
    environment: 'prod',
    hosts: ['web-1'],
  })
  await caller.call('POST', '/api/alerts', { title: 'orders are late', severity: 'P2' })
  await caller.call('POST', '/api/tasks', { title: 'look at the orders' })
  const path = '/api/logs?source=shop&severity=ERROR'
  const { items } = await eventually(
    () => caller.get<{ readonly items: readonly Item[] }>(path),
    (page) => page.items.length > 0,
  )
  const correction = { priority: 'P1', reason: 'orders are lost' }
  await caller.call('PATCH', `/api/logs/${items[0]?.id}/priority`, correction)
  const gone = '/api/logs?source=shop&q=%22order+33%22&start_time=now-1h&end_time=now&expected=1'
  const deletion = await caller.call('DELETE', gone)
  if (deletion.status !== 200) throw new Error(`the deletion answered ${deletion.status}`)
}

const VIEWS = [
  '/api/users',
  '/api/applications',
  '/api/ingest-keys',
  '/api/alerts',
  '/api/tasks',
  '/api/logs?source=shop&source=old&limit=200&start_time=2000-01-01T00:00:00Z',
  '/api/logs/meta/calendar?priority=P1&priority=P2&days=730',
  '/api/monitoring/dead-letters',
] as const

/** What is shown of everything but the load; times of last use and of reading apart. */
async function shown(caller: Caller): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for (const path of VIEWS) {
    const text = JSON.stringify(await caller.get<unknown>(path))
    found[path] = JSON.parse(
      text.replaceAll(/"(last_used_at|last_login_at|value|unique_events)":[^,}]*/g, '"$1":0'),
    )
  }
  return found
}

const ROLLUPS = [
  'series_1s',
  'series_1m',
  'series_1h',
  'series_1d',
  'template_stats',
  'template_totals',
]

/** Every count of a stopped service's database, under load and elsewhere. */
async function totalsOf(dataDir: string): Promise<Record<string, readonly number[]>> {
  const server = await startTestServer({ dataDir: join(dataDir, 'clickhouse') })
  const { url, username, password } = server.engine
  const store = createStore({ url, username, password, database: 'logs' })
  const ask = async (sql: string): Promise<readonly number[]> => {
    const [row = {}] = await store.query<Record<string, never>, Record<string, number>>(
      { name: 'q', sql },
      {},
    )
    return Object.values(row)
  }
  const found: Record<string, readonly number[]> = {
    events: await ask('SELECT count(), sum(n), uniqExact(id) FROM events'),
    event_occurrences: await ask(`
      SELECT sum(event_occurrences.n) FROM event_occurrences
      WHERE event_occurrences.id IN (SELECT events.id FROM events)`),
    host_stats: await ask('SELECT sum(host_stats.n) FROM host_stats'),
    dead_letters: await ask('SELECT count() FROM dead_letters'),
    audit: await ask("SELECT countIf(action = 'createUser') FROM audit"),
  }
  for (const table of ROLLUPS)
    found[table] = await ask(
      `SELECT sum(p1 + p2 + p3 + p4), sum(debug + info + warning + error + critical) FROM ${table}`,
    )
  await store.close()
  await server.engine.stop()
  return found
}

/** Events and every rollup count the same. @returns how many occurrences */
function agree(t: Test, totals: Record<string, readonly number[]>, what: string): number {
  const [events = 0, first = 0, ids] = totals['events'] ?? []
  const occurrences = first + (totals['event_occurrences']?.[0] ?? 0)
  t.equal(ids, events, `${what}: an id each`)
  for (const table of ROLLUPS)
    t.same(totals[table], [occurrences, occurrences], `${what}: ${table}`)
  t.same(totals['host_stats'], [occurrences], `${what}: host_stats`)
  return occurrences
}

void test('a backup of the running service is restored with every count', async (t) => {
  const [dataDir, freshDir, dir] = [tempDataDir(t), tempDataDir(t), join(tempDataDir(t), 'a', 'b')]
  const env = { DATA_DIR: dataDir, ...KNOWN }
  const service = await startService(t, env)
  const caller = await logIn(service)
  await furnish(service, caller)
  let isOver = false
  const counts = [0, 0, 0]
  const senders = counts.map((_, sender) =>
    load(
      service,
      sender,
      () => isOver,
      (n) => {
        counts[sender] = n
      },
    ),
  )
  const acknowledged = (): number => counts.reduce((sum, n) => sum + n, 0)
  while (acknowledged() < 2_000) await sleep(20)

  const atLeast = acknowledged()
  const made = await runToEnd(env, ['backup', dir])
  t.equal(made.code, 0, made.stderr)
  const atMost = acknowledged() + 3 * 50
  t.match(made.stdout, /events as of/)
  const before = await shown(caller)
  while (acknowledged() < atMost) await sleep(20)
  isOver = true
  await Promise.all(senders)
  t.equal(await settledCount(() => countOf(caller, 'load'), acknowledged()), acknowledged())
  await service.stop()
  agree(t, await totalsOf(dataDir), 'the service went on')

  const restored = await runToEnd({ DATA_DIR: freshDir }, ['restore', dir])
  t.equal(restored.code, 0, restored.stderr)
  const totals = await totalsOf(freshDir)
  const counted = agree(t, totals, 'restored')
  const loaded = counted - 91
  t.comment(`${atLeast} acknowledged before, ${loaded} of them in it, ${atMost} at most`)
  t.ok(loaded >= atLeast, `${atLeast - loaded} acknowledged ones are missing`)
  t.ok(loaded <= atMost)
  t.same(totals['dead_letters'], [2])
  t.same(totals['audit'], [1])

  const again = await startService(t, { DATA_DIR: freshDir })
  t.notMatch(again.banner, 'shown once', 'users and keys are there')
  const old = { ...caller, ...(await logIn(again)) }
  t.same(await shown(old), before)
  await logIn(again, { email: 'kim@example.com', password: 'a long password' })
  const withOldToken = await fetch(`${again.api}/api/auth/me`, {
    headers: { authorization: `Bearer ${caller.token}` },
  })
  t.equal(withOldToken.status, 200, 'tokens of before hold: their key is in the backup')
  t.equal((await ingest(again, '{"source":"load","message":"after it"}')).status, 202)
  t.equal(await settledCount(() => countOf(old, 'load'), loaded + 1), loaded + 1)
  await again.stop()
})
