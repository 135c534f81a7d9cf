/** The access of other users of the machine, and the headers of every reply. */
import { execFile } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { rawExchange } from '../../support/http.js'
import { everyRoute } from '../../support/every-route.js'
import { HOSTILE } from '../../support/hostile.js'
import { collect, settled, startLiveService, type Answer } from '../../support/live-service.js'
import { childOf, tempDataDir } from '../../support/service.js'
import { signal } from '../../support/signals.js'

const run = promisify(execFile)
const dataDir = tempDataDir(t)
const service = await startLiveService(t, { DATA_DIR: dataDir, LOG_LEVEL: 'trace' })
const all = await everyRoute(service)
const pid = Number(/"pid":(\d+)/.exec(service.log())?.[1] ?? 0)

/** The headers of every reply, whatever its status. */
const HEADERS: Readonly<Record<string, RegExp>> = {
  'x-content-type-options': /^nosniff$/,
  'x-frame-options': /^DENY$/,
  'content-security-policy': /default-src 'none'.*frame-ancestors 'none'/,
  'referrer-policy': /^no-referrer$/,
  'cache-control': /^(?:no-store|no-cache|public, max-age=\d+)$/,
}

const missing = ({ headers }: Pick<Answer, 'headers'>): string[] =>
  Object.entries(HEADERS)
    .filter(([name, wanted]) => !wanted.test(headers.get(name) ?? ''))
    .map(([name]) => `${name}: ${headers.get(name)}`)

t.test('browsers that came over HTTPS are told to come in no other way', async (t) => {
  const header = 'strict-transport-security'
  const paths = [
    'GET /docs',
    'GET /api/logs',
    'GET /no-such-path',
    'GET /api/%zz',
    'OPTIONS /api/logs',
  ]
  for (const request of paths)
    t.equal((await service.call(request)).headers.get(header), null, `${request} over HTTP`)
  const secure = await startLiveService(t, { COOKIE_SECURE: 'true' })
  for (const request of paths)
    t.match((await secure.call(request)).headers.get(header), /^max-age=31536000/, request)
  t.same(missing(await secure.call('GET /api/logs')), [])
  t.match((await collect(secure, 'GET /health')).headers.get(header), /^max-age=31536000/)
})

t.test('security headers are on every reply of every route', async (t) => {
  for (const route of all.routes.filter(({ id }) => id !== 'clearAll')) {
    t.same(missing(await all.send(route, await all.base(route.id))), [], route.id)
    t.same(missing(await all.send(route, { token: 'x' })), [], `${route.id} without a token`)
  }
  const others = [
    'GET /docs',
    'GET /docs/app.js',
    'GET /docs/operations',
    'GET /docs/no-such-guide',
    'GET /openapi.json',
    'GET /no-such-path',
    `GET /${encodeURIComponent(HOSTILE[24] ?? '')}`,
    'GET /api/%zz',
    'PUT /api/logs',
    'OPTIONS /api/logs',
    'HEAD /api/logs',
    'GET /ws/kpis',
  ]
  for (const request of others) t.same(missing(await service.call(request)), [], request)
  const long = await service
    .call('GET /api/logs', { headers: { cookie: 'x'.repeat(17_000) } })
    .catch(() => null)
  if (long !== null) t.same(missing(long), [], `head too large: ${long.status}`)
  for (const request of ['POST /ingest', 'GET /health', 'GET /nothing', 'POST /webhooks/scm'])
    t.same(
      missing(await collect(service, request, request.startsWith('POST') ? { body: '{' } : {})),
      [],
      request,
    )
})

t.test('what is refused for its framing has them too', async (t) => {
  const port = Number(new URL(service.api).port)
  const twice =
    'POST /api/auth/login HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx'
  const { text } = await rawExchange(port, [twice], { waitMs: 20_000 })
  t.match(text, /^HTTP\/1\.1 400/)
  for (const name of Object.keys(HEADERS)) t.match(text.toLowerCase(), `\r\n${name}: `, name)
})

const onLinux = process.platform === 'linux' ? false : 'Linux only'

t.test('after a busy time every file is for its owner alone', { skip: onLinux }, async (t) => {
  await service.ingest(
    Array.from({ length: 500 }, (_, i) => ({ source: 'busy', message: `m ${i}` })),
  )
  await settled(service)
  const engine = childOf(pid)
  t.ok(engine !== null)
  signal(engine, 'SIGKILL')
  await service.restart()
  await service.ingest([{ source: 'busy', message: 'again' }])
  await settled(service)
  const names = ['.', ...readdirSync(dataDir, { recursive: true, encoding: 'utf8' })]
  t.ok(names.length > 100, `${names.length} files`)
  const open = names.flatMap((name) => {
    // Parts may be merged at the same time.
    const found = lstatSync(join(dataDir, name), { throwIfNoEntry: false })
    if (found === undefined || found.isSymbolicLink()) return []
    return (found.mode & 0o077) === 0 ? [] : [`${name} ${(found.mode & 0o777).toString(8)}`]
  })
  t.same(open, [])
})

/** The ports that a process listens on. */
function portsOf(id: number): readonly number[] {
  const sockets = readdirSync(`/proc/${id}/fd`).map((file) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${id}/fd/${file}`))?.[1]
    } catch {
      return undefined // It was closed meanwhile.
    }
  })
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/ +/))
    .filter(([, , , state, , , , , , socket]) => state === '0A' && sockets.includes(socket))
    .map(([, address = '']) => Number.parseInt(address.split(':')[1] ?? '', 16))
}

const isRoot = process.getuid?.() === 0 ? false : 'only root can become another user'

t.test('another user of the machine gets nothing', { skip: onLinux || isRoot }, async (t) => {
  const [now] = /"pid":(\d+)/.exec(service.log())?.slice(1) ?? []
  const engine = childOf(Number(now)) ?? 0
  // Their ports are not secret: any user can read those of the machine.
  const program = `
    const { readFileSync, readdirSync } = await import('node:fs')
    const { get } = await import('node:http')
    // A pending fetch would not keep the process alive.
    const ask = (port, path, headers) => new Promise((resolve) => {
      const request = get({ host: '127.0.0.1', port, path, headers, agent: false, timeout: 5000 }, (reply) => resolve(reply.resume()))
      request.on('error', () => resolve(null)).on('timeout', () => request.destroy())
    })
    const seen = {}
    const attempt = (name, work) => { try { seen[name] = work() ?? 'read' } catch (error) { seen[name] = error.code } }
    attempt('dir', () => void readdirSync(${JSON.stringify(dataDir)}))
    attempt('secret', () => void readFileSync(${JSON.stringify(join(dataDir, 'jwt-secret'))}))
    for (const id of [${now}, ${engine}])
      for (const file of ['environ', 'mem', 'maps'])
        attempt(file + ' of ' + (id === ${engine} ? 'the engine' : 'the service'), () => void readFileSync('/proc/' + id + '/' + file))
    let answers = 0
    for (const port of ${JSON.stringify([...portsOf(Number(now)), ...portsOf(engine)])}) {
      const ways = [['/?query=SELECT+1', {}], ['/?query=SELECT+1&user=default', {}],
        ['/?query=SELECT+1', { 'X-ClickHouse-User': 'engine_client', 'X-ClickHouse-Key': '' }], ['/play', {}]]
      for (const [path, headers] of ways) {
        const reply = await ask(port, path, headers)
        if (reply === null || !('x-clickhouse-exception-code' in reply.headers) && !('x-clickhouse-server-display-name' in reply.headers) && reply.statusCode !== 401) continue
        answers++
        if (reply.statusCode < 400) seen['ClickHouse at ' + port] = reply.statusCode
      }
    }
    seen.answers = answers > 0
    process.stdout.write(JSON.stringify(seen))`
  const args = ['--input-type=module', '-e', program]
  const { stdout } = await run(process.execPath, args, {
    uid: 65_534,
    gid: 65_534,
    cwd: '/',
    env: {},
  })
  const refused = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, 'EACCES']))
  const files = ['environ', 'mem', 'maps'].flatMap((file) => [
    `${file} of the service`,
    `${file} of the engine`,
  ])
  t.same(JSON.parse(stdout), { ...refused(['dir', 'secret', ...files]), answers: true })
})
