import { chownSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TOTP } from 'otpauth'
import { test } from 'tap'
import { eventually } from '../support/live-service.js'
import { startMailServer } from '../support/mail-server.js'
import {
  ADMIN,
  KNOWN,
  logIn,
  runToEnd,
  startService,
  tempDataDir,
  type Service,
} from '../support/service.js'

const logInStatus = async (service: Service, password: string): Promise<number> => {
  const response = await fetch(`${service.api}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: ADMIN.email, password }),
  })
  await response.body?.cancel()
  return response.status
}

void test('a new password for a user, with the service running and stopped, ends the sessions', async (t) => {
  const { port, mails } = await startMailServer(t)
  const SMTP_URL = `smtp://127.0.0.1:${port}`
  const env = { DATA_DIR: tempDataDir(t), ...KNOWN, SMTP_URL }
  /** @returns the new password */
  const reset = async (): Promise<string> => {
    const { code, stdout } = await runToEnd(env, ['reset-password', ADMIN.email.toUpperCase()])
    t.equal(code, 0)
    const [, password = ''] = new RegExp(`^${ADMIN.email} +(\\S{24})$`, 'm').exec(stdout) ?? []
    t.match(password, /^[\w-]{24}$/)
    return password
  }
  /** As root it would work, and leave files that the service can't open. */
  const refusedForOther = async (): Promise<void> => {
    chownSync(join(env.DATA_DIR, 'instance-id'), 12_345, 12_345)
    const names = readdirSync(env.DATA_DIR)
    t.match(await runToEnd(env, ['reset-password', ADMIN.email]), {
      code: 1,
      stderr: `DATA_DIR ${env.DATA_DIR} belongs to user 12345, and this is user 0: run this as that`,
    })
    t.same(readdirSync(env.DATA_DIR), names)
  }
  const service = await startService(t, env)
  const before = await logIn(service)
  const password = await reset()
  t.equal((await before.call('GET', '/api/auth/me')).status, 401, 'the session has ended')
  t.equal(await logInStatus(service, ADMIN.password), 401)
  await eventually(
    async () => mails.length,
    (count) => count >= 2,
  )
  t.match(mails[0]?.text, 'Somebody logged in as you from 127.0.0.1')
  t.match(mails[1]?.text, 'The password of your account was changed.')
  t.same(mails[1]?.to, [ADMIN.email])
  const after = await logIn(service, { email: ADMIN.email, password })
  t.equal((await after.call('GET', '/api/monitoring/audit')).status, 403, 'it is to be changed')
  const { id } = await after.get<{ id: string }>('/api/auth/me')
  const change = { password: 'a password of my own', current_password: password }
  t.equal((await after.call('PUT', `/api/users/${id}/password`, change)).status, 200)
  const audit = await after.get<{ items: readonly object[] }>('/api/monitoring/audit?limit=50')
  t.ok(
    audit.items.some((item) => JSON.stringify(item).includes('"resetPassword"')),
    'the audit trail has it',
  )
  t.notMatch(JSON.stringify(audit), password)
  await service.stop()

  const next = await reset()
  t.not(next, password)
  const again = await startService(t, env)
  t.equal(await logInStatus(again, password), 401)
  t.equal(await logInStatus(again, next), 200)
  t.equal((await after.call('GET', '/api/auth/me').catch(() => null))?.status ?? 401, 401)
  const unknown = await runToEnd(env, ['reset-password', 'nobody@example.com'])
  t.match(unknown, { code: 1, stdout: '', stderr: 'there is no such user' })
  await again.stop()
  if (process.getuid?.() === 0) await refusedForOther()
  for (const name of readdirSync(env.DATA_DIR).filter((one) => /secret|id|version/.test(one)))
    t.notMatch(readFileSync(join(env.DATA_DIR, name), 'utf8'), next)
})

void test('the operator removes a second factor, with the service running and stopped; another DATA_KEY is told', async (t) => {
  const env = { DATA_DIR: tempDataDir(t), ...KNOWN }
  const reset = () => runToEnd(env, ['reset-second-factor', ADMIN.email.toUpperCase()])
  let service = await startService(t, env)
  /** Turns it on, with which a password alone is not enough. */
  const enrolled = async () => {
    const { call } = await logIn(service)
    const post = async (path: string, json: object) =>
      (await call('POST', `/api/auth/second-factor${path}`, json)).json()
    const begun = Object(await post('', { current_password: ADMIN.password }))
    const code = new TOTP({ secret: String(begun.secret) }).generate()
    t.match(await post('/confirm', { code }), { recovery_codes: Array(10).fill(String) })
    t.equal(await logInStatus(service, ADMIN.password), 401)
    return call
  }
  const call = await enrolled()
  const said = `${ADMIN.email} has no second factor any more`
  t.match(await reset(), { code: 0, stdout: said })
  t.equal((await call('GET', '/api/auth/me')).status, 401, 'the session has ended')
  t.equal(await logInStatus(service, ADMIN.password), 200)
  t.match(await reset(), { code: 1, stderr: 'there is no second factor' })
  const target = { type: 'webhook', url: 'https://hooks.example.com/x', secret: 'of the receiver' }
  await (await logIn(service)).call('POST', '/api/notification-channels', { name: 'hook', target })
  await enrolled()
  await service.stop()
  t.match(await reset(), { code: 0, stdout: said })
  service = await startService(t, { ...env, DATA_KEY: 'another key than the data directory has' })
  const told = /"channels":\["hook"\].*notification channels were encrypted with another DATA_KEY/
  t.match(service.log(), told)
  t.notMatch(service.log(), 'second factors were sealed', 'there is none')
  const { get } = await logIn(service)
  t.match(JSON.stringify(await get('/api/monitoring/audit?limit=50')), '"resetSecondFactor"')
})

void test('without a user, and without a service ever, the command says so and makes nothing', async (t) => {
  const dataDir = tempDataDir(t)
  const env = { DATA_DIR: dataDir }
  t.match(await runToEnd(env, ['reset-password']), {
    code: 1,
    stderr: 'usage: npm run reset-password -- E-MAIL',
  })
  t.match(await runToEnd(env, ['reset-password', ADMIN.email]), {
    code: 1,
    stderr: `DATA_DIR ${dataDir} holds no users`,
  })
  t.same(readdirSync(dataDir), [])
})
