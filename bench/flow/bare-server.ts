/**
 * A minimal uWebSockets.js server, the limit of the service's cheap endpoints and of its pushes. It sends each text
 * from the parent process to every open WebSocket.
 */
import { loadUws } from '../../src/http/uws.js'

const BODY = JSON.stringify({ id: '0'.repeat(36), email: 'bench@localhost', role: 'superadmin' })
const TOPIC = 'all'

const { addon } = loadUws(process.env)
const app = addon.App()
app.any('/*', (res) => {
  res.cork(() =>
    res.writeStatus('200 OK').writeHeader('content-type', 'application/json').end(BODY),
  )
})
app.ws('/ws/kpis', {
  compression: 0,
  maxPayloadLength: 1024,
  idleTimeout: 0,
  maxBackpressure: 1024 ** 2,
  closeOnBackpressureLimit: true,
  sendPingsAutomatically: false,
  upgrade: (res, req, context) =>
    res.upgrade({}, req.getHeader('sec-websocket-key'), '', '', context),
  open: (socket) => {
    socket.subscribe(TOPIC)
  },
  message: () => undefined,
  drain: () => undefined,
  close: () => undefined,
})
app.listen('127.0.0.1', 0, addon.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
  if (socket === false) throw new Error('no port to listen on')
  process.send?.(addon.us_socket_local_port(socket))
})
process.on('message', (text) => app.publish(TOPIC, String(text)))
process.on('disconnect', () => process.exit(0))
