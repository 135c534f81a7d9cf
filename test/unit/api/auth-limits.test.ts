import { test } from 'tap'
import { createLimiter, toRateLimits } from '../../../src/api/auth/limits.js'
import { AppError } from '../../../src/model/errors.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'

const unexpected = (error: unknown): never => {
  throw error
}

const limit = (count: number, seconds = 60) => ({ count, seconds })
const limits = toRateLimits({
  loginLimit: limit(10),
  secondFactorLimit: limit(30),
  refreshLimit: limit(30),
  sourceCreateLimit: limit(2),
  clearAllLimit: limit(3, 3_600),
  apiTokenLimit: limit(20),
  wsLimiter: limit(1),
})
const inProcess = () => createInProcessState({ onError: unexpected })
const newLimiter = () => createLimiter(inProcess(), limits, inProcess())

const until = async (consume: () => Promise<void>): Promise<number> => {
  for (let n = 0; n < 1_000; n++) {
    const refused = await consume().then(
      () => false,
      () => true,
    )
    if (refused) return n
  }
  return Infinity
}

void test('a request beyond the limit is refused with the time to wait', async (t) => {
  const limiter = newLimiter()
  const subject = { address: '10.0.0.1' }
  await limiter.consume('ws_limiter', subject)
  await t.rejects(limiter.consume('ws_limiter', subject), {
    code: 'rate_limited',
    status: 429,
    retryAfterS: 60,
    details: { limit: 'ws_limiter', retry_after_s: 60 },
  })
})

void test('logins are counted per account and address, and six times per address', async (t) => {
  const limiter = newLimiter()
  const account = (address: string, email: string) =>
    until(() => limiter.consume('login_account_limit', { address, email }))
  t.equal(await account('10.0.0.1', 'ann@example.com'), 10)
  t.equal(await account('10.0.0.1', ' ANN@example.com'), 0, 'the same account')
  t.equal(await account('10.0.0.1', 'bob@example.com'), 10)
  t.equal(await account('10.0.0.2', 'ann@example.com'), 10)
  t.equal(await until(() => limiter.consume('login_limit', { address: '10.0.0.1' })), 60)
})

void test('limits of users do not depend on the address', async (t) => {
  const limiter = newLimiter()
  await limiter.consume('source_create_limit', { address: '10.0.0.1', userId: 'u1' })
  await limiter.consume('source_create_limit', { address: '10.0.0.2', userId: 'u1' })
  await t.rejects(limiter.consume('source_create_limit', { address: '10.0.0.3', userId: 'u1' }))
  await limiter.consume('source_create_limit', { address: '10.0.0.3', userId: 'u2' })
  await limiter.consume('clear_all_limit', { address: '10.0.0.3', userId: 'u1' })
})

void test('all addresses of an IPv6 network count as one client', async (t) => {
  const limiter = newLimiter()
  const ws = (address: string) => limiter.consume('ws_limiter', { address })
  await ws('2001:db8:0:1::1')
  await t.rejects(ws('2001:db8:0:1:ffff::2'))
  await t.rejects(ws('2001:0db8:0000:0001:0000:0000:0000:0003'))
  await ws('2001:db8:0:2::1')
  await ws('::1')
  await t.rejects(ws('::2'))
  await ws('fe80::')
  await ws('10.0.0.1')
  await ws('10.0.0.2')
})

void test('a limit that counts by what the request lacks is a mistake', async (t) => {
  await t.rejects(newLimiter().consume('clear_all_limit', { address: '10.0.0.1' }), /^bug:/)
})

void test('without the state logins are closed and everything else is counted alone', async (t) => {
  const down = () => Promise.reject(new AppError('dependency_unavailable', 'redis does not answer'))
  const limiter = createLimiter({ consume: down }, limits, inProcess())
  const subject = { address: '10.0.0.1', userId: 'u1', email: 'a@b.c' }
  for (const name of ['login_limit', 'login_account_limit'] as const)
    await t.rejects(limiter.consume(name, subject), { code: 'dependency_unavailable' })
  for (const name of [
    'refresh_limit',
    'source_create_limit',
    'clear_all_limit',
    'ws_limiter',
  ] as const)
    await t.resolves(limiter.consume(name, subject), name)
  await t.rejects(limiter.consume('ws_limiter', subject), { code: 'rate_limited' })
})
