import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import {
  JWT_SECRET,
  eventually,
  startLiveService,
  type LiveService,
  type Tokens,
} from '../../support/live-service.js'
import { openKpiSocket, type KpiSocket } from '../../support/kpi-socket.js'

const service = await startLiveService(t)
const { call, ingest, token } = service
const bearer = { authorization: `Bearer ${token}` }
const JUNK = 'not.a.token'

const firstSnapshot = (socket: KpiSocket) =>
  eventually(
    async () => socket.snapshots(),
    (snapshots) => snapshots.length > 0,
  )

/** The token of a user with another end; the tests know the secret. */
function expiringAt(good: string, seconds: number): string {
  const [head = '', payload = ''] = good.split('.')
  const claims = { ...JSON.parse(Buffer.from(payload, 'base64url').toString()), exp: seconds }
  const body = `${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
  return `${body}.${createHmac('sha256', JWT_SECRET).update(body).digest('base64url')}`
}

type Places = Parameters<typeof openKpiSocket>[1]

t.test(
  'each of the four places of the token opens the socket, with a snapshot at once',
  async (t) => {
    const places: Record<string, Places> = {
      'Authorization header': { headers: bearer },
      'Sec-WebSocket-Protocol': { protocols: `jwt.${token}` },
      cookie: { headers: { cookie: `ACCESS_TOKEN=${token}` } },
      'query parameter': { query: `?token=${token}` },
    }
    const body = (await call('GET /api/kpis')).body
    for (const [place, options] of Object.entries(places)) {
      const socket = await openKpiSocket(service, options)
      await firstSnapshot(socket)
      const message = JSON.parse(socket.texts[0] ?? '')
      t.same(Object.keys(message).toSorted(), ['payload', 'type'], place)
      t.equal(message.type, 'kpi:snapshot')
      t.same(
        Object.keys(message.payload).toSorted(),
        Object.keys(body).toSorted(),
        'as GET /api/kpis',
      )
      socket.end()
    }
  },
)

t.test('the places are tried in order: the first that holds a token counts', async (t) => {
  const junkCookie = { cookie: `ACCESS_TOKEN=${JUNK}` }
  const goodCookie = { cookie: `ACCESS_TOKEN=${token}` }
  const good: Record<string, Places> = {
    'header before protocol': { headers: bearer, protocols: `jwt.${JUNK}` },
    'header before cookie': { headers: { ...bearer, ...junkCookie } },
    'protocol before cookie': { protocols: `jwt.${token}`, headers: junkCookie },
    'cookie before query': { headers: goodCookie, query: `?token=${JUNK}` },
    'another scheme is no token': {
      headers: { authorization: 'Basic eA==', ...goodCookie },
    },
  }
  for (const [order, options] of Object.entries(good)) {
    const socket = await openKpiSocket(service, options)
    t.equal((await firstSnapshot(socket)).length, 1, order)
    socket.end()
  }
  const bad: Record<string, Places> = {
    'header before cookie': { headers: { authorization: `Bearer ${JUNK}`, ...goodCookie } },
    'protocol before cookie': { protocols: `jwt.${JUNK}`, headers: goodCookie },
    'cookie before query': { headers: junkCookie, query: `?token=${token}` },
  }
  for (const [order, options] of Object.entries(bad)) {
    const socket = await openKpiSocket(service, options)
    t.equal(await socket.whenClosed(), 1008, order)
  }
})

t.test('the subprotocol is echoed, so that browsers accept it', async (t) => {
  const alone = await openKpiSocket(service, { protocols: `jwt.${token}` })
  t.equal(alone.socket.protocol, `jwt.${token}`)
  const beside = await openKpiSocket(service, { protocols: ['kpi', `jwt.${token}`] })
  t.equal(
    beside.socket.protocol,
    'kpi',
    'another one is preferred: it keeps the token out of replies',
  )
  const none = await openKpiSocket(service, { headers: bearer })
  t.equal(none.socket.protocol, '')
  for (const socket of [alone, beside, none]) socket.end()
})

t.test('without a valid access token the connection is closed with 1008', async (t) => {
  const user = await service.newUser('viewer')
  const cases: Record<string, Places> = {
    'no token': {},
    junk: { query: `?token=${JUNK}` },
    'a refresh token': { query: `?token=${user.refresh_token}` },
    'an expired token': { query: `?token=${expiringAt(token, 1_000_000_000)}` },
    'a malformed header': { headers: { authorization: 'Bearer' } },
  }
  for (const [what, options] of Object.entries(cases)) {
    const socket = await openKpiSocket(service, options)
    t.equal(await socket.whenClosed(), 1008, what)
    t.same(socket.texts, [], `${what}: no message before`)
    t.not(socket.closed()?.reason, '', what)
  }
  await call(`PATCH /api/users/${user.id}`, { json: { is_active: false } })
  const disabled = await openKpiSocket(service, { query: `?token=${user.access_token}` })
  t.equal(await disabled.whenClosed(), 1008, 'a disabled user')
})

t.test('a token in the URL can be forbidden, and counts in no other place less', async (t) => {
  const strict = await startLiveService(t, { WS_TOKEN_IN_QUERY: 'false' })
  const inQuery = await openKpiSocket(strict, { query: `?token=${strict.token}` })
  t.equal(await inQuery.whenClosed(), 1008)
  t.same(inQuery.texts, [])
  const headers = { authorization: `Bearer ${strict.token}` }
  const inHeader = await openKpiSocket(strict, { headers, query: `?token=${JUNK}` })
  t.equal((await firstSnapshot(inHeader)).length, 1)
  inHeader.end()
})

t.test('the end of a session closes its sockets, and no others', async (t) => {
  const user = await service.newUser('viewer')
  const login = () => service.login(user.email, user.password)
  const open = (accessToken: string) =>
    openKpiSocket(service, { headers: { authorization: `Bearer ${accessToken}` } })
  const ends: Readonly<Record<string, (session: Tokens) => Promise<unknown>>> = {
    logout: ({ access_token }) => call('POST /api/auth/logout', { token: access_token }),
    'reuse of a refresh token': async ({ refresh_token }) => {
      const json = { refresh_token }
      for (let i = 0; i < 2; i++) await call('POST /api/auth/refresh', { token: null, json })
    },
    'a new password': async () =>
      await call(`PUT /api/users/${user.id}/password`, { json: { password: user.password } }),
  }
  const bystander = await open(token)
  for (const [what, end] of Object.entries(ends)) {
    const session = await login()
    const socket = await open(session.access_token)
    t.equal((await firstSnapshot(socket)).length, 1, what)
    await end(session)
    t.equal(await socket.whenClosed(), 1008, what)
    const again = await open(session.access_token)
    t.equal(await again.whenClosed(), 1008, `${what}: nor can it be opened again`)
    t.same(again.texts, [], what)
  }
  t.equal(bystander.closed(), null)
  bystander.end()
})

t.test('a page of another site cannot open it with the cookie', async (t) => {
  const headers = { cookie: `ACCESS_TOKEN=${token}` }
  const evil = await openKpiSocket(service, { headers, origin: 'https://evil.example.com' })
  t.equal(await evil.whenClosed(), 1008)
  const own = await openKpiSocket(service, { headers, origin: service.api })
  t.equal((await firstSnapshot(own)).length, 1, 'our own page can')
  const explicit = await openKpiSocket(service, {
    protocols: `jwt.${token}`,
    origin: 'https://evil.example.com',
  })
  t.equal((await firstSnapshot(explicit)).length, 1, 'a token needs no cookie')
  own.end()
  explicit.end()
})

t.test('a text ping is answered with pong, and a pong with nothing', async (t) => {
  const socket = await openKpiSocket(service, { headers: bearer })
  await firstSnapshot(socket)
  socket.socket.send('ping')
  await eventually(
    async () => socket.texts,
    (texts) => texts.length === 2,
  )
  t.equal(socket.texts[1], 'pong')
  socket.socket.send('pong')
  socket.socket.send('something else')
  socket.socket.send('ping')
  await eventually(
    async () => socket.texts,
    (texts) => texts.length >= 3,
  )
  t.same(socket.texts.slice(1), ['pong', 'pong'])
  t.equal(socket.closed(), null)
  socket.end()
})

t.test('new events bring a fresh snapshot to every client, at most one a second', async (t) => {
  const sockets = await Promise.all(
    [1, 2, 3].map(() => openKpiSocket(service, { headers: bearer })),
  )
  for (const socket of sockets) await firstSnapshot(socket)
  const startMs = performance.now()
  const before = sockets[0]?.snapshots()[0].total_occurrences
  for (let i = 0; i < 12; i++) {
    await ingest([{ source: 'pushed', message: `message number ${i} of many` }])
    await sleep(150)
  }
  for (const socket of sockets) {
    await eventually(
      async () => socket.snapshots().at(-1).total_occurrences,
      (total) => total === before + 12,
    )
  }
  const seconds = (performance.now() - startMs) / 1000
  for (const socket of sockets) {
    const pushes = socket.snapshots().length - 1
    t.ok(pushes >= 1 && pushes <= seconds + 2, `${pushes} in ${seconds} s`)
    t.equal(socket.snapshots().at(-1).unique_events, 12)
  }
  const seen = sockets.map((socket) => socket.texts.length)
  await sleep(2500)
  t.same(
    sockets.map((socket) => socket.texts.length),
    seen,
    'nothing comes while nothing changes',
  )
  for (const socket of sockets) socket.end()
})

t.test('a correction, an alert and a deletion show at once', async (t) => {
  const socket = await openKpiSocket(service, { headers: bearer })
  const [first] = await firstSnapshot(socket)
  await call('DELETE /api/sources/pushed')
  await eventually(
    async () => socket.snapshots().at(-1).unique_events,
    (events) => events === 0,
  )
  t.equal(first.unique_events, 12)
  socket.end()
})

t.test('the connection is closed when its token expires', async (t) => {
  const inTwoSeconds = Math.floor(Date.now() / 1000) + 2
  const socket = await openKpiSocket(service, {
    query: `?token=${expiringAt(token, inTwoSeconds)}`,
  })
  t.equal((await firstSnapshot(socket)).length, 1)
  t.equal(await socket.whenClosed(), 1008)
  t.ok(Date.now() >= inTwoSeconds * 1000, 'and not before')
})

t.test('the connections of a disabled or deleted user are closed, no others', async (t) => {
  const disabled = await service.newUser('viewer')
  const deleted = await service.newUser('viewer')
  const other = await openKpiSocket(service, { headers: bearer })
  const two = [disabled, disabled, deleted].map(({ access_token: own }) =>
    openKpiSocket(service, { protocols: `jwt.${own}` }),
  )
  const sockets = await Promise.all(two)
  for (const socket of sockets) await firstSnapshot(socket)
  await call(`PATCH /api/users/${disabled.id}`, { json: { is_active: false } })
  await call(`DELETE /api/users/${deleted.id}`)
  for (const socket of sockets) t.equal(await socket.whenClosed(), 1008)
  await firstSnapshot(other)
  t.equal(other.closed(), null)
  other.end()
})

t.test('a request without an upgrade gets 426', async (t) => {
  const reply = await call('GET /ws/kpis')
  t.match(reply, { status: 426, body: { detail: { code: 'upgrade_required' } } })
  t.equal(reply.headers.get('upgrade'), 'websocket')
})

const open = async (limited: LiveService, count: number, atFirst = false): Promise<KpiSocket[]> => {
  const sockets: KpiSocket[] = []
  for (let i = 0; i < count; i++) {
    const headers = { authorization: `Bearer ${limited.token}` }
    sockets.push(await openKpiSocket(limited, { headers, atFirst }))
  }
  return sockets
}

t.test('above the limits of an address connections are closed with 1008', async (t) => {
  const limited = await startLiveService(t, { WS_LIMITER: '5/60', WS_MAX_OPEN: '3' })
  // Each instance counts its own open connections.
  const [one, two, three, four] = await open(limited, 4, true)
  for (const socket of [one, two, three]) {
    if (socket === undefined) return
    t.equal((await firstSnapshot(socket)).length, 1)
    t.equal(socket.closed(), null)
  }
  t.equal(await four?.whenClosed(), 1008, 'more than WS_MAX_OPEN at once')
  for (const socket of [one, two, three]) socket?.end()
  await sleep(100)
  const more = await open(limited, 4)
  const codes = await Promise.all(more.slice(-1).map((socket) => socket.whenClosed()))
  t.same(codes, [1008], 'more than WS_LIMITER in its time')
  for (const socket of more) socket.end()
})

t.test('a socket that was idle for 30 seconds gets a ping', async (t) => {
  const socket = await openKpiSocket(service, { headers: bearer })
  await firstSnapshot(socket)
  const startMs = performance.now()
  await eventually(
    async () => socket.texts,
    (texts) => texts.includes('ping'),
    45_000,
  )
  t.ok(performance.now() - startMs > 25_000, 'not before')
  socket.socket.send('pong')
  t.equal(socket.closed(), null)
  socket.end()
})
