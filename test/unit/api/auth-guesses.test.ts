import { test } from 'tap'
import { createGuesses } from '../../../src/api/auth/guesses.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { AppError } from '../../../src/model/errors.js'
import { DAY_MS, HOUR_MS } from '../../../src/model/time.js'

const unexpected = (error: unknown): never => {
  throw error
}
const wrong = (): Promise<never> =>
  Promise.reject(new AppError('invalid_credentials', 'wrong e-mail or password'))
const right = (): Promise<string> => Promise.resolve('in')
const email = 'ann@example.com'

function setUp() {
  const clock = { ms: 1_700_000_000_000 }
  const nowMs = () => clock.ms
  const hashes = new Map([[email, 'first hash']])
  const newAddresses: string[] = []
  const guesses = createGuesses({
    state: createInProcessState({ onError: unexpected, nowMs }),
    limit: { count: 20, seconds: 86_400 },
    passwordHashOf: (name) => hashes.get(name) ?? '',
    onWrong: () => undefined,
    onNewAddress: ({ address }) => void newAddresses.push(address),
    nowMs,
  })
  /** 'wrong', 'in', or the seconds to wait. */
  const attempt = async (
    address: string,
    work: () => Promise<unknown>,
    name = email,
  ): Promise<unknown> => {
    try {
      return await guesses.attempt({ address, email: name }, work)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (error.code === 'rate_limited') return error.details['retry_after_s']
      return error.code === 'invalid_credentials' ? 'wrong' : error.code
    }
  }
  /** How many guesses are taken before the first that has to wait. */
  const guess = async (address: string, name = email): Promise<number> => {
    for (let n = 0; n < 10_000; n++) if ((await attempt(address, wrong, name)) !== 'wrong') return n
    return Infinity
  }
  return { newAddresses, clock, hashes, guesses, attempt, guess }
}

void test('an address has so many wrong passwords for an account a day, and no more', async (t) => {
  const { attempt, guess, clock } = setUp()
  t.equal(await guess('10.0.0.1'), 20)
  t.equal(
    await attempt('10.0.0.1', right),
    86_400,
    'with the right one too: it is not even checked',
  )
  t.equal(await attempt('10.0.0.1', right, ' ANN@example.com'), 86_400, 'the same account')
  t.equal(await attempt('10.0.0.2', right), 'in', 'another address goes on')
  t.equal(await attempt('10.0.0.1', right, 'bob@example.com'), 'in', 'and so does another account')
  clock.ms += DAY_MS + 1
  t.equal(await attempt('10.0.0.1', right), 'in')
  t.equal(await guess('10.0.0.1'), 20, 'over any day: the window slides')
})

void test('right passwords and other errors count as no guesses', async (t) => {
  const { attempt, guess } = setUp()
  const overloaded = () => Promise.reject(new AppError('overloaded', 'busy'))
  for (let i = 0; i < 100; i++) {
    await attempt('10.0.0.1', right)
    await attempt('10.0.0.1', overloaded)
  }
  t.equal(await guess('10.0.0.1'), 20)
})

void test('an account that does not exist is counted as one that does', async (t) => {
  const { guess } = setUp()
  t.equal(await guess('10.0.0.1', 'nobody@example.com'), await guess('10.0.0.1', email))
})

void test('who guesses from many addresses is slowed down, and nobody is locked out', async (t) => {
  const { attempt, guess, clock } = setUp()
  t.equal(await attempt('192.0.2.1', right), 'in', 'from here the user logs in')
  let taken = 0
  for (let i = 0; i < 500; i++) taken += await guess(`10.0.${i >> 8}.${i & 255}`)
  t.ok(taken <= 200 + 500, `${taken} guesses of 500 addresses: 200, and then one each`)
  t.equal(await attempt('192.0.2.1', right), 'in', 'the address of the user goes on')
  t.equal(await attempt('192.0.2.1', wrong), 'wrong')
  t.equal(await attempt('192.0.2.1', right), 'in', 'after a mistake too')
  t.equal(await attempt('198.51.100.1', right), 'in', 'and a new one gets in with the first try')
  t.equal(await attempt('198.51.100.1', wrong), 'wrong', 'after which it is known')
  t.equal(await attempt('198.51.100.2', wrong), 'wrong')
  t.equal(await attempt('198.51.100.2', right), 3_600, 'else it waits for an hour')
  clock.ms += HOUR_MS + 1
  t.equal(await attempt('198.51.100.2', right), 'in')
})

void test('a new password begins new counts', async (t) => {
  const { attempt, guess, hashes } = setUp()
  for (let i = 0; i < 20; i++) await guess(`10.0.0.${i}`)
  t.not(await attempt('10.0.0.1', right), 'in')
  hashes.set(email, 'second hash')
  t.equal(await attempt('10.0.0.1', right), 'in')
})

void test('without the shared state no password is tried', async (t) => {
  const down = () => Promise.reject(new AppError('dependency_unavailable', 'redis does not answer'))
  const guesses = createGuesses({
    state: { get: down, set: down, consume: down },
    limit: { count: 20, seconds: 86_400 },
    passwordHashOf: () => '',
    onWrong: () => undefined,
  })
  let tried = false
  const work = async (): Promise<void> => {
    tried = true
  }
  await t.rejects(guesses.attempt({ address: '10.0.0.1', email }, work), {
    code: 'dependency_unavailable',
  })
  t.notOk(tried)
})

void test('an address that was not used with the password is told, once in 30 days', async (t) => {
  const { attempt, newAddresses, clock, hashes } = setUp()
  await attempt('10.0.0.1', wrong)
  t.same(newAddresses, [], 'a wrong password is none of it')
  for (const address of ['10.0.0.1', '10.0.0.1', '10.0.0.2', '10.0.0.1'])
    await attempt(address, right)
  t.same(newAddresses.splice(0), ['10.0.0.1', '10.0.0.2'])
  hashes.set(email, 'second hash')
  await attempt('10.0.0.1', right)
  clock.ms += 31 * DAY_MS
  await attempt('10.0.0.1', right)
  t.same(newAddresses, ['10.0.0.1', '10.0.0.1'], 'with a new password, and after a month')
})
