/** Providers that break, stall, move or lie about where they are, at each step of a login. */
import { createPrivateKey, createSign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { createOidc } from '../../../src/api/auth/oidc.js'
import { createSeal } from '../../../src/coordination/seal.js'
import { CLIENT, keyPair } from '../../support/oidc.js'

const PUBLIC = 'https://logs.example.com'
const PATHS = ['/.well-known/openid-configuration', '/token', '/jwks', '/me'] as const
type Path = (typeof PATHS)[number]

/** A provider whose replies a test replaces. */
async function startUnruly() {
  const state = {
    key: keyPair(),
    kid: 'first',
    prefix: '',
    nonce: '',
    subject: 'ann',
    asked: [] as string[],
    answers: new Map<string, (response: ServerResponse) => void>(),
  }
  const idToken = (): string => {
    const nowS = Math.floor(Date.now() / 1000)
    const parts = [
      { alg: 'RS256', kid: state.kid },
      {
        iss: issuer,
        sub: state.subject,
        aud: CLIENT.client_id,
        iat: nowS,
        exp: nowS + 60,
        nonce: state.nonce,
        email: 'ann@example.com',
        groups: ['ops'],
      },
    ]
    const text = parts
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    const key = createPrivateKey({ key: state.key.privateKey, format: 'jwk' })
    return `${text}.${createSign('RSA-SHA256').update(text).sign(key).toString('base64url')}`
  }
  const replies: Readonly<Record<Path, () => object>> = {
    '/.well-known/openid-configuration': () => ({
      issuer,
      authorization_endpoint: `${issuer}/auth`,
      token_endpoint: `${issuer}${state.prefix}/token`,
      userinfo_endpoint: `${issuer}${state.prefix}/me`,
      jwks_uri: `${issuer}${state.prefix}/jwks`,
    }),
    '/token': () => ({ access_token: 'x', token_type: 'Bearer', id_token: idToken() }),
    '/jwks': () => ({ keys: [{ ...state.key.publicKey, kid: state.kid }] }),
    '/me': () => ({ sub: state.subject }),
  }
  const server = createServer((request, response) => {
    const url = request.url ?? ''
    state.asked.push(url)
    const path = PATHS.find((one) => url === one || url === state.prefix + one)
    const answer = state.answers.get(path ?? '')
    response.setHeader('Content-Type', 'application/json')
    if (answer !== undefined) return answer(response)
    const isThere = path !== undefined && (path === PATHS[0] || url === state.prefix + path)
    if (!isThere) response.statusCode = 404
    response.end(JSON.stringify(isThere ? replies[path]() : {}))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const clock = { ms: Date.now() }
  const oidc = createOidc({
    providers: [
      {
        name: 'corp',
        title: 'corp',
        issuer,
        clientId: CLIENT.client_id,
        clientSecret: CLIENT.client_secret,
        scopes: 'openid',
        roleClaim: 'groups',
        roles: { ops: 'manager' },
        defaultRole: null,
        linkByEmail: false,
        sessionHours: 12,
      },
    ],
    publicUrl: PUBLIC,
    seal: createSeal('a key for tests'),
    state: { setIfAbsent: async () => true },
    log: { warn: () => undefined },
    nowMs: () => clock.ms,
  })
  const logIn = async () => {
    const { url, transaction } = await oidc.begin('corp')
    const sent = new URL(url).searchParams
    state.nonce = sent.get('nonce') ?? ''
    return await oidc.finish('corp', `code=x&state=${sent.get('state')}`, transaction)
  }
  return { state, logIn, clock, issuer }
}

const refusal = { name: 'AppError', code: /^(?:oidc_failed|dependency_unavailable)$/ }

const FAULTS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  'a connection that ends in the head': (response) => response.destroy(),
  'a connection that ends in the body': (response) => {
    response.write('{"issuer":')
    setImmediate(() => response.destroy())
  },
  'a body without end': (response) => {
    const more = (): void => {
      while (!response.destroyed && response.write('[ '.repeat(32_000))) continue
    }
    response.on('drain', more)
    more()
  },
  'a compressed body without end': (response) => {
    // An empty block of DEFLATE, again and again, and then one that is long.
    response.setHeader('Content-Encoding', 'gzip')
    const block = Buffer.from([0, 255, 255, 0, 0, ...Array.from({ length: 65_535 }, () => 32)])
    response.write(Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]))
    const more = (): void => {
      while (!response.destroyed && response.write(block)) continue
    }
    response.on('drain', more)
    more()
  },
  'a redirect': (response) => {
    response.writeHead(307, { Location: '/elsewhere' })
    response.end()
  },
  'another type': (response) => {
    response.setHeader('Content-Type', 'text/html')
    response.end('<script>alert(1)</script>')
  },
  'no JSON': (response) => void response.end('{"issuer":'),
  'JSON of another kind': (response) => void response.end('["__proto__"]'),
  null: (response) => void response.end('null'),
  'a fault': (response) => {
    response.statusCode = 500
    response.end('{"error":"<script>"}')
  },
}

for (const path of PATHS)
  t.test(`${path} may answer whatever it wants`, async (t) => {
    for (const [what, answer] of Object.entries(FAULTS)) {
      const { state, logIn, clock } = await startUnruly()
      state.answers.set(path, answer)
      await t.rejects(logIn(), refusal, what)
      t.notOk(state.asked.includes('/elsewhere'), 'no redirect is followed')
      state.answers.clear()
      clock.ms += 60_000
      t.match(await logIn(), { subject: 'ann', role: 'manager' }, `after ${what}`)
    }
  })

t.test('a provider that gets new keys or addresses is read again after a failure', async (t) => {
  const { state, logIn, clock } = await startUnruly()
  await logIn()
  state.key = keyPair()
  state.kid = 'second'
  await t.rejects(logIn(), refusal, 'no more than once a minute')
  const { length } = state.asked
  await t.rejects(logIn(), refusal)
  t.notOk(state.asked.slice(length).includes(PATHS[0]))
  clock.ms += 60_000
  await t.rejects(logIn(), refusal)
  t.match(await logIn(), { subject: 'ann' })
  state.prefix = '/v2'
  clock.ms += 60_000
  await t.rejects(logIn(), refusal)
  t.match(await logIn(), { subject: 'ann' })
})

t.test('a subject has at most 255 characters', async (t) => {
  const { state, logIn } = await startUnruly()
  state.subject = 'x'.repeat(255)
  t.match(await logIn(), { subject: state.subject })
  state.subject = 'x'.repeat(256)
  await t.rejects(logIn(), refusal)
})
