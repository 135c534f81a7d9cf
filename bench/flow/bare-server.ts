/** The least a uWebSockets.js server can do: the limit that the service's cheap endpoints are held against. */
import { loadUws } from '../../src/edge/uws.js'

const BODY = JSON.stringify({ id: '0'.repeat(36), email: 'bench@localhost', role: 'superadmin' })

const { addon } = loadUws(process.env)
const app = addon.App()
app.any('/*', (res) => {
  res.cork(() =>
    res.writeStatus('200 OK').writeHeader('content-type', 'application/json').end(BODY),
  )
})
app.listen('127.0.0.1', 0, addon.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
  if (socket === false) throw new Error('no port to listen on')
  process.send?.(addon.us_socket_local_port(socket))
})
process.on('disconnect', () => process.exit(0))
