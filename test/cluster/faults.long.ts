import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startCluster } from '../support/cluster.js'
import { seeded } from '../support/landing.js'
import { eventually, settled, startLiveService } from '../support/live-service.js'
import { load } from '../support/service.js'
import { signal } from '../support/signals.js'
import { contradictionsOn } from './agree.js'

// oxlint-disable typescript/no-explicit-any -- the test checks the content of replies

const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
t.comment(`seed ${seed}`)
const random = seeded(seed)
const cluster = await startCluster(2)
t.teardown(() => cluster.stop())
const service = await startLiveService(t, cluster.env)
const get = async (path: string): Promise<any> => {
  const reply = await service.call(`GET ${path}`)
  if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${reply.text}`)
  return reply.body
}
const sum = (values: readonly number[]): number => values.reduce((total, n) => total + n, 0)

/** Every count of a source that the API gives. */
async function countsOf(source: string): Promise<Readonly<Record<string, number>>> {
  const series = await get(`/api/logs/meta/timeseries?window=24h&limit=50&source=${source}`)
  const top = await get('/api/analytics/top-sources?window=24h&limit=50')
  const severities = await get(`/api/analytics/severity-breakdown?window=24h&source=${source}`)
  return {
    series: sum(series.buckets.map((b: any) => b.P1 + b.P2 + b.P3 + b.P4)),
    top: top.items.find((item: any) => item.source === source)?.count ?? 0,
    severities: severities.total,
  }
}

const all = (n: number): object => ({ series: n, top: n, severities: n })

t.test(
  'shards are killed under load, and every acknowledged message is counted once',
  async (t) => {
    let isOver = false
    const senders = [1, 2, 3].map((sender) => load(service, sender, () => isOver))
    const kills = 5
    for (let i = 0; i < kills; i++) {
      await sleep(300 + random() * 1_200)
      const shard = cluster.shards[Math.floor(random() * 2)]
      const pid = shard?.pid()
      shard?.kill()
      await eventually(
        async () => shard?.pid() ?? pid,
        (now) => now !== pid,
      )
    }
    isOver = true
    const acknowledged = sum(await Promise.all(senders))
    t.ok(acknowledged > 200, `${acknowledged} acknowledged`)
    await settled(service)
    t.same(
      await eventually(
        () => countsOf('load'),
        () => true,
      ),
      all(acknowledged),
    )
    const items: any[] = []
    for (let cursor = ''; ;) {
      const page = await get(`/api/logs?limit=200&source=load${cursor}`)
      items.push(...page.items)
      if (!page.has_more) break
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
    }
    t.equal(sum(items.map((item) => item.occurrence_count)), acknowledged, 'in the list')
    t.equal(new Set(items.map((item) => item.id)).size, items.length, 'no event is there twice')
    t.same(await contradictionsOn(cluster), [], 'all tables agree')
  },
)

t.test('during an outage of a shard errors are reported, and nothing is lost', async (t) => {
  const [, gone] = cluster.shards
  const before = await countsOf('load')
  await gone?.down()
  const sent = Array.from({ length: 500 }, (_, i) => ({ source: 'patient', message: `waits ${i}` }))
  t.match((await service.ingest(sent)).body, { accepted: 500, rejected: 0 }, 'the WAL takes them')
  for (const path of [
    '/api/logs?source=load',
    '/api/logs/meta/timeseries?window=24h',
    '/api/logs/meta/templates',
    '/api/logs/meta/calendar',
    '/api/analytics/top-sources?window=24h',
  ]) {
    const reply = await service.call(`GET ${path}`)
    t.match(reply, { status: 503, body: { detail: { code: 'dependency_unavailable' } } }, path)
    t.same(reply.body?.detail?.details, { dependency: 'clickhouse', shards: [2] })
    const part = await service.call(`GET ${path}${path.includes('?') ? '&' : '?'}partial=true`)
    t.match(part, { status: 200 }, `a part of ${path}`)
    t.equal(part.headers.get('x-missing-shards'), '2')
    t.ok(Number(reply.headers.get('retry-after')) > 0)
  }
  const health = await eventually(
    () => service.call('GET /api/monitoring/health'),
    ({ body }) => body?.status === 'down',
  )
  t.match(health, { status: 503, body: { checks: { clickhouse: { status: 'down' } } } })
  t.same((await get('/api/alerts')).items, [], 'what is in memory is answered')
  await gone?.up()
  await settled(service)
  t.same(await countsOf('patient'), all(500))
  t.same(await countsOf('load'), before, 'nothing else moved')
  t.same(await contradictionsOn(cluster), [], 'all tables agree')
  const whole = await service.call('GET /api/logs/meta/calendar?partial=true')
  t.equal(whole.headers.get('x-missing-shards'), null, 'all shards answer')
  await eventually(
    () => service.call('GET /api/monitoring/health'),
    ({ body }) => body?.status === 'ok',
  )
})

t.test('a shard that stands still is named', async (t) => {
  const pid = cluster.shards[1]?.pid() ?? 0
  signal(pid, 'SIGSTOP')
  try {
    for (const path of ['/api/logs?source=load', '/api/analytics/severity-breakdown?window=24h']) {
      const askedAtMs = Date.now()
      const reply = await service.call(`GET ${path}`)
      t.match(reply, { status: 503, body: { detail: { details: { shards: [2] } } } })
      t.comment(`${path} answered after ${Date.now() - askedAtMs} ms`)
      const part = await service.call(`GET ${path}&partial=true`)
      t.equal(part.headers.get('x-missing-shards'), '2')
      t.comment(`with partial=true after ${Date.now() - askedAtMs} ms`)
    }
  } finally {
    signal(pid, 'SIGCONT')
  }
  await eventually(
    () => service.call('GET /api/logs?source=load'),
    ({ status }) => status === 200,
  )
})

t.test('a source deleted while a shard is away is gone from every shard', async (t) => {
  const [, gone] = cluster.shards
  await gone?.down()
  // A correction that could not be recorded, or not be completed in time, is sent again.
  const deleting = eventually(
    () => service.call('DELETE /api/sources/load'),
    ({ status }) => status !== 503,
  )
  await sleep(1_500)
  await gone?.up()
  const { status } = await deleting
  t.ok(status === 200 || status === 404, `${status}`)
  t.same(await countsOf('load'), all(0))
  t.same(await countsOf('patient'), all(500))
  await service.ingest([{ source: 'load', message: 'job 1-1-1 finished' }])
  await settled(service)
  t.same(await countsOf('load'), all(1), 'it begins anew')
  t.same(await contradictionsOn(cluster), [], 'all tables agree')
})
