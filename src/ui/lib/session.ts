import { signal } from '@preact/signals'

import { call, whenActionRequired, whenLoggedOut } from './api.js'
import { go } from './router.js'

export interface User {
  readonly id: string
  readonly email: string
  readonly role: 'viewer' | 'manager' | 'admin' | 'superadmin'
}

/** The user; null when nobody is logged in. */
export const user = signal<User | null>(null)

const RANKS = ['viewer', 'manager', 'admin', 'superadmin'] as const

/** Whether the user's role includes the rights of this one. */
export const may = (role: User['role']): boolean =>
  user.value !== null && RANKS.indexOf(user.value.role) >= RANKS.indexOf(role)

/** The code of the step that the user must take before anything else. `log_in`: the session has ended. '': none. */
export const requiredAction = signal('')

whenLoggedOut(() => {
  if (user.value !== null) requiredAction.value = 'log_in'
  user.value = null
})

whenActionRequired((code) => {
  requiredAction.value = code
})

/** The key of the stored address, for the return from a provider. */
export const RETURN = 'return-to'

function comeBack(): void {
  const to = sessionStorage.getItem(RETURN) ?? ''
  sessionStorage.removeItem(RETURN)
  if (location.pathname === '/' && /^\/(?!\/)/.test(to)) go(to, { replace: true })
}

/** The code of an error at a provider; '' for none. */
export const loginError = new URLSearchParams(location.search).get('login_error') ?? ''

export async function findSession(): Promise<void> {
  if (loginError !== '') go('/', { replace: true })
  comeBack()
  try {
    user.value = await call<User>('/api/auth/me')
  } catch {
    // The login form is shown.
  }
}
