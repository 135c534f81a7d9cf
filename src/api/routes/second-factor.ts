import { Type, type Static } from '@sinclair/typebox'
import type { RequestHead } from '../../http/request.js'
import type { Proof } from '../auth/second-factor.js'
import type { Principal } from '../auth/sessions.js'
import { withinGuesses } from '../guessing.js'
import { RouteReply, route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { Code, GivenPassword } from '../schemas/user.js'
import type { Services } from '../services.js'

const BODY_BYTES = 16 * 1024

const ProofBody = Type.Object({ current_password: GivenPassword, code: Code })

const PROOF_ERRORS = [
  'invalid_credentials',
  'invalid_code',
  'code_reused',
  'not_found',
  'rate_limited',
  'overloaded',
  'dependency_unavailable',
] as const

const RecoveryCodes = Type.Object(
  {
    recovery_codes: Type.Array(Type.String(), {
      description: 'each is good for one login without the app; they are shown once',
    }),
  },
  { title: 'RecoveryCodes' },
)

/** Prevents caching of replies with secrets. */
const uncached = <T>(body: T): RouteReply<T> =>
  new RouteReply(body, { headers: { 'Cache-Control': 'no-store' } })

/** Runs `work`, which checks the user's password, within the login limits. */
async function asSelf<T>(
  services: Services,
  { principal, head }: { readonly principal: Principal; readonly head: RequestHead },
  work: () => Promise<T>,
): Promise<T> {
  const email = services.users.get(principal.userId)?.email ?? ''
  return await withinGuesses(services, head, { email, work })
}

const toProof = ({ current_password: currentPassword, code }: Static<typeof ProofBody>): Proof => ({
  currentPassword,
  code,
})

/** The routes for the second factor of the calling user. */
export const secondFactorRoutes = [
  route({
    id: 'secondFactor',
    method: 'get',
    path: '/api/auth/second-factor',
    summary: 'Whether you have a second factor',
    role: 'viewer',
    tokens: 'none',
    isOpenBeforeRequiredAction: true,
    reply: Type.Object({
      enabled: Type.Boolean(),
      since: Type.Union([Timestamp, Type.Null()]),
      recovery_codes_left: Type.Integer({ minimum: 0 }),
      provider: Type.Union([Type.String(), Type.Null()], {
        description: 'where the user logs in, which has the second factor; null for a local user',
      }),
    }),
    errors: [],
    handle: ({ principal }, { users }) => {
      const user = users.get(principal.userId)
      const factor = user?.secondFactor
      return {
        enabled: factor !== undefined,
        since: factor === undefined ? null : new Date(factor.sinceMs).toISOString(),
        recovery_codes_left: factor?.recovery.length ?? 0,
        provider: user?.identity?.provider ?? null,
      }
    },
  }),
  route({
    id: 'beginSecondFactor',
    method: 'post',
    path: '/api/auth/second-factor',
    summary: 'Makes a key for your authenticator app',
    description:
      'Show `uri` as a QR code, or type `secret` into the app. Nothing changes until a code of the app is confirmed, within ' +
      'ten minutes. Codes are those of RFC 6238: SHA-1, six digits, 30 seconds.',
    role: 'viewer',
    tokens: 'none',
    isOpenBeforeRequiredAction: true,
    bodyBytes: BODY_BYTES,
    body: Type.Object({ current_password: GivenPassword }),
    reply: Type.Object({ secret: Type.String(), uri: Type.String() }),
    status: 201,
    errors: [
      'invalid_credentials',
      'second_factor_exists',
      'rate_limited',
      'overloaded',
      'dependency_unavailable',
    ],
    handle: async ({ body, principal, head }, services) => {
      const begin = () => services.secondFactors.begin(principal.userId, body.current_password)
      return uncached(await asSelf(services, { principal, head }, begin))
    },
  }),
  route({
    id: 'confirmSecondFactor',
    method: 'post',
    path: '/api/auth/second-factor/confirm',
    summary: 'Turns on the second factor with a code of the app',
    description: 'Ends your other sessions, which began with the password alone.',
    role: 'viewer',
    tokens: 'none',
    isOpenBeforeRequiredAction: true,
    bodyBytes: BODY_BYTES,
    body: Type.Object({ code: Code }),
    reply: RecoveryCodes,
    errors: ['invalid_code', 'not_found', 'rate_limited', 'dependency_unavailable'],
    handle: async ({ body, principal }, { secondFactors, sessions }) => {
      const codes = await secondFactors.confirm(principal.userId, body.code)
      await sessions.endOthers(principal)
      return uncached({ recovery_codes: codes })
    },
  }),
  route({
    id: 'renewRecoveryCodes',
    method: 'post',
    path: '/api/auth/second-factor/recovery-codes',
    summary: 'Makes new recovery codes in place of yours',
    role: 'viewer',
    tokens: 'none',
    isOpenBeforeRequiredAction: true,
    bodyBytes: BODY_BYTES,
    body: ProofBody,
    reply: RecoveryCodes,
    errors: PROOF_ERRORS,
    handle: async ({ body, principal, head }, services) => {
      const renew = () => services.secondFactors.renewRecovery(principal.userId, toProof(body))
      return uncached({ recovery_codes: await asSelf(services, { principal, head }, renew) })
    },
  }),
  route({
    id: 'disableSecondFactor',
    method: 'post',
    path: '/api/auth/second-factor/disable',
    summary: 'Turns your second factor off',
    role: 'viewer',
    tokens: 'none',
    isOpenBeforeRequiredAction: true,
    bodyBytes: BODY_BYTES,
    body: ProofBody,
    reply: Type.Null(),
    status: 204,
    errors: PROOF_ERRORS,
    handle: async ({ body, principal, head }, services) => {
      const disable = () => services.secondFactors.disable(principal.userId, toProof(body))
      await asSelf(services, { principal, head }, disable)
      return null
    },
  }),
]
