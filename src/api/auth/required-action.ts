import { AppError } from '../../model/errors.js'
import { isAtLeast, type Role } from '../../model/roles.js'
import type { User } from './user.js'

/** A step that a user must take before anything else, as the code of the error that states it. */
export type RequiredAction = 'password_change_required' | 'second_factor_missing'

export const isTemporary = ({ temporaryUntilMs = null }: User): boolean => temporaryUntilMs !== null

/** @param secondFactorFrom the least role that needs a second factor; null for none */
export function requiredActionOf(user: User, secondFactorFrom: Role | null): RequiredAction | null {
  if (isTemporary(user)) return 'password_change_required'
  // The provider is responsible for a second factor.
  if (user.identity !== undefined) return null
  const needsFactor = secondFactorFrom !== null && isAtLeast(user.role, secondFactorFrom)
  return needsFactor && user.secondFactor === undefined ? 'second_factor_missing' : null
}

const MESSAGES = {
  password_change_required: 'change your password first: PUT /api/users/{id}/password',
  second_factor_missing: 'turn on a second factor first: POST /api/auth/second-factor',
} as const satisfies Record<RequiredAction, string>

export const unfulfilled = (requiredAction: RequiredAction): AppError =>
  new AppError(requiredAction, MESSAGES[requiredAction])
