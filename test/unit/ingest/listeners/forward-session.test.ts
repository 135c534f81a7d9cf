import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { FluentClient } from '@fluent-org/logger'
import { encode } from '@msgpack/msgpack'
import { test, type Test } from 'tap'
import { ForwardSession } from '../../../../src/ingest/listeners/forward-session.js'
import { HeldBytes, openTcp } from '../../../../src/ingest/listeners/tcp.js'
import { createLog } from '../../../../src/telemetry/log.js'

interface Submitted {
  readonly onceId: string | undefined
  readonly bytes: Buffer
}

async function listen(t: Test, sharedKey: string | null, isStored: () => boolean = () => true) {
  const submitted: Submitted[] = []
  const host = {
    host: '127.0.0.1',
    log: createLog('silent'),
    isAllowed: () => true,
    pools: [{ limit: 100, open: 0 }],
    held: new HeldBytes(1_000_000),
  }
  const listener = await openTcp(host, {
    setting: 'FLUENT_PORT',
    port: 0,
    openSession: (peer) =>
      new ForwardSession({
        peer,
        sharedKey,
        submit: async (bytes, onceId) => {
          if (!isStored()) throw new Error('the disk is full')
          submitted.push({ bytes, onceId })
        },
      }),
  })
  t.teardown(async () => {
    await listener.stop()
    await listener.close()
  })
  return { port: listener.port, submitted, pools: host.pools }
}

const client = (port: number, sharedKey: string): FluentClient =>
  new FluentClient('app', {
    socket: { host: '127.0.0.1', port },
    ack: { ackTimeout: 5_000 },
    security: { clientHostname: 'web-1', sharedKey },
  })

void test('a client proves that it knows the shared key', async (t) => {
  const { port, submitted } = await listen(t, 'the right key')
  const welcome = client(port, 'the right key')
  await welcome.emit('shop', { message: 'paid' })
  t.equal(submitted.length, 1)
  t.type(submitted[0]?.onceId, 'string', 'its chunk is stored once')
  await welcome.disconnect()

  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  let replies = ''
  socket.on('data', (chunk) => (replies += chunk.toString('latin1')))
  socket.write(encode(['PING', 'web-1', 'salt', '0'.repeat(128), '', '']))
  socket.write(encode(['app', 1, { message: 'paid' }]))
  await new Promise((resolve) => socket.once('close', resolve))
  t.match(replies, /PONG.*shared_key mismatch/s)
  t.equal(submitted.length, 1, 'nothing of a stranger is stored')
})

void test('nobody is heard before the handshake', async (t) => {
  const { port, submitted } = await listen(t, 'the right key')
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  socket.write(encode(['app', 1, { message: 'paid' }]))
  await new Promise((resolve) => socket.resume().once('close', resolve))
  t.equal(submitted.length, 0)
})

void test('what is not stored is not acknowledged', async (t) => {
  const { port } = await listen(t, null, () => false)
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  let replied = 0
  socket.on('data', (chunk) => (replied += chunk.length))
  socket.write(encode(['app', [[1, { message: 'paid' }]], { chunk: 'a' }]))
  await new Promise((resolve) => socket.once('close', resolve))
  t.equal(replied, 0)
})

void test('garbage ends its connection, and an empty connection is normal', async (t) => {
  const { port, submitted, pools } = await listen(t, null)
  const garbage = [
    Buffer.from([0xc1, 0xc1]),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    encode({ a: 1 }),
  ]
  for (const bytes of [Buffer.alloc(0), ...garbage]) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    socket.write(bytes)
    if (bytes.length === 0) socket.end()
    await new Promise((resolve) => socket.resume().once('close', resolve))
  }
  while (pools[0]?.open !== 0) await sleep(10)
  t.equal(submitted.length, 0)
})

void test('a client that reads no acknowledgement is disconnected, and takes little memory until then', async (t) => {
  const { port, submitted, pools } = await listen(t, null)
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  socket.pause()
  const chunk = 'c'.repeat(250)
  const message = Buffer.from(encode(['app', 1, { m: 1 }, { chunk }]))
  const many = Buffer.concat(Array.from({ length: 1000 }, () => message))
  await new Promise((resolve) => socket.once('connect', resolve))
  await sleep(20)
  while (pools[0]?.open === 1 && submitted.length < 200_000) {
    socket.write(many)
    await sleep(1)
  }
  t.equal(pools[0]?.open, 0)
  const ackBytes = submitted.length * encode({ ack: chunk }).length
  t.ok(ackBytes < 32 * 1024 * 1024, `${ackBytes} bytes of acknowledgements`)
  socket.destroy()
})
