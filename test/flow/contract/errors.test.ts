import { createHmac, randomUUID } from 'node:crypto'
import t from 'tap'
import { ERRORS, type ErrorCode } from '../../../src/model/errors.js'
import { rawExchange } from '../../support/http.js'
import {
  JWT_SECRET,
  WEBHOOK_SECRET,
  collect,
  eventually,
  startLiveService,
  type Answer,
} from '../../support/live-service.js'
import { enrol } from '../../support/second-factor.js'
import { ADMIN, INGEST_KEY } from '../../support/service.js'
import { startUnrulyClickHouse } from '../../support/unruly-clickhouse.js'

const clickhouse = await startUnrulyClickHouse(t)
const service = await startLiveService(t, clickhouse.env)
const { call } = service

const code = (reply: Answer): string => reply.body?.detail?.code ?? `status ${reply.status}`
const isRecord = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Every error has this form and no other field. */
function isEnvelope({ body, headers }: Answer): boolean {
  const { message, code, details } = body?.detail ?? {}
  return (
    Object.keys(body ?? {}).join() === 'detail' &&
    Object.keys(body.detail).toSorted().join() === 'code,details,message' &&
    typeof message === 'string' &&
    message !== '' &&
    typeof code === 'string' &&
    isRecord(details) &&
    headers.get('content-type') === 'application/json; charset=utf-8'
  )
}

const upload = (data: string, fields: Record<string, string> = {}) => {
  const body = new FormData()
  body.set('file', new Blob([data]), 'upload.csv')
  for (const [name, value] of Object.entries({ file_type: 'csv', source_name: 'up', ...fields }))
    body.set(name, value)
  return call('POST /api/sources/ephemeral', { body })
}
const webhook = (json: object, secret = WEBHOOK_SECRET) => {
  const body = JSON.stringify(json)
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  return collect(service, 'POST /webhooks/scm', { body, headers: { 'X-Scm-Token': signature } })
}
const login = (email: string, password: string, code?: string) =>
  call('POST /api/auth/login', { token: null, json: { email, password, code } })
const twice = async (request: string, json: object): Promise<Answer> => {
  await call(request, { json })
  return await call(request, { json })
}

const nobody = await service.newUser('viewer')
const disabled = await service.newUser('viewer')
await call(`PATCH /api/users/${disabled.id}`, { json: { is_active: false } })
const twoFactors = await service.newUser('viewer')
const factor = await enrol(service, twoFactors)
const gone = await service.newUser('viewer')
await call(`DELETE /api/users/${gone.id}`)

function expiredToken(): string {
  const [head = '', payload = ''] = service.token.split('.')
  const claims = { ...JSON.parse(Buffer.from(payload, 'base64url').toString()), exp: 1_000_000_000 }
  const body = `${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
  return `${body}.${createHmac('sha256', JWT_SECRET).update(body).digest('base64url')}`
}

/** More requests than may wait for their password to be checked, at each instance. */
async function flood(): Promise<Answer> {
  const length = 140 * (await service.each('GET /metrics')).length
  const replies = await Promise.all(
    Array.from({ length }, (_, i) => login(`flood-${i}@example.com`, 'no such password')),
  )
  const refused = replies.find(({ status }) => status === 429)
  if (refused === undefined) throw new Error('every login was checked')
  return refused
}

/** An answer that was just given to another serves for two seconds: only then ClickHouse is asked. */
const inMood = async (mood: 'gone' | 'broken', ask: () => Promise<Answer>): Promise<Answer> => {
  clickhouse.mood = mood
  try {
    return await eventually(ask, ({ status }) => status >= 500)
  } finally {
    clickhouse.mood = 'well'
  }
}

/** How a client comes by each code. */
const PRODUCERS: Readonly<
  Record<ErrorCode, (() => Promise<Answer>) | { readonly heldBy: string }>
> = {
  bad_request: () => call('GET /api/logs/%zz'),
  invalid_payload: () => webhook({ object_kind: 'push' }),
  unauthorized: () => call('GET /api/logs', { token: null }),
  token_expired: () => call('GET /api/logs', { token: expiredToken() }),
  invalid_credentials: () => login(nobody.email, 'wrong password'),
  invalid_refresh_token: () => call('POST /api/auth/refresh', { json: { refresh_token: 'no' } }),
  invalid_user: () =>
    call('POST /api/auth/refresh', { json: { refresh_token: gone.refresh_token } }),
  second_factor_required: () => login(twoFactors.email, twoFactors.password),
  // Its digits are none of a code's, whatever the time is.
  invalid_code: () => login(twoFactors.email, twoFactors.password, 'no such code'),
  code_reused: () => login(twoFactors.email, twoFactors.password, factor.used),
  oidc_failed: {
    heldBy: 'a replayed, forged, foreign or late answer of a provider begins no session',
  },
  role_missing: {
    heldBy: 'who has no role at the provider is turned away, and loses the sessions',
  },
  password_login_off: { heldBy: 'with PASSWORD_LOGIN_ONLY one account alone has a password' },
  invalid_signature: () => webhook({}, 'another secret, long enough'),
  forbidden: () => call('GET /api/users', { token: nobody.access_token }),
  account_disabled: () => login(disabled.email, disabled.password),
  password_expired: {
    heldBy: 'a temporary password that was not changed in time is not good any more',
  },
  password_change_required: async () => {
    const json = { email: 'hasty@example.com', password: 'long enough for it', temporary: true }
    await call('POST /api/users', { json })
    const { body } = await login(json.email, json.password)
    return call('GET /api/logs', { token: body.access_token })
  },
  second_factor_missing: {
    heldBy: 'where a second factor is required, a user without one turns it on first',
  },
  source_not_allowed: async () => {
    const key = await call('POST /api/ingest-keys', { json: { name: 'one', sources: ['mine'] } })
    const body = JSON.stringify({ source: 'theirs', message: 'hello' })
    return collect(service, 'POST /ingest', { token: key.body.key, body })
  },
  not_found: () => call('GET /api/logs/9007199254740991'),
  route_not_found: () => call('GET /api/nothing'),
  method_not_allowed: () => call('PUT /api/logs'),
  request_timeout: {
    heldBy: 'a slow body is answered 408, a slow handler 503, and both in the envelope',
  },
  source_already_exists: () => twice('POST /api/sources', { name: 'twin' }),
  application_name_conflict: () => twice('POST /api/applications', { name: 'twin' }),
  count_mismatch: () => {
    const span = 'start_time=now-1h&end_time=now-1m'
    return call(`DELETE /api/logs?q=host:nowhere&${span}&expected=7`)
  },
  source_disabled: async () => {
    await call('POST /api/sources', { json: { name: 'asleep' } })
    await call('POST /api/sources/asleep/toggle?enabled=false')
    return upload('message\nhello\n', { source_name: 'asleep' })
  },
  invalid_transition: async () => {
    const { body } = await call('POST /api/incidents', { json: { title: 'x', severity: 'P1' } })
    await call(`POST /api/incidents/${body.id}/transition`, { json: { to: 'resolved' } })
    return call(`POST /api/incidents/${body.id}/transition`, { json: { to: 'investigating' } })
  },
  email_conflict: () =>
    twice('POST /api/users', { email: 'twin@example.com', password: 'long enough for it' }),
  second_factor_exists: () => {
    const { access_token: token, password } = twoFactors
    return call('POST /api/auth/second-factor', { token, json: { current_password: password } })
  },
  last_superadmin: async () => {
    const { body } = await call('GET /api/auth/me')
    return call(`DELETE /api/users/${body.id}`)
  },
  file_too_large: () => upload('x'.repeat(10 * 1024 * 1024 + 1)),
  body_too_large: () =>
    call('POST /api/auth/login', { json: { email: 'x'.repeat(20_000), password: 'y' } }),
  unsupported_media_type: () =>
    call('POST /api/sources', { body: 'name=x', headers: { 'content-type': 'text/plain' } }),
  validation_error: () => call('GET /api/logs?limit=0'),
  invalid_cursor: () => call('GET /api/logs?cursor=abc'),
  file_parse_error: () => upload('{"a":', { file_type: 'json' }),
  empty_file: () => upload(''),
  upgrade_required: () => call('GET /ws/kpis'),
  rate_limited: {
    heldBy: 'a limit shared by two instances answers with the exact time to wait',
  },
  overloaded: flood,
  headers_too_large: () => call('GET /api/logs', { headers: { 'X-Long': 'x'.repeat(20_000) } }),
  internal_error: () => inMood('broken', () => call('GET /api/logs')),
  dependency_unavailable: () => inMood('gone', () => call('GET /api/logs')),
}

t.test('every code of the table is produced with its status, in the envelope', async (t) => {
  for (const [name, producer] of Object.entries(PRODUCERS)) {
    if (typeof producer !== 'function') continue
    const reply = await producer()
    t.equal(code(reply), name, `${name}: ${reply.text.slice(0, 200)}`)
    t.equal(reply.status, ERRORS[code(reply) as ErrorCode]?.status, name)
    t.ok(isEnvelope(reply), `${name} has the envelope: ${reply.text.slice(0, 200)}`)
  }
})

t.test('a missing event is named in the details', async (t) => {
  const id = 9007199254740990
  for (const request of [
    `GET /api/logs/${id}`,
    `GET /api/logs/${id}/explain`,
    `PATCH /api/logs/${id}/priority`,
  ]) {
    const reply = await call(request, request.startsWith('P') ? { json: { priority: 'P1' } } : {})
    t.match(reply, { status: 404, body: { detail: { code: 'not_found' } } }, request)
    t.same(reply.body.detail.details, { event_id: id }, request)
  }
})

t.test('a missing application is not_found', async (t) => {
  for (const method of ['GET', 'DELETE']) {
    t.equal(code(await call(`${method} /api/applications/${randomUUID()}`)), 'not_found')
  }
  const json = { name: 'orphan', application_id: randomUUID() }
  t.equal(code(await call('POST /api/sources', { json })), 'not_found')
  t.equal(code(await upload('message\nx\n', { application_id: randomUUID() })), 'not_found')
})

t.test('a validation error names every wrong field, and echoes none of them', async (t) => {
  const paths = ({ body }: Answer): string[] =>
    body.detail.details.errors.map(({ path }: { path: string }) => path).toSorted()
  const query = await call(
    'GET /api/logs?limit=1001&severity=LOUD&is_error_or_worse=perhaps&type=x',
  )
  t.equal(query.status, 422)
  t.same(paths(query), ['is_error_or_worse', 'limit', 'severity.0', 'type.0'])
  const json = { severity: 'P9', event_ids: [1, 'two', -3], surplus: 'hunter2', title: '' }
  const body = await call('POST /api/alerts', { json })
  for (const path of ['event_ids.1', 'event_ids.2', 'severity', 'surplus', 'title'])
    t.ok(paths(body).includes(path), `${path} in ${paths(body).join()}`)
  t.notOk(body.text.includes('hunter2'))
  for (const { message } of body.body.detail.details.errors) t.type(message, 'string')
  t.same(paths(await call('PATCH /api/logs/x/priority', { json: {} })), ['event_id', 'priority'])
  const form = await upload('message\nx\n', { source_name: 'x'.repeat(121), file_type: 'exe' })
  t.same(paths(form), ['file_type', 'source_name'])
  for (const time of ['start_time', 'end_time']) {
    t.same(paths(await call(`GET /api/logs?${time}=yesterday`)), [time])
  }
  for (const path of ['/api/logs', '/api/logs/histogram', '/api/logs/facets', '/api/logs/export']) {
    const reversed = await call(`GET ${path}?start_time=2026-11-21&end_time=2026-11-20`)
    t.equal(reversed.status, 422, path)
    t.same(paths(reversed), ['end_time'])
  }
})

t.test('numbers are decimal digits, and blank texts are refused', async (t) => {
  for (const limit of [
    '0x10',
    '0b11',
    '5.',
    '.5e1',
    '1e1',
    '%205',
    '',
    'NaN',
    '1e309',
    '4'.repeat(400),
  ])
    t.equal(code(await call(`GET /api/logs?limit=${limit}`)), 'validation_error', limit)
  for (const id of ['0x1', '1e3', '%2B1']) {
    const reply = await call(`GET /api/logs/${id}`)
    t.equal(code(reply), 'validation_error', id)
  }
  const { body } = await call('POST /api/alerts', { json: { title: ' ', severity: 'P1' } })
  t.match(body.detail, {
    message: 'invalid: title',
    details: {
      errors: [{ in: 'body', path: 'title', message: 'must be text of more than blanks' }],
    },
  })
  const due = await call('POST /api/tasks', {
    json: { title: 'x', due_at: '2026-02-30T00:00:00Z' },
  })
  t.match(due.body.detail.details.errors, [{ in: 'body', path: 'due_at' }])
})

t.test('what a user names has a name of one line', async (t) => {
  const kind = { type: 'threshold', window: '1m', op: '>', fire: 1 }
  const named = {
    'alert-rules': { severity: 'P3', kind },
    'notification-channels': { target: { type: 'webhook', url: 'https://example.com/' } },
    'maintenance-windows': {
      reason: 'backups',
      matchers: [{ field: 'rule', value: '*' }],
      time_zone: 'UTC',
      days: ['mon'],
      from: '22:00',
      to: '23:00',
    },
    'saved-views': {
      screen: 'explore',
      kind: 'view',
      params: '',
      is_for_all: false,
      is_default: false,
    },
    'api-tokens': { role: 'viewer' },
    'ingest-keys': {},
    applications: {},
  }
  const message = 'must be a name of more than blanks, without control characters'
  for (const [path, fields] of Object.entries(named))
    for (const name of ['a\u0000b', 'a\nb', ' ']) {
      const { status, body } = await call(`POST /api/${path}`, { json: { ...fields, name } })
      t.equal(status, 422, path)
      t.same(body.detail.details.errors, [{ in: 'body', path: 'name', message }], path)
    }
})

t.test(
  'a source has a name that ingest takes, and a new one may be called as a route is',
  async (t) => {
    for (const name of [' ', '\u00a0', '\u2028', 'a\u0085b', 'a\u0000b', '']) {
      const reply = await call('POST /api/sources', { json: { name } })
      t.equal(code(reply), 'validation_error', encodeURIComponent(name))
      t.equal(code(await upload('message\nx\n', { source_name: name })), 'validation_error')
    }
    t.equal((await call('POST /api/sources', { json: { name: 'ephemeral' } })).status, 201)
    t.equal((await call('POST /api/sources/ephemeral/toggle?enabled=false')).status, 200)
    const gone = await call('DELETE /api/sources/ephemeral')
    t.match(gone, { status: 200, body: { name: 'ephemeral' } })
    t.equal(code(await call('DELETE /api/sources/ephemeral')), 'not_found')
    const get = await call('GET /api/sources/ephemeral')
    t.equal(get.headers.get('allow'), 'POST, PATCH, DELETE, OPTIONS')
  },
)

t.test('a parameter that takes one value is refused twice, a list takes several', async (t) => {
  const twice = await call('GET /api/logs?limit=1&limit=2')
  t.equal(code(twice), 'validation_error')
  t.match(twice.body.detail.details.errors, [{ path: 'limit' }])
  t.equal((await call('GET /api/logs?severity=ERROR&severity=CRITICAL')).status, 200)
  t.equal((await call('GET /api/logs?severity=ERROR,CRITICAL')).status, 200)
})

t.test('invalid JSON, a wrong type and a missing body have different errors', async (t) => {
  const headers = { 'content-type': 'application/json' }
  t.equal(code(await call('POST /api/alerts', { body: '{"title":', headers })), 'validation_error')
  t.equal(code(await call('POST /api/alerts', { body: '', headers })), 'validation_error')
  t.equal(code(await call('POST /api/alerts', { body: '[]', headers })), 'validation_error')
  t.equal(
    code(await call('POST /api/alerts', { body: '<a/>', headers: { 'content-type': 'text/xml' } })),
    'unsupported_media_type',
  )
  t.equal(code(await call('POST /api/sources/ephemeral', { json: {} })), 'unsupported_media_type')
  for (const coding of ['gzip', 'br', 'compress']) {
    const coded = { ...headers, 'content-encoding': coding }
    const reply = await call('POST /api/alerts', {
      body: '{"title":"x","severity":"P1"}',
      headers: coded,
    })
    t.equal(code(reply), 'unsupported_media_type', coding)
  }
  const bytes = Uint8Array.from([0x22, 0xff, 0x22])
  t.equal(code(await call('POST /api/alerts', { body: bytes, headers })), 'validation_error')
})

t.test('HEAD answers as GET does, without a body', async (t) => {
  const [get, head] = [await call('GET /api/sources'), await call('HEAD /api/sources')]
  t.equal(head.status, 200)
  t.equal(head.text, '')
  t.equal(head.headers.get('content-length'), String(Buffer.byteLength(get.text)))
  t.equal((await call('HEAD /api/sources', { token: null })).status, 401)
  t.equal((await call('HEAD /api/nothing')).status, 404)
  t.equal((await call('HEAD /api/auth/login')).status, 405)
})

t.test('OPTIONS and 405 name the methods of a path', async (t) => {
  const options = await call('OPTIONS /api/sources', { token: null })
  t.equal(options.status, 204)
  t.equal(options.headers.get('allow'), 'GET, HEAD, POST, OPTIONS')
  t.equal(code(await call('OPTIONS /api/nothing')), 'route_not_found')
  for (const method of ['PUT', 'DELETE', 'PATCH']) {
    const reply = await call(`${method} /api/sources`)
    t.match(reply, { status: 405 })
    t.equal(reply.headers.get('allow'), 'GET, HEAD, POST, OPTIONS')
    t.ok(isEnvelope(reply))
  }
})

t.test('unknown paths, odd methods and broken escapes get an envelope', async (t) => {
  const requests: readonly (readonly [request: string, code: string])[] = [
    ['GET /api', 'route_not_found'],
    ['GET /api/logs/', 'route_not_found'],
    ['GET /API/logs', 'route_not_found'],
    ['GET /api//logs', 'route_not_found'],
    ['GET /api/logs/1/2/3', 'route_not_found'],
    ['DELETE /api/sources/%E0%A4%A', 'bad_request'],
    ['DELETE /api/sources/%00', 'bad_request'],
    ['DELETE /api/sources/%FF', 'bad_request'],
    ['GET /api/logs/-1', 'validation_error'],
    ['GET /api/logs/1e3x', 'validation_error'],
    ['GET /api/logs/99999999999999999999', 'validation_error'],
    ['GET /api/alerts?cursor=%zz', 'invalid_cursor'],
  ]
  for (const [request, want] of requests) {
    const reply = await call(request)
    t.equal(code(reply), want, request)
    t.ok(isEnvelope(reply), request)
  }
})

t.test('a body that is nested without end is invalid, before a login and after it', async (t) => {
  const deep = JSON.parse('['.repeat(4000) + ']'.repeat(4000))
  for (const [request, json] of [
    ['POST /api/auth/login', { email: deep, password: 'x' }],
    ['POST /api/saved-views', { name: deep }],
    ['POST /api/alert-rules', { name: deep }],
    ['POST /api/alert-rules/import', { rules: deep }],
  ] as const) {
    const reply = await call(request, { json })
    t.equal(reply.status, 422, request)
    t.equal(code(reply), 'validation_error', request)
    t.ok(isEnvelope(reply), request)
  }
})

t.test('100 kB of query string are refused in the envelope', async (t) => {
  const port = Number(new URL(service.api).port)
  const target = `/api/logs?search=${'a'.repeat(100_000)}`
  const { text } = await rawExchange(port, [`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`], {
    until: (seen) => seen.includes('}}'),
  })
  t.match(text, /^HTTP\/1\.1 431 /)
  const body = JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4))
  t.equal(body.detail.code, 'headers_too_large')
})

t.test('replies are not to be sniffed, framed or cached', async (t) => {
  for (const request of ['GET /api/logs', 'GET /api/nothing', 'GET /api/monitoring/health']) {
    const { headers } = await call(request)
    t.equal(headers.get('x-content-type-options'), 'nosniff')
    t.equal(headers.get('x-frame-options'), 'DENY')
    t.equal(headers.get('cache-control'), 'no-store')
    t.match(headers.get('x-request-id'), /./)
  }
})

t.test('an unexpected failure shows the request id and nothing else', async (t) => {
  const reply = await inMood('broken', () => call('GET /api/logs'))
  t.equal(reply.status, 500)
  const { details } = reply.body.detail
  t.same(Object.keys(details), ['request_id'])
  t.equal(details.request_id, reply.headers.get('x-request-id'))
  t.notMatch(reply.text, /UNKNOWN_TABLE|events|Exception/)
  t.match(service.log(), new RegExp(details.request_id), 'the log has the details under that id')
})

t.test('without ClickHouse every query is 503 with Retry-After, and health is down', async (t) => {
  const queries = [
    'GET /api/logs',
    'GET /api/logs/1',
    'GET /api/logs/meta/templates',
    'GET /api/logs/meta/timeseries',
    'GET /api/logs/meta/calendar',
    'GET /api/analytics/severity-breakdown',
    'GET /api/analytics/top-sources',
    'GET /api/analytics/dlq-vs-stored',
    'GET /api/kpis',
    'GET /api/monitoring/dead-letters',
  ]
  clickhouse.mood = 'gone'
  try {
    for (const request of queries) {
      // A reply is cached for two seconds for all callers.
      const reply = await eventually(
        () => call(request),
        ({ status }) => status >= 500,
      )
      t.equal(code(reply), 'dependency_unavailable', request)
      t.equal(reply.body.detail.details.dependency, 'clickhouse', request)
      t.match(reply.headers.get('retry-after'), /^[1-9]\d*$/, request)
      t.ok(isEnvelope(reply), request)
    }
    const health = await eventually(
      () => call('GET /api/monitoring/health', { token: null }),
      ({ status }) => status === 503,
    )
    t.match(health.body, { status: 'down', checks: { clickhouse: { status: 'down' } } })
    t.same(Object.keys(health.body.checks.clickhouse), ['status'], 'no detail for the public')
    const taken = await service.ingest([{ source: 'patient', message: 'kept in the WAL' }])
    t.equal(taken.body.accepted, 1, 'what is durable is accepted all the same')
  } finally {
    clickhouse.mood = 'well'
  }
  const stored = await eventually(
    () => call('GET /api/logs?source=patient'),
    ({ body }) => body.items?.length === 1,
  )
  t.equal(stored.body.items[0].message, 'kept in the WAL')
  const health = await eventually(
    () => call('GET /api/monitoring/health'),
    ({ body }) => body.status === 'ok',
  )
  t.match(health.body.checks, {
    clickhouse: { status: 'ok', latency_ms: Number },
    state: { status: 'ok' },
    spool: { status: 'ok', detail: String },
    workers: { status: 'ok' },
  })
  t.match(health.body, { version: String, uptime_s: Number })
})

t.test('an upload that cannot be read says nothing of its content or its parser', async (t) => {
  const secret = 'very-secret-content'
  const replies = [
    await upload(`{"${secret}`, { file_type: 'json' }),
    await upload(`message\n"${secret}`, { file_type: 'csv' }),
    await upload('\n\n', { file_type: 'txt' }),
    await upload('[]', { file_type: 'json' }),
    await upload('message\n', { file_type: 'csv' }),
  ]
  t.same(replies.map(code), [
    'file_parse_error',
    'file_parse_error',
    'empty_file',
    'empty_file',
    'empty_file',
  ])
  for (const reply of replies) t.notMatch(reply.text, /secret|Unexpected|position/)
})

t.test('the collector refuses in the same form', async (t) => {
  const cases: readonly (readonly [Promise<Answer>, number, string])[] = [
    [collect(service, 'POST /ingest', { body: '{}' }), 401, 'unauthorized'],
    [collect(service, 'GET /ingest', { token: INGEST_KEY }), 405, 'method_not_allowed'],
    [collect(service, 'GET /nothing'), 404, 'route_not_found'],
    [collect(service, 'POST /webhooks/scm', { body: '{}' }), 401, 'invalid_signature'],
    [webhook({ object_kind: 'issue', project: {} }), 400, 'invalid_payload'],
    [
      collect(service, 'POST /ingest', {
        token: INGEST_KEY,
        body: '{}',
        headers: { 'content-encoding': 'compress' },
      }),
      415,
      'unsupported_media_type',
    ],
    [
      collect(service, 'POST /ingest', {
        token: INGEST_KEY,
        body: new Uint8Array(16 * 1024 * 1024 + 1),
      }),
      413,
      'body_too_large',
    ],
  ]
  for (const [pending, status, want] of cases) {
    const reply = await pending
    t.equal(reply.status, status, want)
    t.equal(code(reply), want)
    t.ok(isEnvelope(reply), want)
  }
  const bad = await collect(service, 'POST /webhooks/scm', { body: '{}' })
  t.equal(bad.body.detail.message, 'Invalid webhook signature')
  t.match(await collect(service, 'GET /health'), { status: 200, body: { status: 'ok' } })
})

t.test('CORS is off unless origins are set', async (t) => {
  const headers = {
    origin: 'https://dash.example.com',
    'access-control-request-method': 'GET',
  }
  for (const request of ['OPTIONS /api/logs', 'GET /api/logs', 'GET /api/nothing']) {
    const reply = await call(request, { headers })
    const names = [...reply.headers.keys()].filter((name) => name.startsWith('access-control'))
    t.same(names, [], request)
  }
})

t.test(
  'with CORS_ORIGINS those may call, and with SameSite=None no other may change',
  async (t) => {
    const allowed = 'https://dash.example.com'
    const open = await startLiveService(t, {
      ...clickhouse.env,
      CLICKHOUSE_DATABASE: 'cors',
      CORS_ORIGINS: allowed,
      COOKIE_SAMESITE: 'None',
      COOKIE_SECURE: 'true',
    })
    const preflight = await open.call('OPTIONS /api/logs', {
      token: null,
      headers: { origin: allowed, 'access-control-request-method': 'GET' },
    })
    t.equal(preflight.status, 204)
    t.equal(preflight.headers.get('access-control-allow-origin'), allowed)
    t.equal(preflight.headers.get('access-control-allow-credentials'), 'true')
    t.match(preflight.headers.get('access-control-allow-methods'), /GET/)
    for (const request of ['GET /api/logs', 'GET /api/nothing']) {
      const reply = await open.call(request, { headers: { origin: allowed } })
      t.equal(reply.headers.get('access-control-allow-origin'), allowed, request)
      const other = await open.call(request, { headers: { origin: 'https://evil.example.com' } })
      t.equal(other.headers.get('access-control-allow-origin'), null, request)
    }
    const cookies = (
      await open.call('POST /api/auth/login', { json: ADMIN })
    ).headers.getSetCookie()
    t.equal(cookies.length, 2)
    for (const cookie of cookies) {
      t.match(cookie, /; HttpOnly/i)
      t.match(cookie, /; Secure/i)
      t.match(cookie, /; SameSite=None/i)
    }
    const cookie = `ACCESS_TOKEN=${open.token}`
    const change = (origin: string) =>
      open.call('POST /api/alerts/read-all', { token: null, headers: { cookie, origin } })
    t.equal((await change(allowed)).status, 200)
    t.equal((await change(open.api)).status, 200, 'its own pages')
    t.equal(code(await change('https://evil.example.com')), 'forbidden')
  },
)

t.test('the limits of refresh and clear-all answer with the time to wait', async (t) => {
  const strict = await startLiveService(t, {
    ...clickhouse.env,
    CLICKHOUSE_DATABASE: 'strict',
    REFRESH_LIMIT: '2/60',
    CLEAR_ALL_LIMIT: '1/3600',
  })
  const requests: Record<string, readonly [request: string, count: number, seconds: number]> = {
    refresh_limit: ['POST /api/auth/refresh', 2, 60],
    clear_all_limit: ['DELETE /api/monitoring/clear-all', 1, 3600],
  }
  for (const [limit, [request, count, seconds]] of Object.entries(requests)) {
    for (let i = 0; i < count; i++) t.not((await strict.call(request)).status, 429)
    const reply = await strict.call(request)
    t.equal(code(reply), 'rate_limited', request)
    t.ok(isEnvelope(reply))
    const { details } = reply.body.detail
    t.same(Object.keys(details).toSorted(), ['limit', 'retry_after_s'])
    t.equal(details.limit, limit)
    t.ok(details.retry_after_s >= 1 && details.retry_after_s <= seconds)
    t.equal(reply.headers.get('retry-after'), String(details.retry_after_s))
  }
})
