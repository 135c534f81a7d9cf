import { test } from 'tap'
import { createAlerts, AlertDoc, AlertWatermarkDoc } from '../../../src/records/alerts.js'
import { createAudit } from '../../../src/records/audit.js'
import { cursorKey } from '../../../src/records/cursor.js'
import {
  createIncidents,
  IncidentDoc,
  type IncidentFields,
} from '../../../src/records/incidents.js'
import { createTasks, TaskDoc } from '../../../src/records/tasks.js'
import { auditRoutes } from '../../../src/api/routes/audit.js'
import { createChain, NO_HEAD, verifyTrail } from '../../../src/records/audit-chain.js'
import { createAuditTable } from '../../../src/records/audit.js'
import type { Store } from '../../../src/clickhouse/client.js'
import { createEntities } from '../../../src/coordination/entities.js'
import { migrate } from '../../../src/clickhouse/migrate.js'
import { startApi } from '../../support/api.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'
import { recordingLog } from '../../support/http.js'

const key = cursorKey('a secret of more than thirty-two characters')
const yes = (): boolean => true

/** The services as a start of the program makes them. */
async function open(store: Store) {
  const entities = await createEntities(store, { log: quietLog })
  const alerts = createAlerts({
    records: entities.collection('alert', AlertDoc),
    watermarks: entities.collection('alert_watermark', AlertWatermarkDoc),
    sourcesOfEvents: async () => [],
    hasSource: yes,
  })
  const incidents = createIncidents({
    records: entities.collection('incident', IncidentDoc),
    hasUser: yes,
    hasApplication: yes,
  })
  const tasks = createTasks({
    records: entities.collection('task', TaskDoc),
    hasUser: yes,
    hasIncident: incidents.has,
  })
  return { alerts, incidents, tasks }
}

const query = { limit: 200, filters: { list: 'x' }, cursorKey: key }
const admin = { userId: 'admin', role: 'admin' } as const
const all = { read: null, severities: [] }
const any = { statuses: [], severities: [], assigneeIds: [], applicationIds: [], sources: [] }
const incident: IncidentFields = {
  title: 'down "😀" \u0000',
  description: 'line\nline',
  severity: 'P1',
  applicationId: null,
  source: 'web',
  assigneeId: 'u',
  alertIds: [],
  eventIds: [2 ** 53 - 1],
}

void test('alerts, incidents and tasks on a real engine', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const database = async (of: { teardown(work: () => unknown): unknown }): Promise<Store> => {
    const { store, drop } = await createTestDatabase(server)
    of.teardown(drop)
    await migrate(store, { numbers: { rollup_days: 121 }, log: quietLog })
    return store
  }

  await t.test('alerts, incidents and tasks are the same after a restart', async (t2) => {
    const store = await database(t2)
    const { alerts, incidents, tasks } = await open(store)
    const alert = { title: 'a', severity: 'P2', eventIds: [1, 2], relatedSource: 'web' } as const
    await alerts.create(alert)
    await alerts.readAll()
    await alerts.create({ ...alert, relatedSource: null })
    const { id } = await incidents.create('u', incident)
    await incidents.transition('u', id, { to: 'resolved', note: 'rebooted' })
    await incidents.addNote('u', id, 'x'.repeat(10_000))
    const task = await tasks.create(admin, {
      title: 't',
      description: '',
      status: 'done',
      priority: 'P4',
      assigneeId: null,
      incidentId: id,
      dueAtMs: 1_800_000_000_000,
    })
    const again = await open(store)
    t2.strictSame(again.alerts.page(query, all), alerts.page(query, all))
    t2.equal(again.alerts.openCount(), 1)
    t2.strictSame(again.incidents.page(query, any), incidents.page(query, any))
    t2.strictSame(again.tasks.get(admin, task.id), task)
    t2.equal(await again.alerts.removeForSources(['web']), 1)
    t2.equal(await again.incidents.clear(), 1)
    const last = await open(store)
    t2.equal(last.alerts.page(query, all).items.length, 1)
    t2.equal(last.incidents.has(id), false)
  })

  await t.test('of many transitions at once each state is left once', async (t2) => {
    const { incidents } = await open(await database(t2))
    const { id } = await incidents.create('u', incident)
    const moves = Array.from({ length: 40 }, (_, i) =>
      incidents.transition(`u${i}`, id, {
        to: i % 2 === 0 ? 'resolved' : 'acknowledged',
        note: '',
      }),
    )
    const done = (await Promise.allSettled(moves)).filter(({ status }) => status === 'fulfilled')
    const { timeline, status } = incidents.get(id)
    t2.equal(status, 'resolved')
    t2.equal(timeline.length, 1 + done.length)
    t2.ok(done.length <= 2, `${done.length} moves from two states`)
  })

  await t.test('the audit trail is kept in order, filtered, and stored once', async (t2) => {
    const store = await database(t2)
    const table = createAuditTable(store)
    const chain = createChain('one', NO_HEAD, () => undefined)
    const audit = createAudit({
      log: recordingLog(),
      chain,
      append: async (rows, token) => {
        await table.append(rows, token)
        // A client repeats a request whose answer was lost.
        await table.append(rows, token)
      },
      limits: { gapMs: 1, waitMs: 10_000 },
    })
    const entry = { outcome: 'ok', ip: '::1', detail: { role: 'admin', n: 1 } }
    for (let i = 0; i < 7; i++) {
      const actorId = i % 2 === 0 ? '' : 'ann'
      await audit.record({
        ...entry,
        actorId,
        action: i < 4 ? 'login' : 'deleteSource',
        target: `${i}`,
      })
    }
    await audit.close(5_000)
    const { call, statuses } = startApi(t2, auditRoutes, { auditTrail: table, cursorKey: key })
    const targets = async (search: string): Promise<string[]> =>
      (await call('admin', `GET /api/monitoring/audit?${search}`)).body.items.map(
        (each: { target: string }) => each.target,
      )
    t2.strictSame(await targets(''), ['6', '5', '4', '3', '2', '1', '0'])
    t2.strictSame(await targets('action=login&actor_id=ann'), ['3', '1'])
    const { body } = await call('admin', 'GET /api/monitoring/audit?limit=3')
    t2.match(body.items[0], { ...entry, actor_id: null, action: 'deleteSource', at: /Z$/ })
    t2.equal(body.items[1].actor_id, 'ann')
    t2.strictSame(await targets(`limit=200&cursor=${body.next_cursor}`), ['3', '2', '1', '0'])
    t2.match(await statuses('GET /api/monitoring/audit'), { viewer: 403, manager: 403, admin: 200 })
    t2.strictSame(body.items[0].detail, entry.detail, 'the place in the chain is not shown')
    const verify = () =>
      verifyTrail(table.all(), [{ writer: chain.writer, ...chain.head }], Date.now())
    t2.match(await verify(), { entries: 7, problems: [], chains: [{ from: 1, to: 7 }] })
    const newest = await table.newestOf('one')
    t2.equal(newest?.link?.hash, chain.head.hash, 'a restart continues the chain')
    t2.equal(await table.newestOf('two'), null)
    await store.command(
      "ALTER TABLE audit DELETE WHERE target = '3' SETTINGS mutations_sync = 2",
      {},
    )
    t2.match((await verify()).problems, [/entry 5 .*those between are missing/])
    await store.command(
      "ALTER TABLE audit UPDATE outcome = 'forbidden' WHERE target = '5' SETTINGS mutations_sync = 2",
      {},
    )
    t2.match((await verify()).problems, [/entry 5/, /entry 6 .*was changed/])
  })
})
