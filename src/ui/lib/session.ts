import { signal } from '@preact/signals'

import { call, whenDuty, whenLoggedOut } from './api.js'
import { go } from './router.js'

export interface User {
  readonly id: string
  readonly email: string
  readonly role: 'viewer' | 'manager' | 'admin' | 'superadmin'
}

/** Null when nobody is logged in. */
export const user = signal<User | null>(null)

const RANKS = ['viewer', 'manager', 'admin', 'superadmin'] as const

/** Whether the user's role allows what this one does. */
export const may = (role: User['role']): boolean =>
  user.value !== null && RANKS.indexOf(user.value.role) >= RANKS.indexOf(role)

/** A code for what the user must do before anything else. `log_in`: the session has ended. '': nothing. */
export const duty = signal('')

whenLoggedOut(() => {
  if (user.value !== null) duty.value = 'log_in'
  user.value = null
})

whenDuty((code) => {
  duty.value = code
})

/** Where the page was before the way to a provider. */
export const RETURN = 'return-to'

function comeBack(): void {
  const to = sessionStorage.getItem(RETURN)
  sessionStorage.removeItem(RETURN)
  if (to !== null && location.pathname === '/' && /^\/(?!\/)/.test(to)) go(to, { replace: true })
}

/** The code of what went wrong at a provider; '' for nothing. */
export const loginError = new URLSearchParams(location.search).get('login_error') ?? ''

export async function findSession(): Promise<void> {
  if (loginError !== '') go('/', { replace: true })
  try {
    const found = await call<User>('/api/auth/me')
    comeBack()
    user.value = found
  } catch {
    // The log-in is shown.
  }
}
