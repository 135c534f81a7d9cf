import { createHmac } from 'node:crypto'
import { test } from 'tap'
import { stateUnavailable } from '../../../src/coordination/state.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { JWT_SECRET, PASSWORD, startAuthServer, type Answer } from '../../support/auth.js'
import { createPasswords } from '../../../src/api/auth/passwords.js'
import type { User } from '../../../src/api/auth/user.js'
import { memoryEntities } from '../../support/entities.js'
import { until } from '../../support/state-contract.js'

const login = { email: 'viewer@example.com', password: PASSWORD }
const code = ({ status, body }: Answer): string => {
  const detail: unknown = body['detail']
  const hasCode = typeof detail === 'object' && detail !== null && 'code' in detail
  return `${status} ${hasCode ? String(detail.code) : ''}`.trim()
}
const tokensOf = ({ body }: Answer) => ({
  access: String(body['access_token']),
  refresh: String(body['refresh_token']),
})

void test('a login gives both tokens in the body and as cookies with their flags', async (t) => {
  const { call } = await startAuthServer(t)
  const answer = await call('POST /api/auth/login', { json: login })
  t.equal(answer.status, 200)
  t.strictSame(Object.keys(answer.body).toSorted(), ['access_token', 'refresh_token'])
  const { access, refresh } = tokensOf(answer)
  t.strictSame(answer.cookies, {
    ACCESS_TOKEN: `${access}; Path=/; Max-Age=3600; HttpOnly; Secure; SameSite=Strict`,
    REFRESH_TOKEN: `${refresh}; Path=/api/auth; Max-Age=604800; HttpOnly; Secure; SameSite=Strict`,
  })
  t.equal(answer.headers.get('cache-control'), 'no-store')
})

void test('the current user is found by cookie or by header, and the header wins', async (t) => {
  const { call, as, services } = await startAuthServer(t)
  const { access } = tokensOf(await call('POST /api/auth/login', { json: login }))
  const cookie = `ACCESS_TOKEN=${access}`
  const id = services.users.findByEmail(login.email)?.id
  const profile = { id, email: login.email, role: 'viewer', is_active: true }
  t.strictSame((await call('GET /api/auth/me', { cookie })).body, profile)
  t.strictSame((await call('GET /api/auth/me', { token: access })).body, profile)
  const admin = await as('admin')
  t.match((await admin('GET /api/auth/me', { cookie })).body, { role: 'admin' })
  t.equal(code(await call('GET /api/auth/me', { cookie, token: 'x' })), '401 unauthorized')
  t.equal(code(await call('GET /api/auth/me')), '401 unauthorized')
})

void test('wrong credentials, a disabled account and a bad body have their codes', async (t) => {
  const { call, services, root } = await startAuthServer(t)
  const attempt = async (json: unknown) => code(await call('POST /api/auth/login', { json }))
  t.equal(await attempt({ ...login, password: 'wrong' }), '401 invalid_credentials')
  t.equal(await attempt({ ...login, email: 'nobody@example.com' }), '401 invalid_credentials')
  t.equal(await attempt({ email: login.email }), '422 validation_error')
  t.equal(await attempt({ ...login, password: 7 }), '422 validation_error')
  t.equal(await attempt({ ...login, password: 'x'.repeat(1_025) }), '422 validation_error')
  t.equal(await attempt([]), '422 validation_error')
  const id = services.users.findByEmail(login.email)?.id ?? ''
  await services.users.patch(root, id, { isActive: false })
  t.equal(await attempt(login), '403 account_disabled')
})

void test('forged, expired and foreign access tokens are refused', async (t) => {
  const { call, services, root } = await startAuthServer(t)
  const { access, refresh } = tokensOf(await call('POST /api/auth/login', { json: login }))
  const [header = '', payload = '', signature = ''] = access.split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const sign = (input: string, hash = 'sha256') =>
    `${input}.${createHmac(hash, JWT_SECRET).update(input).digest('base64url')}`
  const me = async (token: string) => code(await call('GET /api/auth/me', { token }))

  t.equal(await me(sign(`${header}.${part(claims)}`)), '200', 'the forge itself works')
  t.equal(await me(sign(`${header}.${part({ ...claims, exp: 1 })}`)), '401 token_expired')
  const raised = part({ ...claims, role: 'superadmin' })
  t.equal(await me(`${header}.${raised}.${signature}`), '401 unauthorized')
  t.equal(await me(`${part({ alg: 'none' })}.${raised}.`), '401 unauthorized')
  t.equal(await me(`${part({ alg: 'none' })}.${raised}`), '401 unauthorized')
  const hs512 = `${part({ alg: 'HS512', typ: 'JWT' })}.${payload}`
  t.equal(await me(sign(hs512, 'sha512')), '401 unauthorized')
  t.equal(await me(sign(`${part({ alg: 'RS256' })}.${payload}`)), '401 unauthorized')
  t.equal(await me(refresh), '401 unauthorized')
  t.equal(await me(`${access}x`), '401 unauthorized')
  await services.users.remove(root, claims.sub)
  t.equal(await me(access), '401 unauthorized', 'the user is deleted')
})

void test('a refresh rotates by body or cookie, and reuse ends the family', async (t) => {
  const { call } = await startAuthServer(t)
  const refresh = (token: string) =>
    call('POST /api/auth/refresh', { json: { refresh_token: token } })
  const first = tokensOf(await call('POST /api/auth/login', { json: login }))
  const byBody = await refresh(first.refresh)
  t.equal(byBody.status, 200)
  const second = tokensOf(byBody)
  t.match(byBody.cookies['REFRESH_TOKEN'], second.refresh)
  const cookie = `REFRESH_TOKEN=${second.refresh}`
  const byCookie = await call('POST /api/auth/refresh', { cookie })
  t.equal(byCookie.status, 200)
  const third = tokensOf(byCookie)
  t.equal((await call('GET /api/auth/me', { token: third.access })).status, 200)
  t.equal(code(await refresh(first.refresh)), '401 invalid_refresh_token')
  t.equal(code(await refresh(third.refresh)), '401 invalid_refresh_token')
})

void test('what is no refresh token is refused as such', async (t) => {
  const { call, services, root } = await startAuthServer(t)
  const answer = await call('POST /api/auth/login', { json: login })
  const { access, refresh } = tokensOf(answer)
  for (const token of [access, 'x', '', 'x'.repeat(4_000)]) {
    const json = { refresh_token: token }
    t.equal(code(await call('POST /api/auth/refresh', { json })), '401 invalid_refresh_token')
  }
  t.equal(code(await call('POST /api/auth/refresh')), '401 invalid_refresh_token')
  t.equal(code(await call('POST /api/auth/refresh', { json: {} })), '401 invalid_refresh_token')
  const id = services.users.findByEmail(login.email)?.id ?? ''
  await services.users.patch(root, id, { isActive: false })
  const json = { refresh_token: refresh }
  t.equal(code(await call('POST /api/auth/refresh', { json })), '401 invalid_user')
})

void test('of two refreshes at once exactly one wins', async (t) => {
  const { call } = await startAuthServer(t)
  const { refresh } = tokensOf(await call('POST /api/auth/login', { json: login }))
  const json = { refresh_token: refresh }
  const both = await Promise.all([1, 2].map(() => call('POST /api/auth/refresh', { json })))
  t.strictSame(both.map(code).toSorted(), ['200', '401 invalid_refresh_token'])
})

void test('a logout answers 204, deletes both cookies and ends refreshing', async (t) => {
  const { call } = await startAuthServer(t)
  const ways = [
    ({ refresh }: { refresh: string }) => ({ cookie: `REFRESH_TOKEN=${refresh}` }),
    ({ refresh }: { refresh: string }) => ({ json: { refresh_token: refresh } }),
    ({ access }: { access: string }) => ({ token: access }),
    ({ access }: { access: string }) => ({ cookie: `ACCESS_TOKEN=${access}` }),
  ]
  for (const way of ways) {
    const grant = tokensOf(await call('POST /api/auth/login', { json: login }))
    const answer = await call('POST /api/auth/logout', way(grant))
    t.equal(answer.status, 204)
    t.match(answer.cookies, {
      ACCESS_TOKEN: /^; Path=\/; Max-Age=0;/,
      REFRESH_TOKEN: /^; Path=\/api\/auth; Max-Age=0;/,
    })
    const json = { refresh_token: grant.refresh }
    t.equal(code(await call('POST /api/auth/refresh', { json })), '401 invalid_refresh_token')
  }
  t.equal((await call('POST /api/auth/logout')).status, 204, 'without any token too')
  t.equal((await call('POST /api/auth/logout', { token: 'x y' })).status, 204)
})

void test('wrong passwords and the second use of a refresh token are noted', async (t) => {
  const { call, intrusions, services } = await startAuthServer(t)
  const { refresh } = tokensOf(await call('POST /api/auth/login', { json: login }))
  await call('POST /api/auth/login', { json: { ...login, password: 'wrong' } })
  t.same(intrusions, ['password'])
  const json = { refresh_token: refresh }
  t.equal((await call('POST /api/auth/refresh', { json })).status, 200)
  await call('POST /api/auth/refresh', { json: { refresh_token: 'no.token' } })
  t.same(intrusions, ['password'], 'what never was a token is none of a user')
  t.equal((await call('POST /api/auth/refresh', { json })).status, 401)
  t.same(intrusions, ['password', `refresh_token ${services.users.findByEmail(login.email)?.id}`])
})

void test('too many logins are refused with Retry-After', async (t) => {
  const { call } = await startAuthServer(t, { limit: 3 })
  const wrong = { ...login, password: 'wrong password' }
  for (let i = 0; i < 3; i++)
    t.equal(code(await call('POST /api/auth/login', { json: wrong })), '401 invalid_credentials')
  const refused = await call('POST /api/auth/login', { json: login })
  t.equal(code(refused), '429 rate_limited')
  const retryAfterS = Number(refused.headers.get('retry-after'))
  t.ok(retryAfterS >= 1 && retryAfterS <= 60)
  t.match(refused.body, {
    detail: { details: { limit: 'login_limit', retry_after_s: retryAfterS } },
  })
  const other = { ...login, email: 'manager@example.com' }
  t.equal((await call('POST /api/auth/login', { json: other })).status, 200)
})

void test('wrong passwords of a day are counted, at the login and at a change of the password', async (t) => {
  const { call, as, services } = await startAuthServer(t, {
    failures: { count: 4, seconds: 86_400 },
  })
  const viewer = await as('viewer')
  const id = services.users.findByEmail(login.email)?.id ?? ''
  const wrong = { ...login, password: 'wrong password' }
  const change = { password: 'another password', current_password: 'wrong password' }
  for (let i = 0; i < 2; i++) {
    t.equal(code(await call('POST /api/auth/login', { json: wrong })), '401 invalid_credentials')
    const changed = await viewer(`PUT /api/users/${id}/password`, { json: change })
    t.equal(code(changed), '401 invalid_credentials')
  }
  for (const refused of [
    await call('POST /api/auth/login', { json: login }),
    await viewer(`PUT /api/users/${id}/password`, { json: change }),
  ]) {
    t.match(refused, { status: 429, body: { detail: { details: { limit: 'login_limit' } } } })
    t.equal(refused.headers.get('retry-after'), '86400')
  }
  t.equal((await viewer('GET /api/auth/me')).status, 200, 'who is logged in goes on')
})

void test('new passwords are held to the policy, older ones are not', async (t) => {
  const users = memoryEntities<User>()
  const { call, as, services, root } = await startAuthServer(t, { users })
  const old = await services.users.create(root, { email: 'old@example.com', password: PASSWORD })
  const passwordHash = await createPasswords({ memoryKib: 64 }).hash('password')
  await users.update(old.id, (user) => user && { ...user, passwordHash })
  const json = { email: old.email, password: 'password' }
  t.equal((await call('POST /api/auth/login', { json })).status, 200)
  const admin = await as('admin')
  for (const password of ['password', 'eleven char', 'password1234']) {
    const refused = { status: 422, body: { detail: { code: 'validation_error' } } }
    t.match(await admin(`PUT /api/users/${old.id}/password`, { json: { password } }), refused)
    const made = { email: 'new@example.com', password }
    t.match(await admin('POST /api/users', { json: made }), refused)
  }
})

void test('without the state logins answer 503 and tokens still work', async (t) => {
  const state = createInProcessState({ onError: () => undefined })
  let isDown = false
  const { call } = await startAuthServer(t, {
    state: {
      ...state,
      consume: async (key, limit, windowS) => {
        if (isDown) throw stateUnavailable('redis does not answer')
        return state.consume(key, limit, windowS)
      },
    },
  })
  const { access, refresh } = tokensOf(await call('POST /api/auth/login', { json: login }))
  isDown = true
  const refused = await call('POST /api/auth/login', { json: login })
  t.equal(code(refused), '503 dependency_unavailable')
  t.equal(refused.headers.get('retry-after'), '1')
  t.equal((await call('GET /api/auth/me', { token: access })).status, 200)
  const json = { refresh_token: refresh }
  t.equal((await call('POST /api/auth/refresh', { json })).status, 200)
})

void test('users: created, read, changed, deleted', async (t) => {
  const { as, call } = await startAuthServer(t)
  const admin = await as('admin')
  const email = 'New@Example.com'
  const made = await admin('POST /api/users', { json: { email, password: PASSWORD } })
  t.equal(made.status, 201)
  t.match(made.body, {
    email: 'new@example.com',
    role: 'viewer',
    is_active: true,
    created_at: /^\d{4}-.*Z$/,
    last_login_at: null,
  })
  t.strictSame(Object.keys(made.body).toSorted(), [
    'created_at',
    'email',
    'has_second_factor',
    'id',
    'is_active',
    'last_login_at',
    'must_change_password',
    'provider',
    'role',
  ])
  const path = `/api/users/${String(made.body['id'])}`
  const again = await admin('POST /api/users', { json: { email, password: PASSWORD } })
  t.equal(code(again), '409 email_conflict')
  const changed = await admin(`PATCH ${path}`, { json: { is_active: false, email: 'n2@e.com' } })
  t.match(changed.body, { is_active: false, email: 'n2@e.com' })
  t.equal((await admin(`PATCH ${path}`, { json: { is_active: true } })).status, 200)
  const json = { email: 'n2@e.com', password: PASSWORD }
  t.equal((await call('POST /api/auth/login', { json })).status, 200)
  t.match((await admin(`GET ${path}`)).body, { last_login_at: /Z$/ })
  t.equal((await admin(`DELETE ${path}`)).status, 204)
  t.equal(code(await admin(`GET ${path}`)), '404 not_found')
  t.equal(code(await admin(`DELETE ${path}`)), '404 not_found')
  t.equal(code(await admin('GET /api/users/nonsense')), '422 validation_error')
})

void test('users: bad input names its fields', async (t) => {
  const { as } = await startAuthServer(t)
  const admin = await as('admin')
  const bad = async (json: unknown) => (await admin('POST /api/users', { json })).body
  t.match(await bad({ email: 'no e-mail', password: PASSWORD }), {
    detail: { code: 'validation_error', details: { errors: [{ path: 'email' }] } },
  })
  t.match(await bad({ email: 'a@b.c', password: 'short' }), {
    detail: { code: 'validation_error', details: { errors: [{ path: 'password' }] } },
  })
  t.match(await bad({ email: 'a@b.c', password: PASSWORD, role: 'root' }), {
    detail: { code: 'validation_error' },
  })
})

void test('users: the list is paged', async (t) => {
  const { as } = await startAuthServer(t)
  const admin = await as('admin')
  const first = await admin('GET /api/users?limit=3')
  t.match(first.body, { has_more: true, next_cursor: String })
  const cursor = String(first.body['next_cursor'])
  const rest = await admin(`GET /api/users?limit=3&cursor=${cursor}`)
  t.match(rest.body, { has_more: false, next_cursor: null })
  const items = [first, rest].flatMap(({ body }) => body['items'])
  t.equal(new Set(items.map((item) => JSON.stringify(item))).size, 4)
  t.equal(code(await admin('GET /api/users?cursor=AAAA')), '422 invalid_cursor')
  const keys = await admin(`GET /api/ingest-keys?cursor=${cursor}`)
  t.equal(code(keys), '422 invalid_cursor', 'nor does it fit another list')
})

void test('users: the rights of each role', async (t) => {
  const { as, services } = await startAuthServer(t)
  const [viewer, manager, admin, superadmin] = [
    await as('viewer'),
    await as('manager'),
    await as('admin'),
    await as('superadmin'),
  ]
  const idOf = (role: string) => services.users.findByEmail(`${role}@example.com`)?.id ?? ''
  const own = `/api/users/${idOf('viewer')}`
  for (const low of [viewer, manager]) {
    t.equal(code(await low('GET /api/users')), '403 forbidden')
    t.equal(code(await low('POST /api/users', { json: {} })), '403 forbidden')
    t.equal(code(await low(`PATCH ${own}`, { json: { is_active: true } })), '403 forbidden')
    t.equal(code(await low(`DELETE ${own}`)), '403 forbidden')
    t.equal(code(await low('GET /api/ingest-keys')), '403 forbidden')
  }
  t.equal((await viewer(`GET ${own}`)).status, 200)
  t.equal(code(await viewer(`GET /api/users/${idOf('admin')}`)), '403 forbidden')
  const role = { json: { role: 'manager' } }
  t.equal(code(await admin(`PUT ${own}/role`, role)), '403 forbidden')
  t.match((await superadmin(`PUT ${own}/role`, role)).body, { role: 'manager' })
  t.match((await viewer('GET /api/auth/me')).body, { role: 'viewer' }, 'until the next login')
  const last = `/api/users/${idOf('superadmin')}`
  t.equal(code(await superadmin(`PUT ${last}/role`, role)), '409 last_superadmin')
  t.equal(code(await superadmin(`DELETE ${last}`)), '409 last_superadmin')
  t.equal(code(await admin(`DELETE ${last}`)), '403 forbidden')
  const json = { email: 'x@e.com', password: PASSWORD, role: 'admin' }
  t.equal(code(await admin('POST /api/users', { json })), '403 forbidden')
  t.equal((await superadmin('POST /api/users', { json })).status, 201)
})

void test('passwords: one’s own needs the current one, and guessing is limited', async (t) => {
  const { as, call, services } = await startAuthServer(t, { limit: 5 })
  const viewer = await as('viewer')
  const path = `/api/users/${services.users.findByEmail(login.email)?.id ?? ''}/password`
  const put = (json: unknown) => viewer(`PUT ${path}`, { json })
  const password = 'next password'
  t.equal(code(await put({ password })), '422 validation_error')
  const right = { password, current_password: PASSWORD }
  t.equal((await put(right)).status, 200)
  t.equal(code(await call('POST /api/auth/login', { json: login })), '401 invalid_credentials')
  const wrong = { password, current_password: PASSWORD }
  t.equal(code(await put(wrong)), '401 invalid_credentials')
  t.equal(code(await put(wrong)), '429 rate_limited')
})

void test('ingest keys: shown once, listed without, gone when deleted', async (t) => {
  const { as, services } = await startAuthServer(t)
  const admin = await as('admin')
  const made = await admin('POST /api/ingest-keys', { json: { name: 'shipper', sources: ['web'] } })
  t.equal(made.status, 201)
  t.match(made.body, {
    key: /^ik_[\w-]{40}$/,
    name: 'shipper',
    sources: ['web'],
    auto_register: true,
    default_source: 'web',
    last_used_at: null,
  })
  const { key, ...shown } = made.body
  t.match(services.ingestKeys.verify(String(key)), { name: 'shipper' })
  await until(() => services.ingestKeys.list()[0]?.lastUsedAtMs !== null)
  const { body } = await admin('GET /api/ingest-keys')
  t.match(body, { items: [{ ...shown, last_used_at: /Z$/ }], has_more: false })
  t.notOk(JSON.stringify(body).includes(String(key)))
  t.notOk(JSON.stringify(body).includes('hash'))
  const path = `/api/ingest-keys/${String(shown['id'])}`
  t.equal((await admin(`DELETE ${path}`)).status, 204)
  t.equal(services.ingestKeys.verify(String(key)), null)
  t.equal(code(await admin(`DELETE ${path}`)), '404 not_found')
  const any = await admin('POST /api/ingest-keys', { json: { name: 'any', auto_register: false } })
  t.match(any.body, { sources: null, auto_register: false, default_source: null })
  for (const json of [{}, { name: ' ' }, { name: 'x', sources: [] }, { name: 'x', sources: 'web' }])
    t.equal(code(await admin('POST /api/ingest-keys', { json })), '422 validation_error')
})

void test('the sources that an ingest key names are registered with it', async (t) => {
  const { as, services } = await startAuthServer(t)
  const admin = await as('admin')
  const create = (json: object) => admin('POST /api/ingest-keys', { json })
  const names = () =>
    services.sources
      .list()
      .map(({ name }) => name)
      .toSorted()
  t.match((await create({ name: 'k', sources: ['web', 'db', 'web'] })).status, 201)
  t.match((await create({ name: 'k', sources: ['web', 'queue'], default_source: 'queue' })).body, {
    default_source: 'queue',
  })
  t.match((await create({ name: 'k', default_source: 'cron' })).body, {
    sources: null,
    default_source: 'cron',
  })
  t.same(names(), ['cron', 'db', 'queue', 'web'])
  const strange = await create({ name: 'k', sources: ['api'], default_source: 'web' })
  t.equal(code(strange), '422 validation_error')
  t.match(strange.body, { detail: { details: { errors: [{ path: 'default_source' }] } } })
  t.same(names(), ['cron', 'db', 'queue', 'web'], 'a refused key registers nothing')
})
