import { TOTP } from 'otpauth'
import { test } from 'tap'
import { requiredActionOf } from '../../../src/api/auth/required-action.js'
import type { User } from '../../../src/api/auth/user.js'
import { PASSWORD, startAuthServer, type Answer } from '../../support/auth.js'
import { memoryEntities } from '../../support/entities.js'

const code = ({ status, body }: Answer): string => {
  const detail: unknown = body['detail']
  const hasCode = typeof detail === 'object' && detail !== null && 'code' in detail
  return `${status} ${hasCode ? String(detail.code) : ''}`.trim()
}
const NEXT = 'a password of my own'
const must = '403 password_change_required'

void test('a temporary password lets its user change it and do nothing else', async (t) => {
  const { as, call, services } = await startAuthServer(t)
  const admin = await as('superadmin')
  const login = { email: 'new@example.com', password: PASSWORD }
  const json = { ...login, role: 'admin', temporary: true }
  const made = await admin('POST /api/users', { json })
  t.match(made, { status: 201, body: { must_change_password: true } })
  const id = String(made.body['id'])
  const logged = await call('POST /api/auth/login', { json: login })
  t.equal(logged.status, 200)
  const token = String(logged.body['access_token'])
  const user: typeof call = (request, options) => call(request, { token, ...options })

  t.equal((await user('GET /api/auth/me')).status, 200)
  t.equal((await user('GET /api/auth/sessions')).status, 200)
  for (const request of ['GET /api/users', `GET /api/users/${id}`, 'GET /api/ingest-keys'])
    t.equal(code(await user(request)), must, request)
  const created = { json: { email: 'other@example.com', password: PASSWORD } }
  t.equal(code(await user('POST /api/users', created)), must)
  const other = services.users.findByEmail('viewer@example.com')?.id ?? ''
  const theirs = await user(`PUT /api/users/${other}/password`, { json: { password: NEXT } })
  t.equal(code(theirs), must, 'nor the password of another user')
  const { family, userId } = services.sessions.authenticate(token)
  t.equal(services.sessions.isAlive({ family, userId }), false, 'no WebSocket')

  const own = `PUT /api/users/${id}/password`
  const change = { password: NEXT, current_password: PASSWORD, temporary: true }
  const changed = await user(own, { json: change })
  t.match(changed, { status: 200, body: { must_change_password: false } }, 'the own one stays')
  t.equal((await user('GET /api/users')).status, 200)
  t.equal(services.sessions.isAlive({ family, userId }), true)
})

void test('an admin gives another user a temporary password, or one that stays', async (t) => {
  const { as, call, services } = await startAuthServer(t)
  const admin = await as('admin')
  const { email, id } = services.users.findByEmail('viewer@example.com') ?? { email: '', id: '' }
  const give = (json: object) => admin(`PUT /api/users/${id}/password`, { json })
  const me = async (password: string) => {
    const { body } = await call('POST /api/auth/login', { json: { email, password } })
    return code(await call(`GET /api/users/${id}`, { token: String(body['access_token']) }))
  }
  t.match((await give({ password: NEXT, temporary: true })).body, { must_change_password: true })
  t.equal(await me(NEXT), must)
  t.match((await give({ password: `${NEXT}!` })).body, { must_change_password: false })
  t.equal(await me(`${NEXT}!`), '200')
})

void test('a temporary password that was not changed in time is not good any more', async (t) => {
  const users = memoryEntities<User>()
  const { call, services } = await startAuthServer(t, { users })
  const { password } = await services.users.resetPassword('viewer@example.com')
  const {
    id,
    email,
    temporaryUntilMs = 0,
  } = services.users.findByEmail('viewer@example.com') ?? { id: '', email: '' }
  t.ok(Number(temporaryUntilMs) > Date.now() + 6 * 86_400_000, 'a week')
  const logIn = async (given: string) =>
    code(await call('POST /api/auth/login', { json: { email, password: given } }))
  t.equal(await logIn(password), '200')
  await users.update(id, (user) => user && { ...user, temporaryUntilMs: Date.now() - 1 })
  t.equal(await logIn(password), '403 password_expired')
  t.equal(
    await logIn('a wrong password'),
    '401 invalid_credentials',
    'told only with the right one',
  )
})

void test('where a second factor is required, a user without one turns it on first', async (t) => {
  const { as, clock, services } = await startAuthServer(t, { secondFactorFrom: 'admin' })
  const [manager, admin] = [await as('manager'), await as('admin')]
  const id = services.users.findByEmail('manager@example.com')?.id ?? ''
  t.equal((await manager(`GET /api/users/${id}`)).status, 200, 'not required of a manager')
  t.equal(code(await admin('GET /api/users')), '403 second_factor_missing')
  t.equal((await admin('GET /api/auth/me')).status, 200)
  const base = '/api/auth/second-factor'
  const begun = await admin(`POST ${base}`, { json: { current_password: PASSWORD } })
  const totp = new TOTP({ secret: String(begun.body['secret']) })
  const json = { code: totp.generate({ timestamp: clock.ms }) }
  const confirmed = await admin(`POST ${base}/confirm`, { json })
  t.equal(confirmed.status, 200)
  t.equal((await admin('GET /api/users')).status, 200)
  const [recovery] = Array.from(Object(confirmed.body['recovery_codes']), String)
  const proof = { json: { current_password: PASSWORD, code: recovery } }
  t.equal((await admin(`POST ${base}/disable`, proof)).status, 204)
  t.equal(code(await admin('GET /api/users')), '403 second_factor_missing', 'at once')
})

void test('the password comes before the second factor, and roles below need neither', (t) => {
  const user = { role: 'admin', temporaryUntilMs: 1 } as User
  t.equal(requiredActionOf(user, 'admin'), 'password_change_required')
  t.equal(requiredActionOf({ role: 'admin' } as User, 'admin'), 'second_factor_missing')
  t.equal(requiredActionOf({ role: 'superadmin' } as User, 'admin'), 'second_factor_missing')
  t.equal(requiredActionOf({ role: 'manager' } as User, 'admin'), null)
  t.equal(requiredActionOf({ role: 'viewer' } as User, 'viewer'), 'second_factor_missing')
  t.equal(requiredActionOf({ role: 'superadmin' } as User, null), null)
  t.end()
})
