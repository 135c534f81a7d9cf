import { Secret, TOTP } from 'otpauth'
import { test, type Test } from 'tap'
import type { User } from '../../../src/api/auth/user.js'
import { PASSWORD, startAuthServer, type Answer } from '../../support/auth.js'
import { memoryEntities } from '../../support/entities.js'
import { createSeal } from '../../../src/coordination/seal.js'

const login = { email: 'viewer@example.com', password: PASSWORD }
const code = ({ status, body }: Answer): string => {
  const detail: unknown = body['detail']
  const hasCode = typeof detail === 'object' && detail !== null && 'code' in detail
  return `${status} ${hasCode ? String(detail.code) : ''}`.trim()
}
const password = { current_password: PASSWORD }
const STEP_MS = 30_000
const base = '/api/auth/second-factor'

/** A viewer whose second factor is on. */
async function enrolled(t: Test, parts: Parameters<typeof startAuthServer>[1] = {}) {
  const users = parts.users ?? memoryEntities<User>()
  const server = await startAuthServer(t, { ...parts, users })
  const viewer = await server.as('viewer')
  const begun = await viewer(`POST ${base}`, { json: password })
  const app = new TOTP({ secret: String(begun.body['secret']) })
  const { clock } = server
  const codeNow = (steps = 0): string => app.generate({ timestamp: clock.ms + steps * STEP_MS })
  const confirmed = await viewer(`POST ${base}/confirm`, { json: { code: codeNow() } })
  const recovery: string[] = Array.from(Object(confirmed.body['recovery_codes']), String)
  clock.ms += STEP_MS
  const logIn = (given?: string) =>
    server.call('POST /api/auth/login', {
      json: given === undefined ? login : { ...login, code: given },
    })
  const id = server.services.users.findByEmail(login.email)?.id ?? ''
  return { ...server, users, viewer, begun, confirmed, recovery, codeNow, logIn, id }
}

void test('the codes are those of RFC 6238', async (t) => {
  // Appendix B, SHA-1; its codes have eight digits, of which the last six are ours.
  const secret = Secret.fromUTF8('12345678901234567890')
  for (const [seconds, want] of [
    [59, '287082'],
    [1_111_111_109, '081804'],
    [1_234_567_890, '005924'],
    [20_000_000_000, '353130'],
  ] as const)
    t.equal(new TOTP({ secret }).generate({ timestamp: seconds * 1_000 }), want)
})

void test('enrolment: begun with the password, on with a code of the app', async (t) => {
  const { as, call, clock } = await startAuthServer(t)
  const viewer = await as('viewer')
  const elsewhere = await as('viewer')
  const off = { enabled: false, since: null, recovery_codes_left: 0, provider: null }
  t.strictSame((await viewer(`GET ${base}`)).body, off)
  const wrong = await viewer(`POST ${base}`, { json: { current_password: 'wrong' } })
  t.equal(code(wrong), '401 invalid_credentials')
  t.equal(code(await viewer(`POST ${base}/confirm`, { json: { code: '123456' } })), '404 not_found')

  const begun = await viewer(`POST ${base}`, { json: password })
  t.equal(begun.status, 201)
  t.equal(begun.headers.get('cache-control'), 'no-store')
  const { secret, uri } = begun.body
  t.match(secret, /^[A-Z2-7]{32}$/)
  t.match(
    uri,
    `otpauth://totp/Log%20Analytics:viewer%40example.com?issuer=Log%20Analytics&secret=${secret}&algorithm=SHA1&digits=6&period=30`,
  )
  t.strictSame((await viewer(`GET ${base}`)).body, off, 'not yet')
  t.equal((await call('POST /api/auth/login', { json: login })).status, 200, 'not asked for yet')
  const app = new TOTP({ secret: String(secret) })
  const other = new TOTP({ secret: new Secret({ size: 20 }) })
  const confirm = (given: string) => viewer(`POST ${base}/confirm`, { json: { code: given } })
  t.equal(code(await confirm(other.generate({ timestamp: clock.ms }))), '401 invalid_code')
  clock.ms += 600_000
  t.equal(code(await confirm(app.generate({ timestamp: clock.ms }))), '404 not_found', 'too late')

  const again = await viewer(`POST ${base}`, { json: password })
  const next = new TOTP({ secret: String(again.body['secret']) })
  t.equal(code(await confirm(app.generate({ timestamp: clock.ms }))), '401 invalid_code', 'the old')
  const confirmed = await confirm(next.generate({ timestamp: clock.ms }))
  t.equal(confirmed.status, 200)
  t.equal(confirmed.headers.get('cache-control'), 'no-store')
  t.match(confirmed.body['recovery_codes'], Array(10).fill(/^[a-z2-7]{6}(-[a-z2-7]{6}){3}$/))
  t.match((await viewer(`GET ${base}`)).body, {
    enabled: true,
    since: /Z$/,
    recovery_codes_left: 10,
  })
  t.equal(code(await viewer(`POST ${base}`, { json: password })), '409 second_factor_exists')
  t.equal(code(await elsewhere('GET /api/auth/me')), '401 unauthorized', 'other sessions end')
  t.equal((await viewer('GET /api/auth/me')).status, 200)
})

void test('a login takes password and code, in one request or in two', async (t) => {
  const { logIn, codeNow, call, as } = await enrolled(t)
  t.equal(code(await logIn()), '401 second_factor_required')
  const digits = codeNow()
  const spaced = `${digits.slice(0, 3)} ${digits.slice(3)}`
  const answer = await logIn(spaced)
  t.equal(answer.status, 200)
  t.match(answer.cookies, { ACCESS_TOKEN: String, REFRESH_TOKEN: String })
  const wrong = { email: login.email, password: 'wrong', code: codeNow(1) }
  t.equal(code(await call('POST /api/auth/login', { json: wrong })), '401 invalid_credentials')
  t.equal((await logIn(codeNow(1))).status, 200, 'a wrong password uses up no code')
  t.ok(await as('manager'), 'who has none logs in as ever')
  const json = { email: 'manager@example.com', password: PASSWORD, code: '123456' }
  t.equal((await call('POST /api/auth/login', { json })).status, 200, 'a needless code is no fault')
})

void test('a code is good once, and only near its time', async (t) => {
  const { logIn, codeNow, clock, intrusions } = await enrolled(t)
  for (const steps of [-9, -2, 2, 9])
    t.equal(code(await logIn(codeNow(steps))), '401 invalid_code', `${steps} steps aside`)
  t.equal(code(await logIn(codeNow(-1))), '401 code_reused', 'the one of the enrolment')
  const both = await Promise.all([logIn(codeNow()), logIn(codeNow())])
  t.strictSame(both.map(code).toSorted(), ['200', '401 code_reused'])
  t.equal(code(await logIn(codeNow())), '401 code_reused')
  t.equal((await logIn(codeNow(1))).status, 200, 'of a clock that is ahead')
  t.equal(code(await logIn(codeNow())), '401 code_reused', 'an earlier one never again')
  clock.ms += 2 * STEP_MS
  t.equal((await logIn(codeNow(-1))).status === 200, false, 'the one that was used ahead')
  t.equal((await logIn(codeNow())).status, 200)
  t.ok(intrusions.length >= 8)
  t.same(new Set(intrusions), new Set(['second_factor']))
})

void test('a recovery code is good once, and new ones replace the old', async (t) => {
  const { logIn, recovery, viewer, codeNow, clock } = await enrolled(t)
  const [first = '', second = '', third = ''] = recovery
  t.equal((await logIn(first)).status, 200)
  t.equal(code(await logIn(first)), '401 invalid_code')
  t.equal((await logIn(` ${second.toUpperCase().replaceAll('-', ' ')}`)).status, 200)
  t.equal(code(await logIn('aaaaaa-aaaaaa-aaaaaa-aaaaaa')), '401 invalid_code')
  t.match((await viewer(`GET ${base}`)).body, { recovery_codes_left: 8 })
  const renew = (given: string, current_password = PASSWORD) =>
    viewer(`POST ${base}/recovery-codes`, { json: { current_password, code: given } })
  t.equal(code(await renew(codeNow(), 'wrong')), '401 invalid_credentials')
  t.equal(code(await renew('000000')), '401 invalid_code')
  const renewed = await renew(codeNow())
  t.equal(renewed.status, 200)
  t.equal(code(await renew(codeNow())), '401 code_reused')
  t.equal(code(await logIn(third)), '401 invalid_code', 'an old one')
  const [fresh = ''] = Array.from(Object(renewed.body['recovery_codes']), String)
  clock.ms += STEP_MS
  t.equal((await logIn(fresh)).status, 200)
})

void test('it is disabled with password and code, or removed by an admin', async (t) => {
  const { logIn, viewer, codeNow, as, id, users, clock } = await enrolled(t)
  const disable = (json: object) => viewer(`POST ${base}/disable`, { json })
  t.equal(code(await disable({ ...password, code: '000000' })), '401 invalid_code')
  t.equal(
    code(await disable({ current_password: 'wrong', code: codeNow() })),
    '401 invalid_credentials',
  )
  t.equal(code(await disable(password)), '422 validation_error')
  t.equal((await disable({ ...password, code: codeNow() })).status, 204)
  t.equal((await logIn()).status, 200)
  t.equal(code(await disable({ ...password, code: codeNow() })), '404 not_found')

  clock.ms += STEP_MS
  const begun = await viewer(`POST ${base}`, { json: password })
  const given = new TOTP({ secret: String(begun.body['secret']) }).generate({ timestamp: clock.ms })
  t.equal((await viewer(`POST ${base}/confirm`, { json: { code: given } })).status, 200)
  const remove = `DELETE /api/users/${id}/second-factor`
  const [manager, admin] = [await as('manager'), await as('admin')]
  t.equal(code(await manager(remove)), '403 forbidden')
  t.match((await admin(`GET /api/users/${id}`)).body, { has_second_factor: true })
  t.equal((await admin(remove)).status, 204)
  t.equal(code(await admin(remove)), '404 not_found')
  t.equal(code(await viewer('GET /api/auth/me')), '401 unauthorized', 'the sessions end')
  t.equal((await logIn()).status, 200)
  t.notOk(JSON.stringify(users.get(id)).includes('actor'), 'nothing is left')
})

void test('an admin removes neither the own one nor that of a peer', async (t) => {
  const { as, services, clock } = await startAuthServer(t)
  const idOf = (role: string) => services.users.findByEmail(`${role}@example.com`)?.id ?? ''
  for (const role of ['admin', 'superadmin'] as const) {
    const call = await as(role)
    const begun = await call(`POST ${base}`, { json: password })
    const totp = new TOTP({ secret: String(begun.body['secret']) })
    const json = { code: totp.generate({ timestamp: clock.ms }) }
    const session = await as(role)
    t.equal((await call(`POST ${base}/confirm`, { json })).status, 200)
    t.equal(code(await session('GET /api/auth/me')), '401 unauthorized')
    const removed = await call(`DELETE /api/users/${idOf(role)}/second-factor`)
    t.equal(code(removed), '403 forbidden', `the own one of ${role}`)
    if (role === 'admin') continue
    const of = `DELETE /api/users/${idOf('admin')}/second-factor`
    t.equal((await call(of)).status, 204, 'a superadmin that of an admin')
  }
})

void test('codes of the app are limited for a user, from all addresses; recovery codes help', async (t) => {
  const { logIn, recovery, codeNow, id, services } = await enrolled(t, { codes: 5 })
  // The enrolment took one.
  for (let i = 0; i < 4; i++) t.equal(code(await logIn('000000')), '401 invalid_code')
  t.equal(code(await logIn(codeNow())), '429 rate_limited')
  const elsewhere = { client: { address: '10.9.8.7', agent: '' }, code: codeNow() }
  await t.rejects(services.sessions.login(login.email, PASSWORD, elsewhere), {
    code: 'rate_limited',
    details: { limit: 'second_factor_limit' },
  })
  t.equal((await logIn(recovery[0])).status, 200)
  t.ok(id)
})

void test('what is stored shows neither the key nor a recovery code', async (t) => {
  const { users, id, begun, recovery } = await enrolled(t)
  const stored = JSON.stringify(users.get(id))
  t.notOk(stored.includes(String(begun.body['secret'])))
  for (const each of recovery)
    t.notOk(stored.includes(each) || stored.includes(each.replaceAll('-', '')))
  const { sealed = '' } = users.get(id)?.secondFactor ?? {}
  t.equal(createSeal('a key for tests').open(sealed, id), begun.body['secret'])
  t.equal(createSeal('a key for tests').open(sealed, 'another user'), null)
})

void test('with another key of the data directory a recovery code works, and codes of the app are told why not', async (t) => {
  const { users, id, logIn, recovery, codeNow, services } = await enrolled(t)
  t.strictSame(services.secondFactors.unreadable(), [])
  const sealed = createSeal('the key of yesterday').seal('JBSWY3DPEHPK3PXP', id)
  await users.update(id, (user) =>
    user?.secondFactor === undefined
      ? user
      : {
          ...user,
          secondFactor: { ...user.secondFactor, sealed },
          pendingFactor: { sealed, expiresAtMs: Date.now() * 2 },
        },
  )
  const refused = await logIn(codeNow())
  t.equal(code(refused), '401 invalid_code')
  t.match(JSON.stringify(refused.body), /recovery code/)
  t.strictSame(services.secondFactors.unreadable(), [login.email])
  await t.rejects(services.secondFactors.confirm(id, codeNow()), { code: 'not_found' })
  t.equal((await logIn(recovery[0])).status, 200)
})
