import { createApi } from '../../src/api/api.js'
import { ACCESS_COOKIE, accessTokenOf } from '../../src/api/auth/credentials.js'
import { createFamilies, type Family } from '../../src/api/auth/families.js'
import { createIngestKeys, type IngestKey } from '../../src/api/auth/ingest-keys.js'
import { createGuesses } from '../../src/api/auth/guesses.js'
import { createLimiter, toRateLimits } from '../../src/api/auth/limits.js'
import { createPasswords } from '../../src/api/auth/passwords.js'
import type { Role } from '../../src/model/roles.js'
import { createSecondFactors } from '../../src/api/auth/second-factor.js'
import { createSessions } from '../../src/api/auth/sessions.js'
import { createTokens } from '../../src/api/auth/tokens.js'
import type { User } from '../../src/api/auth/user.js'
import { createUsers } from '../../src/api/auth/users.js'
import { cursorKey } from '../../src/records/cursor.js'
import { authRoutes } from '../../src/api/routes/auth.js'
import { ingestKeyRoutes } from '../../src/api/routes/ingest-keys.js'
import { secondFactorRoutes } from '../../src/api/routes/second-factor.js'
import { sessionRoutes } from '../../src/api/routes/sessions.js'
import { userRoutes } from '../../src/api/routes/users.js'
import { createInProcessState } from '../../src/coordination/memory-state.js'
import { createSeal } from '../../src/coordination/seal.js'
import { AppError } from '../../src/model/errors.js'
import { createSavedViews, type SavedView } from '../../src/records/saved-views.js'
import type { Source } from '../../src/records/sources.js'
import type { State } from '../../src/coordination/state.js'
import { fakeServices } from './api.js'
import { startServer, uws } from './http.js'
import { memoryEntities } from './entities.js'
import { memoryRecords } from './records.js'

export const JWT_SECRET = 'a secret of more than thirty-two characters'
export const PASSWORD = 'good password'

interface Test {
  teardown(end: () => Promise<void>): void
}

interface Parts {
  readonly state?: State
  readonly users?: ReturnType<typeof memoryEntities<User>>
  readonly limit?: number
  /** Codes of an app, for each user. */
  readonly codes?: number
  readonly secondFactorFrom?: Role
  readonly failures?: { readonly count: number; readonly seconds: number }
}

const throwIt = (error: unknown): never => {
  throw error
}
const anyLimit = (count: number) => ({ count, seconds: 60 })

/** The routes of auth, users and ingest keys on a server of their own; one user of each role. */
export async function startAuthServer(t: Test, parts: Parts = {}) {
  /** Of the second factors. */
  const clock = { ms: Date.now() }
  const state = parts.state ?? createInProcessState({ onError: throwIt })
  const passwords = createPasswords({ memoryKib: 64 })
  const entities = parts.users ?? memoryEntities<User>()
  const users = createUsers({ entities, passwords, withLock: state.withLock })
  const families = createFamilies(memoryEntities<Family>())
  const lifetimes = { accessSeconds: 3_600, refreshSeconds: 604_800 }
  const tokens = createTokens({ secret: JWT_SECRET, ...lifetimes })
  const limits = anyLimit(parts.limit ?? 1_000)
  const limiter = createLimiter(
    state,
    toRateLimits({
      loginLimit: limits,
      secondFactorLimit: anyLimit(parts.codes ?? 1_000),
      refreshLimit: limits,
      sourceCreateLimit: limits,
      clearAllLimit: limits,
      apiTokenLimit: limits,
      wsLimiter: limits,
    }),
    createInProcessState({ onError: () => undefined }),
  )
  const intrusions: string[] = []
  const secondFactors = createSecondFactors({
    entities,
    passwords,
    seal: createSeal('a key for tests'),
    consume: (userId) => limiter.consume('second_factor_limit', { userId, address: '' }),
    onWrong: () => void intrusions.push('second_factor'),
    nowMs: () => clock.ms,
  })
  const sessions = createSessions({
    users,
    families,
    tokens,
    passwords,
    secondFactors,
    sessionSeconds: 2_592_000,
    secondFactorFrom: parts.secondFactorFrom ?? null,
  })
  const guesses = createGuesses({
    onWrong: () => void intrusions.push('password'),
    state,
    limit: parts.failures ?? { count: 1_000, seconds: 86_400 },
    passwordHashOf: (email) => users.findByEmail(email)?.passwordHash ?? '',
  })
  const services = {
    guesses,
    intrusions: {
      note: (kind: string, { actorId = '' }) => void intrusions.push(`${kind} ${actorId}`),
    },
    sessions,
    secondFactors,
    users,
    savedViews: createSavedViews(memoryRecords<SavedView>()),
    limiter,
    collectorPort: null,
    cookies: { secure: true, sameSite: 'Strict', ...lifetimes } as const,
    cursorKey: cursorKey(JWT_SECRET),
    ingestKeys: createIngestKeys({
      entities: memoryEntities<IngestKey>(),
      withLock: (_key, _ttlMs, work) => work(),
      onError: throwIt,
    }),
    sources: registeredSources(),
    announce: () => undefined,
  }
  const routes = createApi({
    uws,
    routes: [
      ...authRoutes,
      ...sessionRoutes,
      ...secondFactorRoutes,
      ...userRoutes,
      ...ingestKeyRoutes,
    ],
    services: fakeServices(services),
    authenticate: ({ headers, cookies }) => {
      const { token, via } = accessTokenOf({
        authorization: headers.first('authorization') ?? '',
        cookie: () => cookies.get(ACCESS_COOKIE) ?? '',
      })
      return { ...sessions.authenticate(token), via }
    },
    consume: limiter.consume,
    mayUseCookies: () => true,
    checkReplies: true,
  })
  const { url } = startServer(t, { routes })
  const first = await users.ensureFirstAdmin({
    email: 'superadmin@example.com',
    password: PASSWORD,
  })
  const root = { userId: first?.user.id ?? '', role: 'superadmin' } as const
  if (first !== null) {
    for (const role of ['viewer', 'manager', 'admin'] as const)
      await users.create(root, { email: `${role}@example.com`, password: PASSWORD, role })
  }
  return { url, clock, services, tokens, root, intrusions, call: createCall(url), as: asRole(url) }
}

/** A register of sources that refuses a second one of the same name, a tick later. */
function registeredSources() {
  const byName = new Map<string, Source>()
  return {
    list: () => [...byName.values()],
    get: (name: string) => byName.get(name),
    create: async (source: Omit<Source, 'enabled' | 'createdAtMs'>): Promise<Source> => {
      await Promise.resolve()
      if (byName.has(source.name)) throw new AppError('source_already_exists', 'taken')
      const created = { ...source, enabled: true, createdAtMs: 0 }
      byName.set(source.name, created)
      return created
    },
    change: () => Promise.reject(new Error('no source is changed')),
  }
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
  /** The value and the attributes of each cookie, by name. */
  readonly cookies: Readonly<Record<string, string>>
}

interface CallOptions {
  readonly token?: string
  readonly cookie?: string
  readonly json?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export type Call = (request: string, options?: CallOptions) => Promise<Answer>

/** For example `call('POST /path', { json })`. */
function createCall(url: string): Call {
  return async (request, { token, cookie, json, headers = {} } = {}) => {
    const [method = '', path = ''] = request.split(' ')
    const reply = await fetch(url + path, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(cookie === undefined ? {} : { cookie }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    })
    const text = await reply.text()
    const cookies = reply.headers.getSetCookie().map((each): [string, string] => {
      const at = each.indexOf('=')
      return [each.slice(0, at), each.slice(at + 1)]
    })
    return {
      status: reply.status,
      headers: reply.headers,
      body: text === '' ? {} : JSON.parse(text),
      cookies: Object.fromEntries(cookies),
    }
  }
}

/** Logs in as the user of a role and gives a `call` with its access token. */
function asRole(url: string) {
  return async (role: Role): Promise<Call> => {
    const call = createCall(url)
    const json = { email: `${role}@example.com`, password: PASSWORD }
    const { body } = await call('POST /api/auth/login', { json })
    const token = String(body['access_token'])
    return (request, options) => call(request, { token, ...options })
  }
}
