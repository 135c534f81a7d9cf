import { test, type Test } from 'tap'
import { createFamilies, type Families, type Family } from '../../../src/api/auth/families.js'
import { createPasswords, type Passwords } from '../../../src/api/auth/passwords.js'
import { createSessions, type Grant } from '../../../src/api/auth/sessions.js'
import { createTokens } from '../../../src/api/auth/tokens.js'
import type { User } from '../../../src/api/auth/user.js'
import { createUsers } from '../../../src/api/auth/users.js'
import { isAtLeast, ROLES } from '../../../src/model/roles.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { cpuOfBoth } from '../../support/cpu.js'
import { memoryEntities } from '../../support/entities.js'
import { DAY_MS } from '../../../src/model/time.js'

const unexpected = (error: unknown): never => {
  throw error
}

/** Thirty days. */
const sessionSeconds = 2_592_000
const secret = 'a secret of more than thirty-two characters'
const cheapPasswords = createPasswords({ memoryKib: 64, maxWaiting: 1_000 })
const root = { userId: 'root', role: 'superadmin' } as const
const badRefresh = { code: 'invalid_refresh_token', status: 401 }

const newState = () => createInProcessState({ onError: unexpected })

interface Parts {
  readonly userEntities?: ReturnType<typeof memoryEntities<User>>
  readonly families?: Families
  readonly passwords?: Passwords
}

async function setUp(t: Test, parts: Parts = {}) {
  const clock = { ms: 1_700_000_000_000 }
  const nowMs = () => clock.ms
  const userEntities = parts.userEntities ?? memoryEntities<User>()
  const passwords = parts.passwords ?? cheapPasswords
  const { withLock } = newState()
  const users = createUsers({ entities: userEntities, passwords, withLock, nowMs })
  const familyEntities = memoryEntities<Family>()
  const families = parts.families ?? createFamilies(familyEntities, nowMs)
  const tokens = createTokens({ secret, accessSeconds: 3_600, refreshSeconds: 604_800, nowMs })
  const secondFactors = { spend: async () => undefined }
  const stores = { users, families, tokens, passwords, secondFactors }
  const sessions = createSessions({ ...stores, sessionSeconds, nowMs })
  const email = 'ann@example.com'
  const ann =
    users.findByEmail(email) ?? (await users.create(root, { email, password: 'right password' }))
  t.ok(ann.id)
  const login = () => sessions.login(email, 'right password')
  return { clock, users, userEntities, familyEntities, sessions, tokens, ann, email, login }
}

void test('a login gives tokens and notes its time', async (t) => {
  const { sessions, users, ann, login, clock } = await setUp(t)
  const grant = await login()
  t.match(sessions.authenticate(grant.accessToken), { userId: ann.id, role: 'viewer' })
  t.equal(users.get(ann.id)?.lastLoginAtMs, clock.ms)
})

void test('the e-mail is found in any case and with blanks around it', async (t) => {
  const { sessions } = await setUp(t)
  t.ok(await sessions.login(' ANN@Example.COM ', 'right password'))
})

void test('a wrong password and an unknown e-mail have the same error', async (t) => {
  const { sessions, email } = await setUp(t)
  const messages = new Set<string>()
  for (const [name, password] of [
    [email, 'wrong password'],
    ['nobody@example.com', 'right password'],
    ['', ''],
  ] as const) {
    await t.rejects(sessions.login(name, password), { code: 'invalid_credentials', status: 401 })
    await sessions.login(name, password).catch((error: Error) => messages.add(error.message))
  }
  t.equal(messages.size, 1)
})

void test('a login of an unknown user costs as much CPU time as one with a wrong password', async (t) => {
  const { sessions, email } = await setUp(t, { passwords: createPasswords() })
  const refused = (name: string) => () =>
    t.rejects(sessions.login(name, 'wrong password'), { code: 'invalid_credentials' })
  const [known, unknown] = await cpuOfBoth(refused(email), refused('nobody@example.com'))
  // A hash takes tens of milliseconds, everything else less than one.
  t.ok(unknown > known / 4, `${unknown} ms unknown, ${known} ms known`)
  t.ok(unknown < known * 4, `${unknown} ms unknown, ${known} ms known`)
})

void test('a disabled account is named only with the right password', async (t) => {
  const { sessions, users, ann, email } = await setUp(t)
  await users.patch(root, ann.id, { isActive: false })
  await t.rejects(sessions.login(email, 'right password'), {
    code: 'account_disabled',
    status: 403,
  })
  await t.rejects(sessions.login(email, 'wrong password'), { code: 'invalid_credentials' })
})

void test('a password changed while it is being checked does not let the old one in', async (t) => {
  const { sessions, users, ann, email, userEntities } = await setUp(t)
  const passwordHash = await cheapPasswords.hash('new password')
  const login = sessions.login(email, 'right password')
  await userEntities.update(ann.id, (user) => user && { ...user, passwordHash })
  await t.rejects(login, { code: 'invalid_credentials' })
  t.ok(users.get(ann.id))
})

void test('access tokens of a disabled or deleted user are refused at once', async (t) => {
  const { sessions, users, ann, login } = await setUp(t)
  const { accessToken } = await login()
  await users.patch(root, ann.id, { isActive: false })
  t.throws(() => sessions.authenticate(accessToken), { code: 'unauthorized' })
  await users.patch(root, ann.id, { isActive: true })
  t.throws(() => sessions.authenticate(accessToken), { code: 'unauthorized' }, 'for good')
  const again = await login()
  t.ok(sessions.authenticate(again.accessToken))
  await users.remove(root, ann.id)
  t.throws(() => sessions.authenticate(again.accessToken), { code: 'unauthorized' })
})

void test('after a change of role the access token keeps the old one, refreshing ends', async (t) => {
  const { sessions, users, ann, login } = await setUp(t)
  const grant = await login()
  await users.setRole(root, ann.id, 'manager')
  t.equal(sessions.authenticate(grant.accessToken).role, 'viewer')
  await t.rejects(sessions.refresh(grant.refreshToken), badRefresh)
  t.equal(sessions.authenticate((await login()).accessToken).role, 'manager')
})

void test('nobody administers with a role that was taken away', async (t) => {
  const { sessions, users, ann, login } = await setUp(t)
  await users.create(root, { email: 'bob@example.com', password: 'right password', ...root })
  for (const atLogin of ROLES) {
    await users.setRole(root, ann.id, atLogin)
    const { accessToken } = await login()
    for (const stored of ROLES) {
      await users.setRole(root, ann.id, stored)
      const { role, tokenRole } = sessions.authenticate(accessToken)
      const what = `${atLogin} at login, ${stored} now`
      t.equal(tokenRole, atLogin, what)
      for (const needed of ['admin', 'superadmin'] as const) {
        const both = isAtLeast(atLogin, needed) && isAtLeast(stored, needed)
        t.equal(isAtLeast(role, needed), both, `${what}: ${needed}`)
      }
      // Below that the role at login holds until the token expires.
      t.equal(isAtLeast(role, 'manager'), isAtLeast(atLogin, 'manager'), `${what}: manager`)
    }
  }
})

void test('a changed password ends every session', async (t) => {
  const { sessions, users, ann, login } = await setUp(t)
  const grants = [await login(), await login()]
  await users.setPassword(root, ann.id, { password: 'another password' })
  for (const { accessToken, refreshToken } of grants) {
    t.throws(() => sessions.authenticate(accessToken), { code: 'unauthorized' })
    await t.rejects(sessions.refresh(refreshToken), badRefresh)
  }
})

void test('who changes the own password keeps this one access token', async (t) => {
  const { sessions, users, ann, login } = await setUp(t)
  const [own, other] = [await login(), await login()]
  const actor = sessions.authenticate(own.accessToken)
  const change = (password: string, currentPassword: string) =>
    users.setPassword(actor, ann.id, { password, currentPassword })
  await change('another password', 'right password')
  t.ok(sessions.authenticate(own.accessToken))
  t.throws(() => sessions.authenticate(other.accessToken), { code: 'unauthorized' })
  await t.rejects(sessions.refresh(own.refreshToken), badRefresh)
  await change('right password', 'another password')
  t.ok(sessions.authenticate(own.accessToken), 'a second time too')
  await users.setPassword(root, ann.id, { password: 'given by an admin' })
  t.throws(() => sessions.authenticate(own.accessToken), { code: 'unauthorized' })
})

void test('every end of a session ends its access tokens, and those of no other', async (t) => {
  const { sessions, login } = await setUp(t)
  const ends = {
    logout: ({ refreshToken }: Grant) => sessions.logout([refreshToken]),
    'logout by the access token': ({ accessToken }: Grant) => sessions.logout([accessToken]),
    'reuse of a refresh token': async ({ refreshToken }: Grant) => {
      const next = await sessions.refresh(refreshToken)
      t.ok(sessions.authenticate(next.accessToken))
      await t.rejects(sessions.refresh(refreshToken), badRefresh)
      t.throws(() => sessions.authenticate(next.accessToken), { code: 'unauthorized' })
    },
  }
  const other = await login()
  for (const [what, end] of Object.entries(ends)) {
    const grant = await login()
    const session = sessions.authenticate(grant.accessToken)
    t.ok(sessions.isAlive(session), what)
    await end(grant)
    t.throws(() => sessions.authenticate(grant.accessToken), { code: 'unauthorized' }, what)
    t.notOk(sessions.isAlive(session), what)
    t.ok(sessions.authenticate(other.accessToken), what)
  }
})

void test('a session ends after its time, however often it is refreshed', async (t) => {
  const { sessions, login, tokens, clock } = await setUp(t)
  const endMs = clock.ms + sessionSeconds * 1000
  let grant = await login()
  while (clock.ms + 5 * DAY_MS < endMs) {
    clock.ms += 5 * DAY_MS
    grant = await sessions.refresh(grant.refreshToken)
  }
  t.equal(tokens.verifyRefresh(grant.refreshToken).exp * 1000, endMs)
  clock.ms = endMs - 1_000
  grant = await sessions.refresh(grant.refreshToken)
  t.equal(tokens.verifyAccess(grant.accessToken).exp * 1000, endMs)
  clock.ms = endMs
  t.throws(() => sessions.authenticate(grant.accessToken), { code: 'token_expired' })
  await t.rejects(sessions.refresh(grant.refreshToken), badRefresh)
})

void test('a session that was stored before sessions had an end goes on until its token expires', async (t) => {
  const { sessions, login, familyEntities, clock } = await setUp(t)
  const { refreshToken, accessToken } = await login()
  const [stored] = familyEntities.list()
  if (stored === undefined) throw new Error('bug: a login stores a session')
  const { endsAtMs: _, epoch: __, ...old } = stored
  await familyEntities.put(old.id, old)
  t.ok(sessions.authenticate(accessToken))
  clock.ms += DAY_MS
  const next = await sessions.refresh(refreshToken)
  t.ok(sessions.authenticate(next.accessToken))
  clock.ms = old.expiresAtMs
  await t.rejects(sessions.refresh(next.refreshToken), badRefresh)
})

void test('missing and inactive users have another error than bad tokens', async (t) => {
  const { sessions, users, ann, login } = await setUp(t)
  const grant = await login()
  const used = await login()
  await sessions.refresh(used.refreshToken)
  await users.patch(root, ann.id, { isActive: false })
  const invalidUser = { code: 'invalid_user', status: 401 }
  await t.rejects(sessions.refresh(grant.refreshToken), invalidUser)
  await t.rejects(sessions.refresh(used.refreshToken), invalidUser, 'the user is checked first')
  await users.patch(root, ann.id, { isActive: true })
  await t.rejects(sessions.refresh(grant.refreshToken), badRefresh, 'disabling ended the family')
  await users.remove(root, ann.id)
  await t.rejects(sessions.refresh(grant.refreshToken), invalidUser)
})

void test('an access token does not refresh, nor does an expired token', async (t) => {
  const { sessions, login, clock } = await setUp(t)
  const grant = await login()
  await t.rejects(sessions.refresh(grant.accessToken), badRefresh)
  await t.rejects(sessions.refresh('nonsense'), badRefresh)
  clock.ms += 604_800_000
  await t.rejects(sessions.refresh(grant.refreshToken), badRefresh)
  t.throws(() => sessions.authenticate(grant.accessToken), { code: 'token_expired' })
})

void test('a refresh token lives on for its lifetime from each refresh', async (t) => {
  const { sessions, login, clock } = await setUp(t)
  let { refreshToken } = await login()
  for (let day = 0; day < 20; day += 5) {
    clock.ms += 5 * DAY_MS
    refreshToken = (await sessions.refresh(refreshToken)).refreshToken
  }
  t.ok(refreshToken)
})

void test('a user has a thousand logins at most; the oldest gives way', async (t) => {
  const { sessions, login, clock, familyEntities } = await setUp(t)
  const grants = []
  for (let i = 0; i < 1_002; i++) {
    clock.ms += 1_000
    grants.push(await login())
  }
  t.equal(familyEntities.list().length, 1_000)
  await t.rejects(sessions.refresh(grants[1]?.refreshToken ?? ''), badRefresh)
  t.ok(await sessions.refresh(grants[2]?.refreshToken ?? ''))
})

void test('expired families are swept away', async (t) => {
  const { login, clock, familyEntities } = await setUp(t)
  for (let i = 0; i < 3; i++) await login()
  clock.ms += 604_800_001
  await login()
  t.equal(familyEntities.list().length, 1)
})

void test('a token outlives a restart, and so does the knowledge that it was used', async (t) => {
  const first = await setUp(t)
  const unused = await first.login()
  const used = await first.login()
  const next = await first.sessions.refresh(used.refreshToken)

  const families = createFamilies(first.familyEntities.copy(), () => first.clock.ms)
  const second = await setUp(t, { userEntities: first.userEntities.copy(), families })
  t.ok(await second.sessions.refresh(unused.refreshToken))
  await t.rejects(second.sessions.refresh(used.refreshToken), badRefresh)
  await t.rejects(second.sessions.refresh(next.refreshToken), badRefresh, 'reuse ended the family')
})

void test('each refresh token works once', async (t) => {
  const { sessions, login, ann } = await setUp(t)
  const first = await login()
  const second = await sessions.refresh(first.refreshToken)
  t.not(second.refreshToken, first.refreshToken)
  t.match(sessions.authenticate(second.accessToken), { userId: ann.id })
  const third = await sessions.refresh(second.refreshToken)
  t.ok(third.refreshToken)
})

void test('a reused token ends its family, and no other', async (t) => {
  const { sessions, login } = await setUp(t)
  const other = await login()
  const first = await login()
  const second = await sessions.refresh(first.refreshToken)
  await t.rejects(sessions.refresh(first.refreshToken), badRefresh)
  await t.rejects(sessions.refresh(second.refreshToken), badRefresh)
  t.ok(await sessions.refresh(other.refreshToken))
})

void test('of many refreshes at once one wins, and it lives on', async (t) => {
  const { sessions, login } = await setUp(t)
  const { refreshToken } = await login()
  const all = Array.from({ length: 20 }, () => sessions.refresh(refreshToken))
  const won = (await Promise.allSettled(all)).filter((r) => r.status === 'fulfilled')
  t.equal(won.length, 1)
  for (const { value } of won) t.ok(await sessions.refresh(value.refreshToken))
})

void test('one of two instances wins a race for the same token', async (t) => {
  const families = createFamilies(memoryEntities<Family>(), () => 1_700_000_000_000)
  const one = await setUp(t, { families })
  const two = await setUp(t, { families, userEntities: one.userEntities })
  const { refreshToken } = await one.login()
  const both = [one, two].map(({ sessions }) => sessions.refresh(refreshToken))
  const won = (await Promise.allSettled(both)).filter((r) => r.status === 'fulfilled')
  t.equal(won.length, 1)
})

void test('logging out ends the family by either token', async (t) => {
  const { sessions, login } = await setUp(t)
  for (const which of ['accessToken', 'refreshToken'] as const) {
    const [grant, other] = [await login(), await login()]
    await sessions.logout(['', 'nonsense', grant[which]])
    await t.rejects(sessions.refresh(grant.refreshToken), badRefresh)
    t.ok(await sessions.refresh(other.refreshToken))
  }
})
