import { call } from './api.js'
import { requiredAction, RETURN, user, type User } from './session.js'

interface Credentials {
  readonly email: string
  readonly password: string
  /** The code of an authenticator app, for a user with a second factor. */
  readonly code?: string
}

/** @throws ApiError when the service refuses */
export async function logIn(given: Credentials): Promise<void> {
  requiredAction.value = ''
  await call('/api/auth/login', { method: 'POST', json: given })
  user.value = await call<User>('/api/auth/me')
}

export async function logOut(): Promise<void> {
  await call('/api/auth/logout', { method: 'POST' }).catch(() => undefined)
  requiredAction.value = ''
  user.value = null
}

/** @throws ApiError when the service refuses the new password */
export async function changePassword(current: string, password: string): Promise<void> {
  const json = { current_password: current, password }
  await call(`/api/users/${user.value?.id}/password`, { method: 'PUT', json })
  requiredAction.value = ''
  // The change of the password has ended all tokens.
  await logIn({ email: user.value?.email ?? '', password })
}

/** Stores the current address, for the return from a provider. */
export const leaveForProvider = (): void =>
  sessionStorage.setItem(RETURN, location.pathname + location.search)
