import { createHmac, generateKeyPairSync, sign as signWith } from 'node:crypto'
import { test, type Test } from 'tap'
import { createTokens } from '../../../src/api/auth/tokens.js'
import { HOUR_MS } from '../../../src/model/time.js'

const secret = 'a secret of more than thirty-two characters'
const clock = { ms: 1_700_000_000_000 }
const options = { secret, accessSeconds: 3_600, refreshSeconds: 604_800, nowMs: () => clock.ms }
const tokens = createTokens(options)
const grantee = { userId: 'u-1', role: 'manager', family: 'f-1' } as const
const access = tokens.issueAccess(grantee)
const refresh = tokens.issueRefresh({ ...grantee, epoch: 3, jti: 'j-1' })

const toPart = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const readPart = (token: string, part: number): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[part] ?? '', 'base64url').toString())

/** Signs whatever it is given, as an attacker with that key would. */
function forge(payload: unknown, header: unknown, key: string, hash = 'sha256'): string {
  const input = `${toPart(header)}.${toPart(payload)}`
  return `${input}.${createHmac(hash, key).update(input).digest('base64url')}`
}

function refused(t: Test, token: string, code = 'unauthorized'): void {
  t.throws(() => tokens.verifyAccess(token), { code })
}

void test('an access token carries its claims', async (t) => {
  t.match(tokens.verifyAccess(access), {
    sub: 'u-1',
    role: 'manager',
    type: 'access',
    family: 'f-1',
    jti: /^[0-9a-f-]{36}$/,
    iat: 1_700_000_000,
    exp: 1_700_003_600,
  })
  t.match(readPart(access, 0), { alg: 'HS256', typ: 'JWT' })
})

void test('a refresh token carries its claims', async (t) => {
  t.match(tokens.verifyRefresh(refresh), {
    sub: 'u-1',
    type: 'refresh',
    family: 'f-1',
    epoch: 3,
    jti: 'j-1',
    exp: 1_700_604_800,
  })
})

void test('each token is good for its own purpose only', async (t) => {
  refused(t, refresh)
  t.throws(() => tokens.verifyRefresh(access), { code: 'invalid_refresh_token' })
})

void test('a token that was taken before opens nothing for one that differs from it', async (t) => {
  t.ok(tokens.verifyAccess(access))
  const [head = '', payload = '', signature = ''] = access.split('.')
  const claims = { ...readPart(access, 1), role: 'superadmin' }
  refused(t, `${head}.${toPart(claims)}.${signature}`)
  refused(t, `${head}.${payload}.${signature.slice(1)}${signature.slice(0, 1)}`)
  refused(t, `${access} `)
  t.equal(tokens.verifyAccess(access), tokens.verifyAccess(access), 'and is remembered itself')
  clock.ms += HOUR_MS
  refused(t, access, 'token_expired')
  clock.ms -= HOUR_MS
})

void test('a token ends with its lifetime, to the second', async (t) => {
  const short = createTokens({ ...options, accessSeconds: 10, refreshSeconds: 10 })
  const [a, r] = [
    short.issueAccess(grantee),
    short.issueRefresh({ ...grantee, epoch: 0, jti: 'j' }),
  ]
  clock.ms += 9_999
  t.equal(short.verifyAccess(a).sub, 'u-1')
  t.equal(short.verifyRefresh(r).sub, 'u-1')
  clock.ms += 1
  t.throws(() => short.verifyAccess(a), { code: 'token_expired' })
  t.throws(() => short.verifyRefresh(r), { code: 'invalid_refresh_token' })
  clock.ms -= 10_000
})

void test('an expired token with a bad signature is unauthorized, not expired', async (t) => {
  const payload = { ...readPart(access, 1), exp: 1 }
  refused(t, forge(payload, { alg: 'HS256', typ: 'JWT' }, secret), 'token_expired')
  refused(t, forge(payload, { alg: 'HS256', typ: 'JWT' }, `${secret}x`))
})

void test('a token signed with another key is refused', async (t) => {
  refused(t, forge(readPart(access, 1), { alg: 'HS256', typ: 'JWT' }, 'another key'))
  refused(t, forge(readPart(access, 1), { alg: 'HS256', typ: 'JWT' }, ''))
})

void test('alg none is refused in any spelling, with and without a signature', async (t) => {
  const payload = toPart(readPart(access, 1))
  for (const alg of ['none', 'None', 'NONE', 'nOnE', '', null, undefined]) {
    const input = `${toPart({ alg, typ: 'JWT' })}.${payload}`
    refused(t, `${input}.`)
    refused(t, input)
    refused(t, `${input}.${access.split('.')[2]}`)
  }
})

void test('other algorithms are refused, even with the right key', async (t) => {
  const payload = readPart(access, 1)
  refused(t, forge(payload, { alg: 'HS384', typ: 'JWT' }, secret, 'sha384'))
  refused(t, forge(payload, { alg: 'HS512', typ: 'JWT' }, secret, 'sha512'))
  refused(t, forge(payload, { alg: 'HS384', typ: 'JWT' }, secret))
  refused(t, forge(payload, { alg: 'hs256', typ: 'JWT' }, secret))
})

void test('key confusion: an asymmetric algorithm is refused, whatever the key', async (t) => {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const publicPem = pair.publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const payload = readPart(access, 1)
  const input = `${toPart({ alg: 'RS256', typ: 'JWT', jwk: publicPem })}.${toPart(payload)}`
  const signature = signWith('sha256', Buffer.from(input), pair.privateKey).toString('base64url')
  refused(t, `${input}.${signature}`)
  refused(t, forge(payload, { alg: 'RS256', typ: 'JWT' }, secret))
  refused(t, forge(payload, { alg: 'HS256', typ: 'JWT', kid: '../../dev/null' }, publicPem))
  t.throws(() => createTokens({ ...options, secret: publicPem }), RangeError)
})

void test('a tampered payload is refused', async (t) => {
  const [header, , signature] = access.split('.')
  const payload = toPart({ ...readPart(access, 1), role: 'superadmin' })
  refused(t, `${header}.${payload}.${signature}`)
})

void test('every other spelling of a good token is refused', async (t) => {
  const [header = '', payload = '', signature = ''] = access.split('.')
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  for (const last of alphabet) {
    const other = `${header}.${payload}.${signature.slice(0, -1)}${last}`
    if (other !== access) refused(t, other)
  }
  for (const text of [`${access}=`, `${access} `, ` ${access}`, `${access}\n`, `${access}.x`]) {
    refused(t, text)
  }
  t.equal(tokens.verifyAccess(access).sub, 'u-1')
})

void test('signed tokens with missing or mistyped claims are refused', async (t) => {
  const claims = readPart(access, 1)
  const header = { alg: 'HS256', typ: 'JWT' }
  const variants = [
    ...Object.keys(claims).map((name) => ({ ...claims, [name]: undefined })),
    { ...claims, role: 'root' },
    { ...claims, role: ['admin'] },
    { ...claims, sub: 7 },
    { ...claims, sub: '' },
    { ...claims, exp: '9999999999' },
    { ...claims, exp: 1e300 },
    { ...claims, type: 'refresh' },
    null,
    [],
    'text',
  ]
  for (const variant of variants) refused(t, forge(variant, header, secret))
  refused(t, forge(claims, { ...header, crit: ['b64'], b64: false }, secret))
  t.equal(tokens.verifyAccess(forge(claims, header, secret)).sub, 'u-1', 'the forge itself works')
})

void test('any other text is refused', async (t) => {
  for (const text of ['', '.', '..', 'a.b.c', 'null', '%', 'é.é.é', 'x'.repeat(100_000)]) {
    refused(t, text)
    t.throws(() => tokens.verifyRefresh(text), { code: 'invalid_refresh_token' })
  }
})

void test('a short secret is refused', async (t) => {
  t.throws(() => createTokens({ ...options, secret: 'x'.repeat(31) }), RangeError)
})
