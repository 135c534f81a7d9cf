import { createDurableFamilies, createSharedFamilies, FamilyDoc } from './families.js'
import { createIngestKeys, IngestKeyDoc, type IngestKeys } from './ingest-keys.js'
import { createPasswords } from './passwords.js'
import { createSessions, type Sessions } from './sessions.js'
import { createTokens, type Tokens } from './tokens.js'
import { UserDoc, type User } from './user.js'
import { createUsers, type Users } from './users.js'
import type { Config } from '../../config.js'
import type { Log } from '../../telemetry/log.js'
import type { WithLock } from '../../coordination/lock.js'
import type { Entities } from '../../coordination/entities.js'
import type { State } from '../../coordination/state.js'
import { DAY_S } from '../../model/time.js'

export interface Accounts {
  readonly users: Users
  readonly sessions: Sessions
  readonly tokens: Tokens
  readonly ingestKeys: IngestKeys
  /** Calls `listener` with each user who is disabled or deleted. */
  onUserChanged(listener: (userId: string) => void): void
  /** What the first start created, to be printed once: it cannot be read again. */
  readonly made: {
    readonly admin: { readonly email: string; readonly password: string | null } | null
    readonly ingestKey: string | null
  }
}

interface AccountStorage {
  readonly entities: Entities
  readonly state: State
  readonly withLock: WithLock
}

/** Opens users, logins and ingest keys, and creates the first of each. */
export async function openAccounts(
  config: Config,
  { entities, state, withLock }: AccountStorage,
  jwtSecret: string,
  log: Log,
): Promise<Accounts> {
  const passwords = createPasswords()
  const records = entities.collection<User>('user', UserDoc)
  const users = createUsers({
    entities: records,
    passwords,
    withLock,
  })
  const tokens = createTokens({
    secret: jwtSecret,
    accessSeconds: config.accessTokenExpireMinutes * 60,
    refreshSeconds: config.refreshTokenExpireDays * DAY_S,
  })
  // Instances that share Redis share logins there; a single instance keeps them in the database.
  const families =
    state.kind === 'redis'
      ? createSharedFamilies(state)
      : createDurableFamilies(entities.collection('session', FamilyDoc))
  const ingestKeys = createIngestKeys({
    entities: entities.collection('ingest_key', IngestKeyDoc),
    withLock,
    onError: (error) => log.warn({ err: error }, 'the last use of an ingest key was not stored'),
  })
  const { adminEmail: email, adminPassword: password } = config
  // An instance without an API port needs no users.
  const admin =
    config.role === 'collector' ? null : await users.ensureFirstAdmin({ email, password })
  const key = await ingestKeys.ensureFirst(config.ingestKey)
  return {
    users,
    sessions: createSessions({ users, families, tokens, passwords }),
    tokens,
    ingestKeys,
    onUserChanged: (listener) => {
      records.onChange(({ id, value }) => {
        if (value === null || !value.isActive) listener(id)
      })
    },
    made: {
      admin: admin === null ? null : { email: admin.user.email, password: admin.generated },
      ingestKey: key?.key ?? null,
    },
  }
}
