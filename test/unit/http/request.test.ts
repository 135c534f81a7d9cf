import * as fc from 'fast-check'
import t from 'tap'
import { createClientAddress, formatAddress, networkOf } from '../../../src/http/address.js'
import { formatCookie, parseCookies } from '../../../src/http/cookies.js'
import { toErrorReply, toHeaderValue, toWire } from '../../../src/http/reply.js'
import { HeaderBag, decodeSegment, readFraming } from '../../../src/http/request.js'
import { createRouter } from '../../../src/http/router.js'
import { chooseProtocol } from '../../../src/http/websocket.js'
import { cutReason } from '../../../src/http/connection.js'
import { AppError } from '../../../src/model/errors.js'

function bag(...pairs: [string, string][]): HeaderBag {
  const headers = new HeaderBag()
  for (const [name, value] of pairs) headers.add(name, value)
  return headers
}

t.test('framing that two programs could read differently is invalid', async (t) => {
  const kind = (...pairs: [string, string][]) => readFraming(bag(['host', 'a'], ...pairs)).kind
  t.equal(kind(), 'none')
  t.equal(kind(['content-length', '0']), 'none')
  t.equal(kind(['content-length', '12']), 'length')
  t.equal(kind(['transfer-encoding', 'chunked']), 'chunked')
  t.equal(kind(['transfer-encoding', 'Chunked']), 'chunked')
  const refused: [string, string][][] = [
    [['content-length', '']],
    [['content-length', '+1']],
    [['content-length', '1, 1']],
    [['content-length', '0x10']],
    [['content-length', '9999999999999999']],
    [
      ['content-length', '1'],
      ['content-length', '1'],
    ],
    [
      ['content-length', '1'],
      ['content-length', '2'],
    ],
    [
      ['content-length', '1'],
      ['transfer-encoding', 'chunked'],
    ],
    [['transfer-encoding', 'xchunked']],
    [['transfer-encoding', 'gzip, chunked']],
    [['transfer-encoding', '']],
    [
      ['transfer-encoding', 'chunked'],
      ['transfer-encoding', 'chunked'],
    ],
    [['host', 'b']],
  ]
  for (const pairs of refused) t.equal(kind(...pairs), 'invalid', JSON.stringify(pairs))
  t.equal(readFraming(bag()).kind, 'invalid', 'no host')
})

t.test('path segments are decoded, and what cannot be is a bad request', async (t) => {
  t.equal(decodeSegment('a%2Fb%20c'), 'a/b c')
  t.equal(decodeSegment('%C3%BC'), 'ü')
  for (const raw of ['%', '%zz', '%ff', '%00', 'a\0', '%EF%BF%BD']) {
    t.throws(() => decodeSegment(raw), { code: 'bad_request' }, raw)
  }
})

t.test(
  'the router finds fixed paths before parameters and lists the methods of a path',
  async (t) => {
    const route = (method: 'GET' | 'POST' | 'DELETE', path: string) => ({
      method,
      path,
      name: path,
    })
    const router = createRouter([
      route('GET', '/api/logs/meta/templates'),
      route('GET', '/api/logs/{id}'),
      route('POST', '/api/logs/{id}/priority'),
      route('GET', '/api/{a}/x/{b}'),
      route('DELETE', '/api/logs/{id}'),
      route('POST', '/api/logs/upload'),
    ])
    const find = (method: string, path: string) => {
      const match = router.match(method, path)
      if (match.kind === 'route') return [match.route.name, match.params]
      return match.kind === 'method_not_allowed' ? match.allow : null
    }
    t.same(find('GET', '/api/logs/meta/templates'), ['/api/logs/meta/templates', {}])
    t.same(find('GET', '/api/logs/a%2Fb'), ['/api/logs/{id}', { id: 'a/b' }])
    t.same(find('HEAD', '/api/logs/1'), ['/api/logs/{id}', { id: '1' }])
    t.same(find('POST', '/api/logs/meta/priority'), ['/api/logs/{id}/priority', { id: 'meta' }])
    t.same(find('GET', '/api/logs/x/y'), ['/api/{a}/x/{b}', { a: 'logs', b: 'y' }])
    t.same(find('GET', '/%61pi/logs/1'), ['/api/logs/{id}', { id: '1' }])
    t.same(find('POST', '/api/logs/upload'), ['/api/logs/upload', {}])
    for (const path of ['/api/logs/upload', '/api/logs/%75pload'])
      t.same(find('DELETE', path), ['/api/logs/{id}', { id: 'upload' }], 'one that is called so')
    t.equal(find('PUT', '/api/logs/upload'), 'POST, GET, HEAD, DELETE, OPTIONS')
    t.equal(find('PUT', '/api/logs/1'), 'GET, HEAD, DELETE, OPTIONS')
    t.equal(find('POST', '/api/logs/meta/templates'), 'GET, HEAD, OPTIONS')
    for (const path of [
      '/',
      '/api',
      '/api/logs',
      '/api/logs/',
      '/api/logs//priority',
      '/api/logs/1/2',
    ]) {
      t.equal(find('GET', path), null, path)
    }
    t.equal(find('GET', '/x'.repeat(5000)), null)
    t.throws(() => createRouter([route('GET', '/{a}'), route('GET', '/{b}')]), /bug: two routes/)
  },
)

t.test('a joined path may have segments before it, and a slash behind it', async (t) => {
  const route = (method: 'GET' | 'POST' | 'PUT', path: string, isJoined = true) => ({
    method,
    path,
    ...(isJoined ? { isJoined: true as const } : {}),
  })
  const router = createRouter([
    route('GET', '/'),
    route('POST', '/v1/logs'),
    route('PUT', '/{index}'),
    route('POST', '/{index}/_bulk'),
    route('POST', '/hooks/scm', false),
  ])
  const find = (method: string, path: string) => {
    const match = router.match(method, path)
    return match.kind === 'route' ? [match.route.path, match.params] : match.kind
  }
  for (const path of ['/v1/logs', '/v1/logs/', '/a/v1/logs', '/a/b/c/v1/logs/', '//v1/logs'])
    t.same(find('POST', path), ['/v1/logs', {}], path)
  t.same(find('GET', '/a/b/'), ['/', {}])
  t.same(find('POST', '/a/_bulk'), ['/{index}/_bulk', { index: 'a' }], 'not a path before /_bulk')
  t.same(find('POST', '/a/b/_bulk'), ['/{index}/_bulk', { index: 'b' }])
  t.equal(find('GET', '/a/b'), 'not_found')
  t.equal(find('PUT', '/a/b'), 'not_found', 'a path of parameters alone fits anything')
  t.equal(find('POST', '/a/hooks/scm'), 'not_found')
  t.equal(find('POST', `${'/x'.repeat(5000)}/v1/logs`), 'not_found')
  t.equal(router.allow('/a/b/v1/logs'), 'POST, OPTIONS')
  t.equal(router.allow('/a/hooks/scm'), '')
})

t.test('a __proto__ parameter is a parameter', async (t) => {
  const router = createRouter([{ method: 'GET' as const, path: '/{__proto__}' }])
  const match = router.match('GET', '/x')
  t.ok(match.kind === 'route' && Object.hasOwn(match.params, '__proto__'))
})

t.test('addresses are written as everybody writes them', async (t) => {
  const v6 = (...groups: number[]) =>
    formatAddress(new Uint8Array(groups.flatMap((group) => [group >> 8, group & 255])))
  t.equal(formatAddress(new Uint8Array([127, 0, 0, 1])), '127.0.0.1')
  t.equal(v6(0, 0, 0, 0, 0, 0xffff, 0x7f00, 1), '127.0.0.1')
  t.equal(v6(0, 0, 0, 0, 0, 0, 0, 1), '::1')
  t.equal(v6(0, 0, 0, 0, 0, 0, 0, 0), '::')
  t.equal(v6(0x2001, 0xdb8, 0, 0, 1, 0, 0, 1), '2001:db8::1:0:0:1')
  t.equal(v6(0x2001, 0xdb8, 0, 1, 1, 1, 1, 1), '2001:db8:0:1:1:1:1:1')
  t.equal(v6(1, 0, 0, 0, 0, 0, 0, 0), '1::')
  t.equal(formatAddress(new Uint8Array(0)), '')
})

t.test('X-Forwarded-For counts only from trusted proxies, nearest first', async (t) => {
  const none = createClientAddress([])
  t.equal(none('10.0.0.1', ['1.2.3.4']), '10.0.0.1')
  const of = createClientAddress(['10.0.0.0/8', '::1'])
  t.equal(of('192.0.2.1', ['1.2.3.4']), '192.0.2.1', 'a stranger claims')
  t.equal(of('10.0.0.1', []), '10.0.0.1')
  t.equal(of('10.0.0.1', ['9.9.9.9, 1.2.3.4']), '1.2.3.4', 'the client may have sent 9.9.9.9')
  t.equal(of('10.0.0.1', ['1.2.3.4', '10.9.9.9']), '1.2.3.4', 'through two proxies')
  t.equal(of('::1', ['[2001:db8::1]:443']), '2001:db8::1')
  t.equal(of('10.0.0.1', ['1.2.3.4:5555']), '1.2.3.4')
  t.equal(of('10.0.0.1', ['1.2.3.4, garbage']), '10.0.0.1')
  t.equal(of('10.0.0.1', ['::ffff:1.2.3.4']), '1.2.3.4', 'as proxies on IPv6 write it')
  t.equal(of('10.0.0.1', ['[::FFFF:1.2.3.4]:5555, ::ffff:10.1.1.1']), '1.2.3.4')
  for (const entry of ['', 'proxy', '10.0.0.0/33', '10.0.0.0/', '::1/129', '1.2.3.4/x']) {
    t.throws(() => createClientAddress([entry]), RangeError, entry)
  }
})

t.test('cookies survive the way there and back', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (value) => {
      const header = formatCookie({ name: 'A', value }).split(';')[0] ?? ''
      return parseCookies(header).get('A') === value
    }),
  )
  t.same(
    [...parseCookies('a=1; b="2"; a=3; junk; =x; c=%zz')],
    [
      ['a', '1'],
      ['b', '2'],
      ['c', '%zz'],
    ],
  )
  t.throws(() => formatCookie({ name: 'a b', value: '' }), /bug/)
  t.throws(() => formatCookie({ name: 'a', value: '', path: '/;x' }), /bug/)
})

t.test('no reply header can start another one', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (value) => !/[\r\n\0]/.test(toHeaderValue(value))),
  )
  const wire = toWire({ status: 200, headers: { Location: '/a\r\nSet-Cookie: x=1' } })
  t.same(wire.headers, [['Location', '/aSet-Cookie: x=1']])
  t.throws(() => toWire({ status: 200, headers: { 'A\r\nB': '' } }), /bug/)
})

t.test('an error that may be retried says when', async (t) => {
  const after = (error: AppError) => toErrorReply(error).headers?.['Retry-After']
  t.equal(after(new AppError('rate_limited', 'x', { retryAfterS: 7 })), '7')
  t.equal(after(new AppError('overloaded', 'x', { retryAfterS: 0.2 })), '1')
  t.equal(after(new AppError('dependency_unavailable', 'x')), '1')
  t.equal(after(new AppError('not_found', 'x')), undefined)
})

t.test('a protocol other than the one with the token is echoed if there is one', async (t) => {
  t.equal(chooseProtocol([]), '')
  t.equal(chooseProtocol(['jwt.abc']), 'jwt.abc')
  t.equal(chooseProtocol(['jwt.abc', 'v1']), 'v1')
  t.equal(chooseProtocol(['bad value', 'jwt.abc']), 'jwt.abc')
})

t.test('a close reason fits its frame in whole characters', async (t) => {
  t.equal(cutReason('short'), 'short')
  const cut = cutReason('ü'.repeat(100))
  t.equal(cut, 'ü'.repeat(61))
})

t.test('the network of a client is its IPv4 address, or the /64 of its IPv6 address', async (t) => {
  for (const [ip, network] of [
    ['10.0.0.9', '10.0.0.9'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['2001:0DB8:0:0000::7', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['', ''],
  ] as const)
    t.equal(networkOf(ip), network, ip)
})
