import { createApi } from '../../src/api/api.js'
import { ROLES, isRole, type Role } from '../../src/model/roles.js'
import type { LimitName } from '../../src/api/auth/limits.js'
import { createQuestions } from '../../src/api/questions.js'
import type { ApiRoute, Caller } from '../../src/api/route.js'
import type { Services } from '../../src/api/services.js'
import { AppError } from '../../src/model/errors.js'
import type { ServerOptions } from '../../src/http/server.js'
import { startServer, uws } from './http.js'

/** A user of each role; `other` is a second viewer. */
export const USERS = {
  viewer: '00000000-0000-4000-8000-000000000001',
  manager: '00000000-0000-4000-8000-000000000002',
  admin: '00000000-0000-4000-8000-000000000003',
  superadmin: '00000000-0000-4000-8000-000000000004',
} as const satisfies Record<Role, string>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The reply as JSON, without a check of its fields, as a client reads it. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a reply holds is what is tested
  readonly body: any
}

interface Test {
  teardown(end: () => Promise<void>): void
}

/** Some of the services, each with some of its functions. */
export type FakeServices = {
  readonly [Name in keyof Services]?: Services[Name] extends (...parameters: never) => unknown
    ? Services[Name]
    : Partial<Services[Name]>
}

/** The services that the routes under test call; to call another one is an error of the test. */
export const fakeServices = (services: FakeServices): Services => services as Services

/** Routes on a server of their own; a token is the name of a role. */
export function startApi(
  t: Test,
  routes: readonly ApiRoute[],
  services: FakeServices,
  options: Partial<ServerOptions> = {},
) {
  const consumed: LimitName[] = []
  const retention = { cold: { untilMs: () => 0 } }
  const { url, port, log } = startServer(t, {
    ...options,
    routes: createApi({
      uws,
      routes,
      services: fakeServices({ questions: createQuestions(4), retention, ...services }),
      authenticate: (head): Caller => {
        const role = head.headers.first('authorization')?.replace('Bearer ', '')
        if (!isRole(role)) throw new AppError('unauthorized', 'who?')
        const family = 'family'
        const expiresAtMs = Date.now() + 1e6
        const user = { userId: USERS[role], isToken: false, sources: null }
        return {
          ...user,
          role,
          tokenRole: role,
          family,
          requiredAction: null,
          expiresAtMs,
          via: 'bearer',
        }
      },
      consume: async (name) => void consumed.push(name),
      mayUseCookies: () => true,
      checkReplies: true,
    }),
  })
  /** For example `call('admin', 'POST /api/things', { title: 'x' })`. With null the request has no token. */
  const call = async (
    role: Role | null | { readonly token: string },
    request: string,
    json?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> => {
    const [method = '', path = ''] = request.split(' ')
    const token = typeof role === 'object' ? role?.token : role
    const reply = await fetch(url + path, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    })
    const text = await reply.text()
    const isJson = reply.headers.get('content-type')?.includes('json') ?? false
    return {
      status: reply.status,
      headers: reply.headers,
      text,
      body: isJson ? JSON.parse(text) : null,
    }
  }
  /** Which roles a request is open to, by the status each of them gets. */
  const statuses = async (
    request: string | (() => Promise<string>),
    json?: unknown,
  ): Promise<Record<string, number>> => {
    const found: Record<string, number> = {}
    for (const role of ROLES) {
      const text = typeof request === 'string' ? request : await request()
      found[role] = (await call(role, text, json)).status
    }
    found['nobody'] = (
      await call(null, typeof request === 'string' ? request : await request(), json)
    ).status
    return found
  }
  return { url, port, log, call, statuses, consumed }
}
