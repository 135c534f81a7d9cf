import { test } from 'tap'
import {
  createAlerts,
  type Alert,
  type AlertWatermark,
  type AlertDeps,
} from '../../../src/records/alerts.js'
import { cursorKey } from '../../../src/records/cursor.js'
import { alertRoutes } from '../../../src/api/routes/alerts.js'
import { startApi } from '../../support/api.js'
import { memoryRecords } from '../../support/records.js'

const SOURCES: Readonly<Record<number, string>> = { 1: 'web', 2: 'web', 3: 'db', 4: 'gone' }

function setUp(parts: Partial<AlertDeps> = {}) {
  const records = memoryRecords<Alert>()
  const watermarks = memoryRecords<AlertWatermark>()
  const sourcesOfEvents = async (ids: readonly number[]) => [
    ...new Set(ids.flatMap((id) => SOURCES[id] ?? [])),
  ]
  const hasSource = (name: string): boolean => name !== 'gone'
  const make = () => createAlerts({ records, watermarks, sourcesOfEvents, hasSource, ...parts })
  return { records, watermarks, make, alerts: make() }
}

const key = cursorKey('a secret of more than thirty-two characters')
const blank = { title: 'x', severity: 'P1', eventIds: [], relatedSource: null } as const
const all = { read: null, severities: [] }
const query = { limit: 200, filters: { list: 'alerts' }, cursorKey: key }

void test('an alert is created unread with its defaults and listed newest first', async (t) => {
  const { alerts } = setUp()
  const { call } = startApi(t, alertRoutes, { alerts, cursorKey: key, announce: () => undefined })
  const first = await call('manager', 'POST /api/alerts', { title: 'disk full', severity: 'P2' })
  t.equal(first.status, 201)
  t.match(first.body, {
    id: /^[0-9a-f-]{36}$/,
    title: 'disk full',
    severity: 'P2',
    read: false,
    event_ids: [],
    related_source: null,
    created_at: /Z$/,
  })
  const titles = ['disk full']
  for (let i = 0; i < 5; i++) {
    await call('manager', 'POST /api/alerts', { title: `alert ${i}`, severity: 'P1' })
    titles.unshift(`alert ${i}`)
  }
  const { body } = await call('viewer', 'GET /api/alerts')
  t.strictSame(
    body.items.map((alert: { title: string }) => alert.title),
    titles,
  )
  t.match(body, { next_cursor: null, has_more: false })
})

void test('bodies outside the limits are refused, naming the field', async (t) => {
  const { alerts } = setUp()
  const { call } = startApi(t, alertRoutes, { alerts, cursorKey: key, announce: () => undefined })
  const good = { title: 't', severity: 'P1' }
  const refused = async (body: object, path: string) => {
    const reply = await call('manager', 'POST /api/alerts', body)
    t.equal(reply.status, 422, path)
    t.match(reply.body.detail, { code: 'validation_error', details: { errors: [{ path }] } })
  }
  await refused({ severity: 'P1' }, 'title')
  await refused({ title: 't' }, 'severity')
  await refused({ ...good, title: '' }, 'title')
  await refused({ ...good, title: 'x'.repeat(301) }, 'title')
  await refused({ ...good, severity: 'ERROR' }, 'severity')
  await refused({ ...good, event_ids: [0] }, 'event_ids.0')
  await refused({ ...good, event_ids: [1.5] }, 'event_ids.0')
  await refused({ ...good, event_ids: [2 ** 53] }, 'event_ids.0')
  await refused({ ...good, event_ids: ['1'] }, 'event_ids.0')
  await refused({ ...good, event_ids: Array.from({ length: 1_001 }, (_, i) => i + 1) }, 'event_ids')
  await refused({ ...good, related_source: 'x'.repeat(121) }, 'related_source')
  await refused({ ...good, read: true }, 'read')
  const most = {
    ...good,
    title: 'ü'.repeat(300),
    event_ids: Array.from({ length: 1_000 }, () => 2 ** 53 - 1),
  }
  t.equal((await call('manager', 'POST /api/alerts', most)).status, 201)
})

void test('the related source is the given one, else the one all events share', async (t) => {
  const { alerts } = setUp()
  const { call } = startApi(t, alertRoutes, { alerts, cursorKey: key, announce: () => undefined })
  const relatedTo = async (fields: object) => {
    const body = { title: 't', severity: 'P3', ...fields }
    return (await call('manager', 'POST /api/alerts', body)).body.related_source
  }
  t.equal(await relatedTo({ event_ids: [1, 2] }), 'web')
  t.equal(await relatedTo({ event_ids: [1, 3] }), null)
  t.equal(await relatedTo({ event_ids: [1, 99] }), 'web', 'an event that is gone has no say')
  t.equal(await relatedTo({ event_ids: [4] }), null, 'its deletion has begun')
  t.equal(await relatedTo({ event_ids: [1], related_source: 'db' }), 'db')
})

void test('read, severity and cursor filter the list, and a cursor is bound to its filters', async (t) => {
  const { alerts } = setUp()
  const { call } = startApi(t, alertRoutes, { alerts, cursorKey: key, announce: () => undefined })
  const ids: string[] = []
  for (let i = 0; i < 12; i++) {
    const severity = i % 2 === 0 ? 'P1' : 'P4'
    ids.push((await call('manager', 'POST /api/alerts', { title: `${i}`, severity })).body.id)
  }
  for (const id of ids.slice(0, 4)) {
    const reply = await call('manager', `POST /api/alerts/${id}/read`)
    t.match(reply, { status: 200, body: { id, read: true } })
  }
  const titles = async (search: string) =>
    (await call('viewer', `GET /api/alerts?${search}`)).body.items.map(
      (a: { title: string }) => a.title,
    )
  t.strictSame(await titles('read=true'), ['3', '2', '1', '0'])
  t.strictSame(await titles('read=true&severity=P1'), ['2', '0'])
  t.strictSame(await titles('severity=P1,P4&limit=2'), ['11', '10'])
  t.strictSame(await titles('severity=P1&severity=P4&limit=2'), ['11', '10'])
  const page = (await call('viewer', 'GET /api/alerts?severity=P4&limit=4')).body
  t.equal(page.has_more, true)
  const next = `cursor=${page.next_cursor}&limit=4`
  t.strictSame(await titles(`severity=P4&${next}`), ['3', '1'])
  const wrong = await call('viewer', `GET /api/alerts?severity=P1&${next}`)
  t.match(wrong, { status: 422, body: { detail: { code: 'invalid_cursor' } } })
  for (const bad of ['limit=0', 'limit=201', 'severity=HIGH', 'read=maybe']) {
    t.equal((await call('viewer', `GET /api/alerts?${bad}`)).status, 422, bad)
  }
})

void test('a viewer lists alerts, a manager creates and reads them', async (t) => {
  const { alerts } = setUp()
  const { statuses } = startApi(t, alertRoutes, {
    alerts,
    cursorKey: key,
    announce: () => undefined,
  })
  const { id } = await alerts.create(blank)
  const forManagers = { viewer: 403, admin: 200, superadmin: 200, manager: 200, nobody: 401 }
  t.strictSame(await statuses('GET /api/alerts'), { ...forManagers, viewer: 200 })
  t.strictSame(await statuses(`POST /api/alerts/${id}/read`), forManagers)
  t.strictSame(await statuses('POST /api/alerts/read-all'), forManagers)
  t.match(await statuses('POST /api/alerts', { title: 't', severity: 'P1' }), {
    viewer: 403,
    manager: 201,
    admin: 201,
    nobody: 401,
  })
})

void test('an alert that does not exist is 404, an id that is none 422', async (t) => {
  const { alerts } = setUp()
  const { call } = startApi(t, alertRoutes, { alerts, cursorKey: key, announce: () => undefined })
  const id = '11111111-1111-4111-8111-111111111111'
  const reply = await call('manager', `POST /api/alerts/${id}/read`)
  t.match(reply, {
    status: 404,
    body: { detail: { code: 'not_found', details: { alert_id: id } } },
  })
  t.equal((await call('manager', 'POST /api/alerts/7/read')).status, 422)
})

void test('read-all reads what is there, counts it once, and leaves later alerts unread', async (t) => {
  const { alerts, make } = setUp()
  for (let i = 0; i < 5; i++) await alerts.create(blank)
  const [newest] = alerts.recent(1)
  await alerts.read(newest?.id ?? '')
  t.equal(alerts.openCount(), 4)
  const late = alerts.create(blank)
  t.equal(await alerts.readAll(), 5, 'the one being written is among them')
  await late
  t.equal(alerts.openCount(), 0)
  t.equal(await alerts.readAll(), 0)
  const after = await alerts.create(blank)
  t.equal(after.read, false)
  t.equal(alerts.openCount(), 1)
  t.equal(alerts.page(query, { read: true, severities: [] }).items.length, 6)
  const again = make()
  t.equal(again.openCount(), 1, 'a restart knows it too')
  t.strictSame(again.page(query, all), alerts.page(query, all))
})

void test('a clock that stands still or goes back does not make a new alert read', async (t) => {
  const { alerts, make } = setUp({ nowMs: () => 1_000 })
  await alerts.create(blank)
  await alerts.create(blank)
  await alerts.readAll()
  await alerts.clear()
  t.equal((await make().create(blank)).read, false)
  t.equal(make().openCount(), 1)
})

void test('the alerts of deleted sources go, those being written too, and no others', async (t) => {
  const { alerts } = setUp()
  await alerts.create({ ...blank, relatedSource: 'web' })
  await alerts.create({ ...blank, relatedSource: 'db' })
  await alerts.create(blank)
  const late = alerts.create({ ...blank, relatedSource: 'web' })
  t.equal(await alerts.removeForSources(['web', 'other']), 2)
  await late
  t.strictSame(
    alerts.page(query, all).items.map((alert) => alert.relatedSource),
    [null, 'db'],
  )
  t.equal(await alerts.clear(), 2)
  t.equal(alerts.openCount(), 0)
})

void test('beyond the limit the oldest go, read ones first', async (t) => {
  const { alerts, records } = setUp({ maxAlerts: 100 })
  const ids: string[] = []
  for (let i = 0; i < 100; i++) ids.push((await alerts.create(blank)).id)
  await alerts.read(ids[50] ?? '')
  const newer = await Promise.all(Array.from({ length: 20 }, () => alerts.create(blank)))
  for (let i = 0; i < 30; i++) await alerts.create(blank)
  t.ok(records.size <= 101 + newer.length, `${records.size}`)
  t.equal(records.get(ids[50] ?? ''), null)
  t.equal(records.get(ids[0] ?? ''), null)
  t.ok(records.get(newer[0]?.id ?? ''))
})

void test('an alert that is raised again under its id is not doubled, and stays as it is', async (t) => {
  const { alerts, records } = setUp()
  const id = '362dfb32-d1e6-89cf-a6c2-4f9b0a7d1e55'
  const first = await alerts.create({ ...blank, id })
  await alerts.read(id)
  const again = await alerts.create({ ...blank, id, title: 'other words' })
  t.match(again, { id, title: 'x', createdAtMs: first.createdAtMs, read: true })
  t.equal(records.list().length, 1)
  t.equal(alerts.openCount(), 0)
})
