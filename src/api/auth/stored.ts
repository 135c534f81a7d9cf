import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Family } from './families.js'
import type { IngestKey } from './ingest-keys.js'
import { ROLES } from './roles.js'
import type { User } from './users.js'

const OptionalMoment = Type.Union([Type.Number(), Type.Null()])

const StoredUser = Type.Object({
  id: Type.String(),
  email: Type.String(),
  role: Type.Union(ROLES.map((role) => Type.Literal(role))),
  isActive: Type.Boolean(),
  passwordHash: Type.String(),
  tokenEpoch: Type.Integer(),
  createdAtMs: Type.Number(),
  lastLoginAtMs: OptionalMoment,
})

const StoredFamily = Type.Object({
  id: Type.String(),
  userId: Type.String(),
  jti: Type.String(),
  expiresAtMs: Type.Number(),
})

const StoredIngestKey = Type.Object({
  id: Type.String(),
  name: Type.String(),
  prefix: Type.String(),
  hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  sources: Type.Union([Type.Array(Type.String()), Type.Null()]),
  autoRegister: Type.Boolean(),
  createdAtMs: Type.Number(),
  lastUsedAtMs: OptionalMoment,
})

/** @throws TypeError when a stored document is not a user; so do the others */
export const parseUser = (doc: unknown): User => parse(StoredUser, doc)
export const parseFamily = (doc: unknown): Family => parse(StoredFamily, doc)
export const parseIngestKey = (doc: unknown): IngestKey => parse(StoredIngestKey, doc)

function parse<S extends TSchema>(schema: S, doc: unknown): Static<S> {
  if (Value.Check(schema, doc)) return doc
  const first = Value.Errors(schema, doc).First()
  throw new TypeError(`${first?.path ?? ''}: ${first?.message ?? 'not of its shape'}`)
}
