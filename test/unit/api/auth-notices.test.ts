import { test } from 'tap'
import { codeReused, loginFromNewAddress, noticesOfChange } from '../../../src/api/auth/notices.js'
import type { User } from '../../../src/api/auth/user.js'

const user: User = {
  id: 'u',
  email: 'ann@example.com',
  role: 'viewer',
  isActive: true,
  passwordHash: 'a',
  tokenEpoch: 0,
  createdAtMs: 0,
  lastLoginAtMs: null,
}
const secondFactor = { sealed: 's', lastStep: 1, recovery: ['a', 'b'], sinceMs: 0 }
const withFactor = { ...user, secondFactor }

const told = (previous: User | null, value: User | null): string[] =>
  noticesOfChange({ previous, value }).map(({ to, text }) => `${to}: ${text.split('\n')[0]}`)

void test('users are told of each change of who may log in how', (t) => {
  const ann = (text: string): string[] => [`ann@example.com: ${text}`]
  t.same(
    told(user, { ...user, passwordHash: 'b' }),
    ann('The password of your account was changed.'),
  )
  t.same(told(user, { ...user, role: 'admin' }), ann('The role of your account is admin now.'))
  t.same(told(user, { ...user, isActive: false }), ann('Your account was disabled.'))
  t.same(told({ ...user, isActive: false }, user), ann('Your account was enabled.'))
  t.same(told(user, null), ann('Your account was deleted.'))
  t.same(told(user, withFactor), ann('A second factor was turned on for your account.'))
  t.same(told(withFactor, user), ann('The second factor of your account was turned off.'))
  const recovery = (...codes: string[]) => ({
    ...user,
    secondFactor: { ...secondFactor, recovery: codes },
  })
  t.same(
    told(withFactor, recovery('b')),
    ann('A recovery code of your account was used; 1 are left.'),
  )
  const replaced = ann('The recovery codes of your account were replaced.')
  t.same(told(withFactor, recovery('c', 'd')), replaced)
  t.same(told(recovery('a'), recovery('c', 'd', 'e')), replaced)
  t.end()
})

void test('a change of the address is told to both', (t) => {
  const changed = { ...user, email: 'eve@example.com', passwordHash: 'b' }
  const text =
    'The e-mail address of your account was changed. The password of your account was changed.'
  t.same(told(user, changed), [`ann@example.com: ${text}`, `eve@example.com: ${text}`])
  t.end()
})

void test('nobody is told of a new account, a login, a code of the app or a session', (t) => {
  t.same(told(null, user), [])
  t.same(
    told(user, { ...user, lastLoginAtMs: 5, tokenEpoch: 1, sessionEpoch: 2, keptSession: '' }),
    [],
  )
  const later = { ...user, secondFactor: { ...secondFactor, lastStep: 2 } }
  t.same(told(withFactor, later), [])
  t.same(told(user, { ...user, pendingFactor: { sealed: 's', expiresAtMs: 1 } }), [])
  t.end()
})

void test('a notice names no secret, and what to do', (t) => {
  for (const { to, text } of [codeReused('a@b.c'), loginFromNewAddress('a@b.c', '10.1.2.3')]) {
    t.equal(to, 'a@b.c')
    t.match(text, /tell an administrator/)
  }
  t.match(loginFromNewAddress('a@b.c', '10.1.2.3').text, '10.1.2.3')
  t.end()
})
