import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { test, type Test } from 'tap'
import type { Certificate } from '../../../../src/ingest/listeners/certificate.js'
import { FramedSession } from '../../../../src/ingest/listeners/session.js'
import { HeldBytes, openTcp } from '../../../../src/ingest/listeners/tcp.js'
import { openUdp } from '../../../../src/ingest/listeners/udp.js'
import { DelimitedFraming } from '../../../../src/ingest/protocols/delimited.js'
import { SyslogFraming, takeDatagram } from '../../../../src/ingest/protocols/syslog/framing.js'
import { type Framing, readBatch, RecordBatch } from '../../../../src/ingest/record-batch.js'
import { createLog } from '../../../../src/telemetry/log.js'
import { certificateIn } from '../../../support/certificate.js'
import { freePort } from '../../../support/ports.js'

const MAX_BYTES = 64 * 1024
const lines = (): Framing => new DelimitedFraming(10, MAX_BYTES)
const FRAMINGS: Readonly<Record<string, () => Framing>> = {
  syslog: () => new SyslogFraming(MAX_BYTES),
  lines,
  gelf: () => new DelimitedFraming(0, MAX_BYTES),
}

interface ListenOptions {
  readonly heldBytes?: number
  readonly connections?: number
  readonly certificate?: Certificate
}

async function listen(t: Test, framing: () => Framing, options: ListenOptions = {}) {
  const { heldBytes = Infinity, connections = 1000, certificate } = options
  const held = new HeldBytes(heldBytes)
  const found = { whole: 0, cut: 0 }
  const submit = (bytes: Buffer): void => {
    readBatch(bytes).each((_, isCut) => (found[isCut ? 'cut' : 'whole'] += 1))
  }
  const pools = [{ limit: connections, open: 0 }]
  const warned: string[] = []
  const log = createLog('warn', {
    write: (line) => void warned.push((JSON.parse(line) as { msg: string }).msg),
  })
  const host = { host: '127.0.0.1', log, isAllowed: () => true, pools, held }
  const listener = await openTcp(host, {
    setting: 'A_PORT',
    port: 0,
    ...(certificate === undefined ? {} : { certificate }),
    openSession: (peer) => new FramedSession(framing(), peer, submit),
  })
  const end = async (): Promise<void> => {
    await listener.stop()
    await listener.close()
  }
  t.teardown(end)
  const open = (): Socket => connect(listener.port, '127.0.0.1').on('error', () => undefined)
  return { open, port: listener.port, end, held, found, pools, warned }
}

function certificateFor(t: Test): Certificate {
  const dir = mkdtempSync(join(tmpdir(), 'ports-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const { cert, key } = certificateIn(dir)
  const files = { cert: readFileSync(cert), key: readFileSync(key) }
  return { current: () => files, onRenewed: () => undefined, close: () => undefined }
}

const until = async (isTrue: () => boolean): Promise<void> => {
  for (let i = 0; i < 500 && !isTrue(); i++) await sleep(10)
}

void test('a byte order mark before the first record is no part of it', async (t) => {
  const texts: string[] = []
  const keep = (bytes: Buffer): void => {
    readBatch(bytes).each((record) => {
      const text = record.toString().replaceAll(/[\n\0]/g, '')
      if (text !== '') texts.push(text)
    })
  }
  for (const framing of Object.values(FRAMINGS)) {
    const peer = { address: '10.0.0.7', refuse: (reason: string) => t.fail(reason) }
    const session = new FramedSession(framing(), peer, keep)
    session.push(Buffer.from('\uFEFF<13>one\n\0<13>\uFEFFtwo\n\0'))
    session.end()
  }
  const batch = new RecordBatch('10.0.0.7')
  takeDatagram(Buffer.from('\uFEFF<13>one'), batch)
  batch.settle()
  keep(batch.take())
  const both = ['<13>one', '<13>\uFEFFtwo']
  t.same(texts, [...both, ...both, ...both, '<13>one'])
})

for (const [name, framing] of Object.entries(FRAMINGS)) {
  void test(`${name}: what never ends takes no memory`, async (t) => {
    const { open, held, found } = await listen(t, framing)
    const sockets = Array.from({ length: 10 }, open)
    let most = 0
    for (let i = 0; i < 32; i++) {
      for (const socket of sockets) socket.write(Buffer.alloc(MAX_BYTES / 2, 'x'))
      await sleep(5)
      most = Math.max(most, held.bytes)
    }
    await until(() => found.cut >= sockets.length)
    t.equal(found.cut, sockets.length, 'of each the beginning is passed on, once')
    t.ok(most < sockets.length * MAX_BYTES * 4, `${most} bytes were held`)
    await until(() => held.bytes < MAX_BYTES)
    t.ok(held.bytes < MAX_BYTES, 'and nothing is kept of the rest')
    for (const socket of sockets) socket.destroy()
  })

  void test(`${name}: connections with half a record share a limit`, async (t) => {
    const limit = 5 * MAX_BYTES
    const { open, held, pools } = await listen(t, framing, { heldBytes: limit })
    let closed = 0
    const half = name === 'syslog' ? '60000 <13>half' : 'half'
    for (let i = 0; i < 20; i++)
      open()
        .once('close', () => (closed += 1))
        .write(half.padEnd(MAX_BYTES / 2, 'x'))
    // A client learns that it was closed a little later than the pool.
    await until(() => closed > 5 && pools[0]?.open === 20 - closed)
    t.ok(held.bytes <= limit, `${held.bytes} bytes are held`)
    t.equal(pools[0]?.open, 20 - closed, 'the others were closed')
  })

  void test(`${name}: garbage is passed on, and the next client is served`, async (t) => {
    const { open, held, found, pools } = await listen(t, framing)
    const garbage = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7919) % 251))
    for (let i = 0; i < 20; i++) open().end(garbage)
    await until(() => found.whole > 0 && pools[0]?.open === 0)
    const before = found.whole
    open().end('<13>a message')
    await until(() => found.whole > before)
    t.equal(found.whole, before + 1)
    await until(() => held.bytes === 0)
    t.equal(held.bytes, 0)
  })
}

void test('clients of other protocols are refused, and the log says so once', async (t) => {
  for (const [name, framing] of Object.entries(FRAMINGS)) {
    const { open, found, warned } = await listen(t, framing)
    const hello = Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3, 10, 0])
    for (const bytes of ['GET /health HTTP/1.1\r\nHost: a\r\n\r\n', hello]) {
      const socket = open().resume()
      socket.write(bytes)
      await new Promise((resolve) => socket.once('close', resolve))
    }
    open().end('<13>GET / HTTP/1.1')
    await until(() => found.whole > 0)
    t.equal(found.whole, 1, `${name}: nothing of theirs is a record`)
    t.same(warned, ['a connection to A_PORT is refused: the client speaks HTTP'])
  }
})

/** What a client may do after it has connected. */
const BEGINNINGS: Readonly<Record<string, (socket: Socket) => void>> = {
  'sends nothing': () => undefined,
  'begins a record': (socket) => void socket.write('<13>hal'),
  'begins a handshake': (socket) => void socket.write(Buffer.from([0x16, 3, 1])),
}

for (const isTls of [false, true]) {
  const name = isTls ? 'TLS' : 'TCP'
  const options = (t: Test): ListenOptions => ({
    connections: 10,
    ...(isTls ? { certificate: certificateFor(t) } : {}),
  })

  for (const [what, begin] of Object.entries(BEGINNINGS))
    void test(`${name}: a client that ${what} has a place of the limit`, async (t) => {
      const { open, end, pools } = await listen(t, lines, options(t))
      const sockets = Array.from({ length: 40 }, open)
      for (const socket of sockets) socket.resume().once('connect', () => begin(socket))
      const opened = (): number => sockets.filter(({ destroyed }) => !destroyed).length
      await until(() => opened() <= 10 && pools[0]?.open === opened())
      t.ok(opened() <= 10, `${opened()} are open`)
      t.equal(pools[0]?.open, opened(), 'each is counted')
      await end()
      await until(() => opened() === 0)
      t.equal(opened(), 0, 'the end of the port ends them')
      await until(() => pools[0]?.open === 0)
      t.equal(pools[0]?.open, 0, 'no place stays taken')
    })

  void test(`${name}: places are given back, and a client has one, not two`, async (t) => {
    const { open, port, found, pools } = await listen(t, lines, options(t))
    const connected = (): Socket =>
      (isTls ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }) : open()).on(
        'error',
        () => undefined,
      )
    for (let round = 1; round <= 3; round++) {
      for (const begin of Object.values(BEGINNINGS)) {
        const socket = open()
        begin(socket)
        await until(() => pools[0]?.open === 1)
        socket.destroy()
        await until(() => pools[0]?.open === 0)
        t.equal(pools[0]?.open, 0)
      }
      const before = found.whole
      const socket = connected()
      socket.write('a record\n')
      await until(() => found.whole > before)
      t.equal(pools[0]?.open, 1)
      socket.destroy()
      await until(() => pools[0]?.open === 0)
      t.equal(pools[0]?.open, 0)
    }
  })
}

void test('datagrams that are lost are counted, those of the kernel too', async (t) => {
  const port = await freePort()
  let received = 0
  const udp = await openUdp({
    setting: 'A_PORT',
    host: '127.0.0.1',
    port,
    isAllowed: () => true,
    read: (datagram, _, batch) => takeDatagram(datagram, batch),
    submit: (bytes) => (received += readBatch(bytes).each(() => undefined)),
  })
  t.teardown(() => udp.close())
  // While another process sends, this one is busy, and the kernel keeps as much as its buffer holds.
  const send = (count: number): void => {
    const program = `const socket = require('dgram').createSocket('udp4'); let left = ${count}
      const next = () => left-- > 0 ? socket.send(Buffer.alloc(8000, 'x'), ${port}, '127.0.0.1', next) : socket.close()
      next()`
    const { status } = spawnSync(process.execPath, ['-e', program])
    t.equal(status, 0)
  }
  send(2000)
  await until(() => received + udp.lost() >= 2000)
  t.equal(received + udp.lost(), 2000)
  if (process.platform === 'linux') t.ok(udp.lost() > 0, `the kernel dropped ${udp.lost()}`)
  const lost = udp.lost()
  udp.pause(true)
  send(10)
  await until(() => udp.lost() >= lost + 10)
  t.equal(udp.lost(), lost + 10, 'those that come while there is no room')
  udp.pause(false)
  const before = received
  send(10)
  await until(() => received >= before + 10)
  t.equal(received, before + 10)
})
