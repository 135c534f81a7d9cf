import { TOTP } from 'otpauth'
import type { LiveService, NewUser } from './live-service.js'

export interface Enrolled {
  readonly secret: string
  /** A code of the app, some steps of 30 seconds from now. */
  readonly code: (steps?: number) => string
  /** The code that was used to turn it on. */
  readonly used: string
  readonly recovery: readonly string[]
}

/** Turns on the second factor of a user. */
export async function enrol(
  service: LiveService,
  { access_token: token, password }: Pick<NewUser, 'access_token' | 'password'>,
): Promise<Enrolled> {
  const path = '/api/auth/second-factor'
  const json = { current_password: password }
  const begun = await service.call(`POST ${path}`, { token, json })
  const { secret } = begun.body
  const totp = new TOTP({ secret })
  const code = (steps = 0): string => totp.generate({ timestamp: Date.now() + steps * 30_000 })
  const used = code()
  const confirmed = await service.call(`POST ${path}/confirm`, { token, json: { code: used } })
  if (confirmed.status !== 200) throw new Error(`no second factor: ${confirmed.text}`)
  return { secret, code, used, recovery: confirmed.body.recovery_codes }
}
