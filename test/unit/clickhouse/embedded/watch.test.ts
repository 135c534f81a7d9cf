import { once } from 'node:events'
import { Agent } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'tap'
import { isHung } from '../../../../src/clickhouse/embedded/watch.js'
import { whileCollecting } from '../../../support/garbage.js'

void test('an engine that takes requests and answers none is hung, whatever the garbage collector takes', async (t) => {
  const open = new Set<Socket>()
  const server = createServer((socket) => open.add(socket))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo // It listens on a port.
  t.teardown(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  const hung = isHung(
    { hasExited: false, exited: new Promise(() => undefined) },
    {
      agent: new Agent({ host: '127.0.0.1', port }),
      username: 'u',
      password: 'p',
      everyMs: 10,
      answerMs: 1_000,
      misses: 2,
      signal: new AbortController().signal,
    },
  )
  t.equal(await whileCollecting(hung), true)
  t.equal(open.size, 2)
})
