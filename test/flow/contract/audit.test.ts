/** The audit trail of the built service: actor, action, time, address and outcome. */
import { request as httpRequest } from 'node:http'
import t, { type Test } from 'tap'
import { ADMIN, METRICS_TOKEN } from '../../support/service.js'
import { collect, eventually, settled, startLiveService } from '../../support/live-service.js'

// oxlint-disable typescript/no-explicit-any -- the test checks the content of replies

/** An address of this machine that stands for the proxy; every other one is a stranger. */
const PROXY = '127.0.0.2'
const startedMs = Date.now()
const service = await startLiveService(t, { TRUSTED_PROXIES: PROXY })
const boss = (await service.call('GET /api/auth/me')).body

const trailOf = async (query: string): Promise<any[]> =>
  (await service.call(`GET /api/monitoring/audit?limit=200${query}`)).body.items

/** The entries of an action about something, newest first, once one has this outcome. */
const entriesOf = (action: string, target: string, outcome: string): Promise<any[]> =>
  eventually(
    async () => (await trailOf(`&action=${action}`)).filter((entry) => entry.target === target),
    (found) => found.some((entry) => entry.outcome === outcome),
  )

interface Done {
  readonly action: string
  readonly target: string
  readonly outcome?: string
  readonly actor?: string | null
  readonly ip?: string
}

/** Checks actor, target, time and address of the newest entry of an action. @returns its detail */
async function recorded(test: Pick<Test, 'equal' | 'ok'>, done: Done): Promise<any> {
  const { action, target, outcome = 'ok', actor = boss.id, ip = '127.0.0.1' } = done
  const entries = await entriesOf(action, target, outcome)
  const entry = entries.find((one) => one.outcome === outcome)
  const { actor_id, at } = entry
  test.equal(actor_id, actor, `actor of ${action}`)
  test.equal(entry.ip, ip, `from where, of ${action}`)
  test.ok(Date.parse(at) >= startedMs - 1 && Date.parse(at) <= Date.now() + 1, at)
  return entry.detail
}

const logIn = (email: string, password: string) =>
  service.call('POST /api/auth/login', { token: null, json: { email, password } })

t.test('logins are recorded with the user, the failed ones without', async (t) => {
  const { id, email, password } = await service.newUser('viewer')
  await recorded(t, { action: 'login', target: email, actor: id })
  t.equal((await logIn(email, 'wrong password')).status, 401)
  const wrong = { action: 'login', outcome: 'invalid_credentials', actor: null }
  await recorded(t, { ...wrong, target: email })
  t.equal((await logIn('nobody@example.com', 'wrong password')).status, 401)
  await recorded(t, { ...wrong, target: 'nobody@example.com' })
  await service.call(`PATCH /api/users/${id}`, { json: { is_active: false } })
  t.equal((await logIn(email, password)).status, 403)
  await recorded(t, { ...wrong, target: email, outcome: 'account_disabled' })
  const text = JSON.stringify(await trailOf(''))
  for (const secret of [password, 'wrong password', ADMIN.password]) t.notOk(text.includes(secret))
})

t.test('changes of users, roles, passwords and keys are recorded', async (t) => {
  const json = { email: 'made@example.com', password: 'made for the trail', role: 'viewer' }
  const made = (await service.call('POST /api/users', { json })).body
  t.same(await recorded(t, { action: 'createUser', target: json.email }), {
    role: 'viewer',
    id: made.id,
  })
  const change = { email: 'moved@example.com', is_active: true }
  await service.call(`PATCH /api/users/${made.id}`, { json: change })
  t.same(await recorded(t, { action: 'changeUser', target: made.id }), change)
  await service.call(`PUT /api/users/${made.id}/role`, { json: { role: 'manager' } })
  t.same(await recorded(t, { action: 'setUserRole', target: made.id }), { role: 'manager' })
  const password = { password: 'another one for the trail' }
  await service.call(`PUT /api/users/${made.id}/password`, { json: password })
  t.same(await recorded(t, { action: 'setUserPassword', target: made.id }), {})
  await service.call(`DELETE /api/users/${made.id}`)
  await recorded(t, { action: 'deleteUser', target: made.id })
  const key = await service.call('POST /api/ingest-keys', { json: { name: 'trail' } })
  t.match(await recorded(t, { action: 'createIngestKey', target: 'trail' }), { id: key.body.id })
  await service.call(`DELETE /api/ingest-keys/${key.body.id}`)
  await recorded(t, { action: 'deleteIngestKey', target: key.body.id })
  const facts = { name: 'script', role: 'manager', expires_at: 'now+1h' }
  const script = (await service.call('POST /api/api-tokens', { json: facts })).body
  t.same(
    await recorded(t, { action: 'createApiToken', target: 'script' }),
    { role: 'manager', expires_at: 'now+1h', id: script.id },
    'whose later entries are known by the id',
  )
  const text = JSON.stringify(await trailOf(''))
  for (const secret of [json.password, password.password, key.body.key])
    t.notOk(text.includes(secret), 'no secret is in the trail')
})

t.test('deletions and corrections are recorded', async (t) => {
  await service.ingest([{ source: 'to-go', severity: 'ERROR', message: 'press 7 is on fire' }])
  await settled(service)
  const [event] = (await service.call('GET /api/logs?source=to-go')).body.items
  const json = { priority: 'P1', reason: 'it burns' }
  t.equal((await service.call(`PATCH /api/logs/${event.id}/priority`, { json })).status, 200)
  t.same(await recorded(t, { action: 'correctPriority', target: String(event.id) }), json)
  t.equal((await service.call('DELETE /api/sources/to-go')).status, 200)
  await recorded(t, { action: 'deleteSource', target: 'to-go' })
  const missing = await service.call('DELETE /api/sources/never-was')
  t.equal(missing.status, 404)
  await recorded(t, { action: 'deleteSource', target: 'never-was', outcome: 'not_found' })
  const others: readonly [path: string, action: string, json: object][] = [
    ['applications', 'deleteApplication', { name: 'x', environment: 'dev' }],
    ['incidents', 'deleteIncident', { title: 'x', severity: 'P3' }],
    ['tasks', 'deleteTask', { title: 'x' }],
  ]
  for (const [path, action, json] of others) {
    const made = await service.call(`POST /api/${path}`, { json })
    t.equal(made.status, 201, made.text)
    const named = { action: action.replace('delete', 'create'), target: 'x' }
    t.match(await recorded(t, named), { id: made.body.id })
    await service.call(`DELETE /api/${path}/${made.body.id}`)
    await recorded(t, { action, target: made.body.id })
  }
})

t.test('refused requests are recorded, once a minute', async (t) => {
  const { id, access_token: token } = await service.newUser('viewer')
  const tries: readonly [request: string, action: string, target: string][] = [
    ['DELETE /api/monitoring/clear-all', 'clearAll', ''],
    ['DELETE /api/sources/shop', 'deleteSource', 'shop'],
    [`PUT /api/users/${id}/role`, 'setUserRole', id],
    ['GET /api/monitoring/audit', 'listAudit', ''],
    ['GET /api/users', 'listUsers', ''],
  ]
  for (let i = 0; i < 3; i++)
    for (const [request] of tries) t.equal((await service.call(request, { token })).status, 403)
  for (const [, action, target] of tries)
    await recorded(t, { action, target, outcome: 'forbidden', actor: id })
  const refused = (await trailOf(`&actor_id=${id}`)).filter((e) => e.outcome === 'forbidden')
  t.equal(refused.length, tries.length)
  const cookie = `ACCESS_TOKEN=${token}`
  const headers = { cookie, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  t.equal((await service.call('POST /api/alerts/read-all', { token: null, headers })).status, 403)
  await recorded(t, { action: 'readAllAlerts', target: '', outcome: 'forbidden', actor: id })
})

/** A login with the wrong password, from an address of this machine. */
const loginFrom = (localAddress: string, email: string, forwarded: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': forwarded }
    const url = `${service.api}/api/auth/login`
    const sent = httpRequest(url, { method: 'POST', localAddress, headers }, (reply) => {
      reply.resume().once('end', () => resolve(reply.statusCode ?? 0))
    })
    sent.once('error', reject)
    sent.end(JSON.stringify({ email, password: 'not the password' }))
  })

t.test('the address is the one that the trusted proxy saw; nobody can claim another', async (t) => {
  const failed = { action: 'login', outcome: 'invalid_credentials', actor: null }
  const ways: readonly [from: string, forwarded: string, shown: string][] = [
    ['127.0.0.1', '198.51.100.1', '127.0.0.1'],
    ['127.0.0.3', `198.51.100.1, ${PROXY}`, '127.0.0.3'],
    [PROXY, '192.0.2.7', '192.0.2.7'],
    [PROXY, '198.51.100.1, 192.0.2.7', '192.0.2.7'],
    [PROXY, '198.51.100.1, 192.0.2.7, junk', PROXY],
    [PROXY, `198.51.100.1, 2001:db8::7, ${PROXY}`, '2001:db8::7'],
  ]
  for (const [i, [from, forwarded, ip]] of ways.entries()) {
    const target = `way-${i}@example.com`
    t.equal(await loginFrom(from, target, forwarded), 401)
    await recorded(t, { ...failed, target, ip })
  }
})

t.test('only admins read the trail, and clear-all leaves it', async (t) => {
  for (const role of ['viewer', 'manager', 'admin', 'superadmin']) {
    const { access_token: token } = await service.newUser(role)
    const { status } = await service.call('GET /api/monitoring/audit', { token })
    t.equal(status, role.endsWith('admin') ? 200 : 403, role)
  }
  t.equal((await service.call('GET /api/monitoring/audit', { token: null })).status, 401)
  const before = await trailOf('')
  t.ok(before.length > 30, `${before.length}`)
  t.equal((await service.call('DELETE /api/monitoring/clear-all')).status, 200)
  await recorded(t, { action: 'clearAll', target: '' })
  const after = new Set((await trailOf('')).map(({ id }) => id))
  t.ok(
    before.every(({ id }) => after.has(id)),
    'all of it is still there',
  )
  const methods = (await service.call('DELETE /api/monitoring/audit')).headers.get('allow')
  t.equal(methods, 'GET, HEAD, OPTIONS', 'and no route changes it')
})

t.test('a line break in what is recorded starts no entry and no line of the log', async (t) => {
  const target = 'x@example.com\r\n{"level":"fatal","msg":"forged"}'
  t.equal((await logIn(target, 'whatever it is')).status, 401)
  const failed = { action: 'login', outcome: 'invalid_credentials', actor: null }
  await recorded(t, { ...failed, target })
  for (const line of service.log().split('\n').filter(Boolean)) {
    t.not(JSON.parse(line).level, 'fatal')
  }
})

t.test('wrong ingest keys and signatures, and a reused refresh token, leave a trace', async (t) => {
  const body = JSON.stringify({ source: 'x', message: 'y' })
  for (let i = 0; i < 5; i++) {
    t.equal(
      (await collect(service, 'POST /ingest', { token: `ik_${'x'.repeat(40)}`, body })).status,
      401,
    )
    const headers = { 'x-scm-token': '0'.repeat(64), 'content-type': 'application/json' }
    t.equal((await collect(service, 'POST /webhooks/scm', { headers, body: '{}' })).status, 401)
  }
  t.equal((await collect(service, 'POST /ingest', { body })).status, 401, 'no key is no wrong key')
  await recorded(t, { action: 'ingest', target: '', outcome: 'unauthorized', actor: null })
  await recorded(t, { action: 'scmWebhook', target: '', outcome: 'invalid_signature', actor: null })
  const { id, refresh_token } = await service.newUser('viewer')
  for (let i = 0; i < 2; i++)
    await service.call('POST /api/auth/refresh', { token: null, json: { refresh_token } })
  await recorded(t, { action: 'refresh', target: '', outcome: 'refresh_token_reused', actor: id })
  t.equal((await trailOf('&action=ingest')).length, (await service.each('GET /health')).length)
  const metrics = (await service.each('GET /metrics', METRICS_TOKEN)).map(({ text }) => text)
  const sum = (kind: string): number =>
    metrics
      .map(
        (text) =>
          new RegExp(`credentials_refused_total\\{kind="${kind}"\\} (\\d+)`).exec(text)?.[1],
      )
      .reduce((total, n = '0') => total + Number(n), 0)
  t.equal(sum('ingest_key'), 5)
  t.equal(sum('webhook_signature'), 5)
  t.equal(sum('refresh_token'), 1)
})

t.test('who reads dead letters and the trail itself is in it, once a reading', async (t) => {
  const reader = await service.newUser('admin')
  const token = reader.access_token
  for (const [action, path] of [
    ['listDeadLetters', '/api/monitoring/dead-letters?reason=invalid_event&limit=1'],
    ['listAudit', '/api/monitoring/audit?limit=1'],
  ] as const) {
    let cursor: string | null = ''
    for (let page = 0; page < 3 && cursor !== null; page++) {
      const next: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const reply = await service.call(`GET ${path}${next}`, { token })
      t.equal(reply.status, 200)
      cursor = reply.body.next_cursor
    }
    await service.call(`GET ${path}`, { token })
    const read = (entry: { actor_id: string }): boolean => entry.actor_id === reader.id
    const entries = await eventually(
      async () => (await trailOf(`&action=${action}`)).filter(read),
      (found) => found.length > 0,
    )
    t.ok(entries.length <= (await service.each('GET /health')).length, action)
    t.match(entries[0], { outcome: 'ok', detail: { limit: 1 } })
  }
})
