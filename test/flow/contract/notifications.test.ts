import { createHmac } from 'node:crypto'
import t from 'tap'
import { eventually, startLiveService } from '../../support/live-service.js'
import { startAlertmanager } from '../../support/alertmanager.js'
import { without } from '../../support/tools.js'
import { startMailServer } from '../../support/mail-server.js'
import { startReceiver, type Received } from '../../support/notice-receiver.js'

const mail = await startMailServer(t)
const service = await startLiveService(t, {
  ALERT_PRIVATE_ADDRESSES: 'true',
  SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
  MAIL_FROM: 'alerts@logs.example.com',
  PUBLIC_URL: 'https://logs.example.com',
})
const { call, ingest } = service

// Most of the time is waiting.
t.jobs = 8

let sent = 0
const events = (count: number, host: string) =>
  Array.from({ length: count }, () => ({
    source: 'shop',
    severity: 'error',
    host,
    message: `order ${++sent} was lost`,
  }))

async function channel(target: object, more: object = {}): Promise<string> {
  const json = { name: 'c', target, ...more }
  const reply = await call('POST /api/notification-channels', { json })
  t.equal(reply.status, 201, reply.text)
  return reply.body.id
}

async function rule(
  host: string,
  channels: readonly string[],
  notify: object = {},
  fields: object = {},
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
      notify: { channels, group_wait: '0s', group_interval: '0s', ...notify },
      ...fields,
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

// The first attempt waits for a second for what a notice tells, which may take longer.
const tellsNothing = ({ body }: Received): boolean =>
  body.includes('P1 firing') && !/order \d+ was lost/.test(body)

const noticesOf = async (id: string) =>
  (await call(`GET /api/alert-rules/${id}/history`)).body.items.flatMap(
    ({ notices }: { notices: object[] }) => notices,
  )

// The others begin when it is over, because they need the service all the time.
await t.test('notices that wait are sent after a restart', async (t) => {
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

t.test(
  'a webhook is signed, tried again with the same identity, and told of the end',
  { buffered: true },
  async (t) => {
    const { url, received, answers } = await startReceiver(t, tellsNothing)
    answers.push(503, 429)
    const secret = 'a secret of the hook'
    const id = await rule('web-1', [await channel({ type: 'webhook', url, secret })])
    await ingest(events(2, 'web-1'))
    await eventually(
      async () => received,
      (all) => all.some(({ body }) => JSON.parse(body).status === 'resolved'),
    )
    const bodies = received.map(({ body }) => JSON.parse(body))
    const first = bodies.slice(0, -1)
    t.ok(first.length >= 3, 'both refusals were followed by another attempt')
    t.ok(first.every(({ status }) => status === 'firing'))
    t.match(first.at(-1), {
      severity: 'P1',
      group: { source: 'shop' },
      value: 2,
      title: '[P1 firing] Errors & <losses> of web-1 source=shop (2)',
      usual: 0,
      samples: [/^[\dT:.-]+Z ERROR shop web-1: order \d+ was lost$/, /web-1: order/],
      links: {
        rule: `https://logs.example.com/alerts/rules/${id}`,
        acknowledge: `https://logs.example.com/alerts?show=firing&rule=${id}`,
        mute: /\/alerts\/quiet\?silence=rule_id%3D[\w-]+%2C\+source%3Dshop&for=now%2B1h$/,
      },
    })
    const { q, from, to } = Object.fromEntries(new URL(first.at(-1).links.events).searchParams)
    t.equal(q, 'host:web-1 source:shop')
    const asked = new URLSearchParams({
      q: String(q),
      start_time: String(from),
      end_time: String(to),
    })
    const found = await call(`GET /api/logs?${asked}`)
    t.equal(found.body.items.length, 2, 'the link shows its events')
    t.match(bodies.at(-1), { samples: [], links: { rule: /./, mute: undefined } })
    t.equal(new Set(bodies.map((body) => body.alert_id)).size, 1)
    const keys = received.map(({ headers }) => headers['idempotency-key'])
    t.equal(new Set(keys).size, 1, 'one identity, which its end has too')
    t.same(
      bodies.map(({ id }) => id),
      keys,
    )
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
    t.match(notices[0], { id: keys[0], attempts: 1, status: 200 })
    t.match(notices[1], { id: keys[0], attempts: first.length, status: 200, error: null })
  },
)

t.test(
  'the next group that fires waits for the interval of the rule',
  { buffered: true },
  async (t) => {
    const { url, received } = await startReceiver(t)
    await rule(
      'lull-*',
      [await channel({ type: 'webhook', url })],
      { group_interval: '8s', on_resolve: false },
      { group_by: ['host'] },
    )
    await ingest(events(1, 'lull-1'))
    await untilCount(received, 1)
    const firstMs = Date.now()
    await ingest(events(1, 'lull-2'))
    await untilCount(received, 2)
    t.ok(Date.now() - firstMs > 6_000, 'though nothing else waited')
    t.same(
      received.map(({ body }) => JSON.parse(body).group),
      [{ host: 'lull-1' }, { host: 'lull-2' }],
    )
  },
)

t.test('a fallback that was told of an alert is told of its end', { buffered: true }, async (t) => {
  const { url: broken, answers } = await startReceiver(t)
  answers.push(...Array.from({ length: 100 }, () => 500))
  const { url, received } = await startReceiver(t)
  const fallback = await channel({ type: 'webhook', url })
  await rule('web-9', [await channel({ type: 'webhook', url: broken }, { fallback })])
  await ingest(events(1, 'web-9'))
  const told = (): readonly string[] => [
    // What was sent again, because the reply came late, has the same identity.
    ...new Set(
      received.map(
        ({ headers, body }) => `${headers['idempotency-key']} ${JSON.parse(body).status}`,
      ),
    ),
  ]
  await eventually(
    async () => told(),
    (all) => all.length >= 2,
  )
  t.same(
    told().map((one) => one.split(' ')[1]),
    ['firing', 'resolved'],
  )
  t.equal((await call(`DELETE /api/notification-channels/${fallback}`)).status, 204)
  const { items } = (await call('GET /api/notification-channels?limit=200')).body
  t.notOk(items.some((one: { fallback: string | null }) => one.fallback === fallback))
})

t.test('what a receiver refuses is final, a redirect too', { buffered: true }, async (t) => {
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

t.test('each kind of channel has its form', { buffered: true }, async (t) => {
  const isEarly = (one: Received): boolean =>
    ['/slack', '/own'].includes(one.path) && tellsNothing(one)
  const { url, received } = await startReceiver(t, isEarly)
  const ids = await Promise.all([
    channel({ type: 'slack', secret: `${url}/slack` }),
    channel(
      { type: 'slack', secret: `${url}/own` },
      {
        template:
          '{{alert.severity}} {{alert.status}} {{alert.name}}: {{value}}\n{{samples}} <{{links.rule}}>',
      },
    ),
    channel({ type: 'teams', secret: `${url}/teams` }),
    channel({ type: 'pagerduty', secret: 'routing', url: `${url}/pagerduty` }),
  ])
  const id = await rule('web-3', ids, { group_wait: '3s' })
  await ingest(events(1, 'web-3'))
  const [{ id: alertId }] = await eventually(
    async () => (await call(`GET /api/alerts?rule_id=${id}`)).body.items,
    (items) => items.length === 1,
  )
  await call(`POST /api/alerts/${alertId}/acknowledge`)
  const taken = (): readonly Received[] => received.filter((one) => !isEarly(one))
  await eventually(
    async () => taken(),
    (all) => all.length >= 9,
  )
  const of = (path: string) =>
    taken()
      .filter((one) => one.path === path)
      .map(({ body }) => JSON.parse(body))
  t.match(
    of('/slack')[0].text,
    /^\*\[P1 firing\] Errors &amp; &lt;losses&gt; of web-3 source=shop \(1\)\*\n/,
  )
  t.match(of('/slack')[0].text, /\nUsually: 0\n.*order \d+ was lost\n<https:.*\|Events> · /s)
  t.match(
    of('/own')[0].text,
    /^\*P1 firing Errors &amp; &lt;losses&gt; of web-3: 1\*\n.*was lost <https:[^>]*\/alerts\/rules\/[\w-]+>$/,
  )
  const card = of('/teams')[0].attachments[0].content
  t.match(card.body[0].text, /Errors & \\<losses\\>/)
  t.match(card.actions[0], { type: 'Action.OpenUrl', title: 'Events', url: /explore/ })
  const [fired, acknowledged, resolved] = of('/pagerduty')
  t.match(acknowledged, { event_action: 'acknowledge', dedup_key: alertId })
  const [alert] = (await call(`GET /api/alerts?rule_id=${id}`)).body.items
  t.match(fired, {
    routing_key: 'routing',
    event_action: 'trigger',
    dedup_key: alert.id,
    payload: { severity: 'critical', source: 'shop' },
    links: [{ text: 'events' }, { text: 'rule' }, { text: 'mute' }, { text: 'acknowledge' }],
  })
  t.match(resolved, { event_action: 'resolve', dedup_key: alert.id })
})

t.test(
  'what is about one alert is one thread',
  { buffered: true, skip: without('prometheus-alertmanager') },
  async (t) => {
    const { url, received } = await startReceiver(t)
    const alertmanager = await startAlertmanager(t)
    await eventually(alertmanager.isReady, (isReady) => isReady)
    const ids = await Promise.all([
      channel({ type: 'slack_bot', secret: 'xoxb-1', channel: '#ops', url }),
      channel({ type: 'email', to: ['ann@example.com', 'eve@example.com'] }),
      channel({ type: 'alertmanager', url: alertmanager.url }),
    ])
    const mails = (): string[] =>
      mail.mails
        .map(({ text }) => text.replaceAll(/\r\n[ \t]/g, ' ').replaceAll(/ +/g, ' '))
        .filter((text) => text.includes('web-8'))
    const id = await rule('web-8', ids)
    await ingest(events(1, 'web-8'))
    const [alert] = await eventually(alertmanager.alerts, (all) => all.length === 1)
    t.match(alert, {
      labels: {
        alertname: 'Errors & <losses> of web-8',
        severity: 'P1',
        source: 'shop',
        rule_id: id,
      },
      annotations: { summary: /^\[P1 firing\]/ },
    })
    await untilCount(received, 3)
    const [head, answer, edit] = received.map(({ path, headers, body }) => ({
      path,
      authorization: headers.authorization,
      ...JSON.parse(body),
    }))
    const authorization = 'Bearer xoxb-1'
    t.match(head, { path: '/chat.postMessage', channel: '#ops', authorization, text: /P1 firing/ })
    t.match(answer, { path: '/chat.postMessage', channel: 'C1', thread_ts: '1700.25' })
    t.match(edit, { path: '/chat.update', channel: 'C1', ts: '1700.25', text: /resolved/ })
    await eventually(
      async () => mails(),
      (all) => all.length === 2,
    )
    const [first = '', second = ''] = mails()
    t.match(first, /Subject: \[P1 firing\] Errors & <losses> of web-8/)
    const [, messageId] = /Message-ID: (<[\w.-]+@logs\.example\.com>)/.exec(first) ?? []
    t.ok(messageId)
    t.match(second, `References: ${messageId}`)
    t.match(second, 'Subject: [resolved] Errors')
    t.notMatch(first, 'References')
    await eventually(alertmanager.alerts, (all) => all.length === 0)
  },
)

t.test('a line break begins no header of a mail', { buffered: true }, async (t) => {
  const breaks = ['\r\n', '\n', '\r', '\r\n\r\n']
  for (const broken of breaks) {
    const address = `ann@example.com${broken}Bcc: eve@example.com`
    const channels = { name: 'c', target: { type: 'email', to: [address] } }
    const named = { name: `c${broken}X`, target: { type: 'email', to: ['ann@example.com'] } }
    const users = { email: address, password: 'a long password of 7 quiet words', role: 'viewer' }
    const replies = [
      await call('POST /api/notification-channels', { json: channels }),
      await call('POST /api/notification-channels', { json: named }),
      await call('POST /api/users', { json: users }),
    ]
    for (const { status } of replies) t.equal(status, 422, encodeURIComponent(broken))
  }
  const more = breaks.map((broken) => `${broken}Bcc: e@x.com`).join('')
  const target = { type: 'email', to: ['quiet@example.com'] }
  // A template's first line is the subject; without a template the subject has the values of the group.
  const template = `Told${more.replaceAll('\n', '\r')}`
  await call(`POST /api/notification-channels/${await channel(target, { template })}/test`)
  const byHost = { q: 'quietly', group_by: ['host'] }
  await rule('web-11', [await channel(target)], { on_resolve: false }, byHost)
  await ingest([{ source: 'shop', host: `web-11${more}`, message: 'it ended quietly' }])
  const mails = await eventually(
    async () => mail.mails.filter(({ to }) => to.includes('quiet@example.com')),
    (all) => all.length === 2,
  )
  for (const { to, text } of mails) {
    t.same(to, ['quiet@example.com'])
    const [head = ''] = text.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n\r\n')
    t.match(head, /^Subject: /m)
    t.notMatch(head, /^Bcc/im)
    t.notMatch(head, /[^\r]\n|\r[^\n]/)
  }
})

t.test(
  'who was told of an alert is told its end, when its rule has other channels',
  { buffered: true },
  async (t) => {
    const [before, after] = [await startReceiver(t), await startReceiver(t)]
    const pager = (url: string) => channel({ type: 'pagerduty', secret: 'routing', url })
    const [first, second] = [await pager(before.url), await pager(after.url)]
    const kind = { type: 'threshold', window: '20s', op: '>=', fire: 1 }
    const id = await rule('web-14', [first], {}, { kind })
    await ingest(events(1, 'web-14'))
    await untilCount(before.received, 1)
    const { body } = await call(`GET /api/alert-rules/${id}`)
    const { q, every, keep_firing_for, group_by, notify } = body
    const json = { q, every, keep_firing_for, group_by, kind, name: 'renamed', severity: 'P4' }
    const changed = await call(`PUT /api/alert-rules/${id}`, {
      json: { ...json, notify: { ...notify, channels: [second] } },
    })
    t.equal(changed.status, 200, changed.text)
    const received = async ({ received: all }: typeof before) =>
      (await untilCount(all, 2)).map((one) => {
        const { event_action: action, dedup_key: key, payload } = JSON.parse(one.body)
        return [action, key, payload.severity, payload.custom_details.rule.name]
      })
    const [fired, ended] = await received(before)
    t.match(fired, ['trigger', /./, 'critical', 'Errors & <losses> of web-14'])
    t.same(ended, ['resolve', ...(fired ?? []).slice(1)])
    t.same(await received(after), [fired, ended], 'the new one was told both')
    const { items } = (await call(`GET /api/alert-rules/${id}/history`)).body
    t.same(
      items.map(({ from, to, notices }: { from: string; to: string; notices: object[] }) => [
        from,
        to,
        notices.length,
      ]),
      [
        ['firing', 'resolved', 2],
        ['firing', 'firing', 1],
        ['inactive', 'firing', 1],
      ],
    )
    t.equal((await call(`GET /api/alerts?rule_id=${id}`)).body.items.length, 1, 'one alert')
  },
)

t.test('groups that fire together are one digest', { buffered: true }, async (t) => {
  const { url, received } = await startReceiver(t)
  const id = await channel({ type: 'teams', secret: url })
  // The rows of a source that is new wait until it is registered.
  for (const name of ['till', 'desk']) await call('POST /api/sources', { json: { name } })
  await rule('web-9', [id], { on_resolve: false, group_wait: '6s' })
  await ingest(['shop', 'till', 'desk'].map((source) => ({ ...events(1, 'web-9')[0], source })))
  const [first] = await untilCount(received, 1)
  t.equal(JSON.parse(first?.body ?? '').attachments[0].content.body[0].text, '3 alerts fire')
})

t.test('a channel is tested, and its secret is in no reply', { buffered: true }, async (t) => {
  const { url, received } = await startReceiver(t)
  const id = await channel({ type: 'webhook', url, secret: 'unseen words' })
  const tested = await call(`POST /api/notification-channels/${id}/test`)
  t.match(tested.body, { outcome: 'sent', status: 200, error: null, request: received[0]?.body })
  t.match(JSON.parse(received[0]?.body ?? ''), { title: /Test of the channel/ })
  const kept = await call(`PUT /api/notification-channels/${id}`, {
    json: { name: 'renamed', target: { type: 'webhook', url } },
  })
  t.match(kept.body, { name: 'renamed', has_secret: true, url, template: null })
  const faultOf = async (target: object, path = 'POST /api/notification-channels') => {
    const { status, body } = await call(path, { json: { name: 'wrong', target } })
    return [status, body.detail?.details.errors[0].path, body.detail?.details.errors[0].message]
  }
  const here = `PUT /api/notification-channels/${id}`
  t.match(
    await faultOf({ type: 'webhook', url: 'https://elsewhere.example/' }, here),
    [422, 'target.secret', /again/],
    'it does not go to another host',
  )
  const pager = await channel({ type: 'pagerduty', secret: 'unseen key', url: `${url}/a` })
  const toPager = `PUT /api/notification-channels/${pager}`
  const renamed = await call(toPager, {
    json: { name: 'pager', target: { type: 'pagerduty', url: `${url}/b` } },
  })
  t.match(renamed.body, { name: 'pager', has_secret: true, url: `${url}/b` })
  t.match(await faultOf({ type: 'pagerduty' }, toPager), [422, 'target.secret'])
  t.match(await faultOf({ type: 'slack_bot', channel: '#a' }, toPager), [422, 'target.secret'])
  t.match(await faultOf({ type: 'teams' }), [422, 'target.secret', 'is needed'])
  t.match(await faultOf({ type: 'webhook', url: 'http://[bad' }), [422, 'target.url'])
  t.match(await faultOf({ type: 'slack', secret: 'http://a:99999/' }), [422, 'target.secret'])
  const bad = { name: 'bad', target: { type: 'webhook', url }, template: '{{#each samples}}' }
  const refused = await call('POST /api/notification-channels', { json: bad })
  t.match(refused.body.detail.details.errors, [{ path: 'template', message: /Parse error/ }])
  const listed = await call('GET /api/notification-channels')
  t.notMatch(listed.text + kept.text + tested.text, 'unseen')
  const down = await channel({ type: 'slack', secret: 'http://127.0.0.1:9/secret' })
  const both = { type: 'webhook', url, secret: 'the new one', previous_secret: 'unseen words' }
  await call(`PUT /api/notification-channels/${id}`, { json: { name: 'rotates', target: both } })
  await call(`POST /api/notification-channels/${id}/test`)
  const { headers = {}, body = '' }: Partial<Received> = received.at(-1) ?? {}
  const [t0 = '', ...signatures] = String(headers['x-signature']).split(',')
  t.same(
    signatures,
    [both.secret, both.previous_secret].map(
      (secret) =>
        `v1=${createHmac('sha256', secret)
          .update(`${t0.slice(2)}.${body}`)
          .digest('hex')}`,
    ),
  )
  const failed = await call(`POST /api/notification-channels/${down}/test`)
  t.match(failed.body, { outcome: 'failed', status: null, error: 'ECONNREFUSED' })
  t.equal((await call(`DELETE /api/notification-channels/${down}`)).status, 204)
  t.equal((await call(`POST /api/notification-channels/${down}/test`)).status, 404)
})

t.test('a silence keeps notices back until it ends', { buffered: true }, async (t) => {
  const { url, received } = await startReceiver(t)
  const matchers = [{ field: 'rule', value: '*web-5' }]
  const made = await call('POST /api/silences', {
    json: { matchers, reason: 'we know', ends_at: 'now+1h' },
  })
  t.equal(made.status, 201, made.text)
  t.match(made.body, { state: 'active', matchers, version: 1, updated_by: /^[\w-]{36}$/ })
  const id = await rule('web-5', [await channel({ type: 'webhook', url })], { on_resolve: false })
  await ingest(events(1, 'web-5'))
  const [held] = await eventually(
    () => noticesOf(id),
    (all) => all[0]?.outcome === 'held',
  )
  t.match(held, { attempts: 0, error: `silence ${made.body.id}: we know` })
  // The notice is there a moment before its alert.
  await eventually(
    async () => (await call('POST /api/silences/preview', { json: { matchers } })).body.last_day,
    (count) => count === 1,
  )
  t.equal(
    (
      await call('POST /api/silences/preview', {
        json: { matchers: [{ field: 'rule', value: 'x' }] },
      })
    ).body.last_day,
    0,
  )
  t.equal(received.length, 0)
  const shorter = { matchers, reason: 'we know', starts_at: 'now-2h', ends_at: 'now-1h' }
  const ended = await call(`PUT /api/silences/${made.body.id}`, { json: shorter })
  t.match(ended.body, { state: 'expired', version: 2 })
  await untilCount(received, 1)
  const [sent] = await eventually(
    () => noticesOf(id),
    (all) => all[0]?.outcome === 'sent',
  )
  t.match(sent, { attempts: 1 })
  const wrong = await call('POST /api/silences', { json: { ...shorter, ends_at: 'now-3h' } })
  t.match(wrong.body.detail.details.errors, [{ path: 'ends_at' }])
})

t.test(
  'an alert that begins and ends in a maintenance window is told to nobody',
  { buffered: true },
  async (t) => {
    const { url, received } = await startReceiver(t)
    const window = {
      name: 'always',
      reason: 'it is built anew',
      matchers: [
        { field: 'source', value: 'shop' },
        { field: 'rule', value: '*web-6' },
      ],
      time_zone: 'Pacific/Auckland',
      days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'],
      from: '00:00',
      to: '00:00',
    }
    const made = await call('POST /api/maintenance-windows', { json: window })
    t.match(made.body, { ...window, is_open: true })
    const zone = await call('POST /api/maintenance-windows', {
      json: { ...window, time_zone: 'Mars/Olympus' },
    })
    t.match(zone.body.detail.details.errors, [{ path: 'time_zone' }])
    const id = await rule('web-6', [await channel({ type: 'webhook', url })])
    await ingest(events(1, 'web-6'))
    const notices = await eventually(
      () => noticesOf(id),
      (all) =>
        all.length === 2 && all.every(({ outcome }: { outcome: string }) => outcome === 'silenced'),
    )
    t.match(notices[1], { error: /^maintenance window .*: it is built anew$/ })
    t.equal(received.length, 0)
    t.equal((await call(`DELETE /api/maintenance-windows/${made.body.id}`)).status, 204)
  },
)

t.test('what a channel can not deliver goes to its fallback', { buffered: true }, async (t) => {
  const { url, received, answers } = await startReceiver(t)
  const fallback = await channel({ type: 'webhook', url: `${url}/second` })
  const json = { name: 'first', target: { type: 'webhook', url }, fallback, max_per_minute: 600 }
  const first = (await call('POST /api/notification-channels', { json })).body
  t.match(first, { fallback, max_per_minute: 600, failing: null })
  answers.push(404)
  await rule('web-7', [first.id], { on_resolve: false })
  await ingest(events(1, 'web-7'))
  const all = await untilCount(received, 2)
  t.same(
    all.map(({ path }) => path),
    ['/', '/second'],
  )
  const shown = await eventually(
    async () => (await call(`GET /api/notification-channels/${first.id}`)).body,
    ({ failing }) => failing !== null,
  )
  t.match(shown.failing, { error: 'the receiver answered 404' })
  const { checks } = (await call('GET /api/monitoring/health')).body
  t.match(checks.alerts, { status: 'degraded', detail: /channels that do not deliver: \d/ })
  const gone = { ...json, fallback: '00000000-0000-4000-8000-000000000000' }
  t.equal((await call('POST /api/notification-channels', { json: gone })).status, 422)
})
