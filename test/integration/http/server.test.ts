import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { httpRoute } from '../../../src/http/routes.js'
import type { HttpRoute } from '../../../src/http/routes.js'
import type { RequestOutcome } from '../../../src/telemetry/metrics.js'
import { createServer } from '../../../src/http/server.js'
import { AppError } from '../../../src/model/errors.js'
import { WatchedBufferPool } from '../../support/pipeline.js'
import { rawExchange, recordingLog, startServer, statuses, uws } from '../../support/http.js'
import { HOUR_MS } from '../../../src/model/time.js'

const HOST = 'Host: localhost\r\n'
const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`
const post = (path: string, headers: string, body = '') =>
  `POST ${path} HTTP/1.1\r\n${HOST}${headers}\r\n${body}`

/** Remembers what reached a handler. */
function recorder() {
  const seen: string[] = []
  const routes: HttpRoute[] = [
    httpRoute({
      id: 'echo',
      method: 'POST',
      path: '/echo',
      bodyBytes: 1000,
      handle({ body, path }) {
        seen.push(`POST ${path} ${body.byteLength}`)
        return { status: 200, body: new Uint8Array(body) }
      },
    }),
    httpRoute({
      id: 'hello',
      method: 'GET',
      path: '/hello/{name}',
      bodyBytes: 0,
      async handle({ params, path }) {
        seen.push(`GET ${path}`)
        return { status: 200, json: params }
      },
    }),
    httpRoute({
      id: 'guarded',
      method: 'POST',
      path: '/guarded',
      bodyBytes: 100_000_000,
      beforeBody: ({ headers }) =>
        headers.first('x-key') === 'k' ? null : { status: 401, body: 'no key' },
      handle: ({ body }) => ({ status: 200, body: String(body.byteLength) }),
    }),
    httpRoute({
      id: 'open',
      method: 'POST',
      path: '/open',
      bodyBytes: 100_000,
      isAuthenticatedByBody: true,
      handle: ({ body }) => ({ status: 200, body: String(body.byteLength) }),
    }),
    httpRoute({
      id: 'never',
      method: 'GET',
      path: '/never',
      bodyBytes: 0,
      handle: () => new Promise(() => {}),
    }),
    httpRoute({
      id: 'undecided',
      method: 'GET',
      path: '/undecided',
      bodyBytes: 0,
      beforeBody: () => new Promise(() => {}),
      handle: () => ({ status: 200 }),
    }),
    httpRoute({
      id: 'undecidedBody',
      method: 'POST',
      path: '/undecided',
      bodyBytes: 100,
      beforeBody: () => new Promise(() => {}),
      handle: () => ({ status: 200 }),
    }),
    httpRoute({
      id: 'large',
      method: 'GET',
      path: '/large',
      bodyBytes: 0,
      handle: () => ({ status: 200, body: Buffer.alloc(30_000_000, 'x') }),
    }),
    httpRoute({
      id: 'throws',
      method: 'GET',
      path: '/throws/{how}',
      bodyBytes: 0,
      handle({ params }) {
        if (params['how'] === 'sync') throw new Error('secret')
        if (params['how'] === 'app') throw new AppError('not_found', 'gone', { details: { id: 1 } })
        return Promise.reject(new Error('secret'))
      },
    }),
  ]
  return { seen, routes }
}

/** A promise that the test settles. */
function deferred<T>() {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((done) => {
    resolve = done
  })
  return { promise, resolve: (value: T) => resolve(value) }
}

function code(text: string): string | undefined {
  return /"code":"(\w+)"/.exec(text)?.[1]
}

t.test(
  'the head of a request that could be smuggled is refused and nothing behind it runs',
  async (t) => {
    const { seen, routes } = recorder()
    const { port } = startServer(t, { routes })
    const inner = get('/hello/smuggled')
    const attacks: [string, string][] = [
      [
        'two lengths',
        post('/echo', `Content-Length: 2\r\nContent-Length: ${inner.length}\r\n`, `hi${inner}`),
      ],
      [
        'equal lengths twice',
        post('/echo', 'Content-Length: 2\r\nContent-Length: 2\r\n', `hi${inner}`),
      ],
      [
        'both framings',
        post('/echo', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${inner}`),
      ],
      ['xchunked', post('/echo', 'Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${inner}`)],
      ['gzip, chunked', post('/echo', 'Transfer-Encoding: gzip, chunked\r\n', `0\r\n\r\n${inner}`)],
      ['an empty length', post('/echo', 'Content-Length: \r\n', inner)],
      ['two hosts', get('/hello/x', 'Host: other\r\n') + inner],
    ]
    for (const [name, bytes] of attacks) {
      const { text, isClosed } = await rawExchange(port, [bytes])
      t.notOk(statuses(text).includes(200), name)
      t.ok(isClosed, `${name}: the connection ends`)
    }
    t.same(seen, [])
    for (const [name, bytes] of attacks) {
      // In a read of its own, without following bytes, the request gets a reply.
      const head = bytes.slice(0, bytes.indexOf('\r\n\r\n') + 4)
      const { text, isClosed } = await rawExchange(port, [head])
      // uWebSockets.js itself answers this one, with a page of HTML.
      if (name !== 'both framings') t.equal(code(text), 'bad_request', name)
      t.same(statuses(text), [400], name)
      t.ok(isClosed, name)
    }
    t.same(seen, [])
  },
)

t.test('a chunked body whose content may be lost is no success', async (t) => {
  const { seen, routes } = recorder()
  const { port } = startServer(t, { routes })
  const head = post('/echo', 'Transfer-Encoding: chunked\r\n', '')
  for (const size of ['', ' ', '\t', ' 2', '0', '00'])
    for (const parts of [[`${head}${size}\r\nhi\r\n0\r\n\r\n`], [head, `${size}\r\n`]]) {
      const { text, isClosed } = await rawExchange(port, parts)
      t.notOk(statuses(text).includes(200), JSON.stringify(size))
      t.ok(isClosed)
    }
  t.same(seen, [])
})

t.test('two clean requests in one write are both answered or none is mixed up', async (t) => {
  const { seen, routes } = recorder()
  const { port } = startServer(t, { routes })
  const two =
    post('/echo', 'Content-Length: 2\r\n', 'hi') + post('/echo', 'Content-Length: 3\r\n', 'you')
  const { text } = await rawExchange(port, [two], { until: (got) => got.includes('you') })
  t.same(statuses(text), [200, 200])
  t.ok(text.indexOf('hi') < text.indexOf('you'))
  t.same(seen, ['POST /echo 2', 'POST /echo 3'])
})

t.test(
  'a client that sends requests without a pause is not served before all others',
  async (t) => {
    const { seen, routes } = recorder()
    const { port, url } = startServer(t, { routes })
    for (const request of [get('/nowhere'), get('/hello/you')]) {
      seen.length = 0
      const flood = rawExchange(port, [request.repeat(20_000)])
      await fetch(`${url}/nowhere`)
      const { isClosed } = await flood
      t.ok(isClosed)
      t.ok(seen.length <= 200, `${seen.length} were served`)
    }
  },
)

t.test('a body in chunks of a few bytes ends its connection', async (t) => {
  const sizes: number[] = []
  const route = httpRoute({
    id: 'in',
    method: 'POST',
    path: '/in',
    bodyBytes: 100_000,
    handle({ body }) {
      sizes.push(body.byteLength)
      return { status: 200, json: 'aaa' }
    },
  })
  const { port } = startServer(t, { routes: [route] })
  const head = post('/in', 'Transfer-Encoding: chunked\r\n')
  const crumbs = await rawExchange(port, [head, '1\r\na\r\n'.repeat(50_000)])
  t.same(statuses(crumbs.text), [400])
  t.ok(crumbs.isClosed)
  const few = '1\r\na\r\n'.repeat(500)
  const lines = `10\r\n${'a'.repeat(16)}\r\n`.repeat(3000)
  for (const chunks of [few, lines]) {
    const until = (text: string): boolean => text.includes('aaa')
    const { text } = await rawExchange(port, [head, `${chunks}0\r\n\r\n`], { until })
    t.same(statuses(text), [200])
  }
  t.same(sizes, [500, 48_000])
})

t.test('after an error the same connection serves the next request', async (t) => {
  const { routes } = recorder()
  const { port } = startServer(t, { routes })
  const { text } = await rawExchange(
    port,
    [get('/nowhere'), get('/hello/%zz'), get('/throws/sync'), get('/hello/next')],
    { until: (got) => got.includes('next') },
  )
  t.same(statuses(text), [404, 400, 500, 200])
})

t.test('a request split at any point is answered or refused, never hung', async (t) => {
  const { routes } = recorder()
  const { port } = startServer(t, { routes })
  const bytes = get('/hello/split')
  const tally = new Map<number, number>()
  await Promise.all(
    Array.from({ length: bytes.length - 1 }, async (_, i) => {
      const pieces = [bytes.slice(0, i + 1), bytes.slice(i + 1)]
      const { text } = await rawExchange(port, pieces, { until: (got) => got.includes('\r\n\r\n') })
      const [status = 0] = statuses(text)
      tally.set(status, (tally.get(status) ?? 0) + 1)
    }),
  )
  const { 200: answered = 0, 505: refused = 0, ...others } = Object.fromEntries(tally)
  t.same(others, {}, 'nothing but 200 and, from old builds, 505')
  t.ok(answered > refused)
  if (!uws.build.startsWith('uws-pack')) t.equal(refused, 0)
})

t.test('HEAD, OPTIONS, 404 and 405 are as HTTP wants them', async (t) => {
  const { routes } = recorder()
  const { url } = startServer(t, { routes })
  const head = await fetch(`${url}/hello/x`, { method: 'HEAD' })
  t.equal(head.status, 200)
  t.equal(head.headers.get('content-length'), String('{"name":"x"}'.length))
  t.equal(await head.text(), '')
  const options = await fetch(`${url}/hello/x`, { method: 'OPTIONS' })
  t.equal(options.status, 204)
  t.equal(options.headers.get('allow'), 'GET, HEAD, OPTIONS')
  const wrong = await fetch(`${url}/echo`, { method: 'DELETE' })
  t.equal(wrong.status, 405)
  t.equal(wrong.headers.get('allow'), 'POST, OPTIONS')
  t.match(await wrong.json(), { detail: { code: 'method_not_allowed' } })
  const missing = await fetch(`${url}/hello`)
  t.equal(missing.status, 404)
  t.match(await missing.json(), { detail: { code: 'route_not_found', details: {} } })
  t.equal((await fetch(`${url}/nowhere`, { method: 'OPTIONS' })).status, 404)
  for (const name of [
    'x-content-type-options',
    'referrer-policy',
    'content-security-policy',
    'x-request-id',
  ]) {
    t.ok(missing.headers.get(name), name)
  }
})

t.test(
  'HEAD of a large reply and of an error end at once and leave the connection usable',
  async (t) => {
    const { routes } = recorder()
    const { port } = startServer(t, { routes })
    const head = (path: string) => `HEAD ${path} HTTP/1.1\r\n${HOST}\r\n`
    const { text } = await rawExchange(port, [head('/large'), head('/none'), get('/hello/x')], {
      until: (got) => got.includes('"x"'),
    })
    t.same(statuses(text), [200, 404, 200])
    t.match(text, /Content-Length: 30000000/)
  },
)

t.test('a body above the limit is 413 at once, declared or not', async (t) => {
  const { seen, routes } = recorder()
  const { url, port } = startServer(t, { routes })
  const declared = await rawExchange(port, [post('/echo', 'Content-Length: 1001\r\n')], {
    until: (got) => got.includes('}'),
  })
  t.same(statuses(declared.text), [413], 'before a byte of the body')
  t.equal(code(declared.text), 'body_too_large')
  const huge = await rawExchange(port, [post('/echo', 'Content-Length: 999999999999\r\n')])
  t.same(statuses(huge.text), [413])
  t.ok(huge.isClosed, 'nobody waits for a terabyte')
  const chunk = `190\r\n${'x'.repeat(400)}\r\n`
  const head = post('/echo', 'Transfer-Encoding: chunked\r\n')
  const chunked = await rawExchange(port, [head, chunk, chunk, chunk])
  t.same(statuses(chunked.text), [413])
  t.ok(chunked.isClosed)
  t.same(seen, [])
  const reply = await fetch(`${url}/echo`, { method: 'POST', body: Buffer.alloc(20_000_000) })
  t.equal(reply.status, 413, 'a client that writes on gets the reply all the same')
  const fits = await fetch(`${url}/echo`, { method: 'POST', body: Buffer.alloc(1000) })
  t.equal((await fits.arrayBuffer()).byteLength, 1000)
})

const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await sleep(5)
}

t.test('a body in pieces arrives whole, and stays so until the handler is done', async (t) => {
  const sizes: number[] = []
  const sent = Buffer.from(Array.from({ length: 4_000_000 }, (_, i) => i % 251))
  const route = httpRoute({
    id: 'in',
    method: 'POST',
    path: '/in',
    bodyBytes: 5_000_000,
    async handle({ body }) {
      sizes.push(body.byteLength)
      await pause
      t.ok(body.length === 5 || sent.subarray(0, body.length).equals(body), `${body.length} bytes`)
      return { status: 204 }
    },
  })
  let pause: Promise<unknown> = Promise.resolve()
  const buffers = new WatchedBufferPool(t)
  const { url, port } = startServer(t, { routes: [route], buffers })
  const pieces = ['3\r\nab', 'c\r\n', '2\r', '\nde\r\n0\r\n', '\r\n']
  const head = post('/in', 'Transfer-Encoding: chunked\r\n')
  await rawExchange(port, [head, ...pieces], { until: (got) => got.includes('204') })
  for (const bytes of [0, 1, 70_000, 4_000_000]) {
    await fetch(`${url}/in`, { method: 'POST', body: sent.subarray(0, bytes) })
  }
  t.same(sizes, [5, 0, 1, 70_000, 4_000_000])
  t.equal(buffers.inUse.size, 0)

  // Its client disconnects while others send.
  let proceed = (): void => undefined
  pause = new Promise<void>((resolve) => (proceed = resolve))
  const controller = new AbortController()
  const left = fetch(`${url}/in`, {
    method: 'POST',
    body: sent.subarray(0, 70_000),
    signal: controller.signal,
  })
  await until(() => sizes.length === 6)
  controller.abort()
  await left.catch(() => undefined)
  pause = Promise.resolve()
  await fetch(`${url}/in`, { method: 'POST', body: Buffer.alloc(0) })
  await fetch(`${url}/in`, { method: 'POST', body: sent.subarray(0, 60_000) })
  t.equal(buffers.inUse.size, 1)
  proceed()
  await until(() => buffers.inUse.size === 0)
})

t.test(
  'a request refused by its head is answered before its body, and the body is not kept',
  async (t) => {
    const { routes } = recorder()
    const { url, port } = startServer(t, { routes, limits: { maxBodyBytesInFlight: 1000 } })
    const early = await rawExchange(port, [post('/guarded', 'Content-Length: 5000\r\n')], {
      until: (got) => got.includes('no key'),
    })
    t.same(statuses(early.text), [401])
    const whole = await fetch(`${url}/guarded`, { method: 'POST', body: Buffer.alloc(3_000_000) })
    t.equal(whole.status, 401, 'not 429: it was never buffered')
  },
)

t.test('bodies in flight share a budget, which is given back', async (t) => {
  const { routes } = recorder()
  const { url, port } = startServer(t, { routes, limits: { maxBodyBytesInFlight: 10_000 } })
  const send = async (bytes: number) => {
    const headers = { 'x-key': 'k' }
    const body = Buffer.alloc(bytes)
    return fetch(`${url}/guarded`, { method: 'POST', body, headers })
  }
  const refused = await send(20_000)
  t.equal(refused.status, 429)
  t.equal(refused.headers.get('retry-after'), '1')
  t.match(await refused.json(), { detail: { code: 'overloaded' } })
  const half = post('/guarded', 'X-Key: k\r\nContent-Length: 9000\r\n', 'x'.repeat(8000))
  const socket = connect(port, '127.0.0.1')
  socket.write(half)
  await sleep(100)
  t.equal((await send(5000)).status, 429, 'a slow body holds its share')
  socket.destroy()
  await sleep(100)
  for (let i = 0; i < 5; i++) t.equal((await send(9000)).status, 200)
})

t.test('bodies of unauthenticated clients do not use the budget of the others', async (t) => {
  const { routes } = recorder()
  const { url, port } = startServer(t, { routes, limits: { maxBodyBytesInFlight: 10_000 } })
  const send = async (path: string, bytes: number): Promise<number> => {
    const init = { method: 'POST', body: Buffer.alloc(bytes), headers: { 'x-key': 'k' } }
    return (await fetch(url + path, init)).status
  }
  t.equal(await send('/open', 2_600), 429)
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write(post('/open', 'Content-Length: 2500\r\n', 'x'.repeat(1_650)))
  while ((await send('/open', 200)) !== 429) await sleep(10)
  t.equal(await send('/guarded', 9_900), 200)
  if (process.platform !== 'linux') return
  const other = await rawExchange(
    port,
    [post('/open', 'Content-Length: 200\r\n', 'x'.repeat(200))],
    {
      from: '127.0.0.2',
      until: (got) => got.includes('}'),
    },
  )
  t.same(statuses(other.text), [200], 'nor that of another client')
})

t.test('a slow body is answered 408, a slow handler 503, and both in the envelope', async (t) => {
  const { routes } = recorder()
  const limits = { bodyTimeoutMs: 100, handlerTimeoutMs: 150 }
  const { url, port, log } = startServer(t, { routes, limits })
  const slow = await rawExchange(port, [post('/echo', 'Content-Length: 10\r\n', 'half')])
  t.same(statuses(slow.text), [408])
  t.equal(code(slow.text), 'request_timeout')
  t.ok(slow.isClosed)
  const never = await fetch(`${url}/never`)
  t.equal(never.status, 503)
  t.ok(never.headers.get('retry-after'))
  t.match(await never.json(), { detail: { code: 'dependency_unavailable' } })
  t.equal((await fetch(`${url}/undecided`)).status, 503, 'nor may the check of the head hang')
  t.equal(log.entries.length, 2)
})

t.test(
  'the deadline of a body ends with its last byte, even while the head is checked',
  async (t) => {
    const { routes } = recorder()
    const limits = { bodyTimeoutMs: HOUR_MS, handlerTimeoutMs: 150 }
    const { url } = startServer(t, { routes, limits })
    const reply = await fetch(`${url}/undecided`, { method: 'POST', body: 'all of it' })
    t.equal(reply.status, 503)
    t.ok(reply.headers.get('retry-after'))
    t.match(await reply.json(), { detail: { details: { timeout_ms: 150 } } })
  },
)

t.test('a client that leaves aborts the signal, in mid-body and in mid-handler', async (t) => {
  let signal: AbortSignal | null = null
  const outcomes: RequestOutcome[] = []
  const route = httpRoute({
    id: 'waits',
    method: 'POST',
    path: '/waits',
    bodyBytes: 1000,
    handle: (request) => {
      ;({ signal } = request)
      return new Promise(() => {})
    },
  })
  const { port } = startServer(t, { routes: [route], observe: (outcome) => outcomes.push(outcome) })
  const leave = async (bytes: string) => {
    const socket = connect(port, '127.0.0.1')
    socket.write(bytes)
    await sleep(80)
    socket.resetAndDestroy()
    await sleep(80)
  }
  await leave(post('/waits', 'Content-Length: 9\r\n', 'half'))
  t.equal(signal, null, 'the handler was never called')
  await leave(post('/waits', 'Content-Length: 4\r\n', 'full'))
  t.match(signal, { aborted: true })
  t.match(outcomes, [
    { routeId: 'waits', status: 0 },
    { routeId: 'waits', status: 0 },
  ])
})

t.test('a client that stalls in a large reply is disconnected, a slow one is not', async (t) => {
  const { routes } = recorder()
  const outcomes: RequestOutcome[] = []
  const { port, url } = startServer(t, {
    routes,
    limits: { stallTimeoutMs: 1000 },
    observe: (outcome) => outcomes.push(outcome),
  })
  const socket = connect(port, '127.0.0.1')
  socket.pause()
  socket.write(get('/large'))
  for (let i = 0; i < 100 && outcomes.length === 0; i++) await sleep(50)
  t.match(outcomes, [{ routeId: 'large', status: 0 }])
  socket.destroy()
  const reply = await fetch(`${url}/large`)
  let bytes = 0
  for await (const chunk of reply.body ?? []) {
    const piece: Uint8Array = chunk
    if (bytes < 1_000_000) await sleep(5)
    bytes += piece.byteLength
  }
  t.equal(bytes, 30_000_000)
})

t.test('replies that nobody reads take bounded memory: the slowest client leaves', async (t) => {
  const outcomes: RequestOutcome[] = []
  const text = httpRoute({
    id: 'text',
    method: 'GET',
    path: '/text',
    bodyBytes: 0,
    handle: () => ({ status: 200, body: 'x'.repeat(20_000_000) }),
  })
  const { port, url } = startServer(t, {
    routes: [text, ...recorder().routes],
    limits: { maxUnreadBytes: 50_000_000 },
    observe: (outcome) => outcomes.push(outcome),
  })
  const stall = async (path: string): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.pause()
    socket.write(get(path))
    await fetch(`${url}/hello/x`)
    return socket
  }
  const ended = (): number => outcomes.filter(({ status }) => status === 0).length
  // Those of a file are no memory of their own.
  for (let i = 0; i < 4; i++) await stall('/large')
  await stall('/text')
  await stall('/text')
  await sleep(100)
  t.equal(ended(), 0)
  for (const wanted of [1, 2]) {
    await stall('/text')
    for (let i = 0; i < 100 && ended() < wanted; i++) await sleep(20)
    t.equal(ended(), wanted)
  }
  t.equal((await (await fetch(`${url}/text`)).text()).length, 20_000_000, 'who reads has all of it')
  t.ok(
    outcomes.every(({ routeId, status }) => status === 200 || routeId === 'text'),
    'and the files stay',
  )
})

t.test('a head that is too long is 431 in the envelope, even with a query of 100 kB', async (t) => {
  const { routes } = recorder()
  const { url, port } = startServer(t, { routes })
  const query = await fetch(`${url}/hello/x?q=${'a'.repeat(100_000)}`)
  t.equal(query.status, 431)
  t.match(await query.json(), { detail: { code: 'headers_too_large' } })
  const fits = await fetch(`${url}/hello/x?q=${'a'.repeat(10_000)}`)
  t.equal(fits.status, 200)
  const native = await rawExchange(port, [get(`/hello/x?q=${'a'.repeat(200_000)}`)])
  t.same(statuses(native.text), [431])
  t.ok(native.isClosed)
})

t.test('paths that cannot be decoded are 400', async (t) => {
  const { routes } = recorder()
  const { url } = startServer(t, { routes })
  for (const name of ['%', '%ff', '%00', 'a%EF%BF%BD']) {
    const reply = await fetch(`${url}/hello/${name}`)
    t.equal(reply.status, 400, name)
    t.match(await reply.json(), { detail: { code: 'bad_request' } })
  }
})

t.test('an unexpected error shows nothing but the request id, and is logged once', async (t) => {
  const { routes } = recorder()
  const { url, log } = startServer(t, { routes })
  for (const how of ['sync', 'async']) {
    log.entries.length = 0
    const reply = await fetch(`${url}/throws/${how}`)
    t.equal(reply.status, 500)
    const id = reply.headers.get('x-request-id')
    t.same(await reply.json(), {
      detail: { message: 'internal error', code: 'internal_error', details: { request_id: id } },
    })
    t.match(log.entries, [{ level: 'error', fields: { request_id: id, err: /secret/ } }])
    t.equal(log.entries.length, 1)
  }
  t.match(await (await fetch(`${url}/throws/app`)).json(), { detail: { details: { id: 1 } } })
})

t.test('other origins get CORS headers only when they are configured', async (t) => {
  const { routes } = recorder()
  const off = startServer(t, { routes })
  const on = startServer(t, { routes, cors: { origins: ['https://a.example'] } })
  const ask = (url: string, origin: string, method = 'GET') =>
    fetch(`${url}/hello/x`, {
      method,
      headers: { origin, 'access-control-request-method': 'GET' },
    })
  const allowed = 'access-control-allow-origin'
  t.equal((await ask(off.url, 'https://a.example')).headers.get(allowed), null)
  t.equal((await ask(on.url, 'https://b.example')).headers.get(allowed), null)
  const good = await ask(on.url, 'https://a.example')
  t.equal(good.headers.get(allowed), 'https://a.example')
  t.equal(good.headers.get('vary'), 'Origin')
  const preflight = await ask(on.url, 'https://a.example', 'OPTIONS')
  t.equal(preflight.status, 204)
  t.match(preflight.headers.get('access-control-allow-methods'), /GET/)
  const refused = await ask(on.url, 'https://b.example', 'OPTIONS')
  t.equal(refused.headers.get('access-control-allow-methods'), null)
})

t.test('a port that is taken is refused with its setting named', async (t) => {
  const { port } = startServer(t, {})
  const second = createServer({
    uws,
    host: '127.0.0.1',
    port,
    portSetting: 'API_PORT',
    routes: [],
    log: recordingLog(),
  })
  t.throws(() => second.listen(), { message: new RegExp(`127.0.0.1:${port} \\(API_PORT\\)`) })
  await second.close({ deadlineMs: 0 })
})

t.test('connections above the cap are closed at once', async (t) => {
  const { routes } = recorder()
  const { port } = startServer(t, { routes, limits: { connections: 2 } })
  const first = connect(port, '127.0.0.1')
  const second = connect(port, '127.0.0.1')
  await Promise.all([once(first, 'connect'), once(second, 'connect')])
  await sleep(50)
  for (let i = 0; i < 5; i++) {
    const third = await rawExchange(port, [get('/hello/x')])
    t.equal(third.text, '')
    t.ok(third.isClosed)
  }
  first.destroy()
  second.destroy()
  await sleep(50)
  const next = await rawExchange(port, [get('/hello/x')], { until: (got) => got.includes('}') })
  t.same(statuses(next.text), [200])
})

t.test('no client takes all connections', { skip: process.platform !== 'linux' }, async (t) => {
  const { routes } = recorder()
  const limits = { connections: 40 }
  const { port } = startServer(t, { routes, limits, trustedProxies: ['127.0.0.9'] })
  /** Opens connections one after the other. @returns how many stay open */
  const open = async (from: string, wanted: number): Promise<number> => {
    let opened = 0
    for (let i = 0; i < wanted; i++) {
      const socket = connect({ port, host: '127.0.0.1', localAddress: from })
      t.teardown(() => socket.destroy())
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      socket.write('GET /hello/x HTTP/1.1\r\nHost: x\r\n\r\n')
      const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close')])
      if (answer instanceof Buffer) opened++
    }
    return opened
  }
  const asks = async (from: string) => {
    const until = (got: string): boolean => got.includes('}')
    return statuses((await rawExchange(port, [get('/hello/x')], { from, until })).text)
  }
  // Half of all, less those that are counted twice and more those that came before anything was counted.
  const first = (await open('127.0.0.2', 40)) + (await open('127.0.0.2', 40))
  t.ok(first >= 16 && first <= 25, `${first} of a first client`)
  t.same(await asks('127.0.0.3'), [200])
  const left = 40 - first
  const second = await open('127.0.0.3', 40)
  t.ok(second >= left / 3 - 2 && second <= left / 2 + 1, `${second} of a second client`)
  t.same(await asks('127.0.0.4'), [200], 'there is room for one more')
  t.equal(await open('127.0.0.9', 4), 4, 'a proxy speaks for many')
})

t.test('stopping lets the request in flight end and refuses new connections', async (t) => {
  const arrived = deferred<void>()
  const reply = deferred<{ status: number; body: string }>()
  const route = httpRoute({
    id: 'waits',
    method: 'GET',
    path: '/waits',
    bodyBytes: 0,
    handle() {
      arrived.resolve()
      return reply.promise
    },
  })
  const { url, server } = startServer(t, { routes: [route] })
  const pending = fetch(`${url}/waits`)
  await arrived.promise
  const closed = server.close({ deadlineMs: 5000 })
  await t.rejects(fetch(`${url}/waits`))
  reply.resolve({ status: 200, body: 'done' })
  t.equal(await (await pending).text(), 'done')
  await closed
})
