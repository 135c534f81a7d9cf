import type { EntityChange } from '../../coordination/collection.js'
import type { Notice } from './mailer.js'
import type { User } from './user.js'

/*
 * The e-mails that tell users of changes of their accounts, so that they notice changes by others.
 * A change of the address is sent to the old one too.
 */

type Change = Pick<EntityChange<User>, 'value' | 'previous'>

/** @returns nothing for a new account, and for a change that does not affect how the user logs in */
export function noticesOfChange({ value, previous }: Change): readonly Notice[] {
  if (previous === null) return []
  if (value === null) return [toNotice(previous.email, 'Your account was deleted.')]
  const changes = changesOf(previous, value)
  if (changes.length === 0) return []
  const addresses = new Set([previous.email, value.email])
  return [...addresses].map((address) => toNotice(address, changes.join(' ')))
}

function changesOf(before: User, now: User): readonly string[] {
  const changes: string[] = []
  if (before.email !== now.email) changes.push('The e-mail address of your account was changed.')
  if (before.passwordHash !== now.passwordHash)
    changes.push('The password of your account was changed.')
  if (before.role !== now.role) changes.push(`The role of your account is ${now.role} now.`)
  if (before.isActive !== now.isActive)
    changes.push(`Your account was ${now.isActive ? 'enabled' : 'disabled'}.`)
  return [...changes, ...factorChanges(before.secondFactor, now.secondFactor)]
}

function factorChanges(before: User['secondFactor'], now: User['secondFactor']): readonly string[] {
  if (before === undefined && now === undefined) return []
  if (before === undefined) return ['A second factor was turned on for your account.']
  if (now === undefined) return ['The second factor of your account was turned off.']
  const left = now.recovery.filter((code) => before.recovery.includes(code)).length
  if (left < now.recovery.length) return ['The recovery codes of your account were replaced.']
  if (left < before.recovery.length)
    return [`A recovery code of your account was used; ${left} are left.`]
  return []
}

export const codeReused = (email: string): Notice =>
  toNotice(
    email,
    'Somebody who knows your password gave a code of your authenticator app that had been used before.',
  )

export const loginFromNewAddress = (email: string, address: string): Notice =>
  toNotice(
    email,
    `Somebody logged in as you from ${address}, which was not used with this password before.`,
  )

const toNotice = (to: string, what: string): Notice => ({
  to,
  subject: 'Your account of log analytics',
  text: [
    what,
    '',
    `Time: ${new Date().toISOString()}`,
    'If this was not you, tell an administrator at once, and change your password.',
    '',
  ].join('\n'),
})
