import {
  ApiTokenDoc,
  createApiTokens,
  isApiToken,
  MAX_API_TOKENS,
  type ApiToken,
  type ApiTokens,
} from './api-tokens.js'
import type { CookieSettings } from './credentials.js'
import { createFamilies, FamilyDoc, type Family } from './families.js'
import { createGuesses, type Guesses } from './guesses.js'
import { createLimiter, toRateLimits, type Limiter } from './limits.js'
import { createIngestKeys, IngestKeyDoc, type IngestKeys } from './ingest-keys.js'
import { openMailer, type Mailer } from './mailer.js'
import { codeReused, loginFromNewAddress, noticesOfChange } from './notices.js'
import { createOidc, type Oidc } from './oidc.js'
import { createOutsideUsers, type OutsideUsers } from './outside-users.js'
import { createPasswords, passwordFault, type Passwords } from './passwords.js'
import { createSecondFactors, type SecondFactors } from './second-factor.js'
import { createSessions, type Principal, type Session, type Sessions } from './sessions.js'
import { createTokens, type Tokens } from './tokens.js'
import { isLocalSuperadmin, UserDoc, type User } from './user.js'
import { createUsers, type Users } from './users.js'
import type { Config } from '../../config.js'
import { ConfigError } from '../../settings/setting.js'
import { CHANGED_KEY_HINT, type Seal } from '../../coordination/seal.js'
import type { Log } from '../../telemetry/log.js'
import type { Instance } from '../../coordination/instance.js'
import type { Bound } from '../../coordination/bound.js'
import type { Collection } from '../../coordination/collection.js'
import { DAY_S, HOUR_S } from '../../model/time.js'

export interface Accounts {
  readonly users: Users
  readonly sessions: Sessions
  readonly secondFactors: SecondFactors
  readonly tokens: Tokens
  readonly ingestKeys: IngestKeys
  readonly apiTokens: ApiTokens
  readonly outsideUsers: OutsideUsers
  readonly limiter: Limiter
  readonly guesses: Guesses
  readonly oidc: Oidc
  /** Whether every local user may log in with a password. */
  readonly hasPasswordLogin: boolean
  readonly cookies: CookieSettings
  /** Returns the user of an access token or API token. @throws AppError unauthorized, token_expired */
  readonly authenticate: (token: string) => Principal
  /** Whether a session or an API token is still valid. */
  readonly isAlive: (caller: Session) => boolean
  /** Calls `listener` with each user of whom a session may have ended, and with each API token that was deleted. */
  onSessionEnded(listener: (userId: string) => void): void
  /** What the first start created, to be printed once: it cannot be read again. */
  readonly made: {
    readonly admin: { readonly email: string; readonly password: string | null } | null
    readonly ingestKey: string | null
  }
  close(): void
}

interface AccountDeps extends Pick<
  Instance,
  'config' | 'log' | 'metrics' | 'entities' | 'withLock' | 'state' | 'alone'
> {
  /** Signs the tokens of sessions. */
  readonly jwtSecret: string
  /** Encrypts the keys of second factors. */
  readonly seal: Seal
}

/** What every login works with. */
interface Guarded extends AccountDeps {
  readonly limiter: Limiter
  /** Null when users are not told of changes by e-mail. */
  readonly mailer: Mailer | null
}

/** Opens users, sessions and ingest keys, and creates the first user and key. */
export async function openAccounts(parts: AccountDeps): Promise<Accounts> {
  const { config, entities, withLock, jwtSecret, log } = parts
  const { passwordLoginOnly: keptEmail } = config
  const limiter = createLimiter(parts.state, toRateLimits(config), parts.alone)
  const mailer = openMailer(config, log)
  const deps = { ...parts, limiter, mailer }
  const passwords = createPasswords()
  const records = entities.collection<User>('user', UserDoc, boundOfUsers(config))
  const users = createUsers({
    entities: records,
    passwords,
    withLock,
    keptEmail,
    temporaryMs: config.temporaryPasswordHours * HOUR_S * 1000,
  })
  const secondFactors = openSecondFactors(records, passwords, deps)
  warnOfUnreadable(secondFactors, log)
  tellOfChanges(records, mailer)
  const tokens = createTokens({
    secret: jwtSecret,
    accessSeconds: config.accessTokenExpireMinutes * 60,
    refreshSeconds: config.refreshTokenExpireDays * DAY_S,
  })
  const families = entities.collection('session', FamilyDoc)
  const storedTokens = entities.collection('api_token', ApiTokenDoc, {
    most: MAX_API_TOKENS,
    nouns: 'API tokens',
  })
  const { ingestKeys, apiTokens } = openKeys(storedTokens, deps)
  const sessions = createSessions({
    users,
    secondFactors,
    families: createFamilies(families),
    tokens,
    passwords,
    sessionSeconds: config.sessionExpireHours * HOUR_S,
    secondFactorFrom: SECOND_FACTOR_FROM[config.requireSecondFactor],
    onlyPasswordOf: keptEmail,
  })
  const admin = await firstAdmin(config, users, log)
  const key = await ingestKeys.ensureFirst(config.ingestKey)
  return {
    users,
    secondFactors,
    sessions,
    tokens,
    ingestKeys,
    apiTokens,
    outsideUsers: createOutsideUsers({ entities: records, withLock, keptEmail, log }),
    limiter,
    ...openLogins(users, deps),
    ...callers({ sessions, apiTokens }),
    onSessionEnded: watchSessions(records, families, storedTokens),
    made: {
      admin: admin === null ? null : { email: admin.user.email, password: admin.generated },
      ingestKey: key?.key ?? null,
    },
    close: () => mailer?.close(),
  }
}

/** Users of a provider count for it, others for the user who created them. */
const boundOfUsers = ({ usersPerCreator }: Config): Bound<User> => ({
  most: usersPerCreator,
  nouns: 'users of one creator',
  setting: 'USERS_PER_CREATOR',
  ownerOf: ({ identity, createdBy = '' }) => identity?.provider ?? createdBy,
})

const openKeys = (
  storedTokens: Collection<ApiToken>,
  { config, entities, withLock, log }: AccountDeps,
): Pick<Accounts, 'ingestKeys' | 'apiTokens'> => ({
  ingestKeys: createIngestKeys({
    entities: entities.collection('ingest_key', IngestKeyDoc, {
      most: config.ingestKeysPerCreator,
      nouns: 'ingest keys of yours',
      setting: 'INGEST_KEYS_PER_CREATOR',
      ownerOf: ({ createdBy = '' }) => createdBy,
    }),
    withLock,
    onError: (error) => log.warn({ err: error }, 'the last use of an ingest key was not stored'),
  }),
  apiTokens: createApiTokens({
    entities: storedTokens,
    onError: (error) => log.warn({ err: error }, 'the last use of an API token was not stored'),
  }),
})

const openSecondFactors = (
  entities: Collection<User>,
  passwords: Passwords,
  { seal, limiter, metrics, mailer }: Guarded,
): SecondFactors =>
  createSecondFactors({
    entities,
    passwords,
    seal,
    consume: (userId) => limiter.consume('second_factor_limit', { userId, address: '' }),
    onWrong: ({ email: to }, code) => {
      metrics.credentialRefused('second_factor')
      if (code === 'code_reused') mailer?.send(codeReused(to))
    },
  })

function warnOfUnreadable(secondFactors: SecondFactors, log: Log): void {
  const users = secondFactors.unreadable()
  if (users.length > 0)
    log.error(
      { count: users.length, users: users.slice(0, 20) },
      `second factors were encrypted with another DATA_KEY, and codes of their apps do not work: ${CHANGED_KEY_HINT}, or ` +
        'remove them (npm run reset-second-factor); recovery codes work',
    )
}

const openLogins = (
  users: Users,
  { config, state, metrics, mailer, ...deps }: Guarded,
): Pick<Accounts, 'guesses' | 'oidc' | 'hasPasswordLogin' | 'cookies'> => ({
  guesses: createGuesses({
    state,
    limit: config.loginFailures,
    passwordHashOf: (email) => users.findByEmail(email)?.passwordHash ?? '',
    onWrong: () => metrics.credentialRefused('password'),
    onNewAddress: ({ email, address }) => {
      const user = users.findByEmail(email)
      if (user !== null) mailer?.send(loginFromNewAddress(user.email, address))
    },
  }),
  oidc: createOidc({
    ...deps,
    state,
    providers: config.oidcProviders,
    publicUrl: config.publicUrl,
  }),
  hasPasswordLogin: config.passwordLoginOnly === '',
  cookies: {
    secure: config.cookieSecure,
    sameSite: config.cookieSamesite,
    accessSeconds: config.accessTokenExpireMinutes * 60,
    refreshSeconds: config.refreshTokenExpireDays * DAY_S,
  },
})

/** Sends the e-mails about changes of users. Only the instance that makes a change does so. */
function tellOfChanges(users: Collection<User>, mailer: Mailer | null): void {
  users.onChange((change) => {
    if (change.origin === 'local')
      for (const notice of noticesOfChange(change)) mailer?.send(notice)
  })
}

async function firstAdmin(
  config: Config,
  users: Users,
  log: Log,
): ReturnType<Users['ensureFirstAdmin']> {
  const { role, nodeEnv, adminEmail: email, adminPassword: password } = config
  const { passwordLoginOnly: keptEmail } = config
  if (password !== null && users.list().length === 0) await checkAdminPassword(config, log)
  // An instance without an API port needs no users.
  if (role === 'collector') return null
  const isTemporary = password === null && nodeEnv === 'production'
  const first = await users.ensureFirstAdmin({ email, password, isTemporary })
  if (
    keptEmail !== '' &&
    !users.list().some((user) => user.email === keptEmail && isLocalSuperadmin(user))
  )
    log.warn(
      {},
      'PASSWORD_LOGIN_ONLY names no local superadmin: nobody can log in while the providers are away',
    )
  return first
}

const SECOND_FACTOR_FROM = { none: null, admins: 'admin', all: 'viewer' } as const

const callers = ({
  sessions,
  apiTokens,
}: Pick<Accounts, 'sessions' | 'apiTokens'>): Pick<Accounts, 'authenticate' | 'isAlive'> => ({
  authenticate: (token) =>
    isApiToken(token) ? apiTokens.authenticate(token) : sessions.authenticate(token),
  isAlive: (caller) =>
    caller.family === '' ? apiTokens.isAlive(caller.userId) : sessions.isAlive(caller),
})

const watchSessions =
  (
    users: Collection<User>,
    families: Collection<Family>,
    apiTokens: Collection<ApiToken>,
  ): Accounts['onSessionEnded'] =>
  (listener) => {
    users.onChange(({ id, value, previous }) => {
      if (value?.isActive !== true || value.sessionEpoch !== previous?.sessionEpoch) listener(id)
    })
    families.onChange(({ value, previous }) => {
      if (value === null && previous !== null) listener(previous.userId)
    })
    apiTokens.onChange(({ id, value }) => {
      if (value === null) listener(id)
    })
  }

/** A trial may have a short password. @throws ConfigError in production */
async function checkAdminPassword(config: Config, log: Log): Promise<void> {
  const { adminEmail, adminPassword, nodeEnv } = config
  const fault = await passwordFault(adminPassword ?? '', adminEmail)
  if (fault === null) return
  if (nodeEnv === 'production') throw new ConfigError(`ADMIN_PASSWORD ${fault}`)
  log.warn({}, `ADMIN_PASSWORD ${fault}; production refuses it`)
}
