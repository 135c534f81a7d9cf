import { bound } from '../../support/bound.js'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import t from 'tap'
import { createStore, type Store } from '../../../src/clickhouse/client.js'
import { type EmbeddedState, startEmbedded } from '../../../src/clickhouse/embedded/embedded.js'
import {
  createTestDatabase,
  quietLog,
  startTestServer,
  TEST_RESOURCES,
} from '../../support/clickhouse.js'
import { startPortThief } from '../../support/port-thief.js'
import { childOf } from '../../support/service.js'
import { signal } from '../../support/signals.js'

const run = promisify(execFile)

const count = {
  name: 'count',
  sql: 'SELECT count() AS n FROM t',
}

t.test(
  'an engine that is killed comes back elsewhere, with another password and its data',
  async (t) => {
    const states: EmbeddedState[] = []
    const server = await startTestServer({ onState: (state) => states.push(state) })
    t.teardown(() => server.stop())
    const { store, drop } = await createTestDatabase(server)
    t.teardown(drop)
    await store.command('CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a')
    await store.insertRows('t', [{ a: 1 }, { a: 2 }])
    const pid = server.engine.pid()
    const { url, password } = server.engine

    signal(pid, 'SIGKILL')
    while (states.at(-1) !== 'down') await sleep(5)
    await t.rejects(store.ping(), { code: 'dependency_unavailable' })
    t.equal(server.engine.pid(), null)
    while (states.at(-1) !== 'ready') await sleep(20)

    t.not(server.engine.pid(), pid)
    t.same(await store.query(count, {}), [{ n: 2 }])
    t.same(states, ['ready', 'down', 'starting', 'ready'])
    t.not(server.engine.url, url)
    t.not(server.engine.password, password)
  },
)

t.test('who takes the port of an engine that was killed gets not a byte', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await store.command('CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a')
  const acknowledged: number[] = []
  let connections = 0
  // The thief may be slower than the supervisor; then the round has shown nothing.
  for (let round = 0; round < 3 || connections === 0; round++) {
    // The first insert opens a connection that is kept, the others need more of them.
    await store.insertRows('t', [{ a: round * 100 }])
    acknowledged.push(round * 100)
    const port = Number(new URL(server.engine.url).port)
    const thief = await startPortThief(t, port)
    const pid = server.engine.pid()
    signal(pid, 'SIGKILL')
    // Not an event is handled meanwhile: the supervisor does not know that the engine has ended.
    thief.waitUntilItListens()
    t.equal(server.engine.pid(), pid)
    const inserts = Array.from({ length: 10 }, async (_, i) => {
      const a = round * 100 + 1 + i
      await store.insertRows('t', [{ a }])
      acknowledged.push(a)
    })
    await Promise.allSettled(inserts)
    while (server.engine.pid() === pid || server.engine.state !== 'ready') await sleep(10)
    await store.ping()
    connections += thief.taken().connections
    t.equal(thief.taken().bytes, 0)
    const stored = await store.query<Record<string, never>, { readonly a: number }>(
      { name: 'all', sql: 'SELECT a FROM t' },
      {},
    )
    const known = new Set(stored.map(({ a }) => a))
    t.same(
      acknowledged.filter((a) => !known.has(a)),
      [],
    )
  }
})

for (const says of ['', 'GET / HTTP/1.1\r\nHo'])
  t.test(`idle connections of others do not stop the engine (${says.length} bytes)`, async (t) => {
    const server = await startTestServer()
    t.teardown(() => server.stop())
    const { store, drop } = await createTestDatabase(server)
    t.teardown(drop)
    const port = Number(new URL(server.engine.url).port)
    const pid = server.engine.pid()
    let isOver = false
    const seen = { ended: 0 }
    const sockets = new Set<Socket>()
    const open = (): void => {
      if (isOver) return
      const socket = connect(port, '127.0.0.1', () => socket.write(says))
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.once('close', () => {
        seen.ended += 1
        sockets.delete(socket)
        setTimeout(open, 20)
      })
    }
    for (let i = 0; i < 1_500; i++) open()
    while (seen.ended === 0) await sleep(20)
    for (let i = 0; i < 20; i++) {
      // A queue that is full refuses a connection, as a caller that tries again does not notice.
      while (
        !(await store.ping().then(
          () => true,
          () => false,
        ))
      )
        await sleep(50)
      await sleep(50)
    }
    isOver = true
    for (const socket of sockets) socket.destroy()
    t.equal(server.engine.pid(), pid)
    t.equal(server.engine.state, 'ready')
  })

t.test('an engine that stands still is killed and comes back with its data', async (t) => {
  const states: EmbeddedState[] = []
  const server = await startTestServer({
    onState: (state) => states.push(state),
    patience: { everyMs: 20, answerMs: 500, misses: 3 },
  })
  t.teardown(() => server.stop())
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await store.command('CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a')
  await store.insertRows('t', [{ a: 1 }, { a: 2 }])
  const pid = server.engine.pid()
  signal(pid, 'SIGSTOP')
  while (states.at(-1) !== 'down') await sleep(5)
  while (states.at(-1) !== 'ready') await sleep(20)
  t.not(server.engine.pid(), pid)
  t.notOk(signal(pid, 0), 'it is gone')
  t.same(await store.query(count, {}), [{ n: 2 }])
})

t.test(
  'the engine writes nothing to its terminal, which nobody reads',
  { skip: process.platform === 'linux' ? false : 'it needs /proc' },
  async (t) => {
    const server = await startTestServer()
    t.teardown(() => server.stop())
    const before = await writtenBy(server.engine.pid() ?? 0)
    t.ok(before.size > 0, 'threads of Node.js are seen')
    await sleep(3_000)
    const after = await writtenBy(server.engine.pid() ?? 0)
    t.same(
      [...after].filter(([thread, bytes]) => bytes > (before.get(thread) ?? 0)),
      [],
    )
  },
)

/** Bytes that threads of Node.js have written, but for the main one: the engine's call is in one of them. */
async function writtenBy(pid: number): Promise<ReadonlyMap<string, number>> {
  const written = new Map<string, number>()
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    // A thread may have ended since.
    const read = (file: string) =>
      readFile(`/proc/${pid}/task/${thread}/${file}`, 'utf8').catch(() => '')
    if (Number(thread) === pid || (await read('comm')).trim() !== 'node') continue
    written.set(thread, Number(/wchar: (\d+)/.exec(await read('io'))?.[1] ?? 0))
  }
  return written
}

t.test('a stop does not wait for the connection that watches the engine', async (t) => {
  const warnings: string[] = []
  const server = await startTestServer({
    log: { ...quietLog, warn: (_, text) => void warnings.push(text) },
    patience: { everyMs: 20, answerMs: 5_000, misses: 3 },
  })
  t.teardown(() => server.stop())
  const { store, drop } = await createTestDatabase(server)
  const open = {
    name: 'open',
    sql: `SELECT value FROM system.metrics WHERE metric = 'HTTPConnection'`,
  }
  const isWatched = async (): Promise<boolean> => {
    const [row] = await store.query<Record<string, never>, { value: number }>(open, {})
    return Number(row?.value) > 1
  }
  while (!(await isWatched())) await sleep(20)
  await drop()
  await server.stop()
  t.same(warnings, [], 'the engine ended by itself')
})

t.test(
  'a directory that is in use is refused by name, and its owner is not disturbed',
  async (t) => {
    const server = await startTestServer()
    t.teardown(() => server.stop())
    const { store, drop } = await createTestDatabase(server)
    t.teardown(drop)

    await t.rejects(
      startEmbedded({ dataDir: server.dataDir, log: quietLog, resources: TEST_RESOURCES }),
      { name: 'EmbeddedStartError', message: `${server.dataDir} is in use by another instance` },
    )
    await store.ping()
    t.equal(server.engine.state, 'ready')
  },
)

t.test('nobody gets in without the credentials', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { url, username } = server.engine
  const status = async (headers: Record<string, string>, path = '/'): Promise<number> => {
    const reply = await fetch(url + path, {
      method: 'POST',
      body: 'SYSTEM STOP LISTEN HTTP',
      headers,
    })
    return reply.status
  }
  const basic = (text: string): Record<string, string> => ({
    Authorization: `Basic ${Buffer.from(text).toString('base64')}`,
  })

  t.equal(await status({}), 401, 'no credentials')
  t.equal(await status(basic('default:')), 401, "the engine's own user")
  t.equal(await status(basic(`${username}:`)), 401, 'no password')
  t.equal(await status(basic(`${username}:wrong`)), 401, 'wrong password')
  t.equal(await status({ 'X-ClickHouse-User': 'default' }), 401, 'by header')
  t.equal(await status({}, '/?user=default'), 401, 'by address')
  t.equal(await status({}, '/play'), 401, 'another handler')
})

t.test(
  'a malformed request from a disconnected client does not end the engine',
  { skip: process.platform !== 'linux' || !existsSync('/dev/ptmx') },
  async (t) => {
    const server = await startTestServer()
    t.teardown(() => server.stop())
    const { store, drop } = await createTestDatabase(server)
    t.teardown(drop)
    const pid = server.engine.pid()
    const port = Number(new URL(server.engine.url).port)
    for (let i = 0; i < 60; i++) {
      const socket = connect(port, '127.0.0.1')
      await once(socket, 'connect')
      socket.on('error', () => undefined)
      socket.write('\u0000\u0001 no request\r\n\r\n')
      await sleep(5)
      socket.resetAndDestroy()
    }
    await store.ping()
    t.equal(server.engine.pid(), pid)
  },
)

t.test('the password is neither on a command line nor left in a file', async (t) => {
  const server = await startTestServer({ password: 'a-password-for-this-test' })
  t.teardown(() => server.stop())
  t.same(
    await readdir(join(server.dataDir, 'run')),
    [],
    'the configuration is gone once it is read',
  )
  const { stdout } = await run('ps', ['-ww', '-o', 'args=', '-p', `${server.engine.pid()}`])
  t.match(stdout, 'embedded/child')
  t.notMatch(stdout, 'a-password-for-this-test')
})

t.test(
  'no core dump of the engine is written, and its memory is not for others of its user',
  { skip: process.platform === 'linux' ? false : 'Linux only' },
  async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'clickhouse-test-'))
    t.teardown(() => rm(dataDir, { recursive: true, force: true }))
    const support = new URL('../../support/clickhouse.js', import.meta.url).href
    // Root may read everything, so the test runs as another user.
    const uid = process.getuid?.() === 0 ? 65_534 : (process.getuid?.() ?? 0)
    await chmod(dataDir, 0o777)
    const program = `
      const { readFileSync, statSync } = await import('node:fs')
      const { startTestServer } = await import(${JSON.stringify(support)})
      const { engine, stop } = await startTestServer({ dataDir: ${JSON.stringify(join(dataDir, 'e'))} })
      const seen = ['environ', 'maps', 'auxv'].map((name) => {
        const file = \`/proc/\${engine.pid()}/\${name}\`
        try { return readFileSync(file).length } catch (error) { return error.code }
      })
      const own = readFileSync('/proc/self/auxv').length
      process.stdout.write(JSON.stringify({ seen, own: own > 0, uid: statSync(\`/proc/\${engine.pid()}/environ\`).uid }))
      await stop()`
    const args = ['--input-type=module', '-e', program]
    const { stdout } = await run(process.execPath, args, { uid, cwd: '/', env: {} })
    const refused = ['EACCES', 'EACCES', 'EACCES']
    t.same(
      JSON.parse(stdout),
      { seen: refused, own: true, uid: 0 },
      'as of a process that is not dumpable',
    )
  },
)

t.test('an engine that was stopped stays stopped and gives its directory free', async (t) => {
  const first = await startTestServer()
  const pid = first.engine.pid()
  await Promise.all([first.engine.stop(), first.engine.stop()])
  t.equal(first.engine.state, 'stopped')
  t.notOk(signal(pid, 0))

  const second = await startTestServer({ dataDir: first.dataDir })
  t.equal(second.engine.state, 'ready')
  await second.stop()
})

t.test('signals for the whole service do not end the engine', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  const pid = server.engine.pid()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) signal(pid, name)
  for (let i = 0; i < 20; i++) await store.ping()
  t.equal(server.engine.pid(), pid)
})

for (const phase of ['has answered', 'is being loaded'] as const)
  t.test(`the engine ends with the service that started it, killed when it ${phase}`, async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'clickhouse-test-'))
    t.teardown(() => rm(dataDir, { recursive: true, force: true }))
    const support = new URL('../../support/clickhouse.js', import.meta.url).href
    const program = `
      const { startTestServer } = await import(${JSON.stringify(support)})
      await startTestServer({ dataDir: ${JSON.stringify(dataDir)} })
      process.stdout.write('ready')`
    const service = spawn(...bound(process.execPath, ['--input-type=module', '-e', program]), {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (phase === 'has answered') await once(service.stdout, 'data')
    let pid = childOf(service.pid ?? 0)
    for (; pid === null; pid = childOf(service.pid ?? 0)) await sleep(1)
    t.ok(signal(pid, 0))
    service.kill('SIGKILL')
    await once(service, 'close')
    while (signal(pid, 0)) await sleep(10)

    const next = await startTestServer({ dataDir })
    t.equal(next.engine.state, 'ready', 'and the next start gets the directory')
    await next.stop()
  })

t.test('no acknowledged insert is lost when the engine is killed under load', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await store.command('CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a')
  const acknowledged: number[] = []
  let next = 0
  const writer = async (): Promise<void> => {
    while (next < 400) {
      const a = next++
      if (a % 200 === 100) {
        while (server.engine.state !== 'ready') await sleep(10)
        signal(server.engine.pid(), 'SIGKILL')
      }
      try {
        await store.insertRows('t', [{ a }])
        acknowledged.push(a)
      } catch {
        while (server.engine.state !== 'ready') await sleep(10)
      }
    }
  }
  await Promise.all([writer(), writer(), writer(), writer()])
  const rows = await store.query<Record<string, never>, { readonly a: number }>(
    { name: 'all', sql: 'SELECT a FROM t' },
    {},
  )
  const stored = new Set(rows.map(({ a }) => a))
  t.ok(acknowledged.length > 300)
  t.same(
    acknowledged.filter((a) => !stored.has(a)),
    [],
  )
})

t.test('a port that is taken is named', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const port = new URL(server.engine.url).port
  await t.rejects(startTestServer({ httpPort: Number(port) }), {
    name: 'EmbeddedStartError',
    message: `port ${port} of 127.0.0.1 is taken`,
  })
})

t.test('any path will do for the data directory', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), `click house's & <é> "%20"-`))
  const server = await startTestServer({ dataDir })
  t.teardown(() => server.stop())
  const { store, drop } = await createTestDatabase(server)
  await store.command('CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a')
  await store.insertRows('t', [{ a: 1 }])
  t.same(await store.query(count, {}), [{ n: 1 }])
  await drop()
})

t.test('a directory that cannot be written stops the start', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'clickhouse-test-'))
  t.teardown(() => rm(dataDir, { recursive: true, force: true }))
  await writeFile(join(dataDir, 'clickhouse'), 'a file where the directory belongs')
  await t.rejects(startTestServer({ dataDir }), { message: dataDir })
})

t.test('two engines form a cluster over the native protocol', async (t) => {
  const password = 'shared-by-the-cluster'
  const [tcpOne, tcpTwo] = [await freePort(), await freePort()]
  const replica = (port: number): string =>
    `<shard><replica><host>127.0.0.1</host><port>${port}</port>` +
    `<user>engine_client</user><password>${password}</password></replica></shard>`
  const remoteServers = `<remote_servers><pair>${replica(tcpOne)}${replica(tcpTwo)}</pair></remote_servers>`
  const one = await startTestServer({ password, remoteServers, tcpPort: tcpOne })
  t.teardown(() => one.stop())
  const two = await startTestServer({ password, remoteServers, tcpPort: tcpTwo })
  t.teardown(() => two.stop())
  const connect = ({ engine }: typeof one): Store =>
    createStore({ url: engine.url, username: engine.username, password, database: 'default' })
  const stores = [connect(one), connect(two)]
  t.teardown(() => Promise.all(stores.map((store) => store.close())))
  for (const store of stores) {
    await store.command('CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a')
    await store.command('CREATE TABLE d AS t ENGINE = Distributed(pair, default, t, a)')
  }
  await stores[0]?.command(
    'INSERT INTO d SELECT number FROM numbers(1000)',
    {},
    {
      settings: { distributed_foreground_insert: 1 },
    },
  )
  const all = { name: 'all', sql: 'SELECT count() AS n FROM d' }
  t.same(await stores[1]?.query(all, {}), [{ n: 1_000 }])
  t.same(await stores[1]?.query(count, {}), [{ n: 500 }])
})

async function freePort(): Promise<number> {
  const listener = createServer()
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  listener.close()
  await once(listener, 'close')
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}
