/** A server that does nothing but answer: what it takes is what the machine takes. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const server = createServer((_request, response) => response.end('here'))
// who asks may be held up for longer than a connection is kept
server.keepAliveTimeout = 0
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.once('disconnect', () => process.exit())
