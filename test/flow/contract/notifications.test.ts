import { createHmac } from 'node:crypto'
import t from 'tap'
import { eventually, startLiveService } from '../../support/live-service.js'
import { startReceiver, type Received } from '../../support/notice-receiver.js'

const service = await startLiveService(t, { ALERT_PRIVATE_ADDRESSES: 'true' })
const { call, ingest } = service

let sent = 0
const events = (count: number, host: string) =>
  Array.from({ length: count }, () => ({
    source: 'shop',
    severity: 'error',
    host,
    message: `order ${++sent} was lost`,
  }))

async function channel(target: object): Promise<string> {
  const reply = await call('POST /api/notification-channels', { json: { name: 'c', target } })
  t.equal(reply.status, 201, reply.text)
  return reply.body.id
}

async function rule(
  host: string,
  channels: readonly string[],
  notify: object = {},
): Promise<string> {
  const reply = await call('POST /api/alert-rules', {
    json: {
      name: `Errors & <losses> of ${host}`,
      severity: 'P1',
      q: `host:${host}`,
      kind: { type: 'threshold', window: '10s', op: '>=', fire: 1 },
      every: '1s',
      keep_firing_for: '0s',
      group_by: ['source'],
      notify: { channels, ...notify },
    },
  })
  t.equal(reply.status, 201, reply.text)
  return reply.body.id
}

const untilCount = (received: readonly Received[], count: number) =>
  eventually(
    async () => received,
    (all) => all.length >= count,
  )

const noticesOf = async (id: string) =>
  (await call(`GET /api/alert-rules/${id}/history`)).body.items.flatMap(
    ({ notices }: { notices: object[] }) => notices,
  )

t.test(
  'a webhook is signed, tried again with the same identity, and told of the end',
  async (t) => {
    const { url, received, answers } = await startReceiver(t)
    answers.push(503, 429)
    const secret = 'a secret of the hook'
    const id = await rule('web-1', [await channel({ type: 'webhook', url, secret })])
    await ingest(events(2, 'web-1'))
    await untilCount(received, 4)
    const bodies = received.map(({ body }) => JSON.parse(body))
    t.same(
      bodies.map(({ status }) => status),
      ['firing', 'firing', 'firing', 'resolved'],
    )
    t.match(bodies[0], {
      severity: 'P1',
      group: { source: 'shop' },
      value: 2,
      title: '[P1 firing] Errors & <losses> of web-1 source=shop (2)',
    })
    t.equal(new Set(bodies.map((body) => body.alert_id)).size, 1)
    const keys = received.map(({ headers }) => headers['idempotency-key'])
    t.equal(new Set(keys.slice(0, 3)).size, 1, 'one identity')
    t.not(keys[3], keys[0])
    for (const { headers, body } of received) {
      const [, at = '', signature] =
        /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-signature'])) ?? []
      t.equal(signature, createHmac('sha256', secret).update(`${at}.${body}`).digest('hex'))
    }
    const notices = await eventually(
      () => noticesOf(id),
      (all) =>
        all.length === 2 && all.every(({ outcome }: { outcome: string }) => outcome === 'sent'),
    )
    t.match(notices[1], { id: keys[0], attempts: 3, status: 200, error: null })
  },
)

t.test('what a receiver refuses is final, a redirect too', async (t) => {
  const { url, received, answers } = await startReceiver(t)
  answers.push(302)
  const id = await rule('web-2', [await channel({ type: 'webhook', url })], { on_resolve: false })
  await ingest(events(1, 'web-2'))
  const [notice] = await eventually(
    () => noticesOf(id),
    (all) => all[0]?.outcome === 'refused',
  )
  t.match(notice, { attempts: 1, status: 302, error: 'the receiver answered 302' })
  t.same(
    received.map(({ path }) => path),
    ['/'],
  )
})

t.test('each kind of channel has its form', async (t) => {
  const { url, received } = await startReceiver(t)
  const ids = await Promise.all([
    channel({ type: 'slack', secret: `${url}/slack` }),
    channel({ type: 'teams', secret: `${url}/teams` }),
    channel({ type: 'pagerduty', secret: 'routing', url: `${url}/pagerduty` }),
  ])
  const id = await rule('web-3', ids)
  await ingest(events(1, 'web-3'))
  await untilCount(received, 6)
  const of = (path: string) =>
    received.filter((one) => one.path === path).map(({ body }) => JSON.parse(body))
  t.match(
    of('/slack')[0].text,
    /^\*\[P1 firing\] Errors &amp; &lt;losses&gt; of web-3 source=shop \(1\)\*\n/,
  )
  t.match(of('/teams')[0].attachments[0].content.body[0].text, /Errors & \\<losses\\>/)
  const [fired, resolved] = of('/pagerduty')
  const [alert] = (await call(`GET /api/alerts?rule_id=${id}`)).body.items
  t.match(fired, {
    routing_key: 'routing',
    event_action: 'trigger',
    dedup_key: alert.id,
    payload: { severity: 'critical', source: 'shop' },
  })
  t.match(resolved, { event_action: 'resolve', dedup_key: alert.id })
})

t.test('a channel is tested, and its secret is in no reply', async (t) => {
  const { url, received } = await startReceiver(t)
  const id = await channel({ type: 'webhook', url, secret: 'unseen words' })
  const tested = await call(`POST /api/notification-channels/${id}/test`)
  t.match(tested.body, { outcome: 'sent', status: 200, error: null })
  t.match(JSON.parse(received[0]?.body ?? ''), { title: /Test of the channel/ })
  const kept = await call(`PUT /api/notification-channels/${id}`, {
    json: { name: 'renamed', target: { type: 'webhook', url } },
  })
  t.match(kept.body, { name: 'renamed', has_secret: true, url })
  const listed = await call('GET /api/notification-channels')
  t.notMatch(listed.text + kept.text + tested.text, 'unseen')
  const down = await channel({ type: 'slack', secret: 'http://127.0.0.1:9/secret' })
  const failed = await call(`POST /api/notification-channels/${down}/test`)
  t.match(failed.body, { outcome: 'failed', status: null, error: 'ECONNREFUSED' })
  t.equal((await call(`DELETE /api/notification-channels/${down}`)).status, 204)
  t.equal((await call(`POST /api/notification-channels/${down}/test`)).status, 404)
})

t.test('notices that wait are sent after a restart', async (t) => {
  const { url, received, answers } = await startReceiver(t)
  answers.push(...Array.from({ length: 20 }, () => 500))
  const id = await rule('web-4', [await channel({ type: 'webhook', url })])
  await ingest(events(1, 'web-4'))
  await untilCount(received, 2)
  await service.restart()
  answers.length = 0
  const after = received.length
  const all = await untilCount(received, after + 2)
  const statuses = all.slice(after).map(({ body }) => JSON.parse(body).status)
  t.same(statuses, ['firing', 'resolved'])
  t.equal(all[after]?.headers['idempotency-key'], all[0]?.headers['idempotency-key'])
  t.equal((await noticesOf(id)).length, 2)
})
