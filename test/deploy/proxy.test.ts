import { once } from 'node:events'
import { request as httpsRequest } from 'node:https'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { WebSocket } from 'ws'
import { startShared, type Instance } from '../support/instances.js'
import { freePort } from '../support/ports.js'
import { startProxy } from '../support/proxy.js'
import { ADMIN, countOf, INGEST_KEY, logIn, settledCount } from '../support/service.js'
import { without } from '../support/tools.js'

const skip = without('haproxy', 'openssl')
const BEARER = { authorization: `Bearer ${INGEST_KEY}` }

interface Owner {
  teardown(end: () => Promise<unknown> | void): void
}

/** The collector wants a key for each of them. */
const COLLECTOR_PATHS = [
  '/',
  '/v1/logs',
  '/otlp/v1/logs',
  '/_bulk',
  '/shop/_bulk',
  '/shop/_doc/1',
  '/elasticsearch/_bulk',
  '/loki/api/v1/push',
  '/services/collector/event',
  '/api/v2/logs',
  '/v1/input',
  '/upload',
  '/gelf',
  '/log/v1',
  '/api/v1/ingest/humio-structured',
  '/api/default/shop/_json',
  '/api/events/raw',
]

const post = (body: string | Buffer, headers: Record<string, string> = {}) =>
  [{ method: 'POST', headers: { ...BEARER, ...headers } }, body] as const

const lines = (source: string, count: number, offset = 0): string =>
  Array.from({ length: count }, (_, i) =>
    JSON.stringify({ source, message: `order ${i + offset} of ${source}` }),
  ).join('\n')

const at = (url: string): string => url.replace('http://', '')
const addressesOf = ({ api, collector }: Instance) => ({ api: at(api), collector: at(collector) })

t.test('the proxy before two instances', { skip }, async (t) => {
  const shared = await startShared(t, { TRUSTED_PROXIES: '127.0.0.1' })
  if (shared === null) return t.comment('redis-server is not installed')
  const ownPorts = async () => ({
    API_PORT: String(await freePort()),
    COLLECTOR_PORT: String(await freePort()),
  })
  const instances = [await shared.start(await ownPorts()), await shared.start(await ownPorts())]
  const [one, two] = instances as [Instance, Instance]
  const proxy = await startProxy(t, instances.map(addressesOf))
  const caller = await logIn(one)
  let sent = 0

  await t.test('messages go in and questions are answered over TLS', async (t) => {
    const reply = await proxy.ask('/ingest', ...post(lines('shop', 100)))
    t.equal(reply.status, 202, reply.text)
    t.equal(reply.headers['strict-transport-security'], 'max-age=31536000; includeSubDomains')
    sent += 100
    for (const path of COLLECTOR_PATHS) {
      const { status, text } = await proxy.ask(path, { method: 'POST' }, '')
      t.match(
        { status, text },
        { status: /^(?:200|40[01])$/, text: /^(?!.*route_not_found)/s },
        path,
      )
    }
    const login = await proxy.ask(
      '/api/auth/login',
      { method: 'POST', headers: { 'content-type': 'application/json' } },
      JSON.stringify(ADMIN),
    )
    t.equal(login.status, 200)
    t.equal((await proxy.ask('/metrics')).status, 404, 'the metrics stay inside')
    const plain = await fetch(`http://127.0.0.1:${proxy.redirectPort}/docs`, { redirect: 'manual' })
    t.equal(plain.status, 308)
    t.match(plain.headers.get('location'), /^https:/)
  })

  await t.test('the service sees the address of the client, not one it claims', async (t) => {
    const login = async (localAddress: string, headers: Record<string, string>): Promise<void> => {
      const options = { method: 'POST', agent: false, localAddress } as const
      const typed = { 'content-type': 'application/json', ...headers }
      const body = JSON.stringify({ ...ADMIN, password: 'wrong password' })
      const reply = await proxy.ask('/api/auth/login', { ...options, headers: typed }, body)
      t.equal(reply.status, 401)
    }
    await login('127.0.0.2', { 'x-forwarded-for': '203.0.113.7', forwarded: 'for=203.0.113.8' })
    await login('127.0.0.3', {})
    const ips = async (): Promise<readonly string[]> => {
      const { items } = await caller.get<{ items: readonly { ip: string }[] }>(
        '/api/monitoring/audit?limit=50',
      )
      return items.map(({ ip }) => ip)
    }
    for (const until = Date.now() + 10_000; Date.now() < until; await sleep(100))
      if ((await ips()).includes('127.0.0.3')) break
    const seen = await ips()
    t.ok(seen.includes('127.0.0.2') && seen.includes('127.0.0.3'), seen.join())
    t.notOk(
      seen.some((ip) => ip.startsWith('203.')),
      seen.join(),
    )
  })

  await t.test(
    'bodies up to the limit pass, longer ones are refused in the usual form',
    async (t) => {
      const line = `${JSON.stringify({ source: 'large', message: 'x'.repeat(100_000) })}\n`
      const count = Math.floor((16 * 1024 * 1024) / line.length)
      const full = await proxy.ask('/ingest', ...post(line.repeat(count)))
      t.equal(full.status, 202, full.text)
      const over = await proxy.ask('/ingest', ...post(line.repeat(count + 1)))
      t.equal(over.status, 413)
      t.match(over.text, /body_too_large/)
    },
  )

  await t.test(
    'a body is passed on as it comes: a refusal does not wait for its end',
    async (t) => {
      const { status } = await new Promise<{ status: number }>((resolve, reject) => {
        const request = httpsRequest(
          {
            host: '127.0.0.1',
            port: proxy.port,
            path: '/ingest',
            method: 'POST',
            rejectUnauthorized: false,
            agent: false,
            headers: { authorization: 'Bearer wrong', 'content-length': 1_000_000 },
          },
          (response) => {
            resolve({ status: response.statusCode ?? 0 })
            request.destroy()
          },
        )
        request.on('error', reject)
        request.write('{')
      })
      t.equal(status, 401)
    },
  )

  await t.test('WebSockets pass, and HTTP/2 is not offered', async (t) => {
    const socket = new WebSocket(`wss://127.0.0.1:${proxy.port}/ws/kpis?token=${caller.token}`, {
      rejectUnauthorized: false,
    })
    const [first] = (await once(socket, 'message')) as [Buffer]
    t.match(first.toString(), /"total|"kpis|"type"/)
    const next = once(socket, 'message')
    t.equal((await proxy.ask('/ingest', ...post(lines('shop', 10, 100)))).status, 202)
    sent += 10
    await next
    t.pass('new data is pushed')
    socket.close()
    const tls = connectTls({
      host: '127.0.0.1',
      port: proxy.port,
      rejectUnauthorized: false,
      ALPNProtocols: ['h2', 'http/1.1'],
    })
    await once(tls, 'secureConnect')
    t.equal(tls.alpnProtocol, 'http/1.1')
    tls.destroy()
  })

  await t.test(
    'one instance is restarted in order, then one is killed: nothing fails, nothing is lost',
    async (t) => {
      const counted = { asked: 0, failed: [] as string[] }
      const end = new AbortController()
      const senders = [0, 1, 2, 3].map(async (sender) => {
        for (let n = 0; !end.signal.aborted; n++) {
          const body = lines('moved', 20, (sender * 1_000_000 + n) * 20)
          const reply = await proxy.ask('/ingest', ...post(body)).catch(String)
          if (typeof reply !== 'string' && reply.status === 202) sent += 20
          else counted.failed.push(`ingest ${typeof reply === 'string' ? reply : reply.status}`)
          const path = '/api/analytics/top-sources?window=30d'
          const headers = { authorization: `Bearer ${caller.token}` }
          const answer = await proxy.ask(path, { headers }).catch(String)
          if (typeof answer === 'string' || answer.status !== 200)
            counted.failed.push(`question ${typeof answer === 'string' ? answer : answer.status}`)
          counted.asked += 2
        }
      })
      await sleep(1_000)
      t.match(await two.stop(), { code: 0 })
      await sleep(1_500)
      const before = counted.failed.splice(0)
      t.same(before, [], 'the restart in order')
      await two.again()
      await sleep(2_500)
      t.same(counted.failed.splice(0), [], 'its return')
      await one.kill()
      await sleep(1_500)
      end.abort()
      await Promise.all(senders)
      t.ok(counted.asked > 50, `${counted.asked} requests`)
      // what one was just answering is lost with it; its sender must ask again
      t.ok(counted.failed.length <= 4, counted.failed.join())
      const again = await one.again()
      const other = await logIn(again)
      const total = async (): Promise<number> =>
        (await countOf(other, 'shop')) + (await countOf(other, 'moved'))
      const stored = await settledCount(total, sent)
      t.ok(stored >= sent && stored <= sent + 20 * counted.failed.length, `${stored} of ${sent}`)
    },
  )
})

/** Speaks just enough HTTP for what the proxy does with instances that are not well. */
async function startUnwell(
  owner: Owner,
  answer: (method: string, path: string) => string | null,
): Promise<{ readonly address: string; readonly asked: string[] }> {
  const asked: string[] = []
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (head) => {
      const [method = '', path = ''] = head.toString('latin1').split(' ')
      const reply = answer(method, path)
      if (!/health|docs/.test(path)) asked.push(`${method} ${path}`)
      // the body is let come first
      setTimeout(() => (reply === null ? socket.destroy() : socket.end(reply)), 50)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  owner.teardown(() => void server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('bug: no port')
  return { address: `127.0.0.1:${address.port}`, asked }
}

const http = (status: string, body: string, headers = ''): string =>
  `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n${headers}\r\n${body}`

t.test('before instances that are not well', { skip }, async (t) => {
  await t.test(
    'a POST that was sent is never sent again; a question is asked of the other',
    async (t) => {
      const healthy = (path: string): boolean => /health|docs/.test(path)
      const dropping = (_: string, path: string): string | null =>
        healthy(path) ? http('200 OK', '{}') : null
      const [first, second] = [await startUnwell(t, dropping), await startUnwell(t, dropping)]
      const engines = [first, second].map(({ address }) => ({ api: address, collector: address }))
      const proxy = await startProxy(t, engines)
      const asked = (): readonly string[] => [...first.asked, ...second.asked]
      const [options, body] = post('{}')
      // on a connection that has served before HAProxy just ends it
      const reply = await proxy.ask('/ingest', { ...options, agent: false }, body)
      t.equal(reply.status, 502)
      t.same(asked(), ['POST /ingest'])
      t.equal((await proxy.ask('/api/users', { method: 'POST', agent: false }, '{}')).status, 502)
      t.same(
        asked().filter((text) => text.endsWith('users')),
        ['POST /api/users'],
      )
      t.equal((await proxy.ask('/api/logs', { agent: false })).status, 502)
      const questions = asked().filter((text) => text === 'GET /api/logs')
      t.ok(questions.length > 1, `${questions.length} tries`)
    },
  )

  await t.test('the reply about the revocation of the certificate is stapled', async (t) => {
    const { address } = await startUnwell(t, (_, path) => http('200 OK', path))
    const engine = { api: address, collector: address }
    const { port } = await startProxy(t, [engine, engine])
    const host = { host: '127.0.0.1', port, rejectUnauthorized: false, requestOCSP: true }
    const tls = connectTls(host)
    const [stapled] = (await once(tls, 'OCSPResponse')) as [Buffer | null]
    t.ok((stapled?.length ?? 0) > 100)
    tls.destroy()
  })

  await t.test('when none is well, callers get the answer of one', async (t) => {
    const unwell = (method: string, path: string): string => {
      if (path === '/docs') return http('200 OK', 'docs')
      if (method === 'POST')
        return http('429 Too Many Requests', '{"code":"overloaded"}', 'Retry-After: 1\r\n')
      return http('503 Service Unavailable', '{"code":"dependency_unavailable"}')
    }
    const { address } = await startUnwell(t, unwell)
    const engine = { api: address, collector: address }
    const proxy = await startProxy(t, [engine, engine])
    const sent = await proxy.ask('/ingest', ...post('{}'))
    t.match([sent.status, sent.text, sent.headers['retry-after']], [429, /overloaded/, '1'])
    const asked = await proxy.ask('/api/logs')
    t.match([asked.status, asked.text], [503, /dependency_unavailable/])
  })
})

t.test('a client address has a share of the connections of all ports', { skip }, async (t) => {
  // The ports for protocols without HTTP lead to the same numbers of the instances: of an address of its own.
  const host = '127.83.201.7'
  for (const port of [4317, 5140, 24224, 12201, 5170]) {
    const server = createServer((socket) => socket.on('error', () => undefined))
    server.listen(port, host)
    await once(server, 'listening')
    t.teardown(() => void server.close())
  }
  const docs = (_: string, path: string): string => http('200 OK', path)
  const { address } = await startUnwell(t, docs)
  const engine = { api: address, collector: address }
  const settings = { MAXCONN_PER_ADDRESS: '5', ENGINE_1: host, ENGINE_2: host }
  const proxy = await startProxy(t, [engine, engine], settings)
  const open = async (port: number, localAddress: string): Promise<Socket> => {
    const socket = connect({ host: '127.0.0.1', port, localAddress })
    socket.on('error', () => undefined)
    socket.resume()
    await new Promise((resolve) => {
      socket.once('connect', resolve).once('close', resolve)
    })
    return socket
  }
  const all = [proxy.port, proxy.redirectPort, ...proxy.ports]
  for (const [i, port] of all.entries()) {
    const from = `127.0.0.${10 + i}`
    const ports = [port, port, port, port, port, ...all]
    const sockets = await Promise.all(ports.map((each) => open(each, from)))
    const refused = (): number => sockets.filter(({ destroyed }) => destroyed).length
    for (let tries = 0; refused() < all.length && tries < 200; tries++) await sleep(50)
    t.equal(refused(), all.length, `those above the limit, most of them of port ${i}`)
    const elsewhere = await open(port, '127.0.0.99')
    const reply = await proxy.ask('/docs', { agent: false, localAddress: '127.0.0.98' })
    t.equal(reply.status, 200, 'other addresses are served')
    for (const socket of [...sockets, elsewhere]) socket.destroy()
  }
})
