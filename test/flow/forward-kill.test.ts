import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { encode } from '@msgpack/msgpack'
import { test } from 'tap'
import {
  countOf,
  KNOWN,
  logIn,
  type Service,
  settledCount,
  startService,
  tempDataDir,
} from '../support/service.js'

const RECORDS = 200
const message = encode([
  'forward.kill',
  Array.from({ length: RECORDS }, (_, i) => [
    Math.floor(Date.now() / 1000),
    { message: `order ${i} of a chunk that is sent again` },
  ]),
  { chunk: 'the same chunk' },
])

function open(service: Service): Socket {
  const port = Number(/Forward +127\.0\.0\.1:(\d+)/.exec(service.banner)?.[1])
  return connect(port, '127.0.0.1').on('error', () => undefined)
}

void test('a chunk whose acknowledgement is lost with the service is stored once', async (t) => {
  const env = { ...KNOWN, DATA_DIR: tempDataDir(t), FLUENT_PORT: '0' }
  const first = await startService(t, env)
  const socket = open(first)
  socket.write(message)
  // The acknowledgement says that it is durable; a client that is cut off before it comes does not know.
  await once(socket, 'data')
  await first.kill()

  const second = await startService(t, env)
  const caller = await logIn(second)
  for (let attempt = 0; attempt < 2; attempt++) {
    const again = open(second)
    again.write(message)
    const [ack] = (await once(again, 'data')) as [Buffer]
    t.match(ack.toString('latin1'), /ack.*the same chunk/s, 'it is acknowledged')
    again.destroy()
    await sleep(100)
  }
  const count = await settledCount(() => countOf(caller, 'forward.kill'), RECORDS)
  t.equal(count, RECORDS, 'and stored once')
})
