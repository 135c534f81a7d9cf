/*
 * Logging in at a provider of OpenID Connect: the authorization code flow with PKCE, by `openid-client`.
 *
 * begin ─the browser goes to the provider, with a sealed cookie─▶ the provider ─code─▶ finish ─▶ an identity
 *
 * The cookie holds what the answer is checked against: the provider, state, nonce and the verifier
 * of PKCE. It is valid for ten minutes and once. Each provider has a redirect URI of its own, built
 * from PUBLIC_URL and never from what a client sends. Requests go to the issuer that the operator
 * names and to the addresses in its discovery document, by https unless the issuer is http.
 */

import * as client from 'openid-client'
import type { State } from '../../coordination/state.js'
import type { Seal } from '../../coordination/seal.js'
import { AppError } from '../../model/errors.js'
import { isAtLeast, type Role } from '../../model/roles.js'
import { HOUR_MS, MINUTE_MS } from '../../model/time.js'
import type { OidcProvider } from '../../settings/providers.js'
import type { Log } from '../../telemetry/log.js'

/** The user as the provider identifies them. */
export interface Identity {
  readonly provider: OidcProvider
  readonly issuer: string
  readonly subject: string
  /** The e-mail; null if there is none or the provider calls it unverified. */
  readonly email: string | null
  readonly isVerified: boolean
  /** The values of the role claim. */
  readonly groups: readonly string[]
  /** Null for a user whom the provider's settings give no role. */
  readonly role: Role | null
}

export interface Oidc {
  readonly providers: readonly OidcProvider[]
  /** @throws AppError not_found, dependency_unavailable */
  readonly begin: (name: string) => Promise<Begun>
  /**
   * @param queryText of the redirect back
   * @param transaction of `begin`
   * @throws AppError not_found, oidc_failed, dependency_unavailable
   */
  readonly finish: (name: string, queryText: string, transaction: string) => Promise<Identity>
  /** The address to which a browser goes after a login. */
  readonly pageUrl: string
}

interface Begun {
  /** The address at the provider. */
  readonly url: string
  /** The value of the browser's cookie. */
  readonly transaction: string
}

export interface OidcDeps {
  readonly providers: readonly OidcProvider[]
  /** Without a trailing slash. */
  readonly publicUrl: string
  readonly seal: Seal
  readonly state: Pick<State, 'setIfAbsent'>
  readonly log: Pick<Log, 'warn'>
  readonly nowMs?: () => number
}

export const TRANSACTION_S = 600
/** How long an answer that was used is remembered, which is longer than it is valid. */
const USED_MS = 2 * TRANSACTION_S * 1000
const DISCOVERED_MS = HOUR_MS
/** After a failed login the facts of the provider are read again, at most once in this time. */
const DOUBTED_MS = MINUTE_MS
/** Of each reply. A login has four at most, and half a minute in all. */
const TIMEOUT_S = 7
/** The allowed difference between the clocks of the provider and this machine. */
const SKEW_S = 60
const MAX_REPLY_BYTES = 1024 * 1024
const MAX_SUBJECT = 255
const CONTEXT = 'oidc'

interface Transaction {
  readonly provider: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly endsAtMs: number
}

export function createOidc(deps: OidcDeps): Oidc {
  const { providers, publicUrl, seal, state, log, nowMs = Date.now } = deps
  const discovery = createDiscovery(nowMs)
  const named = (name: string): OidcProvider => {
    const provider = providers.find((one) => one.name === name)
    if (provider !== undefined) return provider
    throw new AppError('not_found', 'there is no such provider', { details: { provider: name } })
  }
  const redirectUri = (name: string): string => `${publicUrl}/api/auth/oidc/${name}/callback`
  const asked = async <T>(provider: OidcProvider, work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      discovery.doubt(provider)
      throw toAppError(error, provider, log)
    }
  }
  return {
    providers,
    pageUrl: `${publicUrl}/`,
    begin: async (name) => {
      const provider = named(name)
      const config = await asked(provider, () => discovery.read(provider))
      const verifier = client.randomPKCECodeVerifier()
      const transaction: Transaction = {
        provider: name,
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier,
        endsAtMs: nowMs() + TRANSACTION_S * 1000,
      }
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri(name),
        scope: provider.scopes,
        state: transaction.state,
        nonce: transaction.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })
      return { url: url.href, transaction: seal.seal(JSON.stringify(transaction), CONTEXT) }
    },
    finish: async (name, queryText, sealed) => {
      const provider = named(name)
      const opened = seal.open(sealed, CONTEXT)
      if (opened === null) throw failed()
      const transaction = JSON.parse(opened) as Transaction // sealed by `begin`
      if (transaction.provider !== name || transaction.endsAtMs <= nowMs()) throw failed()
      const isFirst = await state.setIfAbsent(`oidc:${transaction.state}`, '1', USED_MS)
      if (!isFirst) throw failed()
      return await asked(provider, async () => {
        const url = new URL(`${redirectUri(name)}?${queryText}`)
        const config = await discovery.read(provider)
        return toIdentity(provider, await claimsOf(config, url, transaction))
      })
    },
  }
}

type Claims = Readonly<Record<string, unknown>> & { readonly sub: string; readonly iss: string }

/** The claims of the ID token, and those that only the userinfo endpoint has. */
async function claimsOf(
  config: client.Configuration,
  url: URL,
  { state, nonce, verifier }: Transaction,
): Promise<Claims> {
  const tokens = await client.authorizationCodeGrant(config, url, {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: verifier,
    idTokenExpected: true,
  })
  const claims = tokens.claims()
  // Without a subject, all users would be the same one. The standard limits its length.
  if (claims === undefined || claims.sub === '' || claims.sub.length > MAX_SUBJECT) throw failed()
  if (config.serverMetadata().userinfo_endpoint === undefined) return claims
  const more = await client.fetchUserInfo(config, tokens.access_token, claims.sub)
  return { ...more, ...claims }
}

function toIdentity(provider: OidcProvider, claims: Claims): Identity {
  const { email, email_verified: verified } = claims
  // Some providers say it as a text.
  const isUnverified = verified === false || verified === 'false'
  return {
    provider,
    issuer: claims.iss,
    subject: claims.sub,
    email: typeof email === 'string' && !isUnverified ? email : null,
    isVerified: verified === true,
    groups: groupsOf(provider, claims),
    role: roleOf(provider, claims),
  }
}

/** The highest role that any value of the claim grants. */
export function roleOf(
  provider: Pick<OidcProvider, 'roleClaim' | 'roles' | 'defaultRole'>,
  claims: Readonly<Record<string, unknown>>,
): Role | null {
  const { roles, defaultRole } = provider
  const found = groupsOf(provider, claims).flatMap((value) => {
    const role = Object.hasOwn(roles, value) ? roles[value] : undefined
    return role === undefined ? [] : [role]
  })
  return found.reduce<Role | null>(
    (most, role) => (most !== null && isAtLeast(most, role) ? most : role),
    defaultRole,
  )
}

const groupsOf = (
  { roleClaim }: Pick<OidcProvider, 'roleClaim'>,
  claims: Readonly<Record<string, unknown>>,
): string[] =>
  [claimAt(claims, roleClaim)].flat().filter((value): value is string => typeof value === 'string')

/** A claim whose name contains dots, such as a URL, is looked up by its whole name first. */
function claimAt(claims: Readonly<Record<string, unknown>>, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  return path.split('.').reduce<unknown>((value, name) => {
    const own: Readonly<Record<string, unknown>> = Object(value)
    return Object.hasOwn(own, name) ? own[name] : undefined
  }, claims)
}

/** Reads discovery documents on first use, after a failed login and after an hour, because keys and addresses change. */
function createDiscovery(nowMs: () => number) {
  const known = new Map<
    string,
    { readonly atMs: number; readonly config: Promise<client.Configuration> }
  >()
  const ageMs = (name: string): number => nowMs() - (known.get(name)?.atMs ?? -Infinity)
  return {
    read: (provider: OidcProvider): Promise<client.Configuration> => {
      const found = known.get(provider.name)
      if (found !== undefined && ageMs(provider.name) < DISCOVERED_MS) return found.config
      const config = discover(provider)
      known.set(provider.name, { atMs: nowMs(), config })
      config.catch(() => known.delete(provider.name))
      return config
    },
    /** Called when a provider did not do what its document says. */
    doubt: ({ name }: OidcProvider): void => {
      if (ageMs(name) >= DOUBTED_MS) known.delete(name)
    },
  }
}

function discover({ issuer, clientId, clientSecret }: OidcProvider): Promise<client.Configuration> {
  const auth = clientSecret === null ? client.None() : bySecret(clientSecret)
  const isPlain = issuer.startsWith('http:')
  return client.discovery(new URL(issuer), clientId, { [client.clockTolerance]: SKEW_S }, auth, {
    timeout: TIMEOUT_S,
    [client.customFetch]: boundedFetch,
    execute: [
      // The library does not check the signature of an ID token that came over TLS from the token endpoint unless told to.
      client.enableNonRepudiationChecks,
      // Only for an issuer that the operator has set with `http:`.
      ...(isPlain ? [client.allowInsecureRequests] : []),
    ],
  })
}

/** HTTP Basic, which is what a provider without a list takes, unless its list has it not. */
function bySecret(secret: string): client.ClientAuth {
  const [basic, inBody] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)]
  return (server, ...rest) => {
    const taken = server.token_endpoint_auth_methods_supported
    const takesBasic = taken === undefined || taken.includes('client_secret_basic')
    return (takesBasic ? basic : inBody)(server, ...rest)
  }
}

/** Follows no redirect, and limits the size of the reply. */
async function boundedFetch(url: string, options: client.CustomFetchOptions): Promise<Response> {
  const { body, ...rest } = options
  const reply = await fetch(url, { ...rest, redirect: 'manual', ...(body == null ? {} : { body }) })
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of reply.body ?? []) {
    bytes += part.byteLength
    if (bytes > MAX_REPLY_BYTES) throw new Error('the reply is too long')
    parts.push(part)
  }
  const { status, headers } = reply
  const isEmpty = status === 204 || status === 304
  return new Response(isEmpty ? null : Buffer.concat(parts), { status, headers })
}

const failed = (cause?: unknown): AppError =>
  new AppError('oidc_failed', 'the login at the provider failed or took too long: try again', {
    cause,
  })

/** The provider's replies contain tokens, so only the kind of the fault is logged. */
function toAppError(error: unknown, { name }: OidcProvider, log: OidcDeps['log']): AppError {
  if (error instanceof AppError) return error
  const { code, error: oauth }: { readonly code?: unknown; readonly error?: unknown } =
    Object(error)
  const fault = {
    provider: name,
    code,
    oauth,
    message: error instanceof Error ? error.message : '',
  }
  log.warn(fault, 'a login at a provider failed')
  const isAway = error instanceof TypeError || code === 'OAUTH_TIMEOUT' || isUnreachable(error)
  if (!isAway) return failed()
  return new AppError('dependency_unavailable', 'the login provider does not answer', {
    details: { dependency: `oidc ${name}` },
    retryAfterS: 5,
  })
}

const isUnreachable = (error: unknown): boolean =>
  error instanceof Error &&
  error.cause instanceof TypeError &&
  error.cause.message === 'fetch failed'
