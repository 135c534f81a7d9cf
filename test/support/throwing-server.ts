/** A server whose callbacks all throw; it prints its port and serves until SIGTERM. */
import { httpRoute } from '../../src/http/routes.js'
import { createServer } from '../../src/http/server.js'
import { createWebSocketHub } from '../../src/http/websocket.js'
import { recordingLog, uws } from './http.js'

const fail = (): never => {
  throw new Error('thrown on purpose')
}
const common = { method: 'POST', bodyBytes: 100 } as const

const hub = createWebSocketHub<string>({
  path: '/ws',
  authenticate: ({ query }) =>
    query.has('refuse') ? fail() : { kind: 'accepted', user: query.get('user') ?? '' },
  userId: (user) => user,
  async onOpen({ user }) {
    if (user === 'open') fail()
  },
  onMessage: fail,
  onClose: fail,
})

const server = createServer({
  uws,
  host: '127.0.0.1',
  port: 0,
  portSetting: 'TEST_PORT',
  log: recordingLog(),
  webSockets: [hub.route],
  observe: fail,
  routes: [
    httpRoute({ ...common, id: 'a', path: '/sync', handle: fail }),
    httpRoute({ ...common, id: 'b', path: '/async', handle: async () => fail() }),
    httpRoute({ ...common, id: 'c', path: '/before', beforeBody: fail, handle: fail }),
    httpRoute({
      ...common,
      id: 'd',
      path: '/before-async',
      beforeBody: async () => fail(),
      handle: fail,
    }),
    httpRoute({
      ...common,
      id: 'e',
      path: '/bad-reply',
      handle: () => ({ status: 200, json: 1n }),
    }),
    httpRoute({
      ...common,
      id: 'f',
      path: '/bad-header',
      handle: () => ({ status: 200, headers: { 'a\r\nb': 'c' } }),
    }),
    httpRoute({
      ...common,
      id: 'g',
      path: '/late',
      handle: ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new Error('late')))
        }),
    }),
  ],
})

process.once('SIGTERM', () => {
  void server.close({ deadlineMs: 100 })
})
process.stdout.write(`${server.listen()}\n`)
