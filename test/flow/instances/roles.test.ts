import t from 'tap'
import {
  ADMIN,
  INGEST_KEY,
  ingest,
  logIn,
  runToEnd,
  settledCount,
  countOf,
} from '../../support/service.js'
import { startShared } from '../../support/instances.js'

const shared = await startShared(t)
if (shared === null) {
  t.plan(0, 'redis-server is not installed')
} else {
  const collector = await shared.start({ ROLE: 'collector' })
  const api = await shared.start({ ROLE: 'api' })
  const status = async (url: string, init: RequestInit = {}): Promise<number> =>
    (await fetch(url, init)).status

  t.test('the start of each role says what it does', async (t) => {
    t.match(collector.banner, /role +collector: takes events and webhooks/)
    t.match(collector.banner, /collector +http/)
    t.notMatch(collector.banner, /API +http/)
    t.notMatch(collector.banner, /admin/, 'nobody logs in here')
    t.match(api.banner, /role +api: answers queries/)
    t.match(api.banner, /API +http/)
    t.notMatch(api.banner, /collector +http/)
    t.notMatch(api.banner, /ingest key/, 'the collector has made it')
    t.match(api.banner, new RegExp(`admin +${ADMIN.email}`))
  })

  t.test('a collector takes events, reports its health, and answers no query', async (t) => {
    const at = collector.collector
    const body = [1, 2, 3].map((n) => JSON.stringify({ source: 'roles', message: `n ${n}` }))
    t.equal((await ingest(collector, body.join('\n'))).status, 202)
    t.equal(await status(`${at}/health`), 200)
    const metrics = await fetch(`${at}/metrics`)
    t.equal(metrics.status, 200)
    t.match(await metrics.text(), /wal_records \d/)
    const forwarded = { headers: { 'x-forwarded-for': '203.0.113.9' } }
    t.equal(await status(`${at}/metrics`, forwarded), 401, 'the metrics are not for the world')
    for (const path of [
      '/api/logs',
      '/api/monitoring/health',
      '/api/auth/login',
      '/docs',
      '/openapi.json',
    ])
      t.equal(await status(`${at}${path}`), 404, path)
    t.equal(await status(`${at}/webhooks/scm`, { method: 'POST', body: '{}' }), 401)
  })

  t.test('the other answers for what was taken, and takes nothing itself', async (t) => {
    const caller = await logIn(api)
    t.equal(await settledCount(() => countOf(caller, 'roles'), 3), 3)
    const headers = { authorization: `Bearer ${INGEST_KEY}` }
    t.equal(await status(`${api.api}/ingest`, { method: 'POST', body: '{}', headers }), 404)
    const { status: well, checks } = await caller.get<{
      status: string
      checks: Record<string, { status: string }>
    }>('/api/monitoring/health')
    t.equal(well, 'ok')
    t.same(Object.keys(checks).toSorted(), ['alerts', 'clickhouse', 'spool', 'state', 'workers'])
  })

  t.test('combinations that make no sense stop the start with a line', async (t) => {
    const { REDIS_URL, JWT_SECRET, ...alone } = shared.env
    const refused = async (env: Readonly<Record<string, string | undefined>>, line: RegExp) => {
      const given = Object.entries({ ...env, DATA_DIR: '/nowhere' })
      const set = given.filter((entry): entry is [string, string] => entry[1] !== undefined)
      const { code, stderr } = await runToEnd(Object.fromEntries(set))
      t.not(code, 0)
      t.match(stderr, line)
      t.notMatch(stderr, /\n\s+at /, 'no stack')
    }
    await refused({ ROLE: 'api' }, /ROLE=api needs CLICKHOUSE_URL/)
    await refused({ ...alone, ROLE: 'collector' }, /ROLE=collector needs REDIS_URL/)
    await refused(
      { ...alone, REDIS_URL },
      /JWT_SECRET .* is required with CLICKHOUSE_URL and REDIS_URL/,
    )
    t.ok(JWT_SECRET)
  })

  t.test('without Redis an instance says that it must be alone', async (t) => {
    const { REDIS_URL: _, ...env } = shared.env
    const alone = await shared.start({ ...env, REDIS_URL: '', CLICKHOUSE_DATABASE: 'alone' })
    t.match(alone.banner, /without REDIS_URL this must be the only instance/)
    t.match(await alone.stop(), { code: 0 })
    t.notMatch(api.banner, /must be the only instance/)
  })
}
