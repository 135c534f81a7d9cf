import { signal } from '@preact/signals'

import { call } from './api.js'
import { may, user } from './session.js'

interface Person {
  readonly id: string
  readonly email: string
}

/** Who is known by name: everybody for an admin, oneself for others. */
export const people = signal<readonly Person[]>([])

export function learnPeople(): void {
  if (!may('admin')) return
  call<{ readonly items: readonly Person[] }>('/api/users?limit=200').then(
    ({ items }) => {
      people.value = items
    },
    // People are shown by the beginning of their ids.
    () => undefined,
  )
}

export function personName(id: string): string {
  if (id === user.value?.id) return 'you'
  return people.value.find((one) => one.id === id)?.email ?? `user ${id.slice(0, 8)}`
}
