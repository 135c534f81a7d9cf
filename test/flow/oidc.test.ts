/** Logging in at a real provider of OpenID Connect, and what a hostile browser or provider may try. */
import t from 'tap'
import { CLIENT, createBrowser, startProvider } from '../support/oidc.js'
import { freePort } from '../support/ports.js'
import { startLiveService } from '../support/live-service.js'
import { isMissing, openBrowser } from '../support/page.js'
import { openKpiSocket } from '../support/kpi-socket.js'
import { ADMIN } from '../support/service.js'

const port = await freePort()
const page = `http://127.0.0.1:${port}`
const callbackOf = (name: string): string => `${page}/api/auth/oidc/${name}/callback`
const provider = await startProvider(callbackOf('corp'))
t.teardown(() => provider.close())
const other = await startProvider(callbackOf('other'), 'client_secret_post')
t.teardown(() => other.close())
const settings = (name: string, issuer: string) => ({
  name,
  title: `Log in at ${name}`,
  issuer,
  ...CLIENT,
  roles: { ops: 'manager', root: 'superadmin' },
})
const service = await startLiveService(t, {
  API_PORT: String(port),
  PUBLIC_URL: page,
  PASSWORD_LOGIN_ONLY: ADMIN.email,
  REQUIRE_SECOND_FACTOR: 'all',
  LOGIN_LIMIT: '1000/60',
  OIDC_PROVIDERS: JSON.stringify([
    { ...settings('corp', provider.issuer), link_by_email: true },
    settings('other', other.issuer),
    settings('away', `http://127.0.0.1:${await freePort()}`),
  ]),
})

const begin = (name: string): string => `${page}/api/auth/oidc/${name}`
const isCallback = (url: string): boolean => url.includes('/callback?')
const isEnd = (url: string): boolean => url.startsWith(`${page}/?`) || url === `${page}/`

async function logIn(account: string, claims: object, from = provider, name = 'corp') {
  from.account = account
  from.claims.set(account, { email_verified: true, ...claims })
  const browser = createBrowser()
  const end = await browser.follow(begin(name), isEnd)
  return { end, token: browser.cookie(page, 'ACCESS_TOKEN') ?? '' }
}
/** Logs in while the clock of the provider, which is this process, is off. */
async function logInWithClock(offMs: number) {
  const { now } = Date
  Date.now = () => now() + offMs
  try {
    return await logIn('gil', { email: 'gil@corp.example', groups: ['ops'] })
  } finally {
    Date.now = now
  }
}
const failedWith = (code: string): string => `${page}/?login_error=${code}`
const meOf = (token: string) => service.call('GET /api/auth/me', { token })
/** The break-glass account has to have a second factor, so what it sees is asked by a superadmin of the provider. */
const root = await logIn('root', { email: 'root@corp.example', groups: ['x', 'ops', 'root'] })
const asRoot = (request: string, json?: object) =>
  service.call(request, { token: root.token, ...(json === undefined ? {} : { json }) })

t.test('the page learns of the providers, and a log-in makes a user with a role', async (t) => {
  t.match(await service.call('GET /api/auth/providers', { token: null }), {
    status: 200,
    body: {
      password: false,
      providers: [
        { name: 'corp', title: 'Log in at corp', login_url: `${page}/api/auth/oidc/corp` },
        {},
        {},
      ],
    },
  })
  t.equal(root.end, `${page}/`)
  t.match((await meOf(root.token)).body, { email: 'root@corp.example', role: 'superadmin' })
  const ann = await logIn('ann', { email: 'Ann@corp.example', groups: 'ops' })
  const { body } = await meOf(ann.token)
  t.match(body, { email: 'ann@corp.example', role: 'manager' })
  const again = await logIn('ann', { email: 'ann.new@corp.example', groups: ['ops'] })
  t.match((await meOf(again.token)).body, { id: body.id, email: 'ann.new@corp.example' })
  const sessions = await service.call('GET /api/auth/sessions', { token: again.token })
  t.equal(sessions.body.items.length, 2)
  const [{ expires_at: end }] = sessions.body.items
  t.ok(Date.parse(end) - Date.now() <= 12 * 3_600_000, 'a session ends within the day')
  const gone = sessions.body.items.find((one: { is_current: boolean }) => !one.is_current)
  await service.call(`DELETE /api/auth/sessions/${gone.id}`, { token: again.token })
  t.equal((await meOf(ann.token)).status, 401)
  const { items } = (await asRoot('GET /api/monitoring/audit?action=finishOidc')).body
  t.match(items[0], { actor_id: body.id, target: 'corp', outcome: 'ok', detail: {} })
  const users = (await asRoot('GET /api/users')).body.items
  t.ok(users.some((user: object) => 'provider' in user && user.provider === 'corp'))
})

t.test('a user of a provider has neither password nor second factor here', async (t) => {
  const { token } = await logIn('bob', { email: 'bob@corp.example', groups: ['ops'] })
  const { id } = (await meOf(token)).body
  const json = { password: 'long enough for it', current_password: 'x' }
  for (const [request, body] of [
    [`PUT /api/users/${id}/password`, json],
    ['POST /api/auth/second-factor', { current_password: '' }],
  ] as const)
    t.equal((await service.call(request, { token, json: body })).status >= 400, true, request)
  t.match(await asRoot(`PUT /api/users/${id}/password`, { password: 'long enough for it' }), {
    status: 403,
    body: { detail: { details: { provider: 'corp' } } },
  })
  t.equal((await asRoot(`PUT /api/users/${id}/role`, { role: 'admin' })).status, 403)
  for (const password of ['', 'x', 'long enough for it']) {
    const tried = { email: 'bob@corp.example', password }
    const reply = await service.call('POST /api/auth/login', { token: null, json: tried })
    t.ok([401, 422].includes(reply.status), `${reply.status}`)
  }
})

t.test('a role that the provider takes away ends the sessions at the next log-in', async (t) => {
  const before = await logIn('cat', { email: 'cat@corp.example', groups: ['root'] })
  const socket = await openKpiSocket(service, { query: `?token=${before.token}`, atFirst: true })
  const after = await logIn('cat', { email: 'cat@corp.example', groups: ['ops'] })
  t.equal((await meOf(before.token)).status, 401)
  t.equal(await socket.whenClosed(), 1008)
  t.equal((await meOf(after.token)).body.role, 'manager')
  t.equal((await service.call('GET /api/users', { token: after.token })).status, 403)
})

t.test('who has no role at the provider is turned away, and loses the sessions', async (t) => {
  const before = await logIn('dan', { email: 'dan@corp.example', groups: ['ops'] })
  const after = await logIn('dan', { email: 'dan@corp.example', groups: ['constructor', 7, null] })
  t.equal(after.end, failedWith('role_missing'))
  t.equal(after.token, '')
  t.equal((await meOf(before.token)).status, 401)
  const { id } = (await asRoot('GET /api/users')).body.items.find(
    ({ email }: { email: string }) => email === 'dan@corp.example',
  )
  await asRoot(`PATCH /api/users/${id}`, { is_active: false })
  const disabled = await logIn('dan', { email: 'dan@corp.example', groups: ['ops'] })
  t.equal(disabled.end, failedWith('account_disabled'))
  await asRoot(`DELETE /api/users/${id}`)
  t.equal((await logIn('dan', { groups: ['ops'] })).end, failedWith('oidc_failed'), 'no e-mail')
  for (const said of [false, 'false']) {
    const unverified = { email: 'dan@corp.example', email_verified: said, groups: ['ops'] }
    t.equal((await logIn('dan', unverified)).end, failedWith('oidc_failed'))
  }
  const told = service.log().split('\n')
  for (const facts of [
    ['role_missing', '"claim":"groups","groups":["constructor"]'],
    ['account_disabled', '"groups":["ops"]'],
    ['oidc_failed', 'no verified e-mail: check the scopes'],
  ])
    t.ok(
      told.some((line) => ['"subject":"dan"', ...facts].every((fact) => line.includes(fact))),
      `the log has ${facts.join()}`,
    )
})

t.test('an e-mail links a local user only where the settings say so', async (t) => {
  const made = await asRoot('POST /api/users', {
    email: 'eve@corp.example',
    password: 'long enough for it',
    role: 'viewer',
  })
  t.equal(made.status, 201)
  const claims = { email: 'eve@corp.example', groups: ['ops'] }
  const stranger = await logIn('eve-there', claims, other, 'other')
  t.equal(stranger.end, failedWith('email_conflict'))
  const unsaid = await logIn('eve', { ...claims, email_verified: undefined })
  t.equal(unsaid.end, failedWith('email_conflict'))
  const { token } = await logIn('eve', claims)
  t.match((await meOf(token)).body, { id: made.body.id, role: 'manager' })
  const same = await logIn('eve-there', claims, other, 'other')
  t.equal(same.end, failedWith('email_conflict'), 'nor is it taken over by another provider')
  const kept = await logIn('mallory', { email: ADMIN.email, groups: ['root'] })
  t.equal(kept.end, failedWith('email_conflict'), 'nor the break-glass account')
  const users = (await asRoot('GET /api/users')).body.items
  const { id } = users.find(({ email }: { email: string }) => email === ADMIN.email)
  t.match(await asRoot(`PATCH /api/users/${id}`, { email: 'moved@corp.example' }), { status: 403 })
  t.match(await asRoot(`DELETE /api/users/${id}`), { status: 409 })
})

t.test('with PASSWORD_LOGIN_ONLY one account alone has a password', async (t) => {
  await service.login(ADMIN.email, ADMIN.password)
  const json = { email: 'local@example.com', password: 'long enough for it' }
  await asRoot('POST /api/users', json)
  const off = await service.call('POST /api/auth/login', { token: null, json })
  t.match(off, { status: 403, body: { detail: { code: 'password_login_off' } } })
  const wrong = { ...json, password: 'not this one, no' }
  const unknown = await service.call('POST /api/auth/login', { token: null, json: wrong })
  t.match(unknown, { status: 401, body: { detail: { code: 'invalid_credentials' } } })
})

t.test('a replayed, forged, foreign or late answer of a provider begins no session', async (t) => {
  provider.account = 'fay'
  provider.claims.set('fay', { email: 'fay@corp.example', email_verified: true, groups: ['ops'] })
  const victim = createBrowser()
  const answer = await victim.follow(begin('corp'), isCallback)
  t.equal((await createBrowser().visit(answer)).next, failedWith('oidc_failed'), 'another browser')
  const transaction = victim.cookie(page, 'OIDC_LOGIN') ?? ''
  const withCookie = async (url: string) => {
    const headers = { cookie: `OIDC_LOGIN=${transaction}` }
    const reply = await fetch(url, { redirect: 'manual', headers })
    t.equal(
      reply.headers.getSetCookie().some((set) => set.startsWith('ACCESS_TOKEN')),
      false,
      url,
    )
    return reply.headers.get('location')
  }
  const mixed = answer.replace('/corp/', '/other/')
  t.equal(await withCookie(mixed), failedWith('oidc_failed'), 'the answer at another provider')
  t.equal((await victim.visit(answer)).next, `${page}/`)
  t.equal(await withCookie(answer), failedWith('oidc_failed'), 'a second time')

  for (const [what, change] of Object.entries({
    'another state': (url: URL) => url.searchParams.set('state', 'x'.repeat(43)),
    'another issuer': (url: URL) => url.searchParams.set('iss', other.issuer),
    'no issuer': (url: URL) => url.searchParams.delete('iss'),
    'another code': (url: URL) => url.searchParams.set('code', 'x'.repeat(43)),
    'no code': (url: URL) => url.searchParams.delete('code'),
    'two codes': (url: URL) => url.searchParams.append('code', 'x'),
  })) {
    const browser = createBrowser()
    const url = new URL(await browser.follow(begin('corp'), isCallback))
    change(url)
    t.equal((await browser.visit(url.href)).next, failedWith('oidc_failed'), what)
    t.equal(browser.cookie(page, 'ACCESS_TOKEN'), undefined, what)
  }
  provider.account = null
  const refused = await createBrowser().follow(begin('corp'), isEnd)
  t.equal(refused, failedWith('oidc_failed'), 'the user refused')
  const away = await createBrowser().follow(begin('away'), isEnd)
  t.equal(away, failedWith('dependency_unavailable'))
  const hostile = await service.call('GET /api/auth/oidc/corp?return_to=//evil.example', {
    token: null,
    headers: { host: 'evil.example', 'x-forwarded-host': 'evil.example' },
  })
  t.notMatch(hostile.headers.get('location') ?? '', /evil/)
  t.equal((await service.call('GET /api/auth/oidc/nobody', { token: null })).status, 404)
  const secrets = new RegExp(`${CLIENT.client_secret}|alert\\(1\\)|${transaction.slice(0, 40)}`)
  t.notMatch(service.log(), secrets)
})

t.test('the clock of a provider may be off by a minute', async (t) => {
  // An ID token is good for a minute.
  for (const offS of [-100, -50, 50]) {
    const { end } = await logInWithClock(offS * 1000)
    t.equal(end, `${page}/`, `${offS} s`)
  }
  const { end, token } = await logInWithClock(-130_000)
  t.equal(end, failedWith('oidc_failed'))
  t.equal(token, '')
})

t.test('a browser comes back to where it was', { skip: isMissing && 'no browser' }, async (t) => {
  const browser = await openBrowser(t)
  const tab = await browser.newPage()
  const logInAs = async (account: string | null, claims: object = {}) => {
    provider.account = account
    if (account !== null) provider.claims.set(account, { email_verified: true, ...claims })
    await tab.click('a.way >> nth=0')
  }
  // By another name of this machine the cookie of the login would be missing at the end.
  const alias = page.replace('127.0.0.1', 'localhost')
  await tab.goto(alias)
  const hal = { email: 'hal@corp.example', groups: ['ops'] }
  await logInAs('hal', hal)
  await tab.waitForSelector('.shell')
  t.equal(new URL(tab.url()).origin, page)
  await browser.clearCookies()

  t.comment('after a login that failed too')
  await tab.goto(`${page}/templates?range=6h`)
  await logInAs(null)
  await tab.waitForSelector('.problem >> text=Try again')
  t.equal(tab.url(), `${page}/templates?range=6h`)
  await logInAs('hal', hal)
  await tab.waitForSelector('.shell')
  t.equal(tab.url(), `${page}/templates?range=6h`)

  t.comment('the second factor is the provider’s')
  await tab.goto(`${page}/admin/sessions`)
  await tab.waitForSelector('.own-factor >> text=corp')
  t.equal(await tab.locator('.own-factor button').count(), 0)
})
