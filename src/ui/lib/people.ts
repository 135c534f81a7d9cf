import { signal } from '@preact/signals'

import { call } from './api.js'
import { may, user } from './session.js'

interface Person {
  readonly id: string
  readonly email: string
}

interface Token {
  readonly id: string
  readonly name: string
}

/** The users and API tokens with known names: all for an admin, only oneself for others. */
export const people = signal<readonly Person[]>([])

export function learnPeople(): void {
  if (!may('admin')) return
  Promise.all([
    call<{ readonly items: readonly Person[] }>('/api/users?limit=200'),
    call<{ readonly items: readonly Token[] }>('/api/api-tokens?limit=200'),
  ]).then(
    ([users, tokens]) => {
      const named = tokens.items.map(({ id, name }) => ({ id, email: `token ${name}` }))
      people.value = [...users.items, ...named]
    },
    // On an error, people are shown by the beginnings of their ids.
    () => undefined,
  )
}

export function personName(id: string): string {
  if (id === user.value?.id) return 'you'
  return people.value.find((one) => one.id === id)?.email ?? `user ${id.slice(0, 8)}`
}
