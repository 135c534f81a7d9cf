import { test } from 'tap'
import { createLog, type LogLevel } from '../../../src/telemetry/log.js'

function record(level: LogLevel = 'debug') {
  const lines: string[] = []
  const log = createLog(level, { write: (line) => void lines.push(line) })
  return { log, lines, last: (): Record<string, unknown> => JSON.parse(lines.at(-1) ?? '{}') }
}

void test('a line is JSON with time, level by name, fields and text', async (t) => {
  const { log, lines, last } = record()
  log.warn({ batch: 7 }, 'a batch waits')
  t.match(last(), { level: 'warn', batch: 7, msg: 'a batch waits' })
  t.match(last()['time'], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  t.ok(lines[0]?.endsWith('\n'))
})

void test('what is below the level is not written', async (t) => {
  const { log, lines } = record('warn')
  log.info('no')
  log.error('yes')
  t.equal(lines.length, 1)
  const silent = record('silent')
  silent.log.fatal('no')
  t.equal(silent.lines.length, 0)
})

void test('errors bring message, stack and cause', async (t) => {
  const { log, last } = record()
  log.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed')
  t.match(last(), { err: { type: 'Error', message: /outer.*inner/, stack: /log\.test/ } })
})

void test('secrets are hidden wherever they stand', async (t) => {
  const { log, lines } = record()
  const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl'
  const secret = 'hunter2hunter2'
  const key = `ik_${'A'.repeat(40)}`
  const token = `lat_${'-B_'.repeat(14)}`
  log.info({ password: secret }, 'top')
  log.info({ body: { password: secret, refresh_token: secret } }, 'one deep')
  log.info(
    { req: { headers: { authorization: secret, cookie: secret, 'x-api-key': secret } } },
    'two',
  )
  log.info({ err: new Error(`connect redis://user:${secret}@cache:6379/0 failed`) }, 'in an error')
  const command = { name: 'auth', args: [secret] }
  log.info({ err: Object.assign(new Error('WRONGPASS'), { command }) }, 'in a command of Redis')
  log.info({ url: `https://${secret}@host/` }, 'in a URL')
  log.info({ text: `Authorization: Bearer ${jwt}` }, `token ${jwt} of ${key}`)
  log.info({ url: `/ws/kpis?token=${token}` }, `not ${token}`)
  const text = lines.join('')
  for (const hidden of [secret, jwt, key, token]) t.notOk(text.includes(hidden), hidden)
  t.ok(text.includes('@cache:6379/0 failed'), 'what is no secret stays')
  for (const line of lines) t.doesNotThrow(() => JSON.parse(line))
})

void test('no text begins a line, or commands a terminal', async (t) => {
  const { log, lines, last } = record()
  const controls = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code))
    .filter((character) => character < ' ' || character > '~')
    .join('')
  const hostile = `${controls}\u2028\u2029\u202e\u2066\n{"level":"error"} ü\u00a0日`
  log.warn({ source: hostile, [hostile]: 1, err: new Error(hostile) }, hostile)
  log.warn({ agent: hostile.repeat(2) }, 'short and long texts')
  for (const line of lines) {
    // oxlint-disable-next-line no-control-regex -- that is what must not be there
    t.notMatch(line.slice(0, -1), /[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/)
    t.match(line, 'ü\u00a0日')
  }
  t.equal(last()['agent'], hostile.repeat(2), 'a reader of JSON gets what was sent')
})
