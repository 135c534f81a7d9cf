import { test } from 'tap'
import {
  checkPassword,
  createPasswords,
  generatePassword,
} from '../../../src/api/auth/passwords.js'
import { cpuOfBoth } from '../../support/cpu.js'

void test('a password is verified against its hash only', async (t) => {
  const passwords = createPasswords()
  const stored = await passwords.hash('correct horse')
  t.match(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  t.not(await passwords.hash('correct horse'), stored, 'salted')
  t.equal(await passwords.verify(stored, 'correct horse'), true)
  t.equal(await passwords.verify(stored, 'correct horsE'), false)
  t.equal(await passwords.verify(stored, ''), false)
  t.equal(await passwords.verify(null, 'correct horse'), false)
})

void test('another Unicode composition is the same password', async (t) => {
  const passwords = createPasswords({ memoryKib: 64 })
  t.equal(await passwords.verify(await passwords.hash('pässwörd'), 'pa\u0308sswo\u0308rd'), true)
})

void test('an absent user costs as much CPU time as one whose password is wrong', async (t) => {
  const passwords = createPasswords()
  const stored = await passwords.hash('right password')
  const [present, absent] = await cpuOfBoth(
    () => passwords.verify(stored, 'wrong password'),
    () => passwords.verify(null, 'wrong password'),
  )
  // A hash takes tens of milliseconds, everything else less than one.
  t.ok(absent > present / 4, `${absent} ms absent, ${present} ms present`)
  t.ok(absent < present * 4, `${absent} ms absent, ${present} ms present`)
})

void test('too many at once are refused as overload, and the rest is served', async (t) => {
  const passwords = createPasswords({ memoryKib: 64, concurrency: 2, maxWaiting: 3 })
  const stored = await passwords.hash('y')
  const works: readonly (readonly [work: () => Promise<unknown>, served: number])[] = [
    [() => passwords.hash('x'), 4],
    [() => passwords.verify(stored, 'x'), 5],
  ]
  for (const [work, served] of works) {
    const results = await Promise.allSettled(Array.from({ length: 9 }, work))
    t.equal(results.filter((r) => r.status === 'fulfilled').length, served)
    for (const result of results) {
      if (result.status === 'rejected') t.match(result.reason, { code: 'overloaded', status: 429 })
    }
  }
  t.equal(await passwords.verify(await passwords.hash('y'), 'y'), true, 'free again')
})

void test('who sets passwords without end keeps nobody from logging in', async (t) => {
  const passwords = createPasswords({ memoryKib: 64, maxWaiting: 3 })
  const stored = await passwords.hash('y')
  const flood = Promise.allSettled(Array.from({ length: 50 }, () => passwords.hash('x')))
  t.equal(await passwords.verify(stored, 'y'), true)
  t.ok((await flood).some(({ status }) => status === 'rejected'))
})

const badPassword = {
  code: 'validation_error',
  details: { errors: [{ path: 'password' }] },
}
const email = 'kim.lee@example.com'

void test('a new password has 12 to 128 characters', async (t) => {
  const good = 'an otter swims by night '
  for (const n of [12, 64, 128])
    await t.resolves(checkPassword(good.repeat(50).slice(0, n), email), `${n}`)
  for (const n of [0, 8, 11, 129])
    await t.rejects(checkPassword(good.repeat(50).slice(0, n), email), badPassword, `${n}`)
  for (const few of ['a          b', '🦦🐙🦀🐡🦑🦈', `otter${' '.repeat(20)}now`])
    await t.rejects(checkPassword(few, email), badPassword, few)
  await t.resolves(checkPassword('🦦🐙🦀🐡🦑🦈🦞🐬🐳🦭🐟🐠', email))
})

void test('a new password is not among the first that are guessed', async (t) => {
  const guessed = [
    'password1234',
    'passwordpassword',
    'P@ssw0rd1234',
    'qwertyuiop123',
    'qwerty123456',
    '123456789012',
    'aaaaaaaaaaaa',
    'abcabcabcabcabc',
    'iloveyou1234',
    'letmein12345',
    'administrator',
    'adminadminadmin',
    'kim.lee@example.com',
    'x'.repeat(128),
  ]
  for (const password of guessed)
    await t.rejects(checkPassword(password, email), badPassword, password)
  const good = [
    'correct horse battery',
    'zK8#vQ2!mR5x',
    'sieben schlanke Schwäne',
    generatePassword(),
  ]
  for (const password of good) await t.resolves(checkPassword(password, email), password)
})

void test('a password that was set before the policy still logs in', async (t) => {
  const passwords = createPasswords({ memoryKib: 64 })
  t.equal(await passwords.verify(await passwords.hash('password'), 'password'), true)
})

void test('generated passwords meet the policy and differ', async (t) => {
  t.match(generatePassword(), /^[\w-]{24}$/)
  t.not(generatePassword(), generatePassword())
})
