import { test } from 'tap'
import { startLiveService } from '../../support/live-service.js'

test('questions that ask too much are refused, and those of one user leave room for others', async (t) => {
  const service = await startLiveService(t)
  const { call } = service
  await service.ingest([{ source: 'shop', message: 'payment failed for user 7' }])

  const many = (name: string, value: string, n: number): string =>
    `${name}=${Array.from({ length: n }, () => value).join(',')}`
  for (const path of [
    `/api/logs?${['severity', 'priority', 'type'].map((name) => many(name, 'x', 1700)).join('&')}`,
    `/api/logs?${many('environment', 'x', 101)}`,
    `/api/logs?search=${'word+'.repeat(17)}`,
    '/api/logs?search=a*+b*+c*',
    `/api/logs?search=${'a'.repeat(1001)}`,
    `/api/logs/meta/calendar?${many('priority', 'x', 3000)}`,
    `/api/incidents?${many('status', 'x', 3000)}`,
  ]) {
    const { status, body } = await call(`GET ${path}`)
    t.equal(status, 422, path.slice(0, 40))
    t.equal(body.detail.code, 'validation_error')
    t.ok(body.detail.details.errors.length <= 100)
  }
  t.equal((await call('GET /api/logs?search=payment+pay*+fail*+us*')).status, 200)

  const [busy, other] = [await service.newUser('viewer'), await service.newUser('viewer')]
  const search = (token: string, i: number) =>
    call(`GET /api/logs?search=payment+word${i}`, { token })
  const order: string[] = []
  const asked = Array.from({ length: 40 }, (_, i) =>
    search(busy.access_token, i).then(({ status }) => {
      order.push('busy')
      return status
    }),
  )
  asked.push(
    search(other.access_token, 99).then(({ status }) => {
      order.push('other')
      return status
    }),
  )
  t.strictSame(new Set(await Promise.all(asked)), new Set([200]), 'all are answered')
  t.ok(order.indexOf('other') < 30, `the other user is answered after ${order.indexOf('other')}`)
})
