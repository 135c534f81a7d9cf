/*
 * API tokens, with which scripts and dashboards call the API. A token is an account of its own with
 * a role, optionally with an expiry or limited to some sources; it outlives the user who created
 * it. It has no session and no password, and cannot create users or tokens, because these would
 * outlive its revocation. A token that is limited to sources is a viewer, and may call only routes
 * that enforce the limit.
 */

import { Type, type Static } from '@sinclair/typebox'
import { AppError } from '../../model/errors.js'
import { ReadonlyTexts, RoleSchema } from '../../model/schemas.js'
import type { Principal } from './sessions.js'
import {
  createStoredKeys,
  generateKey,
  KEY_FIELDS,
  type KeyDeps,
  type NewKey,
} from './stored-keys.js'
import { refuseUnlessRules, type Actor } from './user.js'

export const ApiTokenDoc = Type.Object({
  ...KEY_FIELDS,
  role: RoleSchema,
  /** Null for all. */
  sources: Type.Union([ReadonlyTexts, Type.Null()]),
  /** Null for none. */
  expiresAtMs: Type.Union([Type.Number(), Type.Null()]),
  /** Id of the user who made it. */
  createdBy: Type.String(),
})
export type ApiToken = Readonly<Static<typeof ApiTokenDoc>>

type ApiTokenInput = Pick<ApiToken, 'name' | 'role' | 'sources' | 'expiresAtMs'>

export interface ApiTokens {
  readonly list: () => readonly ApiToken[]
  /** @returns null when there is no such token */
  readonly get: (id: string) => ApiToken | null
  /** @throws AppError forbidden, overloaded, validation_error */
  readonly create: (actor: Actor, input: ApiTokenInput) => Promise<NewKey<ApiToken>>
  /** @throws AppError forbidden, not_found */
  readonly remove: (actor: Actor, id: string) => Promise<void>
  /** @throws AppError unauthorized, token_expired */
  readonly authenticate: (token: string) => Principal
  /** Whether the token exists and has not expired. */
  readonly isAlive: (id: string) => boolean
}

const PREFIX = 'lat_'
export const isApiToken = (token: string): boolean => token.startsWith(PREFIX)

export const MAX_API_TOKENS = 1_000

export function createApiTokens(deps: KeyDeps<ApiToken>): ApiTokens {
  const { entities, nowMs = Date.now } = deps
  const keys = createStoredKeys(deps)
  const hasEnded = ({ expiresAtMs }: ApiToken): boolean =>
    expiresAtMs !== null && expiresAtMs <= nowMs()
  return {
    list: () => entities.list(),
    get: (id) => entities.get(id),
    create: async (actor, input) => {
      refuseUnlessRules(actor, input.role)
      checkInput(input, nowMs())
      const createdBy = actor.userId
      return await keys.add(generateKey(PREFIX), (common) => ({ ...input, createdBy, ...common }))
    },
    remove: async (actor, id) => {
      const token = entities.get(id)
      if (token !== null) refuseUnlessRules(actor, token.role)
      if (await keys.remove(id)) return
      throw new AppError('not_found', 'there is no such API token', { details: { token_id: id } })
    },
    authenticate: (text) => {
      const token = keys.find(text)
      if (token === null) throw new AppError('unauthorized', 'there is no such API token')
      if (hasEnded(token)) throw new AppError('token_expired', 'the API token has expired')
      keys.noteUse(token.id)
      return toPrincipal(token)
    },
    isAlive: (id) => {
      const token = entities.get(id)
      return token !== null && !hasEnded(token)
    },
  }
}

const toPrincipal = ({ id, role, sources, expiresAtMs }: ApiToken): Principal => ({
  userId: id,
  role,
  tokenRole: role,
  family: '',
  requiredAction: null,
  expiresAtMs: expiresAtMs ?? Infinity,
  isToken: true,
  sources,
})

function checkInput({ role, sources, expiresAtMs }: ApiTokenInput, nowMs: number): void {
  if (expiresAtMs !== null && expiresAtMs <= nowMs)
    throw invalid('expires_at', 'must be later than now')
  if (sources !== null && role !== 'viewer')
    throw invalid('role', 'must be viewer for a token that is limited to sources')
}

const invalid = (path: string, message: string): AppError =>
  new AppError('validation_error', `invalid: ${path}`, {
    details: { errors: [{ in: 'body', path, message }] },
  })
