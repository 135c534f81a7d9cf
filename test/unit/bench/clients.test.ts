import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { WebSocketServer } from 'ws'
import { Connection } from '../../../bench/lib/connection.js'
import { parseCommandLine, usage, withoutSecrets } from '../../../bench/lib/options.js'
import { readProfile } from '../../../bench/lib/profile.js'
import { SocketReader } from '../../../bench/lib/socket-reader.js'

const portOf = (address: string | AddressInfo | null): number =>
  typeof address === 'object' && address !== null ? address.port : 0

t.test('a connection sends bodies and reads replies that come in pieces', async (t) => {
  const seen: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      seen.push(`${request.method} ${request.url} ${Buffer.concat(chunks).length}`)
      response.writeHead(request.url === '/busy' ? 429 : 200, {
        'retry-after': '7',
        'content-length': 200_000,
      })
      for (let i = 0; i < 4; i++) response.write('ä'.repeat(25_000))
      response.end()
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const connection = new Connection(`http://127.0.0.1:${portOf(server.address())}`)
  const small = await connection.request('POST /small HTTP/1.1\r\n', Buffer.from('abc'))
  const large = await connection.request('POST /busy HTTP/1.1\r\n', Buffer.alloc(300_000))
  const none = await connection.request('GET /none HTTP/1.1\r\n')
  connection.close()
  t.same(seen, ['POST /small 3', 'POST /busy 300000', 'GET /none 0'])
  t.same([small.status, large.status, large.retryAfterS], [200, 429, 7])
  t.ok(none.body === 'ä'.repeat(100_000))
})

t.test('a connection that breaks rejects the request under way', async (t) => {
  const server = createServer((request) => request.socket.destroy())
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const connection = new Connection(`http://127.0.0.1:${portOf(server.address())}`)
  await t.rejects(connection.request('GET / HTTP/1.1\r\n'), /closed|ECONNRESET/)
})

t.test('a socket reader reads texts of every length', async (t) => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await new Promise<void>((done) => server.once('listening', done))
  t.teardown(() => server.close())
  const sent = ['', 'short', 'x'.repeat(200), 'ö'.repeat(70_000)]
  server.on('connection', (socket) => {
    for (const text of sent) socket.send(text)
  })
  const got: string[] = []
  const url = new URL(`ws://127.0.0.1:${portOf(server.address())}/ws/kpis`)
  await new Promise<void>((resolve, reject) => {
    const onText = (text: string): void => {
      if (got.push(text) === sent.length) resolve()
    }
    const reader = new SocketReader({ url, token: 'x', onText }, (error) => {
      if (error !== null) reject(error)
    })
    t.teardown(() => reader.close())
  })
  t.ok(got.join('|') === sent.join('|'))
})

const deployment = (api: string): string[] =>
  `--target ${api} --collector http://c --key k --email e --password p`.split(' ')

t.test('the command line is checked, and every option is in the help', async (t) => {
  const { words, options } = parseCommandLine(['ingest', '--events', '5000', '--gzip'])
  t.same(words, ['ingest'])
  t.match(options, { events: 5000, gzip: true, connections: 4, seed: 1, target: null })
  t.match(parseCommandLine(['ingest', '--small']).options, { bodyBytes: 1, connections: 64 })
  t.throws(() => parseCommandLine(['--events', 'many']), /--events many/)
  t.throws(() => parseCommandLine(['--load', '2']), /--load 2/)
  t.throws(() => parseCommandLine(['--target', 'http://x']), /--target needs --collector/)
  t.throws(() => parseCommandLine(['--nonsense']), /nonsense/)
  t.equal(parseCommandLine(['--duration', '0.5']).options.durationS, 0.5)
  t.throws(() => parseCommandLine(['--duration', '0']), /--duration 0 is not in/)
  t.throws(() => parseCommandLine(['--password', 'x']), /--password needs --target/)
  t.throws(() => parseCommandLine(deployment('localhost:8000')), /--target localhost:8000 is not/)
  t.match(parseCommandLine(deployment('https://x')).options.target, { api: 'https://x' })
  t.equal(withoutSecrets(deployment('http://a').concat('--key=k')).join(' ').match(/…/g)?.length, 3)
  t.notMatch(withoutSecrets(deployment('http://a').concat('--key=k')).join(' '), / [kp]$| k /)
  t.match(usage(), '--cpu-prof')
})

t.test('a profile gives self time by function without the time that was slept', async (t) => {
  const frame = (functionName: string, url = ''): object => ({ functionName, url, lineNumber: 9 })
  const folder = mkdtempSync(join(tmpdir(), 'bench-test-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'a.cpuprofile')
  const nodes = [
    { id: 1, callFrame: frame('(idle)') },
    { id: 2, callFrame: frame('work', 'file:///x/decode.js') },
    { id: 3, callFrame: frame('atomicsWaitLoop', 'file:///x/worker.js') },
    { id: 4, callFrame: frame('(garbage collector)') },
  ]
  const [samples, timeDeltas] = [
    [1, 2, 3, 4, 2],
    [500, 1000, 9000, 500, 2000],
  ]
  writeFileSync(path, JSON.stringify({ nodes, samples, timeDeltas }))
  const profile = readProfile(path)
  t.same(profile.functions, [
    ['work  decode.js:10', 3],
    ['(garbage collector)', 0.5],
  ])
  t.equal(profile.totalMs, 3.5)
})
