import { spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { eventually } from '../support/live-service.js'
import { startRedis } from '../support/redis.js'
import {
  ADMIN,
  countOf,
  ingest,
  KNOWN,
  logIn,
  runToEnd,
  settledCount,
  startService,
  tempDataDir,
} from '../support/service.js'

const lines = (count: number, source: string): string =>
  Array.from({ length: count }, (_, i) => JSON.stringify({ source, message: `line ${i}` })).join(
    '\n',
  )

/** The messages for the operator, without the log's lines. */
const messagesOf = (stderr: string): readonly string[] =>
  stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))

void test('the first start shows working credentials once; an orderly end takes everything along', async (t) => {
  const dataDir = tempDataDir(t)
  const first = await startService(t, { DATA_DIR: dataDir })
  const [, email = '', password = ''] = /admin +(\S+@\S+) +(\S+)/.exec(first.banner) ?? []
  const [, key = ''] = /ingest key +(\S+)/.exec(first.banner) ?? []
  t.match(key, /^ik_[A-Za-z0-9_-]{40}$/)
  const admin = await logIn(first, { email, password })
  t.match(await admin.get('/api/auth/me'), { email, role: 'superadmin', is_active: true })
  const sent = await ingest(first, lines(5000, 'app'), { authorization: `Bearer ${key}` })
  t.equal(sent.status, 202)
  t.match(await sent.json(), {
    received: 5000,
    accepted: 5000,
    rejected: 0,
    dropped: 0,
    errors: [],
  })
  for (const name of readdirSync(dataDir)) {
    const { mode } = statSync(join(dataDir, name))
    t.equal(mode & 0o077, 0, `${name} is for its owner alone`)
  }
  t.match(await first.stop(), { code: 0, signal: null })
  const second = await startService(t, { DATA_DIR: dataDir })
  t.notMatch(second.banner, new RegExp(`${password}|${key}|ik_`))
  const again = await logIn(second, { email, password })
  t.equal(await settledCount(() => countOf(again, 'app'), 5000), 5000)
  const reply = await fetch(`${second.api}/api/auth/me`, {
    headers: { authorization: `Bearer ${admin.token}` },
  })
  t.equal(reply.status, 200, 'a token of before is good after a restart')
  t.match(await second.stop(), { code: 0 })
})

void test('given credentials are not shown', async (t) => {
  const service = await startService(t, { DATA_DIR: tempDataDir(t), ...KNOWN })
  t.notMatch(service.banner, new RegExp(`${KNOWN['ADMIN_PASSWORD']}|${KNOWN['INGEST_KEY']}`))
  await logIn(service)
  const busy = await runToEnd({ DATA_DIR: tempDataDir(t), API_PORT: new URL(service.api).port })
  t.not(busy.code, 0)
  t.match(messagesOf(busy.stderr), [/port \d+ on 127\.0\.0\.1 is in use.*API_PORT/])
  const { code, signal, stdout } = await service.stop()
  t.match({ code, signal }, { code: 0, signal: null })
  t.notMatch(stdout, KNOWN['INGEST_KEY'])
})

void test('a start that fails after it made the first accounts shows their credentials', async (t) => {
  const taken = createSocket('udp4')
  taken.bind(0, '127.0.0.1')
  await once(taken, 'listening')
  const env = { DATA_DIR: tempDataDir(t) }
  const failed = await runToEnd({ ...env, SYSLOG_PORT: String(taken.address().port) })
  taken.close()
  t.not(failed.code, 0)
  t.match(messagesOf(failed.stderr), [/SYSLOG_PORT/])
  const [, email = '', password = ''] = /admin +(\S+) +(\S+)/.exec(failed.stdout) ?? []
  t.match(failed.stdout, /ingest key +ik_/)
  const service = await startService(t, env)
  t.notMatch(service.banner, /shown once/)
  await logIn(service, { email, password })
})

void test('an error that stops the start is one line', async (t) => {
  const dataDir = tempDataDir(t)
  const refuses = async (
    env: Readonly<Record<string, string>>,
    line: RegExp,
    before: readonly string[] = [],
  ): Promise<void> => {
    const { code, signal, stdout, stderr } = await runToEnd(
      { DATA_DIR: dataDir, ...env },
      [],
      before,
    )
    t.ok(code !== 0 && signal === null, `exit code ${code}`)
    t.equal(stdout, '')
    t.equal(messagesOf(stderr).length, 1, 'one line')
    t.match(messagesOf(stderr)[0], line)
  }
  await refuses({ API_PORT: '70000' }, /API_PORT=70000 is not an integer in 0\.\.65535/)
  await refuses({ JWT_SECRET: 'short' }, /JWT_SECRET has 5 characters; at least 32/)
  await refuses({ TRUSTED_PROXIES: 'nonsense' }, /TRUSTED_PROXIES/)
  for (const host of ['192.0.2.1', '999.1.1.1', '2001:db8::1'])
    await refuses({ HOST: host }, new RegExp(`HOST=${host} is no address of this machine`))
  for (const [limit, line] of [
    ['-v 3000000', /bytes of virtual memory, .* \(ulimit -v/],
    ['-v 25000000', /bytes of virtual memory, .* \(ulimit -v/],
    ['-n 50', /may open 50 files, .* \(ulimit -n\)/],
    ['-n 200', /may open 200 files, .* \(ulimit -n\)/],
  ] as const)
    await refuses({}, line, ['sh', '-c', `ulimit ${limit} && exec "$0" "$@"`])
  await refuses(
    { CLICKHOUSE_URL: 'http://127.0.0.1:1', CLICKHOUSE_CA_FILE: '/nowhere/ca.pem' },
    /CLICKHOUSE_CA_FILE/,
  )
  const file = join(dataDir, 'file')
  writeFileSync(file, '')
  await refuses({ DATA_DIR: join(file, 'data') }, /DATA_DIR .* can't be used/)
  await refuses({ DATA_DIR: '/proc/none/data' }, /DATA_DIR \/proc\/none\/data can't be used/)
  await refuses({ REDIS_URL: 'redis://127.0.0.1:1' }, /Redis at 127\.0\.0\.1:1 .*REDIS_URL/)
  const redis = await startRedis('a password')
  if (redis !== null) {
    t.teardown(() => redis.kill())
    const withLogin = (login: string): string => redis.url.replace('//', `//${login}@`)
    await refuses({ REDIS_URL: redis.url }, /Redis at .* can't be used: .*NOAUTH.*REDIS_URL/)
    await refuses({ REDIS_URL: withLogin(':wrong') }, /can't be used: WRONGPASS/)
    const away = `${withLogin(':a%20password')}/99`
    await refuses({ REDIS_URL: away }, /can't be used: .*DB index is out of range/)
  }
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const address = other.address()
  const port = typeof address === 'object' ? address?.port : 0
  await refuses({ COLLECTOR_PORT: `${port}` }, new RegExp(`port ${port} .*COLLECTOR_PORT`))
  other.close()
})

const MOUNT = ['-r', '-m']
const canMount =
  spawnSync('unshare', [...MOUNT, 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0

void test(
  'a start on a full disk says so',
  { skip: !canMount && 'nothing can be mounted here' },
  async (t) => {
    const dataDir = tempDataDir(t)
    const free = {
      'size=4k': 'bytes are free',
      'size=1m': 'bytes are free',
      'nr_inodes=120': 'files',
    }
    for (const [size, left] of Object.entries(free)) {
      const mount = `mount -t tmpfs -o ${size},mode=0700 tmpfs ${dataDir} && exec "$0" "$@"`
      const { code, stderr } = await runToEnd(
        { DATA_DIR: dataDir },
        [],
        ['unshare', ...MOUNT, 'sh', '-c', mount],
      )
      t.equal(code, 1)
      t.match(messagesOf(stderr), [
        new RegExp(`the disk of ${dataDir} is full .*${left}.* make room`),
      ])
    }
  },
)

void test(
  'a disk without free inodes is told as full, and the service goes on when there are some',
  { skip: (!canMount || process.getuid?.() !== 0) && 'nothing can be mounted here' },
  async (t) => {
    const dataDir = tempDataDir(t)
    const inodes = 4_000
    const options = `nr_inodes=${inodes},mode=0700`
    spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', dataDir])
    t.teardown(() => spawnSync('umount', ['-l', dataDir]))
    const service = await startService(t, { DATA_DIR: dataDir, ...KNOWN })
    const spool = async (): Promise<string> => {
      const reply = await fetch(`${service.api}/api/monitoring/health`)
      return ((await reply.json()) as { checks: { spool: { status: string } } }).checks.spool.status // a reply of the service
    }
    const send = async (): Promise<number> => (await ingest(service, lines(1, 'a'))).status
    t.equal(await spool(), 'ok')
    const others = Array.from({ length: inodes }, (_, i) => join(dataDir, `other-${i}`))
    try {
      for (const file of others) writeFileSync(file, '')
    } catch (error) {
      t.match(error, { code: 'ENOSPC' })
    }
    await eventually(spool, (status) => status === 'down')
    t.equal(await send(), 429)
    for (const file of others) rmSync(file, { force: true })
    await eventually(spool, (status) => status === 'ok')
    t.equal(await send(), 202)
    t.match(await service.stop(), { code: 0 })
  },
)

void test('a start says at once what it waits for, and ends when it does not come', async (t) => {
  const addresses = ['http://127.0.0.1:1', 'http://nowhere.invalid:8123']
  const starts = addresses.map((url) =>
    runToEnd({ DATA_DIR: tempDataDir(t), CLICKHOUSE_URL: url, API_PORT: '0', COLLECTOR_PORT: '0' }),
  )
  for (const [i, { code, stderr }] of (await Promise.all(starts)).entries()) {
    const { host } = new URL(addresses[i] ?? '')
    t.equal(code, 1)
    const waits = stderr.split('\n').filter((line) => line.includes('waiting up to 30 s'))
    t.ok(waits.length >= 3, `${waits.length} lines`)
    t.match(waits[0], `"host":"${host}"`)
    t.match(messagesOf(stderr), [new RegExp(`ClickHouse at ${host} can't be used.*CLICKHOUSE_URL`)])
  }
})

void test('an address of IPv6 is shown as a URL has it', async (t) => {
  const service = await startService(t, { DATA_DIR: tempDataDir(t), HOST: '::1', ...KNOWN })
  t.match(service.api, /^http:\/\/\[::1\]:\d+$/)
  t.match(await (await logIn(service)).get('/api/auth/me'), { email: ADMIN.email })
  t.match(await service.stop(), { code: 0 })
})

void test('a variable that is named nearly like a setting is told', async (t) => {
  const { stderr } = await runToEnd({
    DATA_DIR: '/proc/none',
    RETENTION_DAY: '7',
    UNRELATED: 'secret text',
  })
  t.match(stderr, 'RETENTION_DAY is no setting and has no effect; did you mean RETENTION_DAYS?')
  t.notMatch(stderr, 'UNRELATED')
})

void test('a data directory is for one process, and a dead one gives it up', async (t) => {
  const dataDir = tempDataDir(t)
  const service = await startService(t, { DATA_DIR: dataDir, ...KNOWN })
  const second = await runToEnd({ DATA_DIR: dataDir })
  t.not(second.code, 0)
  t.match(messagesOf(second.stderr), [
    new RegExp(`DATA_DIR .* is in use by process ${service.pid}`),
  ])
  await service.kill()
  const third = await startService(t, { DATA_DIR: dataDir })
  t.match(await third.stop(), { code: 0 })
})

void test('a secret that can not be read stops the start', async (t) => {
  const dataDir = tempDataDir(t)
  mkdirSync(join(dataDir, 'jwt-secret'), { recursive: true })
  const { code, stderr } = await runToEnd({ DATA_DIR: dataDir })
  t.not(code, 0)
  t.equal(messagesOf(stderr).length, 1)
})

void test('--help and --version need no settings, and arguments that are wrong get the usage', async (t) => {
  const wrong = { API_PORT: 'none' }
  const help = await runToEnd(wrong, ['--help'])
  t.match(help, { code: 0, stderr: '' })
  t.match(help.stdout, /^ {2}CLICKHOUSE_URL +/m)
  t.match(help.stdout, /^ {2}API_PORT .*\[8000\]$/m)
  const version = await runToEnd(wrong, ['--version'])
  t.match(version, { code: 0, stdout: /^log-analytics-engine \d+\.\d+\.\d+\n$/, stderr: '' })
  for (const [args, line] of [
    [['backup'], 'usage: npm run backup -- DIR|s3:NAME'],
    [['restore', 'a', 'b'], 'usage: npm run restore -- DIR|s3:NAME'],
    [['--port'], 'unknown argument --port; see npm start -- --help'],
    [['constructor', 'a'], 'unknown argument constructor; see npm start -- --help'],
  ] as const) {
    const { code, stderr } = await runToEnd(wrong, args)
    t.same([code, messagesOf(stderr)], [1, [`log-analytics-engine: ${line}`]])
  }
})
