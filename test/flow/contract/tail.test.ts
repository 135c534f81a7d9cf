import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { eventually, settled, startLiveService } from '../../support/live-service.js'
import { openTail, type TailRows } from '../../support/tail-socket.js'

const service = await startLiveService(t)
const { call, ingest } = service

let sent = 0
/** Events that differ, so that none is a repeat. */
const events = (count: number, fields: object = {}) =>
  Array.from({ length: count }, () => ({
    source: 'shop',
    severity: 'info',
    message: `order ${++sent} was paid`,
    ...fields,
  }))

const idsOf = (messages: readonly TailRows[]): readonly number[] =>
  messages.flatMap(({ rows }) => rows.map(({ id }) => id)).toSorted((a, b) => a - b)

const listed = async (q: string) =>
  (await call(`GET /api/logs?limit=200&q=${encodeURIComponent(q)}`)).body.items

t.test('a subscription gets what is stored after it, in the form of the list', async (t) => {
  await ingest(events(3, { severity: 'error', host: 'early' }))
  await settled(service)
  const tail = await openTail(service)
  const answer = await tail.subscribe({ q: 'severity:error "was paid"', max: 500 })
  t.match(answer, { type: 'tail:subscribed', id: '', watermark: /^[\w-]+$/ })
  await ingest([
    ...events(4, { severity: 'error', host: 'late', tags: { user: { id: 'ü' } } }),
    ...events(2, { host: 'late' }),
  ])
  const messages = await tail.untilMatched(4)
  t.equal(idsOf(messages).length, 4)
  const shown = messages.flatMap(({ rows }) => rows)
  t.same(
    shown.toSorted((a, b) => b.id - a.id),
    await listed('host:late severity:error'),
  )
  for (const { from, to, matched, left_out, rows } of messages) {
    t.ok(Date.parse(from) <= Date.parse(to), 'the span has an order')
    t.equal(matched, rows.length + left_out)
  }
  tail.end()
})

t.test('subscriptions of a connection are told apart, replaced and ended', async (t) => {
  const tail = await openTail(service)
  await tail.subscribe({ id: 'warnings', q: 'severity:warning' })
  await tail.subscribe({ id: 'all', max: 0 })
  await tail.subscribe({ id: 'replaced', q: 'severity:warning' })
  await tail.subscribe({ id: 'replaced', q: 'severity:critical' })
  await tail.subscribe({ id: 'ended' })
  tail.send({ unsubscribe: 'ended' })
  await eventually(
    async () => tail.messages,
    (all) => all.some(({ type, id }) => type === 'tail:unsubscribed' && id === 'ended'),
  )
  await ingest([...events(3, { severity: 'warning' }), ...events(2, { severity: 'critical' })])
  await tail.untilMatched(5, 'all')
  t.equal(idsOf(await tail.untilMatched(3, 'warnings')).length, 3)
  t.equal(idsOf(await tail.untilMatched(2, 'replaced')).length, 2)
  t.same(idsOf(tail.rowsOf('all')), [], 'max 0 only counts')
  t.same(tail.rowsOf('ended'), [])
  tail.end()
})

t.test('rows are the newest, and the rest is counted', async (t) => {
  const tail = await openTail(service)
  await tail.subscribe({ q: 'host:many', max: 2 })
  const start = Date.now()
  const timed = events(10, { host: 'many' }).map((event, i) => ({
    ...event,
    timestamp: new Date(start + i).toISOString(),
  }))
  await ingest(timed)
  const [message] = await tail.untilMatched(10)
  t.match(message, { matched: 10, left_out: 8 })
  t.same(
    message?.rows.map((row) => row.message),
    [timed[9]?.message, timed[8]?.message],
  )
  tail.end()
})

t.test('a watermark goes on over connections and a restart, with each event once', async (t) => {
  const first = await openTail(service)
  await first.subscribe({ id: 'x', q: 'source:shop host:resumed', max: 500 })
  await ingest(events(5, { host: 'resumed' }))
  const before = await first.untilMatched(5, 'x')
  first.end()
  const { watermark } = before.at(-1) ?? { watermark: '' }
  await ingest(events(4, { host: 'resumed' }))
  await service.restart()
  await ingest(events(3, { host: 'resumed' }))
  await settled(service)
  const second = await openTail(service)
  const answer = await second.subscribe({ id: 'y', q: 'host:resumed', max: 500 }, watermark)
  t.equal(answer.watermark, watermark, 'until the missed events came, it is the old one')
  await ingest(events(2, { host: 'resumed' }))
  const after = await second.untilMatched(9, 'y')
  t.equal(idsOf(after).length, 9)
  const all = (await listed('host:resumed')).map(({ id }: { id: number }) => id)
  t.same(
    [...idsOf(before), ...idsOf(after)],
    all.toSorted((a: number, b: number) => a - b),
  )
  const again = await openTail(service)
  await again.subscribe({ q: 'host:resumed', max: 2 }, watermark)
  t.match(
    await again.untilMatched(9),
    [{ matched: 9, left_out: 7 }],
    'the newest of what was missed',
  )
  for (const tail of [second, again]) tail.end()
})

t.test('the URL of a tail may have its subscription', async (t) => {
  const tail = await openTail(service, service.token, '?q=host:named&max=2&id=u')
  await eventually(
    async () => tail.messages,
    (all) => all.some(({ type, id }) => type === 'tail:subscribed' && id === 'u'),
  )
  await ingest([...events(3, { host: 'named' }), ...events(1, { host: 'other' })])
  const messages = await tail.untilMatched(3, 'u')
  const { watermark } = messages[0] ?? { watermark: '' }
  t.ok(messages.every(({ rows }) => rows.length <= 2))
  t.ok(idsOf(messages).length > 0)
  tail.end()
  for (const [query, path] of [
    ['?q=severity:eror2', 'q'],
    ['?max=many', 'subscribe.max'],
    ['?query=x', 'subscribe.query'],
  ] as const) {
    const wrong = await openTail(service, service.token, query)
    const [error] = await eventually(
      async () => wrong.messages,
      (all) => all.length > 0,
    )
    t.match(error, { type: 'tail:error', error: { code: 'validation_error', path } }, query)
    wrong.end()
  }
  await ingest(events(2, { host: 'named' }))
  const resumed = await openTail(service, service.token, `?q=host:named&resume=${watermark}`)
  t.match(await resumed.untilMatched(2), [{ matched: 2, left_out: 0 }])
  resumed.end()
})

t.test('what a subscription missed is bounded, as what arrives is', async (t) => {
  const first = await openTail(service)
  const { watermark } = await first.subscribe({ q: 'host:large' })
  first.end()
  const padding = 'x'.repeat(50_000)
  for (let i = 0; i < 10; i++) await ingest(events(1, { host: 'large', tags: { padding, i } }))
  await settled(service)
  const second = await openTail(service)
  await second.subscribe({ q: 'host:large', max: 500 }, watermark)
  const messages = await second.untilMatched(10)
  t.match(messages, [{ matched: 10, left_out: 5 }])
  second.end()
})

t.test('what is wrong with a message is told, and the connection stays', async (t) => {
  const tail = await openTail(service)
  await tail.subscribe({ id: 'good', max: 1 })
  t.match(await tail.subscribe({ id: 'q', q: 'severity:eror2 x' }), {
    type: 'tail:error',
    error: { code: 'validation_error', path: 'q', position: 9, length: 5, suggestion: 'error' },
  })
  t.match(await tail.subscribe({ id: 'max', max: 501 }), {
    error: { code: 'validation_error', path: 'subscribe.max' },
  })
  t.match(await tail.subscribe({ id: 'w' }, 'AAAA'), { error: { code: 'invalid_cursor' } })
  for (const text of [
    'no JSON',
    '[]',
    '{}',
    '"x"',
    '{"subscribe":{"more":1}}',
    '{"unsubscribe":1}',
  ])
    tail.send(text)
  await eventually(
    async () => tail.messages.filter(({ type, id }) => type === 'tail:error' && id === ''),
    (errors) => errors.length === 6,
  )
  for (let i = 0; i < 15; i++) await tail.subscribe({ id: `${i}`, q: 'host:none' })
  t.match(await tail.subscribe({ id: 'one more' }), { error: { code: 'overloaded' } })
  await ingest(events(1))
  await tail.untilMatched(1, 'good')
  t.equal(tail.closed(), null)
  tail.end()
})

t.test('a user at the most subscriptions can replace one of them', async (t) => {
  const viewer = await service.newUser('viewer')
  const tails = await Promise.all(
    Array.from({ length: 4 }, () => openTail(service, viewer.access_token)),
  )
  for (const tail of tails)
    for (let i = 0; i < 16; i++) await tail.subscribe({ id: `${i}`, q: 'host:none' })
  const [tail] = tails
  t.match(await tail?.subscribe({ id: '3', q: 'host:replaced' }), { type: 'tail:subscribed' })
  const further = await openTail(service, viewer.access_token)
  t.match(await further.subscribe({ id: '3' }), { error: { code: 'overloaded' } })
  await ingest(events(2, { host: 'replaced' }))
  await tail?.untilMatched(2, '3')
  for (const one of [...tails, further]) one.end()
})

t.test('it is for users: a socket closes without a token and with its session', async (t) => {
  const anonymous = await openTail(service, '')
  t.match(
    await eventually(
      async () => anonymous.closed(),
      (closed) => closed !== null,
    ),
    { code: 1008 },
  )
  const viewer = await service.newUser('viewer')
  const tail = await openTail(service, viewer.access_token)
  t.match(await tail.subscribe({}), { type: 'tail:subscribed' })
  await call('POST /api/auth/logout', { token: viewer.access_token })
  t.match(
    await eventually(
      async () => tail.closed(),
      (closed) => closed !== null,
    ),
    { code: 1008 },
  )
})

t.test('a client that does not read stays connected and misses rows, never counts', async (t) => {
  const tail = await openTail(service)
  await tail.subscribe({ q: 'host:flood', max: 500 })
  tail.socket.pause()
  const padding = 'x'.repeat(20_000)
  const rounds = 40
  for (let i = 0; i < rounds; i++) {
    await ingest(events(100, { host: 'flood', tags: { padding } }))
    await sleep(100)
  }
  await settled(service)
  tail.socket.resume()
  const messages = await tail.untilMatched(rounds * 100)
  const ids = idsOf(messages)
  const matched = messages.reduce((sum, message) => sum + message.matched, 0)
  const leftOut = messages.reduce((sum, message) => sum + message.left_out, 0)
  t.equal(matched, rounds * 100)
  t.equal(ids.length + leftOut, matched, 'received and left out are all')
  t.equal(new Set(ids).size, ids.length, 'none twice')
  t.ok(leftOut > 0, 'some were left out')
  t.equal(tail.closed(), null)
  tail.end()
})
