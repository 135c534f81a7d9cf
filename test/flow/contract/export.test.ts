import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseString } from 'fast-csv'
import t from 'tap'
import { eventually, settled, startLiveService, type Answer } from '../../support/live-service.js'

const service = await startLiveService(t)
const { call, ingest } = service

const COUNT = 1_200
const TRICKY = [
  '=SUM(A1:A9)',
  '@here, "quoted"',
  'two\nlines\r\nand a tab\t.',
  '-1+2',
  '＝1',
  'ü 日本語 \u2028 \u001b[31m red \u009b31m \u007f \u0080\u009f \u00a0',
  '{"json": "text"}',
]

const start = Date.parse('2026-11-20T10:00:00.000Z')
await ingest(
  Array.from({ length: COUNT }, (_, i) => ({
    source: i % 2 === 0 ? 'shop' : 'cart',
    severity: i % 5 === 0 ? 'error' : 'info',
    host: `web-${i % 3}`,
    // Three events share a time.
    timestamp: new Date(start + Math.floor(i / 3) * 1000).toISOString(),
    message: i < TRICKY.length ? TRICKY[i] : `order ${i} was paid`,
    tags: { i, user: { id: `u${i % 7}` }, note: i % 10 === 0 ? '=1+1' : null },
  })),
)
// Repeats of the last event.
await ingest(
  Array.from({ length: 5 }, () => ({
    source: 'cart',
    severity: 'info',
    host: `web-${(COUNT - 1) % 3}`,
    timestamp: new Date(start + Math.floor((COUNT - 1) / 3) * 1000 + 5_000).toISOString(),
    message: `order ${COUNT - 1} was paid`,
    tags: { i: COUNT - 1, user: { id: `u${(COUNT - 1) % 7}` }, note: null },
  })),
)
await settled(service)

const exported = (query: Readonly<Record<string, string>>): Promise<Answer> =>
  call(
    `GET /api/logs/export?${new URLSearchParams({ start_time: '2026-11-20', ...query }).toString()}`,
  )

// oxlint-disable typescript/no-explicit-any -- what a line holds is what is tested
const linesOf = ({ text }: Answer): any[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

async function listed(query: Readonly<Record<string, string>>): Promise<any[]> {
  const items: any[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const params = new URLSearchParams({ start_time: '2026-11-20', limit: '200', ...query })
    if (cursor !== '') params.set('cursor', cursor)
    const { body } = await call(`GET /api/logs?${params.toString()}`)
    items.push(...body.items)
    cursor = body.next_cursor
  }
  return items
}

t.test('an export says what the list says, in both orders', async (t) => {
  const questions: readonly Readonly<Record<string, string>>[] = [
    {},
    { q: 'severity:error -host:web-1' },
    { q: 'user.id:u3 OR "tab"', source: 'shop' },
    { q: 'count>1' },
    { search: 'paid', end_time: '2026-11-20T10:02:00Z' },
    { q: 'host:none' },
    // The last event began before it and is repeated in it.
    { start_time: new Date(start + Math.floor((COUNT - 1) / 3) * 1000 + 2_500).toISOString() },
  ]
  for (const question of questions) {
    const items = await listed(question)
    for (const [order, wanted] of [
      ['desc', items],
      ['asc', items.toReversed()],
    ] as const) {
      const lines = linesOf(await exported({ ...question, order }))
      t.ok(items.length > 0 || question['q'] === 'host:none')
      const name = `${JSON.stringify(question)} ${order}: ${items.length}`
      t.same(lines.at(-1), { complete: true, rows: items.length }, name)
      t.same(lines.slice(0, -1), wanted, name)
    }
  }
})

t.test('resume goes on after any event, with each event once', async (t) => {
  for (const order of ['asc', 'desc']) {
    const all = linesOf(await exported({ order, fields: 'id,timestamp' })).slice(0, -1)
    for (const cut of [1, 2, 3, 700, COUNT]) {
      const resume = String(all[cut - 1]?.id)
      const rest = linesOf(await exported({ order, fields: 'id,timestamp', resume }))
      t.same(rest.at(-1), { complete: true, rows: COUNT - cut })
      t.same(rest.slice(0, -1), all.slice(cut), `${order} ${cut}`)
    }
  }
  const unknown = await exported({ resume: '999999999' })
  t.match([unknown.status, unknown.body.detail.code], [422, 'invalid_cursor'])
})

const rowsOfCsv = (text: string): Promise<readonly Record<string, string>[]> =>
  new Promise((resolve, reject) => {
    const rows: Record<string, string>[] = []
    parseString(text, { headers: true, comment: '#' })
      .on('data', (row) => rows.push(row))
      .on('end', () => resolve(rows))
      .on('error', reject)
  })

t.test('CSV is read back as it was, and no cell is a formula', async (t) => {
  const reply = await exported({ format: 'csv' })
  t.match(reply.headers.get('content-type'), /^text\/csv/)
  t.match(reply.headers.get('content-disposition'), /filename="events.csv"/)
  t.ok(reply.text.endsWith(`\r\n# {"complete":true,"rows":${COUNT}}\r\n`))
  const rows = await rowsOfCsv(reply.text)
  const items = (await listed({})).toReversed()
  t.equal(rows.length, COUNT)
  const plain = (text: string): string => text.replace(/^'/, '')
  t.same(
    rows.map(({ id, message, tags, last_seen: seen }) => [id, plain(message ?? ''), tags, seen]),
    items.map(({ id, message, tags, last_seen: seen }) => [
      String(id),
      message,
      JSON.stringify(tags),
      seen,
    ]),
  )
  const cells = (
    await rowsOfCsv((await exported({ format: 'csv', fields: 'id,note,message' })).text)
  )
    .flatMap((row) => Object.values(row))
    .filter((cell) => /^\s*[=+@\-\t\r＝]/.test(cell))
  t.same(cells, [])
})

t.test('text has a line an event', async (t) => {
  const { text } = await exported({ format: 'txt', q: 'source:shop,cart' })
  const lines = text.trimEnd().split('\n')
  t.equal(lines.length, COUNT + 1)
  t.equal(lines.at(-1), `# {"complete":true,"rows":${COUNT}}`)
  t.equal(lines[2], '2026-11-20T10:00:00.000Z INFO shop web-2 two\\nlines\\r\\nand a tab .')
  // oxlint-disable-next-line no-control-regex -- that is what must not be there
  t.notMatch(text, /[\x00-\x09\x0b-\x1f\x7f-\x9f]/)
  t.match(text, 'ü 日本語 \u2028  [31m red  31m      \u00a0')
  const bare = await exported({ format: 'txt', fields: 'message,user.id,nothing', order: 'desc' })
  t.match(bare.text, /^order 1199 was paid u2 -\n/)
})

t.test('wrong parameters are told before anything is sent', async (t) => {
  for (const [query, path] of [
    [{ fields: 'trace' }, 'fields'],
    [{ format: 'xml' }, 'format'],
    [{ order: 'up' }, 'order'],
    [{ q: 'severity:eror2' }, 'q'],
    [{ limit: '5' }, 'limit'],
    [{ fields: Array.from({ length: 33 }, (_, i) => `a${i}`).join(',') }, 'fields'],
  ] as const) {
    const { status, body } = await exported(query)
    t.match([status, body.detail.details.errors[0].path], [422, path], JSON.stringify(query))
  }
})

/** Begins an export and reads none of it but the first bytes. */
async function begin(path: string, token = service.token): Promise<Socket> {
  const { hostname, port } = new URL(service.api)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await once(socket, 'readable')
  return socket
}

t.test(
  'exports of a user are few at once, and a client that hangs up gives its place back',
  async (t) => {
    const padding = 'x'.repeat(50_000)
    for (let i = 0; i < 8; i++)
      await ingest(
        Array.from({ length: 100 }, (_, j) => ({
          source: 'wide',
          message: `${i} ${j}`,
          tags: { padding },
        })),
      )
    await settled(service)
    const path = '/api/logs/export?source=wide'
    const sockets = await Promise.all([begin(path), begin(path)])
    t.teardown(() => sockets.forEach((socket) => socket.destroy()))
    const refused = await eventually(
      () => call(`GET ${path}&fields=id`),
      ({ status }) => status === 429,
    )
    t.equal(refused.body.detail.code, 'overloaded')
    t.equal((await call('GET /api/logs?limit=1')).status, 200, 'other questions are answered')
    for (const socket of sockets) socket.destroy()
    const after = await eventually(
      () => call(`GET ${path}&fields=id`),
      ({ status }) => status === 200,
    )
    t.match(after.text, /\{"complete":true,"rows":800\}\n$/)
  },
)

/** Reads what is left. */
async function rest(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  if (!socket.closed) await once(socket, 'close')
  return Buffer.concat(chunks).toString('latin1')
}

t.test('an export breaks off when the session, the user or the API token ends', async (t) => {
  const made = await call('POST /api/api-tokens', { json: { name: 'exports' } })
  const users = await Promise.all(Array.from({ length: 5 }, () => service.newUser('viewer')))
  const [out, changed, reset, disabled, deleted] = users
  if (!out || !changed || !reset || !disabled || !deleted) throw new Error('bug: no users')
  const other = await service.login(changed.email, changed.password)
  const password = 'quite another password'
  const own = {
    token: changed.access_token,
    json: { password, current_password: changed.password },
  }
  const ends: Readonly<Record<string, readonly [string, () => Promise<unknown>]>> = {
    'a log-out': [
      out.access_token,
      () => call('POST /api/auth/logout', { token: out.access_token }),
    ],
    'a new password, in another session': [
      other.access_token,
      () => call(`PUT /api/users/${changed.id}/password`, own),
    ],
    'a password that an admin set': [
      reset.access_token,
      () => call(`PUT /api/users/${reset.id}/password`, { json: { password } }),
    ],
    'a disabled user': [
      disabled.access_token,
      () => call(`PATCH /api/users/${disabled.id}`, { json: { is_active: false } }),
    ],
    'a deleted user': [deleted.access_token, () => call(`DELETE /api/users/${deleted.id}`)],
    'a revoked API token': [made.body.token, () => call(`DELETE /api/api-tokens/${made.body.id}`)],
  }
  const path = '/api/logs/export?source=wide'
  const breaksOff = async (what: string, token: string, end: () => Promise<unknown>) => {
    const socket = await begin(path, token)
    await end()
    const text = await rest(socket)
    t.match(text, /^HTTP\/1.1 200 /, what)
    t.notMatch(text.slice(-200), '"complete":true', what)
  }
  for (const [what, [token, end]] of Object.entries(ends)) await breaksOff(what, token, end)
  const json = { name: 'brief', sources: ['wide'], expires_at: 'now+3s' }
  const { token } = (await call('POST /api/api-tokens', { json })).body
  await breaksOff('an expired API token', token, () =>
    eventually(
      () => call('GET /api/auth/me', { token }),
      ({ status }) => status === 401,
    ),
  )
})

t.test('every export is in the audit trail', async (t) => {
  await sleep(100)
  const { body } = await call('GET /api/monitoring/audit')
  const entries = body.items.filter(({ action }: { action: string }) => action === 'exportEvents')
  t.match(entries[0], { outcome: 'ok' })
  const asked = new Set(entries.map(({ detail }: { detail: object }) => JSON.stringify(detail)))
  t.ok(asked.size > 1, 'whatever else the user exported in the same minute')
})
