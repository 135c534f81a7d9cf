import { once } from 'node:events'
import { request } from 'node:http'
import t from 'tap'
import { eventually, startLiveService } from '../../support/live-service.js'

const service = await startLiveService(t)
const { call, login, newUser } = service

interface Slow {
  readonly url: string
  readonly token: string
  readonly method?: string
  readonly json?: object
}

/** Sends the head of a request, which is answered when the rest is sent. */
async function begin({ url, token, method = 'POST', json = {} }: Slow) {
  const body = JSON.stringify(json)
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'content-length': body.length,
    expect: '100-continue',
  }
  const sent = request(url, { method, headers })
  const reply = once(sent, 'response')
  sent.flushHeaders()
  await once(sent, 'continue')
  return async (): Promise<number> => {
    sent.end(body)
    const [{ statusCode }] = await reply
    return statusCode
  }
}

const password = 'a password that is new'

/** Each way in which a session or a role ends, and what it is answered with from then on. */
const ENDS = {
  'a log-out': [401, ({ token }) => call('POST /api/auth/logout', { token })],
  'the end of all other sessions': [
    401,
    async ({ email, password: known }) => {
      const { access_token: token } = await login(email, known)
      return await call('DELETE /api/auth/sessions', { token })
    },
  ],
  'a new password': [
    401,
    ({ id }) => call(`PUT /api/users/${id}/password`, { json: { password } }),
  ],
  'a user who is disabled': [
    401,
    ({ id }) => call(`PATCH /api/users/${id}`, { json: { is_active: false } }),
  ],
  'a user who is deleted': [401, ({ id }) => call(`DELETE /api/users/${id}`)],
  'a role that is taken away': [
    403,
    ({ id }) => call(`PUT /api/users/${id}/role`, { json: { role: 'viewer' } }),
  ],
} as const satisfies Record<string, readonly [number, (user: User) => Promise<unknown>]>

type User = Awaited<ReturnType<typeof newUser>> & { readonly token: string }

const newAdmin = async (): Promise<User> => {
  const user = await newUser('admin')
  return { ...user, token: user.access_token }
}

for (const [name, [refused, end]] of Object.entries(ENDS))
  t.test(`a request whose body is under way writes nothing after ${name}`, async (t) => {
    const admin = await newAdmin()
    const victim = (await newUser('viewer')).id
    const email = `back-${admin.id}@example.com`
    const { token } = admin
    const url = `${service.api}/api/users`
    const finishCreation = await begin({ url, token, json: { email, password } })
    const finishDeletion = await begin({ url: `${url}/${victim}`, token, method: 'DELETE' })
    await end(admin)
    t.equal(await finishCreation(), refused)
    t.equal(await finishDeletion(), refused, 'a body that the route does not read')
    t.equal((await call(`GET /api/users/${victim}`)).status, 200)
    const users: readonly { readonly email: string }[] = (await call('GET /api/users?limit=200'))
      .body.items
    t.notOk(users.some((user) => user.email === email))
  })

t.test('nor after the end of an API token', async (t) => {
  const json = { name: 'slow', role: 'manager' }
  const { id, token } = (await call('POST /api/api-tokens', { json })).body
  const url = `${service.api}/api/incidents`
  const finish = await begin({ url, token, json: { title: 'late', severity: 'P3' } })
  await call(`DELETE /api/api-tokens/${id}`)
  t.equal(await finish(), 401)
  t.strictSame((await call('GET /api/incidents')).body.items, [])
})

t.test('and a session that goes on does write', async (t) => {
  const { access_token: token } = await newUser('manager')
  const url = `${service.api}/api/incidents`
  const finish = await begin({ url, token, json: { title: 'in time', severity: 'P3' } })
  t.equal(await finish(), 201)
})

const newKey = async (): Promise<{ readonly id: string; readonly key: string }> =>
  (await call('POST /api/ingest-keys', { json: { name: 'slow' } })).body

const stored = (source: string) =>
  eventually(
    async () => (await call(`GET /api/logs?source=${source}`)).body.items,
    (items) => items.length > 0,
  )

t.test('events are not taken after the end of their ingest key', async (t) => {
  const { id, key: token } = await newKey()
  const url = `${service.collector}/ingest`
  const event = { source: 'late', message: 'after the end' }
  const [early, late] = [
    await begin({ url, token, json: { ...event, message: 'before the end' } }),
    await begin({ url, token, json: event }),
  ]
  t.equal(await early(), 202)
  await call(`DELETE /api/ingest-keys/${id}`)
  t.equal(await late(), 401)
  t.match(await stored('late'), { length: 1, 0: { message: 'before the end' } })
})

t.test('nor are the parts of a body that is stored while it arrives', async (t) => {
  const { id, key } = await newKey()
  const entry = (message: string): string =>
    `__REALTIME_TIMESTAMP=${Date.now()}000\nSYSLOG_IDENTIFIER=parts\nMESSAGE=${message}\n` +
    `PADDING=${'x'.repeat(1024 * 1024)}\n\n`
  const sent = request(`${service.collector}/upload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/vnd.fdo.journal' },
  })
  const reply = once(sent, 'response')
  sent.write(entry('before the end'))
  await stored('parts')
  await call(`DELETE /api/ingest-keys/${id}`)
  sent.end(entry('after the end'))
  t.equal((await reply)[0].statusCode, 401)
  t.equal((await call('GET /api/logs?source=parts')).body.items.length, 1)
})
