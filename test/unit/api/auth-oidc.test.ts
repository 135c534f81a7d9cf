import { test } from 'tap'
import { createOidc, roleOf } from '../../../src/api/auth/oidc.js'
import { createSeal } from '../../../src/coordination/seal.js'
import type { OidcProvider } from '../../../src/settings/providers.js'
import { CLIENT, createBrowser, startProvider } from '../../support/oidc.js'

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

void test('an ID token that another key has signed is refused', async (t) => {
  const real = await startProvider(`${PUBLIC}/api/auth/oidc/corp/callback`)
  t.teardown(() => real.close())
  real.account = 'ann'
  real.isForged = true
  real.claims.set('ann', { email: 'ann@example.com', groups: ['ops'] })
  const oidc = createOidc({
    providers: [providerAt(real.issuer)],
    publicUrl: PUBLIC,
    seal: createSeal('a key for tests'),
    state: { setIfAbsent: async () => true },
    log: { warn: () => undefined },
  })
  const { url, transaction } = await oidc.begin('corp')
  const back = await createBrowser().follow(url, (at) => at.startsWith(PUBLIC))
  const query = new URL(back).search.slice(1)
  await t.rejects(oidc.finish('corp', query, transaction), { code: 'oidc_failed' })
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
