import { createHmac, generateKeyPairSync, randomUUID } from 'node:crypto'
import t from 'tap'
import { ROLES, type Role } from '../../../src/model/roles.js'
import { allRoutes } from '../../../src/api/routes.js'
import { REQUIRED_ROLES } from '../../fixtures/contract/roles.js'
import { INGEST_KEY } from '../../support/service.js'
import {
  JWT_SECRET,
  eventually,
  startLiveService,
  type NewUser,
} from '../../support/live-service.js'

const service = await startLiveService(t)

const ROUTES = allRoutes.map(
  ({ method, path, role, body, tokens, isOpenBeforeRequiredAction }) => ({
    name: `${method.toUpperCase()} ${path}`,
    role,
    takesBody: body !== null,
    isForUsers: tokens === 'none',
    isOpenBeforeRequiredAction: isOpenBeforeRequiredAction === true,
  }),
)

t.test('every route asks for the role of the table, and the table names no other route', (t) => {
  const served = Object.fromEntries(ROUTES.map(({ name, role }) => [name, role]))
  t.same(served, REQUIRED_ROLES)
  t.end()
})

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

interface Forgery {
  readonly alg?: string
  readonly hash?: string
  readonly key?: string
  readonly claims?: object
}

/** A valid token of the superadmin except for the given change. */
function forge({ alg = 'HS256', hash = 'sha256', key = JWT_SECRET, claims = {} }: Forgery): string {
  const [, payload = ''] = service.token.split('.')
  const own = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const body = `${encode({ alg, typ: 'JWT' })}.${encode({ ...own, ...claims })}`
  if (hash === 'none') return `${body}.`
  return `${body}.${createHmac(hash, key).update(body).digest('base64url')}`
}

const publicKey = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .publicKey.export({ type: 'spki', format: 'pem' })
  .toString()
const inAnHour = Math.floor(Date.now() / 1000) + 3600

type Caller = { readonly token: string | null; readonly id: string }

/** Path parameters that name nothing, but for the caller's own record. */
const fill = (name: string, { id }: Caller): string =>
  name
    .replace('/api/users/{id}', `/api/users/${name.startsWith('GET') ? id : randomUUID()}`)
    .replace('{event_id}', '9007199254740991')
    .replace('{template_id}', '0123456789abcdef')
    .replace('{name}', 'no-such-source')
    .replaceAll(/\{\w+\}/g, () => randomUUID())

const ask = (name: string, caller: Caller) => {
  const takesBody = ROUTES.find((route) => route.name === name)?.takesBody === true
  return service.call(fill(name, caller), {
    token: caller.token,
    ...(takesBody ? { json: {} } : {}),
  })
}

const DOOR: readonly string[] = [
  'unauthorized',
  'token_expired',
  'forbidden',
  'password_change_required',
]

/** What a caller is refused with at the door of each route, '' when let in. */
async function refusals(caller: Caller): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  // A log-out ends the session of the caller.
  const isLogout = ({ name }: { readonly name: string }): boolean => name.endsWith('/logout')
  const logoutLast = ROUTES.toSorted((a, b) => Number(isLogout(a)) - Number(isLogout(b)))
  for (const { name } of logoutLast) {
    const { status, body } = await ask(name, caller)
    const code: string = body?.detail?.code ?? ''
    const isDoor = DOOR.includes(code)
    found[name] = status >= 500 ? `status ${status}` : isDoor ? `${status} ${code}` : ''
  }
  return found
}

/** What the table says: `refusal` on every route that is not public. */
const everywhere = (refusal: string): Record<string, string> =>
  Object.fromEntries(ROUTES.map(({ name, role }) => [name, role === 'public' ? '' : refusal]))

/** What the table says of a role. */
const ofRole = (role: Role): Record<string, string> =>
  Object.fromEntries(
    ROUTES.map(({ name }) => {
      const needed = REQUIRED_ROLES[name] ?? ''
      const isLet =
        needed === 'public' || ROLES.findIndex((r) => r === needed) <= ROLES.indexOf(role)
      return [name, isLet ? '' : '403 forbidden']
    }),
  )

t.test(
  'a role is let into its routes and those of the roles below, and into no other',
  async (t) => {
    for (const role of ROLES) {
      const user = await service.newUser(role)
      t.same(await refusals({ token: user.access_token, id: user.id }), ofRole(role), role)
    }
  },
)

const newToken = async (json: object): Promise<{ readonly id: string; readonly token: string }> => {
  const { status, text, body } = await service.call('POST /api/api-tokens', { json })
  if (status !== 201) throw new Error(text)
  return body
}

t.test('an API token is let in as its role is, but for what is for users', async (t) => {
  for (const role of ['viewer', 'superadmin'] as const) {
    const { id, token } = await newToken({ name: role, role })
    const expected = ofRole(role)
    for (const { name, isForUsers } of ROUTES) if (isForUsers) expected[name] = '403 forbidden'
    t.same(await refusals({ token, id }), expected, role)
  }
})

t.test('who lost a role is let in nowhere that the role below is not', async (t) => {
  const user = await service.newUser('superadmin')
  await service.call(`PUT /api/users/${user.id}/role`, { json: { role: 'manager' } })
  t.same(await refusals({ token: user.access_token, id: user.id }), ofRole('manager'))
})

t.test('who has a temporary password can do nothing before it is changed', async (t) => {
  const [email, password] = ['temporary@example.com', 'for the first log-in']
  const json = { email, password, role: 'superadmin', temporary: true }
  const { id } = (await service.call('POST /api/users', { json })).body
  const { access_token: token } = await service.login(email, password)
  const seen = await refusals({ token, id })
  for (const { name, role, isOpenBeforeRequiredAction } of ROUTES) {
    const isOpen = role === 'public' || isOpenBeforeRequiredAction
    t.equal(seen[name], isOpen ? '' : '403 password_change_required', name)
  }
  const other = await service.newUser('viewer')
  // The log-out ended the session.
  const { access_token: next } = await service.login(email, password)
  const given = { token: next, json: { password: 'not for this user' } }
  t.match(await service.call(`PUT /api/users/${other.id}/password`, given), {
    status: 403,
    body: { detail: { code: 'password_change_required' } },
  })
})

t.test('without a good access token only the public routes are open', async (t) => {
  const disabled = await service.newUser('superadmin')
  await service.call(`PATCH /api/users/${disabled.id}`, { json: { is_active: false } })
  const deleted = await service.newUser('superadmin')
  await service.call(`DELETE /api/users/${deleted.id}`)
  const refresh = (await service.newUser('superadmin')).refresh_token
  const out = (await service.newUser('superadmin')).access_token
  await service.call('POST /api/auth/logout', { token: out })
  const changed = await service.newUser('superadmin')
  const { access_token: other } = await again(changed)
  const json = { password: 'another password', current_password: changed.password }
  await service.call(`PUT /api/users/${changed.id}/password`, { token: other, json })
  const reset = await service.newUser('superadmin')
  await service.call(`PUT /api/users/${reset.id}/password`, { json: { password: json.password } })
  const revoked = await newToken({ name: 'revoked', role: 'superadmin' })
  await service.call(`DELETE /api/api-tokens/${revoked.id}`)
  const brief = await newToken({ name: 'brief', role: 'superadmin', expires_at: 'now+1s' })
  const bad: Record<string, string | null> = {
    'nobody at all': null,
    'a disabled user': disabled.access_token,
    'a deleted user': deleted.access_token,
    'a refresh token as access token': refresh,
    'a session that was logged out': out,
    'a session before a new password': changed.access_token,
    'a session before a password that an admin set': reset.access_token,
    'a revoked API token': revoked.token,
    'an API token that there is not': `lat_${'x'.repeat(40)}`,
    'an ingest key': INGEST_KEY,
    'another HMAC': forge({ alg: 'HS512', hash: 'sha512' }),
    'alg none': forge({ alg: 'none', hash: 'none' }),
    'RS256 in the header, HMAC with our secret': forge({ alg: 'RS256' }),
    'HS256 with a public key as the secret': forge({ key: publicKey }),
    'a claim without a role': forge({ claims: { role: 'root' } }),
  }
  for (const [what, token] of Object.entries(bad)) {
    const seen = await refusals({ token, id: randomUUID() })
    t.same(seen, everywhere('401 unauthorized'), what)
  }
  const expired = forge({ claims: { exp: Math.floor(Date.now() / 1000) - 1 } })
  for (const token of [expired, brief.token])
    t.same(await refusals({ token, id: randomUUID() }), everywhere('401 token_expired'))
  const good = forge({ claims: { exp: inAnHour } })
  t.equal(
    (await service.call('GET /api/auth/me', { token: good })).status,
    200,
    'the forger can sign',
  )
})

const me = (token: string) => service.call('GET /api/auth/me', { token })
const refresh = (refresh_token: string) =>
  service.call('POST /api/auth/refresh', { token: null, json: { refresh_token } })
const again = async (user: NewUser) => await service.login(user.email, user.password)

t.test('a role change takes effect with the next login', async (t) => {
  const user = await service.newUser('viewer')
  const changed = await service.call(`PUT /api/users/${user.id}/role`, { json: { role: 'admin' } })
  t.equal(changed.body.role, 'admin')
  t.equal((await me(user.access_token)).body.role, 'viewer')
  t.equal((await service.call('GET /api/users', { token: user.access_token })).status, 403)
  t.match(await refresh(user.refresh_token), {
    status: 401,
    body: { detail: { code: 'invalid_refresh_token' } },
  })
  const { access_token: token } = await again(user)
  t.equal((await me(token)).body.role, 'admin')
  t.equal((await service.call('GET /api/users', { token })).status, 200)
})

t.test('who lost a role can not take it back with the old access token', async (t) => {
  const user = await service.newUser('superadmin')
  const token = user.access_token
  const request = `PUT /api/users/${user.id}/role`
  await service.call(request, { json: { role: 'viewer' } })
  const tries: readonly [string, object | undefined][] = [
    [request, { role: 'superadmin' }],
    ['POST /api/users', { email: 'back@example.com', password: 'a long way back', role: 'viewer' }],
    [`PATCH /api/users/${user.id}`, { email: 'other@example.com' }],
    ['POST /api/ingest-keys', { name: 'back door' }],
    ['DELETE /api/monitoring/clear-all', undefined],
    ['GET /api/users', undefined],
    ['GET /api/monitoring/audit', undefined],
  ]
  for (const [what, json] of tries) {
    const reply = await service.call(what, json === undefined ? { token } : { token, json })
    t.match(reply, { status: 403, body: { detail: { code: 'forbidden' } } }, what)
  }
  t.equal((await me(token)).body.role, 'superadmin', 'the role of the access token')
  t.equal(
    (await service.call('POST /api/alerts/read-all', { token })).status,
    200,
    'until it expires',
  )
})

t.test('disabling a user ends access and refresh tokens at once', async (t) => {
  const user = await service.newUser('manager')
  await service.call(`PATCH /api/users/${user.id}`, { json: { is_active: false } })
  t.match(await me(user.access_token), { status: 401, body: { detail: { code: 'unauthorized' } } })
  t.match(await refresh(user.refresh_token), {
    status: 401,
    body: { detail: { code: 'invalid_user' } },
  })
  const login = { email: user.email, password: user.password }
  t.match(await service.call('POST /api/auth/login', { json: login }), {
    status: 403,
    body: { detail: { code: 'account_disabled' } },
  })
  await service.call(`PATCH /api/users/${user.id}`, { json: { is_active: true } })
  t.equal((await refresh(user.refresh_token)).body.detail.code, 'invalid_refresh_token', 'for good')
  t.equal((await me((await again(user)).access_token)).status, 200)
})

t.test('a deleted user is missing at refresh', async (t) => {
  const user = await service.newUser('viewer')
  t.equal((await service.call(`DELETE /api/users/${user.id}`)).status, 204)
  t.equal((await refresh(user.refresh_token)).body.detail.code, 'invalid_user')
})

t.test('a password change ends the refresh tokens of the user at once', async (t) => {
  const user = await service.newUser('viewer')
  const other = await again(user)
  const json = { password: 'another password', current_password: user.password }
  const request = `PUT /api/users/${user.id}/password`
  t.equal((await service.call(request, { token: user.access_token, json })).status, 200)
  t.equal((await refresh(user.refresh_token)).body.detail.code, 'invalid_refresh_token')
  t.equal((await me(other.access_token)).status, 401, 'and the other sessions')
  t.equal((await me(user.access_token)).status, 200, 'but not the one that changed it')
  const login = { email: user.email, password: user.password }
  const old = await service.call('POST /api/auth/login', { json: login })
  t.match(old, { status: 401, body: { detail: { code: 'invalid_credentials' } } })
  await service.login(user.email, 'another password')
})

t.test('logout deletes both cookies and ends the refresh tokens of the login', async (t) => {
  const user = await service.newUser('viewer')
  const reply = await service.call('POST /api/auth/logout', { token: user.access_token })
  t.equal(reply.status, 204)
  t.equal(reply.text, '')
  const cookies = reply.headers.getSetCookie()
  t.equal(cookies.length, 2)
  for (const name of ['ACCESS_TOKEN', 'REFRESH_TOKEN']) {
    t.match(
      cookies.find((cookie) => cookie.startsWith(`${name}=;`)),
      /Max-Age=0/i,
      name,
    )
  }
  t.equal((await refresh(user.refresh_token)).body.detail.code, 'invalid_refresh_token')
  t.match(await me(user.access_token), { status: 401, body: { detail: { code: 'unauthorized' } } })
})

t.test('a refresh token is good once, and its reuse ends its family', async (t) => {
  const user = await service.newUser('viewer')
  const first = await refresh(user.refresh_token)
  t.equal(first.status, 200)
  t.same(Object.keys(first.body).toSorted(), ['access_token', 'refresh_token'])
  t.equal((await me(first.body.access_token)).status, 200)
  t.equal((await refresh(user.refresh_token)).body.detail.code, 'invalid_refresh_token')
  t.equal((await refresh(first.body.refresh_token)).body.detail.code, 'invalid_refresh_token')
})

t.test('refresh takes the token from the cookie, and no access token', async (t) => {
  const user = await service.newUser('viewer')
  const cookie = `REFRESH_TOKEN=${user.refresh_token}`
  t.equal((await refresh(user.access_token)).body.detail.code, 'invalid_refresh_token')
  const reply = await service.call('POST /api/auth/refresh', { token: null, headers: { cookie } })
  t.equal(reply.status, 200)
})

t.test(
  'login gives both tokens in the body and in HttpOnly cookies with their lifetimes',
  async (t) => {
    const user = await service.newUser('viewer')
    const json = { email: user.email, password: user.password }
    const reply = await service.call('POST /api/auth/login', { token: null, json })
    const flags = (name: string): string[] => {
      const cookie = reply.headers.getSetCookie().find((text) => text.startsWith(`${name}=`)) ?? ''
      return cookie.split('; ').map((part) => part.toLowerCase())
    }
    const [access, refreshed] = [flags('ACCESS_TOKEN'), flags('REFRESH_TOKEN')]
    t.equal(access[0], `access_token=${reply.body.access_token}`.toLowerCase())
    t.equal(refreshed[0], `refresh_token=${reply.body.refresh_token}`.toLowerCase())
    for (const cookie of [access, refreshed]) {
      t.ok(cookie.includes('httponly'))
      t.ok(cookie.includes('samesite=strict'))
      t.notOk(cookie.includes('secure'), 'COOKIE_SECURE is false by default')
    }
    t.ok(access.includes('max-age=3600'), '60 minutes')
    t.ok(refreshed.includes('max-age=604800'), '7 days')
    const claims = (token: string) =>
      JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const { access_token: a, refresh_token: r } = reply.body
    t.match(claims(a), { sub: user.id, role: 'viewer', type: 'access' })
    t.match(claims(r), { sub: user.id, role: 'viewer', type: 'refresh' })
    t.equal(claims(a).exp - claims(a).iat, 3600)
    t.equal(claims(r).exp - claims(r).iat, 604_800)
  },
)

t.test('a request is authenticated by the cookie, and the profile has four fields', async (t) => {
  const user = await service.newUser('manager')
  const headers = { cookie: `ACCESS_TOKEN=${user.access_token}` }
  const reply = await service.call('GET /api/auth/me', { token: null, headers })
  t.same(reply.body, { id: user.id, email: user.email, role: 'manager', is_active: true })
})

t.test('the last active superadmin stays one', async (t) => {
  const all = await service.call('GET /api/users?limit=200')
  const self = (await service.call('GET /api/auth/me')).body.id
  for (const user of all.body.items) {
    if (user.role === 'superadmin' && user.id !== self)
      await service.call(`DELETE /api/users/${user.id}`)
  }
  const attempts: readonly [string, object | undefined][] = [
    [`PUT /api/users/${self}/role`, { role: 'admin' }],
    [`PATCH /api/users/${self}`, { is_active: false }],
    [`DELETE /api/users/${self}`, undefined],
  ]
  for (const [request, json] of attempts) {
    const reply = await service.call(request, json === undefined ? {} : { json })
    t.match(reply, { status: 409, body: { detail: { code: 'last_superadmin' } } }, request)
  }
})

t.test('an admin has no power over admins and superadmins', async (t) => {
  const admin = await service.newUser('admin')
  const peer = await service.newUser('admin')
  const boss = (await service.call('GET /api/auth/me')).body.id
  for (const id of [peer.id, boss]) {
    const token = admin.access_token
    const patch = await service.call(`PATCH /api/users/${id}`, {
      token,
      json: { is_active: false },
    })
    t.equal(patch.status, 403)
    t.equal((await service.call(`DELETE /api/users/${id}`, { token })).status, 403)
    const password = { password: 'a stolen password' }
    t.equal(
      (await service.call(`PUT /api/users/${id}/password`, { token, json: password })).status,
      403,
    )
  }
  const json = { email: 'made@example.com', password: 'long enough for it', role: 'admin' }
  t.equal((await service.call('POST /api/users', { token: admin.access_token, json })).status, 403)
})

t.test('every change is in the audit trail', async (t) => {
  const trail = await eventually(
    () => service.call('GET /api/monitoring/audit?action=setUserRole&limit=200'),
    ({ body }) => body.items.length > 0,
  )
  t.match(trail.body.items[0], { action: 'setUserRole' })
})
