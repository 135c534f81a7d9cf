import { cpSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startCluster, type TestCluster } from '../support/cluster.js'
import { eventually, settled, startLiveService, type LiveService } from '../support/live-service.js'
import { contradictionsOn } from './agree.js'

/** The procedure of src/docs/cluster.md, section "Backup of a cluster", step by step. */
const QUESTIONS = [
  '/api/logs?limit=200',
  '/api/logs/meta/timeseries?window=30d&granularity=day&limit=50',
  '/api/logs/meta/calendar',
  '/api/analytics/top-sources?window=30d&limit=50',
  '/api/analytics/severity-breakdown?window=30d',
  '/api/applications',
  '/api/ingest-keys',
  '/api/monitoring/dead-letters',
]

async function open(): Promise<TestCluster> {
  const cluster = await startCluster(2)
  t.teardown(() => cluster.stop())
  return cluster
}

const onEach = async (cluster: TestCluster, sql: (shard: number) => string): Promise<void> => {
  for (const [i, shard] of cluster.shards.entries()) {
    const store = shard.connect('default')
    await store.command(sql(i + 1))
    await store.close()
  }
}

/** Times of last use apart. */
const answers = (service: LiveService): Promise<readonly unknown[]> =>
  Promise.all(
    QUESTIONS.map(async (path) => {
      const { text } = await service.call(`GET ${path}`)
      return JSON.parse(text.replaceAll(/"last_used_at":"[^"]*"/g, '"last_used_at":null'))
    }),
  )

t.test('a cluster is restored from backups of its servers', async (t) => {
  const before = await open()
  const service = await startLiveService(t, before.env)
  for (let batch = 0; batch < 3; batch++)
    await service.ingest(
      Array.from({ length: 300 }, (_, i) => ({
        source: `app-${i % 12}`,
        severity: i % 7 === 0 ? 'ERROR' : 'INFO',
        message: i % 3 === 0 ? 'heartbeat missed' : `job ${batch}-${i} finished`,
      })),
    )
  await service
    .ingest([{ source: 'app-1', message: 'before time', timestamp: '1960-01-01T00:00:00Z' }])
    .catch(() => undefined)
  await service.call('POST /api/applications', { json: { name: 'shop' } })
  await settled(service)
  const [event] = (await service.call('GET /api/logs?limit=1')).body.items
  await service.call(`PATCH /api/logs/${event.id}/priority`, { json: { priority: 'P1' } })
  const expected = await answers(service)
  await onEach(
    before,
    () => 'ALTER TABLE logs_local.events APPLY PATCHES SETTINGS mutations_sync = 2',
  )
  await onEach(before, (shard) => `BACKUP DATABASE logs_local TO File('shard${shard}')`)
  await service.ingest([{ source: 'late', message: 'not in the backup' }])
  await settled(service)

  const after = await open()
  for (const [i, { backupsDir }] of before.shards.entries()) {
    const name = `shard${i + 1}`
    const to = after.shards[i]?.backupsDir ?? ''
    cpSync(join(backupsDir, name), join(to, name), { recursive: true })
  }
  await onEach(after, (shard) => `RESTORE DATABASE logs_local FROM File('shard${shard}')`)
  const restored = await startLiveService(t, after.env)
  t.same(
    await eventually(
      () => answers(restored),
      (found) => JSON.stringify(found) === JSON.stringify(expected),
      5_000,
    ).catch(() => answers(restored)),
    expected,
  )
  const next = { source: 'app-1', message: 'heartbeat missed' }
  t.match((await restored.ingest([next])).body, { accepted: 1 })
  await settled(restored)
  const { body } = await restored.call('GET /api/analytics/severity-breakdown?window=30d')
  t.equal(body.total, 901)
  const ids = (await restored.call('GET /api/logs?limit=200&source=app-1')).body.items
  t.equal(new Set(ids.map(({ id }: { readonly id: number }) => id)).size, ids.length)
  t.same(await contradictionsOn(after), [], 'all tables agree')
})
