/** What users see and change of their own account. */
import t from 'tap'
import { startLiveService } from '../../support/live-service.js'
import { openKpiSocket } from '../../support/kpi-socket.js'

const service = await startLiveService(t)

const sessionsOf = async (token: string) =>
  (await service.call('GET /api/auth/sessions', { token })).body.items
const me = async (token: string) => (await service.call('GET /api/auth/me', { token })).status

t.test('users see their sessions and end one or all others, and nobody else’s', async (t) => {
  const user = await service.newUser('viewer')
  const stranger = await service.newUser('viewer')
  const json = { email: user.email, password: user.password }
  const headers = { 'user-agent': `a phone ${'x'.repeat(300)}é` }
  const phone = (await service.call('POST /api/auth/login', { token: null, json, headers })).body
  const laptop = await service.login(user.email, user.password)

  const own = await sessionsOf(user.access_token)
  t.equal(own.length, 3)
  t.same(
    own.map(({ is_current }: { is_current: boolean }) => is_current),
    [false, false, true],
    'newest first',
  )
  t.match(own[1], {
    created_at: /Z$/,
    last_refreshed_at: null,
    expires_at: /Z$/,
    address: /^127\.0\.0\./,
    user_agent: /^a phone x+$/,
  })
  const { refresh_token } = phone
  const refresh = { token: null, json: { refresh_token } }
  const next = (await service.call('POST /api/auth/refresh', refresh)).body
  t.match((await sessionsOf(user.access_token))[1], { last_refreshed_at: /Z$/, id: own[1].id })

  const socket = await openKpiSocket(service, { query: `?token=${phone.access_token}` })
  const gone = `DELETE /api/auth/sessions/${own[1].id}`
  const notFound = { status: 404, body: { detail: { code: 'not_found' } } }
  t.match(await service.call(gone, { token: stranger.access_token }), notFound)
  t.match(await service.call(gone), notFound, 'not by a superadmin either')
  t.equal((await service.call(gone, { token: laptop.access_token })).status, 204)
  t.equal(await me(next.access_token), 401)
  t.equal(await me(phone.access_token), 401)
  t.equal(await socket.whenClosed(), 1008)
  t.match(await service.call(gone, { token: laptop.access_token }), notFound)

  const others = await service.call('DELETE /api/auth/sessions', { token: laptop.access_token })
  t.match(others, { status: 200, body: { ended: 1 } })
  t.equal(await me(user.access_token), 401)
  t.equal(await me(laptop.access_token), 200)
  t.equal(await me(stranger.access_token), 200)
  t.equal((await sessionsOf(laptop.access_token)).length, 1)
})
