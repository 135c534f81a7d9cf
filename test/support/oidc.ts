import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'

/** What a provider says of a user beside the subject. */
export type Claims = Readonly<Record<string, unknown>>

export interface TestProvider {
  readonly issuer: string
  /** Who is logged in at the provider now; null refuses. */
  account: string | null
  readonly claims: Map<string, Claims>
  readonly close: () => Promise<void>
}

export const CLIENT = { client_id: 'logs', client_secret: 'a secret for the tests of log-ins' }

export const keyPair = () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const named = { kid: 'signer', alg: 'RS256', use: 'sig' }
  return {
    publicKey: { ...publicKey.export({ format: 'jwk' }), ...named },
    privateKey: { ...privateKey.export({ format: 'jwk' }), ...named },
  }
}

/** A real provider of OpenID Connect on a port of its own, whose user consents to everything. */
export async function startProvider(
  redirectUri: string,
  /** How clients send their secret. */
  method: 'client_secret_basic' | 'client_secret_post' = 'client_secret_basic',
): Promise<TestProvider> {
  const server = createServer((request, response) => void handle(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const test: TestProvider = {
    issuer,
    account: null,
    claims: new Map(),
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  const provider = new Provider(issuer, {
    jwks: { keys: [keyPair().privateKey] },
    clientAuthMethods: [method],
    clients: [{ ...CLIENT, redirect_uris: [redirectUri], token_endpoint_auth_method: method }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups'] },
    cookies: { keys: ['a key for the cookies of tests'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
    findAccount: (_: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId, ...test.claims.get(accountId) }),
    }),
    ttl: { Session: 60, Interaction: 60, Grant: 60, AccessToken: 60, IdToken: 60 },
  })
  const callback = provider.callback()
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // The library takes both forms, whatever it is told.
    const isBasic = request.headers.authorization?.startsWith('Basic ') === true
    if (isBasic && method !== 'client_secret_basic') return void response.writeHead(401).end()
    if (request.url?.startsWith('/interaction/') !== true) return callback(request, response)
    const { prompt, params, session } = await provider.interactionDetails(request, response)
    const merge = { mergeWithLastSubmission: prompt.name !== 'login' }
    if (test.account === null) {
      const refusal = { error: 'access_denied', error_description: '<script>alert(1)</script>' }
      return await provider.interactionFinished(request, response, refusal, merge)
    }
    if (prompt.name === 'login') {
      const result = { login: { accountId: test.account, remember: false } }
      return await provider.interactionFinished(request, response, result, merge)
    }
    const of = { accountId: session?.accountId ?? '', clientId: params.client_id }
    const grant = new provider.Grant(of)
    grant.addOIDCScope('openid email profile')
    const result = { consent: { grantId: await grant.save() } }
    await provider.interactionFinished(request, response, result, merge)
  }
  return test
}

export interface Forger {
  readonly issuer: string
  /** What the token endpoint replies beside the access token. */
  answer: () => object
  /** The subject of the userinfo. */
  userinfo: string
}

/** A provider that answers whatever a test wants. */
export async function startForger(
  t: { teardown(end: () => void): void },
  keys: readonly object[],
): Promise<Forger> {
  const server = createServer((request, response) => {
    const replies: Readonly<Record<string, () => object>> = {
      '/.well-known/openid-configuration': () => ({
        issuer: forger.issuer,
        authorization_endpoint: `${forger.issuer}/auth`,
        token_endpoint: `${forger.issuer}/token`,
        userinfo_endpoint: `${forger.issuer}/me`,
        jwks_uri: `${forger.issuer}/jwks`,
      }),
      '/jwks': () => ({ keys }),
      '/token': () => ({ access_token: 'x', token_type: 'Bearer', ...forger.answer() }),
      '/me': () => ({ sub: forger.userinfo }),
    }
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify(replies[request.url ?? '']?.() ?? {}))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const forger: Forger = { issuer, answer: () => ({}), userinfo: 'ann' }
  return forger
}

/** A browser that keeps cookies by the host and port, and follows redirects one by one. */
export function createBrowser() {
  const jars = new Map<string, Map<string, string>>()
  const jarOf = (url: URL): Map<string, string> => {
    const jar = jars.get(url.host) ?? new Map<string, string>()
    jars.set(url.host, jar)
    return jar
  }
  const visit = async (address: string) => {
    const url = new URL(address)
    const jar = jarOf(url)
    const cookie = Array.from(jar, ([name, value]) => `${name}=${value}`).join('; ')
    const reply = await fetch(url, { redirect: 'manual', headers: cookie === '' ? {} : { cookie } })
    for (const set of reply.headers.getSetCookie()) {
      const [pair = ''] = set.split(';')
      const [name = '', value = ''] = pair.split(/=(.*)/s)
      if (/max-age=0|expires=Thu, 01 Jan 1970/i.test(set)) jar.delete(name)
      else jar.set(name, value)
    }
    const location = reply.headers.get('location')
    const next = location === null ? null : new URL(location, url).href
    return { status: reply.status, next, reply }
  }
  return {
    visit,
    /** Goes on until `isThere`, or where nothing leads on. @returns the address */
    follow: async (start: string, isThere: (url: string) => boolean): Promise<string> => {
      let url = start
      for (let hops = 0; hops < 12 && !isThere(url); hops++) {
        const { next, status, reply } = await visit(url)
        if (next === null) throw new Error(`${url} is answered ${status} ${await reply.text()}`)
        url = next
      }
      return url
    },
    cookie: (address: string, name: string): string | undefined =>
      jarOf(new URL(address)).get(name),
  }
}
