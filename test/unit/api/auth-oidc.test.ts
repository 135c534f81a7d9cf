import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSign,
  type JsonWebKey,
} from 'node:crypto'

import { test } from 'tap'
import { createOidc, roleOf } from '../../../src/api/auth/oidc.js'
import { createSeal } from '../../../src/coordination/seal.js'
import type { OidcProvider } from '../../../src/settings/providers.js'
import { CLIENT, createBrowser, keyPair, startForger, startProvider } from '../../support/oidc.js'

const PUBLIC = 'https://logs.example.com'

const providerAt = (issuer: string): OidcProvider => ({
  name: 'corp',
  title: 'corp',
  issuer,
  clientId: CLIENT.client_id,
  clientSecret: CLIENT.client_secret,
  scopes: 'openid email profile',
  roleClaim: 'groups',
  roles: { ops: 'manager', root: 'superadmin' },
  defaultRole: null,
  linkByEmail: false,
  sessionHours: 12,
})

void test('an answer is good once, and for ten minutes', async (t) => {
  const real = await startProvider(`${PUBLIC}/api/auth/oidc/corp/callback`)
  t.teardown(() => real.close())
  real.account = 'ann'
  real.claims.set('ann', { email: 'ann@example.com', groups: ['ops', 'root', 'x'] })
  const clock = { ms: Date.now() }
  const used = new Set<string>()
  const oidc = createOidc({
    providers: [providerAt(real.issuer)],
    publicUrl: PUBLIC,
    seal: createSeal('a key for tests'),
    state: { setIfAbsent: async (key) => !used.has(key) && used.add(key) !== undefined },
    log: { warn: () => undefined },
    nowMs: () => clock.ms,
  })
  const answered = async () => {
    const { url, transaction } = await oidc.begin('corp')
    const sent = new URL(url).searchParams
    t.equal(sent.get('code_challenge_method'), 'S256')
    t.equal(sent.get('redirect_uri'), `${PUBLIC}/api/auth/oidc/corp/callback`)
    const back = await createBrowser().follow(url, (at) => at.startsWith(PUBLIC))
    return { query: new URL(back).search.slice(1), transaction }
  }
  const good = await answered()
  t.match(await oidc.finish('corp', good.query, good.transaction), {
    subject: 'ann',
    issuer: real.issuer,
    email: 'ann@example.com',
    isVerified: false,
    role: 'superadmin',
  })
  const failed = { code: 'oidc_failed' }
  await t.rejects(oidc.finish('corp', good.query, good.transaction), failed)
  const late = await answered()
  clock.ms += 600_000
  await t.rejects(oidc.finish('corp', late.query, late.transaction), failed)
  await t.rejects(oidc.finish('corp', late.query, `${late.transaction}x`), failed)
  await t.rejects(oidc.finish('corp', late.query, ''), failed)
  await t.rejects(oidc.begin('nobody'), { code: 'not_found' })
})

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
const written = (header: object, claims: object, sign: (text: string) => Buffer): string => {
  const text = `${encode(header)}.${encode(claims)}`
  return `${text}.${sign(text).toString('base64url')}`
}
const byKey =
  (key: JsonWebKey) =>
  (text: string): Buffer =>
    createSign('RSA-SHA256')
      .update(text)
      .sign(createPrivateKey({ key, format: 'jwk' }))
const bySecret =
  (secret: string | Buffer) =>
  (text: string): Buffer =>
    createHmac('sha256', secret).update(text).digest()

void test('an ID token that is not signed by the provider for this log-in is refused', async (t) => {
  const [own, other] = [keyPair(), keyPair()]
  const forger = await startForger(t, [own.publicKey])
  const oidc = createOidc({
    providers: [providerAt(forger.issuer)],
    publicUrl: PUBLIC,
    seal: createSeal('a key for tests'),
    state: { setIfAbsent: async () => true },
    log: { warn: () => undefined },
  })
  const finish = async (answer: (nonce: string | null) => object) => {
    const { url, transaction } = await oidc.begin('corp')
    const sent = new URL(url).searchParams
    forger.answer = () => answer(sent.get('nonce'))
    return await oidc.finish('corp', `code=x&state=${sent.get('state')}`, transaction)
  }
  const nowS = Math.floor(Date.now() / 1000)
  const facts = { iss: forger.issuer, sub: 'ann', aud: CLIENT.client_id }
  const times = { iat: nowS, exp: nowS + 60 }
  const signed =
    (claims: object, { header = {}, sign = byKey(own.privateKey) } = {}) =>
    (nonce: string | null): object => ({
      id_token: written(
        { alg: 'RS256', kid: 'signer', ...header },
        { ...facts, ...times, groups: ['root'], nonce, ...claims },
        sign,
      ),
    })
  t.match(await finish(signed({})), { subject: 'ann', role: 'superadmin' }, 'a good one')
  const key = createPublicKey({ key: own.publicKey, format: 'jwk' })
  const pem = key.export({ type: 'spki', format: 'pem' })
  const foreign = 'https://id.example.com'
  const tries: Readonly<Record<string, (nonce: string | null) => object>> = {
    'no ID token': () => ({}),
    'alg none': signed({}, { header: { alg: 'none' }, sign: () => Buffer.alloc(0) }),
    'alg None': signed({}, { header: { alg: 'None' }, sign: () => Buffer.alloc(0) }),
    'no signature': signed({}, { sign: () => Buffer.alloc(0) }),
    'another key': signed({}, { sign: byKey(other.privateKey) }),
    'a key of its own': signed(
      {},
      { header: { jwk: other.publicKey, kid: undefined }, sign: byKey(other.privateKey) },
    ),
    'the secret of the client': signed(
      {},
      { header: { alg: 'HS256' }, sign: bySecret(CLIENT.client_secret) },
    ),
    'the public key as a secret': signed({}, { header: { alg: 'HS256' }, sign: bySecret(pem) }),
    'unknown extensions': signed({}, { header: { crit: ['x'], x: 1 } }),
    'another audience': signed({ aud: 'mail' }),
    'two audiences for another party': signed({ aud: ['mail', CLIENT.client_id], azp: 'mail' }),
    'two audiences for nobody': signed({ aud: ['mail', CLIENT.client_id] }),
    'no audience': signed({ aud: undefined }),
    'another issuer': signed({ iss: foreign }),
    'no subject': signed({ sub: undefined }),
    'an empty subject': signed({ sub: '' }),
    'the nonce of another log-in': signed({ nonce: 'x'.repeat(43) }),
    'no nonce': signed({ nonce: undefined }),
    'an end that has passed': signed({ exp: nowS - 120 }),
    'no end': signed({ exp: undefined }),
    'a beginning to come': signed({ nbf: nowS + 600 }),
  }
  for (const [what, answer] of Object.entries(tries))
    await t.rejects(finish(answer), { code: 'oidc_failed' }, what)
  forger.userinfo = 'root'
  await t.rejects(finish(signed({})), { code: 'oidc_failed' }, 'the userinfo of somebody else')
})

void test('the highest role of a claim counts, wherever the claim is', (t) => {
  const of = (claims: object, roleClaim = 'groups', defaultRole: 'viewer' | null = null) =>
    roleOf({ ...providerAt(''), roleClaim, defaultRole }, { ...claims })
  t.equal(of({ groups: ['ops', 'root'] }), 'superadmin')
  t.equal(of({ groups: 'ops' }), 'manager')
  t.equal(of({ groups: ['other'] }), null)
  t.equal(of({ groups: ['other'] }, 'groups', 'viewer'), 'viewer')
  t.equal(of({ groups: ['ops'] }, 'groups', 'viewer'), 'manager')
  t.equal(of({ realm: { roles: ['ops'] } }, 'realm.roles'), 'manager')
  t.equal(of({ 'https://example.com/roles': ['ops'] }, 'https://example.com/roles'), 'manager')
  t.equal(of({ groups: ['toString', '__proto__', 1, null, {}] }), null)
  t.equal(of({}, '__proto__.constructor'), null)
  t.end()
})
