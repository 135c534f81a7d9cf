import tap, { test } from 'tap'
import { createFamilies, FamilyDoc } from '../../../src/api/auth/families.js'
import { createIngestKeys, IngestKeyDoc } from '../../../src/api/auth/ingest-keys.js'
import { createLimiter, toRateLimits } from '../../../src/api/auth/limits.js'
import { createPasswords } from '../../../src/api/auth/passwords.js'
import { createSecondFactors } from '../../../src/api/auth/second-factor.js'
import { createSessions } from '../../../src/api/auth/sessions.js'
import { createTokens } from '../../../src/api/auth/tokens.js'
import { UserDoc } from '../../../src/api/auth/user.js'
import { createUsers } from '../../../src/api/auth/users.js'
import { createSeal } from '../../../src/coordination/seal.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { createRedisState } from '../../../src/coordination/redis-state.js'
import type { State } from '../../../src/coordination/state.js'
import type { Store } from '../../../src/clickhouse/client.js'
import { createEntities } from '../../../src/coordination/entities.js'
import { migrate } from '../../../src/clickhouse/migrate.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'
import { startRedis } from '../../support/redis.js'

const unexpected = (error: unknown): never => {
  throw error
}
const root = { userId: 'root', role: 'superadmin' } as const
const email = 'ann@example.com'
const password = 'good password'
const badRefresh = { code: 'invalid_refresh_token' }

const server = await startTestServer()
tap.teardown(() => server.stop())
const passwords = createPasswords({ memoryKib: 64, maxWaiting: 1_000 })

async function newDatabase(): Promise<Store> {
  const { store, drop } = await createTestDatabase(server)
  tap.teardown(drop)
  await migrate(store, { numbers: { rollup_days: 121 }, log: quietLog })
  return store
}

/** One instance of the service, as far as accounts go. */
async function start(store: Store, state: State) {
  const isShared = state.kind === 'redis'
  const entities = await createEntities(store, {
    log: quietLog,
    ...(isShared
      ? {
          exclusive: <T>(key: string, work: () => Promise<T>) =>
            state.withLock(key, 10_000, () => work()),
        }
      : {}),
  })
  const records = entities.collection('user', UserDoc)
  const withLock = <T>(key: string, ttlMs: number, work: () => Promise<T>): Promise<T> =>
    state.withLock(key, ttlMs, async () => {
      if (isShared) await entities.catchUp()
      return await work()
    })
  const users = createUsers({
    entities: records,
    passwords,
    withLock,
  })
  const families = createFamilies(entities.collection('session', FamilyDoc))
  const tokens = createTokens({
    secret: 'a secret of more than thirty-two characters',
    accessSeconds: 60,
    refreshSeconds: 600,
  })
  const ingestKeys = createIngestKeys({
    entities: entities.collection('ingest_key', IngestKeyDoc),
    withLock,
    onError: unexpected,
  })
  const secondFactors = createSecondFactors({
    entities: records,
    passwords,
    seal: createSeal('the key of both instances'),
    consume: async () => undefined,
    onWrong: () => undefined,
  })
  const sessions = createSessions({
    users,
    families,
    tokens,
    passwords,
    secondFactors,
    sessionSeconds: 2_592_000,
  })
  return { users, sessions, secondFactors, ingestKeys, entities }
}

const inProcess = () => createInProcessState({ onError: unexpected })

void test('logins, users and ingest keys are the same after a restart', async (t) => {
  const store = await newDatabase()
  const first = await start(store, inProcess())
  const ann = await first.users.create(root, { email, password })
  const unused = await first.sessions.login(email, password)
  const used = await first.sessions.login(email, password)
  const ended = await first.sessions.login(email, password)
  const next = await first.sessions.refresh(used.refreshToken)
  await first.sessions.logout([ended.refreshToken])
  const { key } = await first.ingestKeys.create({
    name: 'k',
    sources: ['web'],
    autoRegister: true,
    defaultSource: 'web',
  })
  await first.entities.idle()

  const second = await start(store, inProcess())
  t.same(second.users.get(ann.id), first.users.get(ann.id))
  t.match(second.sessions.authenticate(unused.accessToken), { userId: ann.id })
  t.ok(await second.sessions.refresh(unused.refreshToken), 'never used: still good')
  await t.rejects(second.sessions.refresh(ended.refreshToken), badRefresh, 'logged out: still out')
  await t.rejects(second.sessions.refresh(used.refreshToken), badRefresh, 'used before the restart')
  await t.rejects(
    second.sessions.refresh(next.refreshToken),
    badRefresh,
    'its reuse ended the family',
  )
  t.match(second.ingestKeys.verify(key), { name: 'k', sources: ['web'] })
  await second.entities.idle()
})

void test('many refreshes at once with the real store: one wins', async (t) => {
  const { users, sessions } = await start(await newDatabase(), inProcess())
  await users.create(root, { email, password })
  const { refreshToken } = await sessions.login(email, password)
  const all = Array.from({ length: 10 }, () => sessions.refresh(refreshToken))
  t.equal((await Promise.allSettled(all)).filter((r) => r.status === 'fulfilled').length, 1)
})

const redis = await startRedis()
const skip = redis === null ? { skip: 'redis-server is not installed' } : {}
const url = redis?.url ?? ''
const open: State[] = []
const connect = async (): Promise<State> => {
  const state = await createRedisState({ url, keyPrefix: 'test:', onError: () => undefined })
  open.push(state)
  return state
}
tap.teardown(async () => {
  await Promise.all(open.map((state) => state.close()))
  await redis?.kill()
})

void test('two instances on one Redis and one database', skip, async (t) => {
  const store = await newDatabase()
  const [one, two] = [await start(store, await connect()), await start(store, await connect())]

  const emails = Array.from({ length: 6 }, (_, i) => (i % 2 ? email : email.toUpperCase()))
  const made = await Promise.allSettled(
    emails.map((each, i) => (i < 3 ? one : two).users.create(root, { email: each, password })),
  )
  t.equal(made.filter((r) => r.status === 'fulfilled').length, 1, 'one e-mail, one user')

  const other = { email: 'bob@example.com', password, role: 'superadmin' } as const
  const bob = await two.users.create(root, other)
  const eve = await one.users.create(root, { ...other, email: 'eve@example.com' })
  const left = await Promise.allSettled([
    one.users.remove(root, bob.id),
    two.users.remove(root, eve.id),
  ])
  t.equal(left.filter((r) => r.status === 'fulfilled').length, 1, 'one superadmin stays')

  const grant = await one.sessions.login(email, password)
  const next = await two.sessions.refresh(grant.refreshToken)
  const race = [one, two].map(({ sessions }) => sessions.refresh(next.refreshToken))
  const won = (await Promise.allSettled(race)).filter((r) => r.status === 'fulfilled')
  t.equal(won.length, 1, 'a token that both get is good once')
  await t.rejects(one.sessions.refresh(grant.refreshToken), badRefresh)

  const session = await one.sessions.login(email, password)
  await two.entities.catchUp()
  t.ok(two.sessions.authenticate(session.accessToken), 'a session of one is one of the other')
  await two.sessions.logout([session.accessToken])
  await one.entities.catchUp()
  t.throws(() => one.sessions.authenticate(session.accessToken), { code: 'unauthorized' })
})

void test('two instances on one Redis count a limit together', skip, async (t) => {
  const limit = { count: 10, seconds: 60 }
  const limits = toRateLimits({
    loginLimit: limit,
    secondFactorLimit: limit,
    refreshLimit: limit,
    sourceCreateLimit: limit,
    clearAllLimit: limit,
    apiTokenLimit: limit,
    wsLimiter: limit,
  })
  const states = [await connect(), await connect()]
  const limiters = states.map((state) => createLimiter(state, limits, state))
  const subject = { address: '10.0.0.1', email }
  const all = await Promise.allSettled(
    Array.from({ length: 20 }, () => limiters)
      .flat()
      .map((limiter) => limiter.consume('login_account_limit', subject)),
  )
  t.equal(all.filter((r) => r.status === 'fulfilled').length, 10)
  for (const r of all) {
    if (r.status === 'rejected') t.match(r.reason, { code: 'rate_limited' })
  }
})

void test('without Redis logins are closed, and access tokens go on', skip, async (t) => {
  const store = await newDatabase()
  const state = await connect()
  const { users, sessions } = await start(store, state)
  await users.create(root, { email, password })
  const grant = await sessions.login(email, password)
  await redis?.kill()
  const unavailable = { code: 'dependency_unavailable' }
  await t.rejects(sessions.login(email, password), unavailable)
  await t.rejects(sessions.refresh(grant.refreshToken), unavailable)
  t.ok(sessions.authenticate(grant.accessToken))
  await redis?.start()
  await new Promise<void>((resolve) => {
    state.onStatus((status) => {
      if (status === 'ok') resolve()
    })
  })
  t.ok(await sessions.login(email, password), 'logins work again')
  t.ok(await sessions.refresh(grant.refreshToken), 'an emptied Redis ends no login')
})
