import { Type } from '@sinclair/typebox'
import t from 'tap'
import { createApi } from '../../../src/api/api.js'
import type { ApiOptions } from '../../../src/api/api.js'
import { createOriginCheck } from '../../../src/api/auth/origin.js'
import { RouteReply, multipart, route } from '../../../src/api/route.js'
import { allRoutes } from '../../../src/api/routes.js'
import type { ApiRoute, Caller, CheckedInput } from '../../../src/api/route.js'
import { AppError } from '../../../src/model/errors.js'
import { HeaderBag } from '../../../src/http/request.js'
import { fakeServices } from '../../support/api.js'
import { startServer, uws } from '../../support/http.js'

const listThings = route({
  id: 'listThings',
  method: 'get',
  path: '/api/things',
  summary: 'things',
  role: 'viewer',
  query: Type.Object({
    limit: Type.Integer({ minimum: 1, maximum: 50, default: 10 }),
    flag: Type.Optional(Type.Boolean()),
    severity: Type.Optional(Type.Array(Type.String({ enum: ['ERROR', 'INFO'] }))),
  }),
  reply: Type.Unknown(),
  errors: [],
  handle: ({ query, principal }, { version }) => ({ query, version, user: principal.userId }),
})

const createThing = route({
  id: 'createThing',
  method: 'post',
  path: '/api/things',
  summary: 'thing',
  role: 'admin',
  limit: 'source_create_limit',
  bodyBytes: 1024,
  body: Type.Object({
    title: Type.String({ minLength: 1 }),
    event_ids: Type.Array(Type.Integer()),
    kind: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b')])),
  }),
  reply: Type.Object({ title: Type.String() }),
  status: 201,
  errors: ['not_found'],
  handle: ({ body }) =>
    new RouteReply(
      { title: body.title },
      { cookies: [{ name: 'T', value: 'x y', httpOnly: true, sameSite: 'Strict' }] },
    ),
})

const getThing = route({
  id: 'getThing',
  method: 'get',
  path: '/api/things/{id}',
  summary: 'thing',
  role: 'viewer',
  params: Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) }),
  reply: Type.Object({ id: Type.Integer() }),
  errors: ['not_found'],
  handle({ params }) {
    if (params.id === 404) throw new AppError('not_found', 'no', { details: { id: params.id } })
    if (params.id === 500) throw new Error('a secret path /etc')
    if (params.id === 503) {
      throw new AppError('dependency_unavailable', 'down', {
        details: { dependency: 'clickhouse' },
      })
    }
    if (params.id === 7) return { id: 'seven' } as never
    return { id: params.id }
  },
})

const upload = route({
  id: 'upload',
  method: 'post',
  path: '/api/upload',
  summary: 'upload',
  role: 'public',
  limit: 'login_limit',
  bodyBytes: 4096,
  body: multipart({
    fields: Type.Object({
      source_name: Type.String({ maxLength: 5 }),
      n: Type.Optional(Type.Integer()),
    }),
    files: ['file'],
    fileBytes: 1000,
  }),
  reply: Type.Unknown(),
  status: 202,
  errors: [],
  handle: ({ body, principal }) => ({
    name: body.fields.source_name,
    n: body.fields.n ?? null,
    bytes: body.files['file']?.data.byteLength,
    principal,
  }),
})

const logout = route({
  id: 'logout',
  method: 'post',
  path: '/api/logout',
  summary: 'logout',
  role: 'public',
  bodyBytes: 512,
  body: Type.Optional(Type.Object({ token: Type.String() })),
  reply: Type.Null(),
  status: 204,
  errors: [],
  handle: ({ body }) => new RouteReply(null, { headers: { 'X-Token': body?.token ?? 'none' } }),
})

const ownState = route({
  id: 'ownState',
  method: 'get',
  path: '/api/own-state',
  summary: 'own state',
  role: 'public',
  isInstanceLocal: true,
  reply: Type.Null(),
  errors: [],
  handle: () => null,
})

const user = { isToken: false, sources: null }
const token = { family: 'f', requiredAction: null, expiresAtMs: Number.MAX_SAFE_INTEGER, ...user }
const ANN = { userId: 'v', role: 'viewer', tokenRole: 'viewer', via: 'bearer' } as const
const CALLERS: Readonly<Record<string, Caller>> = {
  viewer: { userId: 'v', role: 'viewer', tokenRole: 'viewer', via: 'bearer', ...token },
  admin: { userId: 'a', role: 'admin', tokenRole: 'admin', via: 'bearer', ...token },
  script: { ...ANN, ...token, userId: 's', isToken: true },
  limited: { ...ANN, ...token, userId: 'l', isToken: true, sources: ['web'] },
}

function start(test: Parameters<typeof startServer>[0], more: Partial<ApiOptions> = {}) {
  const routes = createApi({
    uws,
    routes: [listThings, createThing, getThing, upload, logout, ownState],
    services: fakeServices({ version: 'x' }),
    authenticate({ headers, cookies }) {
      const cookie = cookies.get('ACCESS_TOKEN')
      if (cookie !== undefined)
        return { userId: cookie, role: 'admin', tokenRole: 'admin', via: 'cookie', ...token }
      const name = headers.first('authorization')?.slice('Bearer '.length) ?? ''
      const caller = CALLERS[name]
      if (caller === undefined) throw new AppError('unauthorized', 'no valid access token')
      return caller
    },
    consume: async () => {},
    mayUseCookies: () => true,
    checkReplies: true,
    ...more,
  })
  return startServer(test, { routes })
}

const as = (name: string, more: RequestInit = {}): RequestInit => ({
  ...more,
  headers: { authorization: `Bearer ${name}`, 'content-type': 'application/json' },
})
const post = (value: unknown, name = 'admin'): RequestInit =>
  as(name, { method: 'POST', body: typeof value === 'string' ? value : JSON.stringify(value) })

async function detail(reply: Response) {
  const body: { detail: { code: string; message: string; details: Record<string, unknown> } } =
    JSON.parse(await reply.text())
  return { status: reply.status, ...body.detail }
}

t.test(
  'query parameters are typed, take defaults, and lists come repeated or by comma',
  async (t) => {
    const { url } = start(t)
    const read = async (query: string) => {
      const reply = await fetch(`${url}/api/things${query}`, as('viewer'))
      return (JSON.parse(await reply.text()) as { query: unknown }).query
    }
    t.same(await read(''), { limit: 10 })
    t.same(await read('?limit=7&flag=true'), { limit: 7, flag: true })
    t.same(await read('?severity=ERROR&severity=INFO'), { limit: 10, severity: ['ERROR', 'INFO'] })
    t.same(await read('?severity=ERROR,INFO'), { limit: 10, severity: ['ERROR', 'INFO'] })
    t.same(await read('?severity='), { limit: 10 })
  },
)

t.test('API tokens are counted, and let in as far as a route says', async (t) => {
  const counted: string[] = []
  const things = (tokens: ApiRoute['tokens']): ApiRoute => ({
    ...getThing,
    ...(tokens === undefined ? {} : { tokens }),
  })
  const shown = { ...ownState, handle: ({ principal }: CheckedInput) => principal?.userId ?? null }
  const tried: Record<string, unknown> = {}
  for (const tokens of [undefined, 'none', 'limited'] as const) {
    const { url } = start(t, {
      routes: [things(tokens), { ...shown, reply: Type.Unknown() }],
      consume: async (limit, { userId }) => void counted.push(`${limit} ${userId}`),
    })
    for (const name of ['viewer', 'script', 'limited']) {
      const { status } = await fetch(`${url}/api/things/1`, as(name))
      const open = await (await fetch(`${url}/api/own-state`, as(name))).text()
      tried[`${tokens} ${name}`] = [status, open]
    }
  }
  const user = [200, '"v"']
  t.same(tried, {
    'undefined viewer': user,
    'undefined script': [200, '"s"'],
    'undefined limited': [403, 'null'],
    'none viewer': user,
    'none script': [403, '"s"'],
    'none limited': [403, 'null'],
    'limited viewer': user,
    'limited script': [200, '"s"'],
    'limited limited': [200, 'null'],
  })
  const countOf = (name: string): number =>
    counted.filter((one) => one === `api_token_limit ${name}`).length
  t.same([countOf('s'), countOf('l'), countOf('v')], [5, 1, 0])
})

t.test('a limit answers an address that a browser opens in the form of the route', async (t) => {
  const begin = route({
    id: 'begin',
    method: 'get',
    path: '/api/begin',
    summary: 'begins',
    role: 'public',
    limit: 'login_limit',
    onLimited: ({ code }, { version }) =>
      new RouteReply(null, { headers: { Location: `/?error=${code}&of=${version}` } }),
    reply: Type.Null(),
    status: 302,
    errors: [],
    handle: () => null,
  })
  const { url } = start(t, {
    routes: [begin],
    consume: async () => {
      throw new AppError('rate_limited', 'too many')
    },
  })
  const reply = await fetch(`${url}/api/begin`, { redirect: 'manual' })
  t.match(reply.headers.get('location'), /^\/\?error=rate_limited&of=/)
  t.equal(reply.status, 302)
  for (const { id, status, limit, onLimited } of allRoutes)
    if (status === 302 && limit !== 'none') t.type(onLimited, 'function', id)
})

t.test('every wrong query parameter is named in one 422', async (t) => {
  const { url } = start(t)
  const bad = '/api/things?limit=51&flag=maybe&severity=ERROR,NOPE'
  const error = await detail(await fetch(url + bad, as('viewer')))
  t.equal(error.status, 422)
  t.equal(error.code, 'validation_error')
  t.match(error.details['errors'], [
    { in: 'query', path: 'limit', message: /50/ },
    { in: 'query', path: 'flag', message: /boolean/ },
    { in: 'query', path: 'severity.1', message: 'must be one of ERROR, INFO' },
  ])
  const twice = await detail(await fetch(`${url}/api/things?limit=1&limit=2`, as('viewer')))
  t.match(twice.details['errors'], [{ path: 'limit', message: 'given more than once' }])
})

t.test('every wrong body field is named, an unknown one too, and nothing is coerced', async (t) => {
  const { url } = start(t)
  const send = async (value: unknown) => detail(await fetch(`${url}/api/things`, post(value)))
  const error = await send({ title: '', event_ids: [1, '2'], kind: 'c', surplus: 1 })
  t.equal(error.status, 422)
  t.same((error.details['errors'] as { path: string }[]).map(({ path }) => path).sort(), [
    'event_ids.1',
    'kind',
    'surplus',
    'title',
  ])
  t.match((await send({})).details['errors'], [
    { path: 'title', message: 'is required' },
    { path: 'event_ids', message: 'is required' },
  ])
  const broken = await send('{"title":')
  t.match(broken, { status: 422, code: 'validation_error' })
  t.match(broken.details['errors'], [{ path: '', message: 'body is not valid JSON' }])
  for (const text of [
    '{"title":"\\ud800x","event_ids":[]}',
    '{"\\uDFFF":1,"title":"a","event_ids":[]}',
  ]) {
    const half = await send(text)
    t.match(half, { status: 422 }, text)
    t.match(half.details['errors'], [{ message: 'a text has a lone surrogate' }])
  }
  const whole = await send('{"title":"\\ud83d\\ude00"}')
  t.match(whole.details['errors'], [{ path: 'event_ids' }], 'a whole pair is a character')
  t.match(await send('"text"'), { status: 422 })
  t.match(await send(''), { status: 422, details: { errors: [{ message: /required/ }] } })
})

t.test('a JSON body needs a JSON content type', async (t) => {
  const { url } = start(t)
  const send = (type: string) =>
    fetch(`${url}/api/things`, {
      method: 'post',
      body: Buffer.from('{"title":"x","event_ids":[]}'),
      headers: { authorization: 'Bearer admin', ...(type === '' ? {} : { 'content-type': type }) },
    })
  t.match(await detail(await send('text/plain')), { status: 415, code: 'unsupported_media_type' })
  t.match(await detail(await send('')), { status: 415 })
  t.equal((await send('application/json; charset=utf-8')).status, 201)
  t.equal((await send('application/vnd.api+json')).status, 201)
})

t.test('a created object comes with its status and its cookies', async (t) => {
  const { url } = start(t)
  const reply = await fetch(`${url}/api/things`, post({ title: 'x', event_ids: [] }))
  t.equal(reply.status, 201)
  t.equal(reply.headers.get('set-cookie'), 'T=x%20y; Path=/; HttpOnly; SameSite=Strict')
  t.same(await reply.json(), { title: 'x' })
})

t.test('without a token 401, with an insufficient role 403, before the body is read', async (t) => {
  const { url } = start(t)
  const anonymous = await fetch(`${url}/api/things`, { method: 'POST', body: 'junk' })
  t.match(await detail(anonymous), { status: 401, code: 'unauthorized' })
  t.match(anonymous.headers.get('www-authenticate'), /Bearer/)
  t.match(await detail(await fetch(`${url}/api/things`, post('junk', 'viewer'))), {
    status: 403,
    code: 'forbidden',
  })
})

t.test('path parameters are checked and errors keep their details', async (t) => {
  const { url, log } = start(t)
  const get = async (id: string) => detail(await fetch(`${url}/api/things/${id}`, as('viewer')))
  for (const id of ['abc', '0', '9007199254740993', '-1', '1.5']) {
    t.match(await get(id), { status: 422, details: { errors: [{ in: 'path', path: 'id' }] } }, id)
  }
  t.match(await get('404'), { status: 404, code: 'not_found', details: { id: 404 } })
  const unexpected = await get('500')
  t.equal(unexpected.status, 500)
  t.same(Object.keys(unexpected.details), ['request_id'])
  t.notMatch(JSON.stringify(unexpected), /secret/)
  t.equal(log.entries.filter(({ level }) => level === 'error').length, 1, 'logged once')
  const down = await fetch(`${url}/api/things/503`, as('viewer'))
  t.match(Number(down.headers.get('retry-after')), 1)
  t.match(await detail(down), { status: 503, details: { dependency: 'clickhouse' } })
})

t.test('a reply that breaks its schema is found when replies are checked', async (t) => {
  const { url } = start(t)
  t.match(await detail(await fetch(`${url}/api/things/7`, as('viewer'))), { status: 500 })
})

t.test(
  'an exceeded limit answers 429 with its name and Retry-After, keyed by user or address',
  async (t) => {
    const counted: unknown[] = []
    const { url } = start(t, {
      async consume(limit, subject) {
        counted.push([limit, subject])
        const details = { limit, retry_after_s: 42 }
        throw new AppError('rate_limited', 'too many', { details, retryAfterS: 42 })
      },
    })
    const limited = await fetch(`${url}/api/things`, post({}))
    t.equal(limited.headers.get('retry-after'), '42')
    t.match(await detail(limited), {
      status: 429,
      code: 'rate_limited',
      details: { limit: 'source_create_limit', retry_after_s: 42 },
    })
    t.match(await detail(await fetch(`${url}/api/upload`, { method: 'POST' })), { status: 429 })
    t.equal((await fetch(`${url}/api/things`, as('viewer'))).status, 200)
    t.same(counted, [
      ['source_create_limit', { address: '127.0.0.1', userId: 'a' }],
      ['login_limit', { address: '127.0.0.1' }],
    ])
  },
)

t.test('a form gives its checked fields and its files', async (t) => {
  const { url } = start(t)
  const send = (build: (form: FormData) => void) => {
    const form = new FormData()
    build(form)
    return fetch(`${url}/api/upload`, { method: 'POST', body: form })
  }
  const file = (bytes: number) => new Blob([new Uint8Array(bytes)])
  const good = await send((form) => {
    form.set('source_name', 'abc')
    form.set('n', '5')
    form.set('file', file(1000), 'a.csv')
  })
  t.equal(good.status, 202)
  t.same(await good.json(), { name: 'abc', n: 5, bytes: 1000, principal: null })
  const bad = await detail(await send((form) => form.set('source_name', 'abcdef')))
  t.equal(bad.status, 422)
  t.same((bad.details['errors'] as { path: string }[]).map(({ path }) => path).sort(), [
    'file',
    'source_name',
  ])
  const large = (bytes: number) => async () =>
    detail(
      await send((form) => {
        form.set('source_name', 'abc')
        form.set('file', file(bytes), 'a.csv')
      }),
    )
  t.match(await large(1001)(), { status: 413, code: 'file_too_large' })
  t.match(await large(10_000)(), { status: 413, code: 'file_too_large' })
  const json = await fetch(`${url}/api/upload`, post({}))
  t.match(await detail(json), { status: 415 })
})

t.test('an optional body may be absent, and 204 has none', async (t) => {
  const { url } = start(t)
  const without = await fetch(`${url}/api/logout`, { method: 'POST' })
  t.equal(without.status, 204)
  t.equal(without.headers.get('x-token'), 'none')
  t.equal(await without.text(), '')
  const given = await fetch(`${url}/api/logout`, post({ token: 'abc' }))
  t.equal(given.headers.get('x-token'), 'abc')
})

t.test('a change by cookie comes from a page of ours, or from no browser', async (t) => {
  const { url } = start(t, { mayUseCookies: createOriginCheck(['https://own.example']) })
  const send = async (headers: Record<string, string>) =>
    (await fetch(`${url}/api/logout`, { method: 'POST', headers })).status
  const cookie = 'ACCESS_TOKEN=u'
  t.equal(await send({ cookie, origin: 'https://own.example' }), 204)
  t.equal(await send({ cookie, origin: url }), 204, 'the docs page')
  t.equal(await send({ cookie }), 204, 'no browser')
  t.equal(await send({ origin: 'https://evil.example' }), 204, 'no cookie, no risk')
  t.equal(await send({ cookie, origin: 'https://evil.example' }), 403)
  t.equal(await send({ cookie, origin: 'null' }), 403)
  t.equal(await send({ cookie, origin: `${url}1` }), 403, 'another port is of the same site')
  t.equal(await send({ cookie, origin: `${url}.evil.example` }), 403)
})

t.test('what a browser says of the site is enough where a proxy changes the host', async (t) => {
  const mayUseCookies = createOriginCheck([])
  const headers = (origin: string | null, site: string | null): HeaderBag => {
    const bag = new HeaderBag()
    bag.add('host', 'backend:8000')
    if (origin !== null) bag.add('origin', origin)
    if (site !== null) bag.add('sec-fetch-site', site)
    return bag
  }
  t.equal(mayUseCookies(headers('https://logs.example', 'same-origin')), true)
  t.equal(mayUseCookies(headers('https://logs.example', 'same-site')), false)
  t.equal(mayUseCookies(headers('https://logs.example', 'cross-site')), false)
  t.equal(mayUseCookies(headers(null, 'cross-site')), false)
  t.equal(mayUseCookies(headers('http://BACKEND:8000', null)), true)
})

t.test('routes about this instance do not wait for the changes of others', async (t) => {
  let letGo = (): void => undefined
  const known = new Promise<void>((resolve) => (letGo = resolve))
  const { url } = start(t, { current: () => known })
  t.equal((await fetch(`${url}/api/own-state`)).status, 200)
  let isAnswered = false
  const other = fetch(`${url}/api/things`, { headers: { authorization: 'Bearer viewer' } })
  void other.then(() => (isAnswered = true))
  t.equal((await fetch(`${url}/api/own-state`)).status, 200)
  t.equal(isAnswered, false)
  letGo()
  t.equal((await other).status, 200)
})
