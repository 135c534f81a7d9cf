/** What the engine and the output of a start are given: no secret but the engine's own. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { inTurn } from '../../support/hostile.js'
import { eventually, startLiveService } from '../../support/live-service.js'
import { SECRETS, findIn, readAll, said } from '../../support/secrets.js'
import { enginePid, runToEnd, tempDataDir } from '../../support/service.js'
import { signal } from '../../support/signals.js'

t.test('the embedded engine is given no secret but its own', async (t) => {
  said.clear()
  const dataDir = tempDataDir(t)
  const service = await startLiveService(t, { ...SECRETS, DATA_DIR: dataDir, LOG_LEVEL: 'trace' })
  const pid = Number(/"pid":(\d+)/.exec(service.log())?.[1] ?? 0)
  const engine = enginePid({ pid })
  signal(engine, 'SIGKILL')
  await eventually(
    async () => (await service.call('GET /api/monitoring/health')).body.status,
    (status) => status === 'ok',
  )
  await service.call('GET /api/logs?search=x')
  const child = enginePid({ pid })
  t.not(child, engine, 'another engine')
  for (const name of ['cmdline', 'environ'])
    said.set(`${name} of the engine`, readFileSync(`/proc/${child}/${name}`, 'utf8'))
  t.match(said.get('cmdline of the engine'), 'embedded/child.js')
  t.match(said.get('environ of the engine'), 'TZ=UTC')
  said.set('the command line', readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  said.set('the log', service.log())
  said.set('the files', readAll(dataDir))
  t.same(findIn(SECRETS), [])
})

/** Refuses every request with an error that quotes the credentials, which must not be passed on. */
async function startRefusing(t: Test): Promise<string> {
  const server = createServer((request, response) => {
    const received = { url: request.url, ...request.headers }
    response.writeHead(403, { 'x-clickhouse-exception-code': '516' })
    response.end(`Code: 516. DB::Exception: ${JSON.stringify(received)}. (AUTHENTICATION_FAILED)`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('bug: no port')
  return `127.0.0.1:${address.port}`
}

t.test('a start that fails quotes no secret', async (t) => {
  const refusing = await startRefusing(t)
  const bad: readonly Readonly<Record<string, string>>[] = [
    { JWT_SECRET: 'short/secrët' },
    { ADMIN_PASSWORD: 'shört+1' },
    { INGEST_KEY: 'an ingest key with blanks/' },
    { WEBHOOK_SECRET: 'shört/secret' },
    { METRICS_TOKEN: 'shört+/' },
    { REDIS_URL: 'redis//:passwörd+1@127.0.0.1' },
    { REDIS_URL: 'http://user:passwörd+1@127.0.0.1' },
    { CLICKHOUSE_URL: `http://user:passwörd+1@${refusing}` },
    { CLICKHOUSE_URL: `http://${refusing}`, CLICKHOUSE_PASSWORD: 'passwörd+2' },
    { CLICKHOUSE_URL: 'ftp://user:passwörd+1@127.0.0.1:1', CLICKHOUSE_PASSWORD: 'passwörd+2' },
    { CLICKHOUSE_URL: 'http://127.0.0.1:1', CLICKHOUSE_PASSWORD: 'passwörd+2', API_PORT: 'x' },
    { NODE_ENV: 'production', JWT_SECRET: 'a long secrët/that is fine but alone here' },
  ]
  said.clear()
  const secrets: Record<string, string> = { 'password of a URL': 'passwörd+1' }
  await inTurn(bad, 4, async (settings) => {
    const ended = await runToEnd({ DATA_DIR: tempDataDir(t), LOG_LEVEL: 'trace', ...settings })
    const what = JSON.stringify(settings)
    t.not(ended.code, 0, what)
    said.set(what, ended.stdout + ended.stderr)
    for (const [name, value] of Object.entries(settings))
      if (/SECRET|KEY|TOKEN|PASSWORD/.test(name)) secrets[`${name} ${value}`] = value
  })
  t.same(findIn(secrets), [])
})
