import { bound } from '../../support/bound.js'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { WebSocket } from 'ws'
import { createWebSocketHub } from '../../../src/http/websocket.js'
import type { WebSocketOptions } from '../../../src/http/websocket.js'
import { rawExchange, startServer, statuses } from '../../support/http.js'
import { MINUTE_MS } from '../../../src/model/time.js'

type Test = Parameters<typeof startServer>[0]

function start(test: Test, more: Partial<WebSocketOptions<string>> = {}) {
  const hub = createWebSocketHub<string>({
    path: '/ws/kpis',
    authenticate({ headers, protocols, query }) {
      const offered = protocols.find((protocol) => protocol.startsWith('jwt.'))?.slice(4)
      const bearer = headers.first('authorization')?.slice('Bearer '.length)
      const user = bearer ?? offered ?? query.get('token')
      if (user === null || user === 'bad') return { kind: 'refused', reason: 'no valid token' }
      return { kind: 'accepted', user }
    },
    userId: (user) => user,
    onOpen: (connection) => {
      connection.send(`hello ${connection.user}`)
    },
    ...more,
  })
  const running = startServer(test, { webSockets: [hub.route] })
  const url = `ws://127.0.0.1:${running.port}/ws/kpis`
  return { ...running, hub, url }
}

/** A client that remembers what it got. */
function client(test: Test, url: string, protocols: string[] = [], headers = {}) {
  const socket = new WebSocket(url, protocols, { headers })
  const texts: string[] = []
  const waiting: (() => void)[] = []
  socket.on('message', (data: Buffer) => {
    texts.push(data.toString())
    for (const wake of waiting.splice(0)) wake()
  })
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('error', () => {})
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
  })
  test.teardown(async () => socket.terminate())
  const next = async (): Promise<string> => {
    while (texts.length === 0) await new Promise<void>((resolve) => waiting.push(resolve))
    return texts.shift() ?? ''
  }
  return { socket, next, closed, texts }
}

t.test('an accepted client is greeted and its ping is answered', async (t) => {
  const { url } = start(t)
  const { socket, next } = client(t, `${url}?token=ann`)
  t.equal(await next(), 'hello ann')
  socket.send('ping')
  t.equal(await next(), 'pong')
  socket.send('pong')
  socket.send('ping')
  t.equal(await next(), 'pong', 'a pong is not answered')
})

t.test('a refused client gets 1008 with the reason, after the upgrade', async (t) => {
  const { url, hub } = start(t)
  for (const path of ['', '?token=bad']) {
    const { closed, socket } = client(t, url + path)
    await once(socket, 'open')
    t.same(await closed, { code: 1008, reason: 'no valid token' })
  }
  t.equal(hub.size, 0)
})

t.test('one of the offered subprotocols is echoed, rather not the token', async (t) => {
  const { url } = start(t)
  const only = client(t, url, ['jwt.ann'])
  t.equal(await only.next(), 'hello ann')
  t.equal(only.socket.protocol, 'jwt.ann')
  const both = client(t, url, ['jwt.bob', 'v1'])
  t.equal(await both.next(), 'hello bob')
  t.equal(both.socket.protocol, 'v1')
  const refused = client(t, url, ['jwt.bad'])
  t.equal((await refused.closed).code, 1008)
})

t.test('a publication reaches every open connection', async (t) => {
  const { url, hub } = start(t)
  const clients = ['a', 'b', 'c'].map((name) => client(t, `${url}?token=${name}`))
  for (const { next } of clients) await next()
  hub.publish('{"n":1}')
  t.same(await Promise.all(clients.map(({ next }) => next())), ['{"n":1}', '{"n":1}', '{"n":1}'])
})

t.test('connections are counted per user and closed by user or by rule', async (t) => {
  const { url, hub } = start(t)
  const [first, second, other] = ['ann', 'ann', 'bob'].map((name) =>
    client(t, url, [], { authorization: `Bearer ${name}` }),
  )
  for (const one of [first, second, other]) await one?.next()
  t.equal(hub.size, 3)
  t.equal(hub.openOf('ann'), 2)
  t.equal(hub.closeUser('ann', 1008, 'user disabled'), 2)
  t.same(await first?.closed, { code: 1008, reason: 'user disabled' })
  t.same(await second?.closed, { code: 1008, reason: 'user disabled' })
  t.equal(hub.openOf('ann'), 0)
  t.equal(
    hub.closeWhere((user) => user === 'bob', 4000, 'moved'),
    1,
  )
  t.equal((await other?.closed)?.code, 4000)
  t.equal(hub.size, 0)
})

t.test('a connection ends with 1008 when its token does', async (t) => {
  const { url } = start(t, {
    authenticate: () => ({ kind: 'accepted', user: 'ann', expiresAtMs: Date.now() + 100 }),
    limits: { keepaliveMs: 1000 },
  })
  t.same(await client(t, url).closed, { code: 1008, reason: 'token expired' })
})

t.test('a silent connection gets a text ping, a busy one does not', async (t) => {
  const { url, hub } = start(t, { limits: { keepaliveMs: 200 } })
  const { next, texts, socket } = client(t, `${url}?token=ann`)
  t.equal(await next(), 'hello ann')
  t.equal(await next(), 'ping')
  socket.send('pong')
  for (let i = 0; i < 12; i++) {
    hub.publish('news')
    await sleep(40)
  }
  t.same([...new Set(texts)], ['news'])
})

t.test('a client that does not answer protocol pings is dropped', async (t) => {
  let ended: number | null = null
  const { port } = start(t, {
    limits: { idleTimeoutS: 8, keepaliveMs: MINUTE_MS },
    onClose: (_, code) => {
      ended = code
    },
  })
  const socket = connect(port, '127.0.0.1')
  t.teardown(async () => socket.destroy())
  socket.write(handshake('/ws/kpis?token=mute'))
  const [answer] = await once(socket, 'data')
  t.match(String(answer), /^HTTP\/1\.1 101/)
  socket.resume()
  await once(socket, 'close')
  t.equal(ended, 1006)
})

t.test(
  'a client that does not read is disconnected before its buffer grows too large',
  async (t) => {
    const { port, hub } = start(t, { limits: { backpressureBytes: 100_000 } })
    const socket = connect(port, '127.0.0.1')
    t.teardown(async () => socket.destroy())
    socket.write(handshake('/ws/kpis?token=slow'))
    await once(socket, 'data')
    socket.pause()
    t.equal(hub.size, 1)
    for (let i = 0; i < 2000 && hub.size > 0; i++) {
      hub.publish('x'.repeat(50_000))
      if (i % 20 === 0) await sleep(1)
    }
    t.equal(hub.size, 0)
  },
)

t.test('a binary or oversized message ends its connection only', async (t) => {
  const { url, hub } = start(t, { limits: { messageBytes: 100 } })
  const steady = client(t, `${url}?token=steady`)
  await steady.next()
  const binary = client(t, `${url}?token=a`)
  await binary.next()
  binary.socket.send(Buffer.from([1, 2, 3]))
  t.equal((await binary.closed).code, 1003)
  const large = client(t, `${url}?token=b`)
  await large.next()
  large.socket.send('x'.repeat(101))
  t.ok([1006, 1009].includes((await large.closed).code))
  t.equal(hub.size, 1)
})

t.test(
  'a client that sends without a pause is disconnected, and nobody waits for it',
  async (t) => {
    const { url, hub } = start(t)
    const steady = client(t, `${url}?token=steady`)
    await steady.next()
    const flood = client(t, `${url}?token=a`)
    await flood.next()
    for (let i = 0; i < 20_000; i++) flood.socket.send('ping')
    const limit = 100
    t.same(await flood.closed, { code: 1008, reason: `more than ${limit} messages in a second` })
    t.equal(hub.size, 1)
    for (let i = 0; i < limit; i++) steady.socket.send('ping')
    for (let i = 0; i < limit; i++) t.equal(await steady.next(), 'pong')
    await sleep(1_000)
    steady.socket.send('ping')
    t.equal(await steady.next(), 'pong', 'the next second counts anew')
  },
)

t.test('a flood of pings or pongs ends its connection as one of messages does', async (t) => {
  const { url, hub } = start(t)
  for (const kind of ['ping', 'pong'] as const) {
    const flood = client(t, `${url}?token=a`)
    await flood.next()
    for (let i = 0; i < 20_000; i++) flood.socket[kind]()
    t.same(await flood.closed, { code: 1008, reason: 'more than 100 messages in a second' }, kind)
    const steady = client(t, `${url}?token=steady`)
    await steady.next()
    for (let i = 0; i < 99; i++) steady.socket[kind]()
    steady.socket.send('ping')
    t.equal(await steady.next(), 'pong', kind)
  }
  t.equal(hub.size, 2)
})

t.test('connections per address are limited', async (t) => {
  const { url } = start(t, { limits: { connectionsPerIp: 2 } })
  const open = [client(t, `${url}?token=a`), client(t, `${url}?token=b`)]
  for (const { next } of open) await next()
  t.same(await client(t, `${url}?token=c`).closed, { code: 1008, reason: 'too many connections' })
  open[0]?.socket.close()
  await open[0]?.closed
  t.equal(await client(t, `${url}?token=d`).next(), 'hello d')
})

t.test('a connection that was a WebSocket gives its place back, exactly once', async (t) => {
  const hub = createWebSocketHub<string>({
    path: '/ws',
    authenticate: ({ query }) =>
      query.has('no') ? { kind: 'refused', reason: 'no' } : { kind: 'accepted', user: 'ann' },
    userId: (user) => user,
    onOpen: (connection) => {
      connection.send('hello')
    },
  })
  const pool = { limit: 5, open: 0 }
  const limits = { connections: 4 }
  // Of a proxy, because one client may not have all of them.
  const trustedProxies = ['127.0.0.1']
  const { port } = startServer(t, { webSockets: [hub.route], limits, pool, trustedProxies })
  const url = `ws://127.0.0.1:${port}/ws`
  for (let round = 0; round < 4; round++) {
    const open = ['', '', ''].map(() => client(t, url))
    for (const { next } of open) await next()
    t.equal(pool.open, 3)
    t.equal((await client(t, `${url}?no`).closed).code, 1008)
    const [first, second, third] = open
    first?.socket.close()
    second?.socket.terminate()
    hub.closeUser('ann', 4000, 'bye')
    await Promise.all([first?.closed, second?.closed, third?.closed])
    for (let i = 0; i < 100 && pool.open > 0; i++) await sleep(20)
    t.equal(pool.open, 0, `round ${round}`)
  }
  const full = ['', '', '', ''].map(() => client(t, url))
  for (const { next } of full) await next()
  t.equal((await client(t, url).closed).code, 1006, 'and no more than the limit')
  pool.open += 2
  full[0]?.socket.terminate()
  await full[0]?.closed
  await sleep(50)
  t.equal((await client(t, url).closed).code, 1006, 'nor than all servers may have together')
})

t.test('a client that never reads is dropped although it is sent snapshots', async (t) => {
  const { port, hub } = start(t, { limits: { idleTimeoutS: 8 } })
  const socket = connect(port, '127.0.0.1')
  t.teardown(async () => socket.destroy())
  socket.write(handshake('/ws/kpis?token=deaf'))
  await once(socket, 'data')
  socket.pause()
  for (let i = 0; i < 300 && hub.size > 0; i++) {
    hub.publish('x'.repeat(2000))
    await sleep(100)
  }
  t.equal(hub.size, 0)
})

const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
const handshake = (path: string, { connection = 'Upgrade', version = '13', more = '' } = {}) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: ${connection}\r\n${KEY}Sec-WebSocket-Version: ${version}\r\n${more}\r\n`

t.test('what is no proper opening is answered over HTTP', async (t) => {
  const { port, url, hub } = start(t)
  const bad: [string, string, number][] = [
    ['no upgrade token', handshake('/ws/kpis', { connection: 'close' }), 426],
    ['an old version', handshake('/ws/kpis', { version: '8' }), 426],
    ['a body', handshake('/ws/kpis', { more: 'Content-Length: 5\r\n' }), 426],
    [
      'two lengths',
      handshake('/ws/kpis', { more: 'Content-Length: 5\r\nContent-Length: 0\r\n' }),
      400,
    ],
    [
      'a head that is too long',
      handshake('/ws/kpis', { more: `X: ${'x'.repeat(20_000)}\r\n` }),
      431,
    ],
    ['another path', handshake('/ws/none'), 404],
  ]
  for (const [name, bytes, status] of bad) {
    const { text } = await rawExchange(port, [bytes], { until: (got) => got.includes('}') })
    t.same(statuses(text), [status], name)
  }
  const keepalive = handshake('/ws/kpis?token=a', { connection: 'keep-alive, Upgrade' })
  const good = await rawExchange(port, [keepalive], { until: (got) => got.includes('hello') })
  t.same(statuses(good.text), [101])
  const plain = await fetch(url.replace('ws:', 'http:'))
  t.equal(plain.status, 426)
  t.match(await plain.json(), { detail: { code: 'upgrade_required' } })
  await sleep(50)
  t.equal(hub.size, 0)
})

t.test('stopping says goodbye with 1001', async (t) => {
  const { url, server } = start(t)
  const { next, closed } = client(t, `${url}?token=a`)
  await next()
  await server.close({ deadlineMs: 100 })
  t.equal((await closed).code, 1001)
})

t.test('an idle timeout that would end the process is refused', async (t) => {
  for (const idleTimeoutS of [1, 7, 961, 8.5, -1]) {
    t.throws(() => start(t, { limits: { idleTimeoutS } }), RangeError, `${idleTimeoutS}`)
  }
})

t.test('the process lives on whatever handlers and hooks throw', async (t) => {
  const script = new URL('../../support/throwing-server.js', import.meta.url)
  const child = spawn(...bound(process.execPath, [script.pathname]), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(async () => {
    child.kill('SIGKILL')
  })
  const [line] = await once(child.stdout, 'data')
  const port = Number(String(line))
  const paths = ['/sync', '/async', '/before', '/before-async', '/bad-reply', '/bad-header']
  for (const path of paths) {
    for (const body of ['', 'text']) {
      const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body })
      t.equal(reply.status, 500, path)
      t.match(await reply.json(), { detail: { code: 'internal_error' } })
    }
  }
  const head = 'POST /late HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n'
  await rawExchange(port, [`${head}x`], { waitMs: 100 })
  await rawExchange(port, [head], { waitMs: 100 })
  const codes: number[] = []
  for (const query of ['refuse', 'user=open', 'user=message']) {
    const { socket, closed } = client(t, `ws://127.0.0.1:${port}/ws?${query}`)
    await once(socket, 'open')
    socket.send('text')
    codes.push((await closed).code)
  }
  t.same(codes, [1011, 1011, 1011])
  t.equal((await fetch(`http://127.0.0.1:${port}/none`)).status, 404, 'it still answers')
  child.kill('SIGTERM')
  const [exitCode, signal] = await once(child, 'exit')
  t.same([exitCode, signal], [0, null])
})
