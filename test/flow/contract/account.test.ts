/** What users see and change of their own account, and what API tokens may. */
import t from 'tap'
import { allRoutes } from '../../../src/api/routes.js'
import { eventually, settled, startLiveService } from '../../support/live-service.js'
import { openKpiSocket } from '../../support/kpi-socket.js'
import { openTail } from '../../support/tail-socket.js'
import { enrol } from '../../support/second-factor.js'

const service = await startLiveService(t)

const sessionsOf = async (token: string) =>
  (await service.call('GET /api/auth/sessions', { token })).body.items
const me = async (token: string) => (await service.call('GET /api/auth/me', { token })).status

t.test('users see their sessions and end one or all others, and nobody else’s', async (t) => {
  const user = await service.newUser('viewer')
  const stranger = await service.newUser('viewer')
  const json = { email: user.email, password: user.password }
  const headers = { 'user-agent': `a phone ${'x'.repeat(300)}é` }
  const phone = (await service.call('POST /api/auth/login', { token: null, json, headers })).body
  const laptop = await service.login(user.email, user.password)

  const own = await sessionsOf(user.access_token)
  t.equal(own.length, 3)
  t.same(
    own.map(({ is_current }: { is_current: boolean }) => is_current),
    [false, false, true],
    'newest first',
  )
  t.match(own[1], {
    created_at: /Z$/,
    last_refreshed_at: null,
    expires_at: /Z$/,
    address: /^127\.0\.0\./,
    user_agent: /^a phone x+$/,
  })
  const { refresh_token } = phone
  const refresh = { token: null, json: { refresh_token } }
  const next = (await service.call('POST /api/auth/refresh', refresh)).body
  t.match((await sessionsOf(user.access_token))[1], { last_refreshed_at: /Z$/, id: own[1].id })

  const socket = await openKpiSocket(service, { query: `?token=${phone.access_token}` })
  const gone = `DELETE /api/auth/sessions/${own[1].id}`
  const notFound = { status: 404, body: { detail: { code: 'not_found' } } }
  t.match(await service.call(gone, { token: stranger.access_token }), notFound)
  t.match(await service.call(gone), notFound, 'not by a superadmin either')
  t.equal((await service.call(gone, { token: laptop.access_token })).status, 204)
  t.equal(await me(next.access_token), 401)
  t.equal(await me(phone.access_token), 401)
  t.equal(await socket.whenClosed(), 1008)
  t.match(await service.call(gone, { token: laptop.access_token }), notFound)

  const others = await service.call('DELETE /api/auth/sessions', { token: laptop.access_token })
  t.match(others, { status: 200, body: { ended: 1 } })
  t.equal(await me(user.access_token), 401)
  t.equal(await me(laptop.access_token), 200)
  t.equal(await me(stranger.access_token), 200)
  t.equal((await sessionsOf(laptop.access_token)).length, 1)
})

const logIn = (json: object) => service.call('POST /api/auth/login', { token: null, json })
const outcomesOf = async (action: string, target: string): Promise<string[]> => {
  const { body } = await service.call(`GET /api/monitoring/audit?action=${action}&limit=200`)
  const own = body.items.filter((item: { target: string }) => item.target === target)
  return own.map(({ outcome }: { outcome: string }) => outcome)
}

t.test('with a second factor a login needs a code, until it is disabled', async (t) => {
  const user = await service.newUser('manager')
  const { email, password, access_token: token } = user
  const factor = await enrol(service, user)
  const status = await service.call('GET /api/auth/second-factor', { token })
  t.match(status.body, { enabled: true, recovery_codes_left: 10 })

  t.match(await logIn({ email, password }), {
    status: 401,
    body: { detail: { code: 'second_factor_required' } },
  })
  t.match(await logIn({ email, password, code: factor.used }), {
    status: 401,
    body: { detail: { code: 'code_reused' } },
  })
  const answer = await logIn({ email, password, code: factor.code(1) })
  t.equal(answer.status, 200)
  t.match(answer.headers.getSetCookie().join(), /ACCESS_TOKEN=.*REFRESH_TOKEN=/)
  t.match(await outcomesOf('login', email), ['ok', 'code_reused', 'second_factor_required', 'ok'])

  const [first, second] = factor.recovery
  const proof = { current_password: password, code: first }
  const renewed = await service.call('POST /api/auth/second-factor/recovery-codes', {
    token,
    json: proof,
  })
  t.equal(renewed.body.recovery_codes.length, 10)
  t.equal((await logIn({ email, password, code: second })).status, 401)
  const off = { current_password: password, code: renewed.body.recovery_codes[0] }
  const disabled = await service.call('POST /api/auth/second-factor/disable', { token, json: off })
  t.equal(disabled.status, 204)
  t.equal((await logIn({ email, password })).status, 200)
  const trail = (await service.call('GET /api/monitoring/audit?limit=200')).text
  for (const action of ['beginSecondFactor', 'confirmSecondFactor', 'disableSecondFactor'])
    t.match(trail, action)
  for (const secret of [factor.secret, factor.used, first, second, password])
    t.notOk(trail.includes(String(secret)), 'no secret is in the trail')
})

t.test('an admin removes a second factor that was lost', async (t) => {
  const user = await service.newUser('viewer')
  const { id, email } = user
  await enrol(service, user)
  t.match((await service.call(`GET /api/users/${id}`)).body, { has_second_factor: true })
  const reset = { password: 'another password' }
  t.equal((await service.call(`PUT /api/users/${id}/password`, { json: reset })).status, 200)
  t.match(
    await logIn({ email, ...reset }),
    { status: 401, body: { detail: { code: 'second_factor_required' } } },
    'a new password leaves it',
  )
  const removed = await service.call(`DELETE /api/users/${id}/second-factor`)
  t.equal(removed.status, 204)
  t.match(await outcomesOf('removeSecondFactor', id), ['ok'])
  t.equal(await me(user.access_token), 401, 'the sessions end')
  t.equal((await logIn({ email, ...reset })).status, 200)
})

const makeToken = async (json: object) => {
  const made = await service.call('POST /api/api-tokens', { json: { name: 'script', ...json } })
  if (made.status !== 201) throw new Error(made.text)
  return made.body
}

t.test('an API token is shown once, has a role and no session, and ends at once', async (t) => {
  const manager = await makeToken({ role: 'manager', expires_at: 'now+1h' })
  const { token } = manager
  t.match(token, /^lat_[\w-]{40}$/)
  t.match(await service.call('GET /api/auth/me', { token }), {
    status: 200,
    body: { id: manager.id, role: 'manager', email: '', api_token: { name: 'script' } },
  })
  const listed = await service.call('GET /api/api-tokens')
  t.notOk(listed.text.includes(token.slice(8)), 'only the beginning is listed')
  const isUsed = (text: string): boolean => /"last_used_at":"2/.test(text)
  await eventually(async () => (await service.call('GET /api/api-tokens')).text, isUsed)

  const alert = { title: 'by a script', severity: 'P4' }
  const made = await service.call('POST /api/alerts', { token, json: alert })
  t.equal(made.status, 201, 'with the role of the token')
  t.equal((await service.call('GET /api/users', { token })).status, 403, 'and no further')
  const admin = await makeToken({ role: 'admin' })
  const forbidden = { status: 403, body: { detail: { code: 'forbidden' } } }
  const user = { email: 'made@example.com', password: 'long enough for it' }
  for (const [request, json] of [
    ['GET /api/api-tokens', undefined],
    ['POST /api/api-tokens', { name: 'child' }],
    ['POST /api/users', user],
    ['GET /api/auth/sessions', undefined],
    ['POST /api/auth/second-factor', { current_password: 'x' }],
  ] as const)
    t.match(
      await service.call(request, { token: admin.token, ...(json === undefined ? {} : { json }) }),
      forbidden,
      request,
    )
  const { body } = await service.call('GET /api/monitoring/audit?limit=50', { token: admin.token })
  const entries: readonly { readonly actor_id: string; readonly action: string }[] = body.items
  t.ok(entries.some((one) => one.actor_id === manager.id && one.action === 'createAlert'))
  t.ok(entries.some((one) => one.action === 'createApiToken'))

  const socket = await openKpiSocket(service, { query: `?token=${token}` })
  await eventually(
    async () => socket.texts.length,
    (n) => n > 0,
  )
  const tail = await openTail(service, token)
  t.match(await tail.subscribe({}), { type: 'tail:subscribed' })
  t.equal((await service.call(`DELETE /api/api-tokens/${manager.id}`)).status, 204)
  t.equal(await socket.whenClosed(), 1008)
  const closed = await eventually(async () => tail.closed(), Boolean)
  t.match(closed, { code: 1008, reason: 'the API token was revoked' })
  t.equal((await service.call('GET /api/auth/me', { token })).status, 401)
  const unknown = `lat_${'x'.repeat(40)}`
  t.equal((await service.call('GET /api/auth/me', { token: unknown })).status, 401)
})

t.test('who makes API tokens rules the role, and a wrong input is refused', async (t) => {
  const { access_token: token } = await service.newUser('admin')
  const tryIt = async (json: object) => {
    const reply = await service.call('POST /api/api-tokens', { token, json })
    return reply.body.detail?.code ?? reply.status
  }
  t.equal(await tryIt({ name: 'x', role: 'superadmin' }), 'forbidden')
  t.equal(await tryIt({ name: 'x', role: 'admin' }), 'forbidden')
  t.equal(await tryIt({ name: 'x', role: 'manager' }), 201)
  t.equal(await tryIt({ name: 'x', role: 'manager', sources: ['a'] }), 'validation_error')
  t.equal(await tryIt({ name: 'x', sources: [] }), 'validation_error')
  t.equal(await tryIt({ name: 'x', expires_at: 'now-1h' }), 'validation_error')
  t.equal(await tryIt({ name: ' ' }), 'validation_error')
  const root = await makeToken({ role: 'superadmin' })
  const ended = await service.call(`DELETE /api/api-tokens/${root.id}`, { token })
  t.equal(ended.status, 403, 'nor ends those of a role above')
})

t.test('a token that is limited to sources reads nothing of others, on any way', async (t) => {
  const trace = 'feedc0defeedc0defeedc0defeedc0de'
  const event = (source: string, i: number, more: object = {}) => ({
    source,
    host: `${source}-host`,
    severity: 'error',
    message: `${source} failed ${i}: ${source}secret`,
    trace_id: trace,
    [`${source}attribute`]: `${source}secret`,
    ...more,
  })
  const { token } = await makeToken({ sources: ['mine', 'absent'] })
  const tail = await openTail(service, token)
  t.match(await tail.subscribe({ q: 'source:theirs OR failed' }), { type: 'tail:subscribed' })
  for (const source of ['mine', 'theirs'])
    await service.ingest([0, 1, 2].map((i) => event(source, i)))
  await service.ingest([event('theirs', 3, { type: 'trace', span_id: '0123456789abcdef' })])
  await settled(service)
  const all = (await service.call('GET /api/logs?q=failed')).body.items
  const idOf = (name: string): number =>
    all.find(({ source }: { source: string }) => source === name).id

  const seen = await tail.untilMatched(3)
  t.notMatch(JSON.stringify(seen), /theirs/)
  const kpis = await openKpiSocket(service, { query: `?token=${token}` })
  t.equal(await kpis.whenClosed(), 1008)

  const asked: Readonly<Record<string, readonly string[]>> = {
    listEvents: ['', '?q=source:theirs', '?q=fail* OR source:theirs', '?search=theirssecret'],
    getEvent: [`/${idOf('mine')}`],
    histogram: ['?by=source', '?by=theirsattribute', '?q=theirssecret&by=source'],
    facets: ['?fields=source,host,theirsattribute'],
    stats: ['?by=source&metrics=count,distinct(host)', '?by=template&step=1h&start_time=now-2h'],
    exportEvents: ['', '?format=csv', '?q=source:theirs'],
    fields: ['', '?q=failed', '?q=theirssecret'],
    parseQuery: [''],
    eventContext: [`/${idOf('mine')}/context`],
    getTrace: [`/${trace}`],
    usual: ['', '?q=source:theirs'],
    topTemplates: ['', '?order=first_seen'],
    timeSeries: ['', '?fill=true'],
    calendar: ['', '?priority=P1,P2,P3,P4'],
    severityBreakdown: [''],
    listSources: ['', '?limit=1'],
    me: [''],
  }
  for (const route of allRoutes.filter(({ role }) => role !== 'public')) {
    const [path = ''] = route.path.split('/{')
    const questions = asked[route.id] ?? []
    t.equal(questions.length > 0, route.tokens === 'limited', `${route.id} is tried`)
    if (questions.length === 0) {
      const request = `${route.method.toUpperCase()} ${route.path.replaceAll(/\{\w+\}/g, '1')}`
      t.equal((await service.call(request, { token })).status, 403, route.id)
    }
    for (const question of questions) {
      const json = route.body === null ? {} : { json: { q: 'theirs', position: 6 } }
      const request = `${route.method.toUpperCase()} ${path}${question}`
      const reply = await service.call(request, { token, ...json })
      t.equal(reply.status, 200, `${request} ${reply.text.slice(0, 200)}`)
      // What was asked for by name is named in the reply.
      const named = /(?:by|fields)=\S*theirsattribute/.test(request) ? 'theirsattribute' : '-'
      if (route.id !== 'parseQuery') t.notMatch(reply.text.replaceAll(named, ''), /theirs/, request)
    }
  }
  const get = async (path: string) => (await service.call(`GET ${path}`, { token })).body
  t.equal((await get('/api/logs')).items.length, 3)
  t.equal((await get('/api/logs/histogram')).total, 3)
  t.equal((await get('/api/logs/facets')).total, 3)
  t.equal((await get('/api/analytics/severity-breakdown')).total, 3)
  t.equal((await get('/api/logs/meta/calendar')).at(-1).value, 3)
  const series = await get('/api/logs/meta/timeseries')
  t.equal(
    series.buckets.reduce((n: number, { ERROR }: { ERROR: number }) => n + ERROR, 0),
    3,
  )
  t.match(await get('/api/logs/meta/templates'), [{ occurrence_count: 3, source: 'mine' }])
  t.match(await get(`/api/traces/${trace}`), { spans: [], logs: { length: 3 }, sources: ['mine'] })
  t.equal((await get('/api/logs?q=source:theirs')).items.length, 0)
  t.equal((await get('/api/logs?q=-source:mine')).items.length, 0)
  for (const path of [`/api/logs/${idOf('theirs')}`, `/api/logs/${idOf('theirs')}/context`])
    t.equal((await get(path)).detail.code, 'not_found', path)
  t.equal((await get(`/api/logs/export?resume=${idOf('theirs')}`)).detail.code, 'invalid_cursor')
  for (const path of [
    '/api/logs',
    '/api/logs/meta/timeseries',
    '/api/analytics/severity-breakdown',
  ])
    t.equal((await get(`${path}?source=theirs`)).detail.code, 'forbidden', path)
  // A cursor that another caller got goes on within the sources of the token.
  const whole = (await service.call('GET /api/logs?limit=1&q=failed')).body
  const rest = await get(`/api/logs?q=failed&cursor=${encodeURIComponent(whole.next_cursor)}`)
  t.ok(rest.items.length > 0)
  t.notMatch(JSON.stringify(rest), /theirs/)
  const around = `/api/logs/${idOf('mine')}/context`
  const { before } = (await service.call(`GET ${around}?before=1&after=0`)).body
  const further = await get(`${around}?cursor=${encodeURIComponent(before.next_cursor)}`)
  t.equal(further.before.items.length > 0, true, JSON.stringify(further).slice(0, 200))
  t.notMatch(JSON.stringify(further), /theirs/)
  tail.end()
})
