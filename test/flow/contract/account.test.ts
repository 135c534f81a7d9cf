/** What users see and change of their own account. */
import t from 'tap'
import { startLiveService } from '../../support/live-service.js'
import { openKpiSocket } from '../../support/kpi-socket.js'
import { enrol } from '../../support/second-factor.js'

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

const logIn = (json: object) => service.call('POST /api/auth/login', { token: null, json })
const outcomesOf = async (action: string, target: string): Promise<string[]> => {
  const { body } = await service.call(`GET /api/monitoring/audit?action=${action}&limit=200`)
  const own = body.items.filter((item: { target: string }) => item.target === target)
  return own.map(({ outcome }: { outcome: string }) => outcome)
}

t.test('with a second factor a login needs a code, until it is disabled', async (t) => {
  const user = await service.newUser('manager')
  const { email, password, access_token: token } = user
  const factor = await enrol(service, user)
  const status = await service.call('GET /api/auth/second-factor', { token })
  t.match(status.body, { enabled: true, recovery_codes_left: 10 })

  t.match(await logIn({ email, password }), {
    status: 401,
    body: { detail: { code: 'second_factor_required' } },
  })
  t.match(await logIn({ email, password, code: factor.used }), {
    status: 401,
    body: { detail: { code: 'code_reused' } },
  })
  const answer = await logIn({ email, password, code: factor.code(1) })
  t.equal(answer.status, 200)
  t.match(answer.headers.getSetCookie().join(), /ACCESS_TOKEN=.*REFRESH_TOKEN=/)
  t.match(await outcomesOf('login', email), ['ok', 'code_reused', 'second_factor_required', 'ok'])

  const [first, second] = factor.recovery
  const proof = { current_password: password, code: first }
  const renewed = await service.call('POST /api/auth/second-factor/recovery-codes', {
    token,
    json: proof,
  })
  t.equal(renewed.body.recovery_codes.length, 10)
  t.equal((await logIn({ email, password, code: second })).status, 401)
  const off = { current_password: password, code: renewed.body.recovery_codes[0] }
  const disabled = await service.call('POST /api/auth/second-factor/disable', { token, json: off })
  t.equal(disabled.status, 204)
  t.equal((await logIn({ email, password })).status, 200)
  const trail = (await service.call('GET /api/monitoring/audit?limit=200')).text
  for (const action of ['beginSecondFactor', 'confirmSecondFactor', 'disableSecondFactor'])
    t.match(trail, action)
  for (const secret of [factor.secret, factor.used, first, second, password])
    t.notOk(trail.includes(String(secret)), 'no secret is in the trail')
})

t.test('an admin removes a second factor that was lost', async (t) => {
  const user = await service.newUser('viewer')
  const { id, email } = user
  await enrol(service, user)
  t.match((await service.call(`GET /api/users/${id}`)).body, { has_second_factor: true })
  const reset = { password: 'another password' }
  t.equal((await service.call(`PUT /api/users/${id}/password`, { json: reset })).status, 200)
  t.match(
    await logIn({ email, ...reset }),
    { status: 401, body: { detail: { code: 'second_factor_required' } } },
    'a new password leaves it',
  )
  const removed = await service.call(`DELETE /api/users/${id}/second-factor`)
  t.equal(removed.status, 204)
  t.match(await outcomesOf('removeSecondFactor', id), ['ok'])
  t.equal(await me(user.access_token), 401, 'the sessions end')
  t.equal((await logIn({ email, ...reset })).status, 200)
})
