import { randomUUID } from 'node:crypto'
import { array, assert, asyncProperty, constantFrom } from 'fast-check'
import { test } from 'tap'
import { cursorKey } from '../../../src/records/cursor.js'
import {
  createIncidents,
  INCIDENT_STATUSES,
  MAX_TIMELINE_ENTRIES,
  type Incident,
} from '../../../src/records/incidents.js'
import { incidentRoutes } from '../../../src/api/routes/incidents.js'
import { USERS, startApi } from '../../support/api.js'
import { memoryRecords } from '../../support/records.js'

const APPLICATION = '22222222-2222-4222-8222-222222222222'
const NOBODY = '33333333-3333-4333-8333-333333333333'
const key = cursorKey('a secret of more than thirty-two characters')
const everyone: readonly string[] = Object.values(USERS)

function setUp(nowMs: () => number = Date.now) {
  const records = memoryRecords<Incident>()
  const incidents = createIncidents({
    records,
    nowMs,
    hasUser: (id) => everyone.includes(id),
    hasApplication: (id) => id === APPLICATION,
  })
  return { records, incidents, services: { incidents, cursorKey: key } }
}

const good = { title: 'checkout fails', severity: 'P1' }
const fields = {
  title: 'checkout fails',
  description: '',
  severity: 'P1',
  applicationId: null,
  source: null,
  assigneeId: null,
  alertIds: [],
  eventIds: [],
} as const

void test('evidence keeps what a search found', async (t) => {
  const { call } = startApi(t, incidentRoutes, setUp().services)
  const evidence = {
    q: 'severity:error',
    from: '2026-11-24T09:00:00.000Z',
    to: '2026-11-24T09:30:00.000Z',
    count: 820,
  }
  const { body } = await call('manager', 'POST /api/incidents', { ...good, evidence: [evidence] })
  t.same(body.evidence, [evidence])
  const path = `/api/incidents/${body.id}`
  const two = { evidence: [evidence, { ...evidence, count: 3 }] }
  const changed = await call('manager', `PATCH ${path}`, two)
  t.same(changed.body.evidence, two.evidence)
  t.match(changed.body.timeline.at(-1), { kind: 'changed', text: 'evidence' })
  t.same((await call('viewer', `GET ${path}`)).body.evidence, two.evidence)
  const many = { evidence: Array.from({ length: 51 }, () => evidence) }
  t.equal((await call('manager', `PATCH ${path}`, many)).status, 422)
  const wrong = { evidence: [{ ...evidence, from: 'yesterday' }] }
  t.equal((await call('manager', `PATCH ${path}`, wrong)).status, 422)
})

void test('an incident is opened with its defaults, read, changed and deleted', async (t) => {
  const { call } = startApi(t, incidentRoutes, setUp().services)
  const { status, body } = await call('manager', 'POST /api/incidents', good)
  t.equal(status, 201)
  t.match(body, {
    ...good,
    description: '',
    status: 'open',
    application_id: null,
    source: null,
    assignee_id: null,
    alert_ids: [],
    event_ids: [],
    evidence: [],
    created_by: USERS.manager,
    acknowledged_at: null,
    resolved_at: null,
    closed_at: null,
    timeline: [{ actor_id: USERS.manager, kind: 'created', text: '' }],
  })
  const path = `/api/incidents/${body.id}`
  const patch = { severity: 'P2', assignee_id: USERS.viewer, application_id: APPLICATION }
  const changed = await call('admin', `PATCH ${path}`, patch)
  t.match(changed, { status: 200, body: { ...patch, title: good.title } })
  t.match(changed.body.timeline.at(-1), {
    actor_id: USERS.admin,
    kind: 'changed',
    text: 'severity, application_id, assignee_id',
  })
  t.strictSame((await call('viewer', `GET ${path}`)).body, changed.body)
  const cleared = await call('manager', `PATCH ${path}`, { assignee_id: null })
  t.equal(cleared.body.assignee_id, null)
  const same = await call('manager', `PATCH ${path}`, { severity: 'P2' })
  t.strictSame(same.body, cleared.body, 'what changes nothing leaves no trace')
  t.match(await call('admin', `DELETE ${path}`), { status: 204, text: '' })
  for (const request of [`GET ${path}`, `DELETE ${path}`]) {
    const reply = await call('admin', request)
    t.match(reply, { status: 404, body: { detail: { details: { incident_id: body.id } } } })
  }
})

void test('the user and the application of an incident must exist', async (t) => {
  const { call } = startApi(t, incidentRoutes, setUp().services)
  const { body } = await call('manager', 'POST /api/incidents', good)
  for (const [path, value] of [
    ['assignee_id', NOBODY],
    ['application_id', NOBODY],
  ] as const) {
    for (const request of ['POST /api/incidents', `PATCH /api/incidents/${body.id}`]) {
      const reply = await call('manager', request, { ...good, [path]: value })
      t.match(reply, {
        status: 422,
        body: { detail: { code: 'validation_error', details: { errors: [{ path }] } } },
      })
    }
  }
})

void test('a list has no timelines, however long they are', async (t) => {
  const { incidents, services } = setUp()
  const { call } = startApi(t, incidentRoutes, services)
  const { id } = await incidents.create(USERS.admin, { ...fields, alertIds: [], eventIds: [] })
  for (let i = 0; i < 30; i++) await incidents.addNote(USERS.admin, id, 'x'.repeat(10_000))
  const { timeline, ...facts } = (await call('viewer', `GET /api/incidents/${id}`)).body
  const { text, body } = await call('viewer', 'GET /api/incidents')
  t.ok(text.length < 2_000)
  t.equal(timeline.length, 31)
  t.strictSame(body.items, [{ ...facts, timeline_entries: 31 }])
})

void test('the roles of the router', async (t) => {
  const { incidents, services } = setUp()
  const { statuses } = startApi(t, incidentRoutes, services)
  const make = async () =>
    (await incidents.create(USERS.admin, { ...fields, alertIds: [], eventIds: [] })).id
  const id = await make()
  const ok = { viewer: 403, manager: 200, admin: 200, superadmin: 200, nobody: 401 }
  const created = { viewer: 403, manager: 201, admin: 201, superadmin: 201, nobody: 401 }
  t.strictSame(await statuses('GET /api/incidents'), { ...ok, viewer: 200 })
  t.strictSame(await statuses(`GET /api/incidents/${id}`), { ...ok, viewer: 200 })
  t.strictSame(await statuses('POST /api/incidents', good), created)
  t.strictSame(await statuses(`PATCH /api/incidents/${id}`, { title: 'new' }), ok)
  t.strictSame(await statuses(`POST /api/incidents/${id}/notes`, { text: 'n' }), created)
  t.strictSame(
    await statuses(async () => `POST /api/incidents/${await make()}/transition`, {
      to: 'resolved',
    }),
    ok,
  )
  t.strictSame(await statuses(async () => `DELETE /api/incidents/${await make()}`), {
    viewer: 403,
    manager: 403,
    admin: 204,
    superadmin: 204,
    nobody: 401,
  })
})

void test('bodies outside the limits are refused, naming the field', async (t) => {
  const { incidents, services } = setUp()
  const { call } = startApi(t, incidentRoutes, services)
  const { id } = await incidents.create(USERS.admin, { ...fields, alertIds: [], eventIds: [] })
  const refused = async (request: string, body: object, path: string) => {
    const reply = await call('manager', `POST /api/incidents${request}`, body)
    t.match(reply, { status: 422, body: { detail: { details: { errors: [{ path }] } } } }, path)
  }
  await refused('', { severity: 'P1' }, 'title')
  await refused('', { title: 't' }, 'severity')
  await refused('', { ...good, status: 'closed' }, 'status')
  await refused('', { ...good, description: 'x'.repeat(20_001) }, 'description')
  await refused('', { ...good, alert_ids: ['7'] }, 'alert_ids.0')
  await refused('', { ...good, event_ids: [-1] }, 'event_ids.0')
  await refused('', { ...good, application_id: 'shop' }, 'application_id')
  await refused(`/${id}/transition`, { to: 'done' }, 'to')
  await refused(`/${id}/transition`, {}, 'to')
  await refused(`/${id}/notes`, { text: '' }, 'text')
  await refused(`/${id}/notes`, { text: 'x'.repeat(10_001) }, 'text')
})

void test('transitions follow the machine and write the timeline', async (t) => {
  const { call } = startApi(t, incidentRoutes, setUp().services)
  const { body } = await call('manager', 'POST /api/incidents', good)
  const move = (to: string, note?: string) =>
    call(
      'manager',
      `POST /api/incidents/${body.id}/transition`,
      note === undefined ? { to } : { to, note },
    )
  const acknowledged = await move('acknowledged', 'looking')
  t.match(acknowledged, { status: 200, body: { status: 'acknowledged', resolved_at: null } })
  t.match(acknowledged.body.timeline.at(-1), {
    kind: 'transition',
    text: 'open → acknowledged: looking',
  })
  t.type(acknowledged.body.acknowledged_at, 'string')
  const refused = await move('closed')
  t.match(refused, {
    status: 409,
    body: {
      detail: { code: 'invalid_transition', details: { from: 'acknowledged', to: 'closed' } },
    },
  })
  t.type((await move('resolved')).body.resolved_at, 'string')
  const closed = (await move('closed')).body
  t.type(closed.closed_at, 'string')
  const reopened = (await move('open')).body
  t.match(reopened, { status: 'open', resolved_at: null, closed_at: null })
  t.equal(reopened.timeline.length, 5)
})

void test('of two transitions at once from one state only one succeeds', async (t) => {
  const { call } = startApi(t, incidentRoutes, setUp().services)
  for (const [first, second] of [
    ['acknowledged', 'acknowledged'],
    ['resolved', 'investigating'],
  ]) {
    const { body } = await call('manager', 'POST /api/incidents', good)
    const path = `POST /api/incidents/${body.id}/transition`
    const replies = await Promise.all([
      call('manager', path, { to: first }),
      call('admin', path, { to: second }),
    ])
    t.strictSame(
      replies.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 409],
    )
    const { timeline } = (await call('viewer', `GET /api/incidents/${body.id}`)).body
    t.equal(timeline.length, 2)
  }
})

void test('no sequence of requests leaves an inconsistent record, whatever the clock does', async () => {
  const step = constantFrom(...INCIDENT_STATUSES, 'note', 'change')
  await assert(
    asyncProperty(array(step, { maxLength: 40 }), async (steps) => {
      let clock = 1_000_000
      const { incidents } = setUp(() => (clock += clock % 3 === 0 ? -500 : 700))
      const { id } = await incidents.create('a', { ...fields, alertIds: [], eventIds: [] })
      let made = 1
      for (const [i, what] of steps.entries()) {
        try {
          if (what === 'note') await incidents.addNote('a', id, 'text')
          else if (what === 'change') await incidents.change('a', id, { title: `title ${i}` })
          else await incidents.transition('a', id, { to: what, note: '' })
          made++
        } catch {
          // A refused change must leave no trace.
        }
      }
      const incident = incidents.get(id)
      const times = incident.timeline.map(({ atMs }) => atMs)
      const { status, resolvedAtMs, closedAtMs, acknowledgedAtMs } = incident
      return (
        incident.timeline.length === made &&
        times.every((ms, i) => i === 0 || (times[i - 1] ?? 0) <= ms) &&
        incident.updatedAtMs === times.at(-1) &&
        (resolvedAtMs !== null) === ['resolved', 'closed'].includes(status) &&
        (closedAtMs !== null) === (status === 'closed') &&
        (status === 'open' || acknowledgedAtMs !== null)
      )
    }),
    { numRuns: 50 },
  )
})

void test('a timeline stays within its bounds and keeps its beginning', async (t) => {
  const { incidents } = setUp()
  const { id } = await incidents.create('a', { ...fields, alertIds: [], eventIds: [] })
  for (let i = 0; i < MAX_TIMELINE_ENTRIES + 20; i++) await incidents.addNote('a', id, `note ${i}`)
  const { timeline } = incidents.get(id)
  t.equal(timeline.length, MAX_TIMELINE_ENTRIES)
  t.equal(timeline[0]?.kind, 'created')
  t.equal(timeline.at(-1)?.text, `note ${MAX_TIMELINE_ENTRIES + 19}`)
  for (let i = 0; i < 60; i++) await incidents.addNote('a', id, '\u0001'.repeat(10_000))
  t.ok(JSON.stringify(incidents.get(id)).length < 4 * 1024 * 1024)
  t.equal(incidents.get(id).timeline[0]?.kind, 'created')
})

void test('the list filters by status, severity, assignee, application and source', async (t) => {
  const { incidents, services } = setUp()
  const { call } = startApi(t, incidentRoutes, services)
  const make = async (title: string, more: object) =>
    (await incidents.create('a', { ...fields, alertIds: [], eventIds: [], title, ...more })).id
  const a = await make('a', { severity: 'P1', source: 'web', assigneeId: USERS.viewer })
  await make('b', { severity: 'P2', source: 'db', applicationId: APPLICATION })
  await make('c', { severity: 'P2' })
  await incidents.transition('a', a, { to: 'resolved', note: '' })
  const titles = async (search: string) =>
    (await call('viewer', `GET /api/incidents?${search}`)).body.items.map(
      (i: { title: string }) => i.title,
    )
  t.strictSame(await titles(''), ['c', 'b', 'a'])
  t.strictSame(await titles('status=resolved'), ['a'])
  t.strictSame(await titles('status=open,resolved&severity=P2'), ['c', 'b'])
  t.strictSame(await titles('source=web&source=db'), ['b', 'a'])
  t.strictSame(await titles(`assignee_id=${USERS.viewer}`), ['a'])
  t.strictSame(await titles(`application_id=${APPLICATION}`), ['b'])
  t.strictSame(await titles(`application_id=${randomUUID()}`), [])
  const page = (await call('viewer', 'GET /api/incidents?limit=2')).body
  t.strictSame(await titles(`limit=2&cursor=${page.next_cursor}`), ['a'])
  t.equal(
    (await call('viewer', `GET /api/incidents?status=open&cursor=${page.next_cursor}`)).status,
    422,
  )
})
