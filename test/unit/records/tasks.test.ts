import { test } from 'tap'
import { cursorKey } from '../../../src/records/cursor.js'
import { taskRoutes } from '../../../src/api/routes/tasks.js'
import { createTasks, type Task } from '../../../src/records/tasks.js'
import { USERS, startApi } from '../../support/api.js'
import { memoryRecords } from '../../support/records.js'

const INCIDENT = '44444444-4444-4444-8444-444444444444'
const NOBODY = '33333333-3333-4333-8333-333333333333'
const key = cursorKey('a secret of more than thirty-two characters')
const everyone: readonly string[] = Object.values(USERS)

function setUp(t: Parameters<typeof startApi>[0]) {
  const tasks = createTasks({
    records: memoryRecords<Task>(),
    hasUser: (id) => everyone.includes(id),
    hasIncident: (id) => id === INCIDENT,
  })
  return startApi(t, taskRoutes, { tasks, cursorKey: key })
}

void test('a task is created with its defaults, changed, completed and deleted by an admin', async (t) => {
  const { call } = setUp(t)
  const made = await call('admin', 'POST /api/tasks', {
    title: 'rotate keys',
    due_at: '2027-01-02T03:04:05+01:00',
  })
  t.match(made, {
    status: 201,
    body: {
      title: 'rotate keys',
      description: '',
      status: 'todo',
      priority: 'P3',
      assignee_id: null,
      incident_id: null,
      due_at: '2027-01-02T02:04:05.000Z',
      created_by: USERS.admin,
      completed_at: null,
    },
  })
  const path = `/api/tasks/${made.body.id}`
  const patch = { assignee_id: USERS.viewer, incident_id: INCIDENT, due_at: null, priority: 'P1' }
  t.match((await call('admin', `PATCH ${path}`, patch)).body, patch)
  const done = await call('admin', `PATCH ${path}`, { status: 'done' })
  t.type(done.body.completed_at, 'string')
  const still = await call('admin', `PATCH ${path}`, { title: 'rotate all keys' })
  t.equal(still.body.completed_at, done.body.completed_at, 'the time of completion stays')
  t.match((await call('admin', `PATCH ${path}`, { status: 'blocked' })).body, {
    status: 'blocked',
    completed_at: null,
  })
  t.match(await call('admin', `DELETE ${path}`), { status: 204, text: '' })
  t.match(await call('admin', `GET ${path}`), {
    status: 404,
    body: { detail: { code: 'not_found', details: { task_id: made.body.id } } },
  })
  const born = await call('admin', 'POST /api/tasks', { title: 'x', status: 'done' })
  t.type(born.body.completed_at, 'string')
})

void test('bodies outside the limits, and ids of nothing, are refused, naming the field', async (t) => {
  const { call } = setUp(t)
  for (const [body, path] of [
    [{}, 'title'],
    [{ title: 'x'.repeat(301) }, 'title'],
    [{ title: 't', status: 'closed' }, 'status'],
    [{ title: 't', priority: 'high' }, 'priority'],
    [{ title: 't', due_at: 'tomorrow' }, 'due_at'],
    [{ title: 't', assignee_id: NOBODY }, 'assignee_id'],
    [{ title: 't', incident_id: NOBODY }, 'incident_id'],
    [{ title: 't', completed_at: null }, 'completed_at'],
  ] as const) {
    const reply = await call('admin', 'POST /api/tasks', body)
    t.match(reply, { status: 422, body: { detail: { details: { errors: [{ path }] } } } }, path)
  }
})

void test('a viewer sees and moves their own tasks, and nothing else of them', async (t) => {
  const { call } = setUp(t)
  const make = async (title: string, assignee: string | null) =>
    (await call('admin', 'POST /api/tasks', { title, assignee_id: assignee })).body.id
  const own = await make('own', USERS.viewer)
  const other = await make('other', USERS.manager)
  const free = await make('free', null)
  const titles = async (role: 'viewer' | 'manager', search = '') =>
    (await call(role, `GET /api/tasks${search}`)).body.items.map(
      (task: { title: string }) => task.title,
    )
  t.strictSame(await titles('viewer'), ['own'])
  t.strictSame(await titles('viewer', `?assignee_id=${USERS.manager}`), [])
  t.strictSame(await titles('manager'), ['free', 'other', 'own'])
  t.equal((await call('viewer', `GET /api/tasks/${own}`)).status, 200)
  for (const id of [other, free]) {
    t.equal((await call('viewer', `GET /api/tasks/${id}`)).status, 403)
    t.equal((await call('viewer', `PATCH /api/tasks/${id}`, { status: 'done' })).status, 403)
  }
  const moved = await call('viewer', `PATCH /api/tasks/${own}`, { status: 'in_progress' })
  t.match(moved, { status: 200, body: { status: 'in_progress' } })
  const more = { status: 'done', title: 'mine' }
  t.match(await call('viewer', `PATCH /api/tasks/${own}`, more), {
    status: 403,
    body: { detail: { code: 'forbidden' } },
  })
  t.equal((await call('viewer', `GET /api/tasks/${own}`)).body.status, 'in_progress')
  t.equal((await call('manager', `PATCH /api/tasks/${own}`, { status: 'done' })).status, 403)
  t.equal((await call('manager', `PATCH /api/tasks/${other}`, { status: 'done' })).status, 200)
})

void test('creating and deleting is for admins', async (t) => {
  const { call, statuses } = setUp(t)
  const forAdmins = { viewer: 403, manager: 403, nobody: 401 }
  t.strictSame(await statuses('POST /api/tasks', { title: 't' }), {
    ...forAdmins,
    admin: 201,
    superadmin: 201,
  })
  const make = async () => {
    const { body } = await call('admin', 'POST /api/tasks', { title: 't' })
    return `DELETE /api/tasks/${body.id}`
  }
  t.strictSame(await statuses(make), { ...forAdmins, admin: 204, superadmin: 204 })
})

void test('the list filters by status, assignee and incident, page by page', async (t) => {
  const { call } = setUp(t)
  for (let i = 0; i < 7; i++) {
    await call('admin', 'POST /api/tasks', {
      title: `${i}`,
      status: i % 2 === 0 ? 'todo' : 'blocked',
      ...(i < 3 ? { incident_id: INCIDENT } : {}),
      ...(i > 4 ? { assignee_id: USERS.manager } : {}),
    })
  }
  const page = async (search: string) => (await call('manager', `GET /api/tasks?${search}`)).body
  const titles = async (search: string) =>
    (await page(search)).items.map((task: { title: string }) => task.title)
  t.strictSame(await titles('status=blocked'), ['5', '3', '1'])
  t.strictSame(await titles(`incident_id=${INCIDENT}&status=todo`), ['2', '0'])
  t.strictSame(await titles(`assignee_id=${USERS.manager}`), ['6', '5'])
  const seen: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const { items, next_cursor: next } = await page(
      `limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`,
    )
    seen.push(...items.map((task: { title: string }) => task.title))
    cursor = next
  }
  t.strictSame(seen, ['6', '5', '4', '3', '2', '1', '0'])
})
