import { test } from 'tap'

import { savedViewRoutes } from '../../../src/api/routes/saved-views.js'
import { cursorKey } from '../../../src/records/cursor.js'
import { createSavedViews, type SavedView } from '../../../src/records/saved-views.js'
import { USERS, startApi } from '../../support/api.js'
import { memoryRecords } from '../../support/records.js'

const key = cursorKey('a secret of more than thirty-two characters')
const view = {
  name: 'errors',
  screen: 'explore',
  kind: 'view',
  params: 'q=severity:error&from=now-1h',
  is_for_all: false,
  is_default: false,
}

function setUp(t: Parameters<typeof startApi>[0]) {
  const savedViews = createSavedViews(memoryRecords<SavedView>())
  return { ...startApi(t, savedViewRoutes, { savedViews, cursorKey: key }), savedViews }
}

void test('a view is seen by its owner, and by all when a manager says so', async (t) => {
  const { call } = setUp(t)
  const made = await call('viewer', 'POST /api/saved-views', view)
  t.match(made, { status: 201, body: { ...view, owner_id: USERS.viewer } })
  const path = `/api/saved-views/${made.body.id}`
  const names = async (role: 'viewer' | 'manager') =>
    (await call(role, 'GET /api/saved-views')).body.items.map(
      (one: SavedView['fields']) => one.name,
    )
  t.same(await names('viewer'), ['errors'])
  t.same(await names('manager'), [])
  t.equal((await call('manager', `PUT ${path}`, view)).status, 404, 'it is not even there')
  t.equal((await call('manager', `DELETE ${path}`)).status, 404)

  const shared = { ...view, is_for_all: true }
  const refused = await call('viewer', `PUT ${path}`, shared)
  t.match(refused, { status: 403, body: { detail: { code: 'forbidden' } } })
  t.equal((await call('viewer', 'POST /api/saved-views', shared)).status, 403)
  const forAll = await call('manager', 'POST /api/saved-views', { ...shared, name: 'for all' })
  t.same(await names('viewer'), ['errors', 'for all'])
  const theirs = `/api/saved-views/${forAll.body.id}`
  t.equal((await call('viewer', `DELETE ${theirs}`)).status, 403)
  t.equal((await call('admin', `PUT ${theirs}`, { ...shared, name: 'ours' })).status, 200)
  t.same(await names('viewer'), ['errors', 'ours'])
  t.equal((await call('viewer', `DELETE ${path}`)).status, 204)
  t.equal((await call('admin', `DELETE ${theirs}`)).status, 204)
  t.same(await names('viewer'), [])
})

void test('a screen has one default for each user, and one for all', async (t) => {
  const { call } = setUp(t)
  const save = async (role: 'viewer' | 'manager', fields: object) =>
    (await call(role, 'POST /api/saved-views', { ...view, is_default: true, ...fields })).body.id
  const first = await save('viewer', { name: 'a' })
  await save('viewer', { name: 'live', screen: 'live' })
  await save('manager', { name: 'all', is_for_all: true })
  await save('manager', { name: 'own' })
  const second = await save('viewer', { name: 'b' })
  const defaults = async () =>
    (await call('viewer', 'GET /api/saved-views')).body.items
      .filter((one: SavedView['fields']) => one.is_default)
      .map((one: SavedView['fields']) => one.name)
      .toSorted()
  t.same(await defaults(), ['all', 'b', 'live'])
  await call('viewer', `PUT /api/saved-views/${first}`, { ...view, name: 'a', is_default: true })
  t.same(await defaults(), ['a', 'all', 'live'])
  await call('viewer', `DELETE /api/saved-views/${second}`)
  t.same(await defaults(), ['a', 'all', 'live'])
})

void test('views are checked, and go with their user', async (t) => {
  const { call, savedViews } = setUp(t)
  t.equal((await call('viewer', 'POST /api/saved-views', { ...view, name: ' ' })).status, 422)
  t.equal((await call('viewer', 'POST /api/saved-views', { ...view, screen: 'admin' })).status, 422)
  const viewer = { id: USERS.viewer, maySetForAll: false }
  const fields = { ...view, screen: 'explore', kind: 'view' } as const
  await savedViews.create(viewer, fields)
  await call('manager', 'POST /api/saved-views', { ...view, is_for_all: true })
  await savedViews.removeOf(USERS.viewer)
  t.equal((await call('viewer', 'GET /api/saved-views?limit=200')).body.items.length, 1)
})
