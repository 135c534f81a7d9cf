import t from 'tap'
import { settled, startLiveService } from '../../support/live-service.js'

// oxlint-disable typescript/no-explicit-any -- the test checks the content of replies

const service = await startLiveService(t)

await service.call('POST /api/applications', { json: { name: 'web shop' } })
const [app] = (await service.call('GET /api/applications')).body
await service.call('POST /api/sources', { json: { name: 'cart', application_id: app.id } })
const timestamp = new Date(Date.now() - 60_000).toISOString()
await service.ingest([
  { source: 'cart', host: 'web-9', message: 'refused 10.0.0.5', timestamp },
  {
    source: 'cart',
    host: 'web-1',
    severity: 'ERROR',
    message: 'refused 10.0.0.9, giving up',
    trace_id: '4bf92f35aa',
    attributes: {
      user: { id: 42, name: 'bob' },
      'http.status': 503,
      region: 'eu-west',
      'user name': 'bob',
      'took ms': 7,
    },
    timestamp,
  },
  {
    source: 'mail',
    severity: 'WARNING',
    message: '接続が拒否されました',
    attributes: { 'user.id': '43', duration_ms: 301.5 },
    timestamp,
  },
  ...Array.from({ length: 3 }, () => ({ source: 'mail', message: 'sent', timestamp })),
  {
    source: 'mail',
    severity: 'ERROR',
    message: 'not sent',
    error: { stack: 'Error: relay-7 is away\n\tat Relay.send (relay.js:7)' },
    timestamp,
  },
  { source: 'mail', message: 'late', tags: { error: 'timeout: relay-8' }, timestamp },
])
await settled(service)

const SHORT: Readonly<Record<string, string>> = {
  'refused 10.0.0.5': 'five',
  'refused 10.0.0.9, giving up': 'nine',
  接続が拒否されました: 'wide',
}
const names = ({ body }: { body: any }): string[] =>
  body.items.map(({ message }: any) => SHORT[message] ?? message).toSorted()
const ask = (parameters: Readonly<Record<string, string>>) =>
  service.call(`GET /api/logs?${new URLSearchParams(parameters).toString()}`)

const parse = (q: string, more: object = {}) =>
  service.call('POST /api/logs/query/parse', { json: { q, ...more } })

t.test('a line of the query language is parsed, or its fault told with its place', async (t) => {
  t.match(await parse('severity:ERR  host:web-1'), {
    status: 200,
    body: {
      query: { kind: 'and', nodes: [{ kind: 'field' }, { kind: 'field' }] },
      canonical: 'severity:error host:web-1',
      error: null,
      hints: [],
      completion: null,
    },
  })
  t.match((await parse('a sevrity:error')).body.hints, [{ position: 2, suggestion: 'severity' }])
  t.match(await parse('a (b'), {
    status: 200,
    body: {
      query: null,
      canonical: null,
      error: { position: 2, length: 2, suggestion: '(b)' },
    },
  })
  t.match((await parse('x'.repeat(2001))).body.error, { position: 2000, length: 1 })
  t.equal((await parse('x'.repeat(8001))).status, 422)
  for (const [line, marked] of [
    ['error aa* (-/\\p{Foo}/ OR host:a,/b/)', '/\\p{Foo}/'],
    ['region:/[z-a]/ error', 'region:/[z-a]/'],
    ['severity:error aa* bb* cc*', 'cc*'],
    [`${'word '.repeat(16)}last`, 'last'],
  ] as const) {
    const { error, query, hints } = (await parse(line)).body
    t.equal(line.slice(error.position, error.position + error.length), marked, line)
    t.same([query, hints], [null, []])
    const asked = await ask({ q: line })
    t.match(asked, { status: 422, body: { detail: { details: { errors: [error] } } } }, line)
  }
  t.match((await parse('/a/')).body, { error: null, hints: [{ position: 0, length: 3 }] })
})

t.test('a position in a line is told what can be typed there', async (t) => {
  const { completion } = (await parse('severity:w', { position: 10 })).body
  t.same(completion, {
    position: 9,
    length: 1,
    expected: ['value'],
    field: { kind: 'builtin', name: 'severity' },
    names: ['warning'],
    attributes: [],
  })
  const typed = async (line: string) =>
    (await parse(line, { position: line.length })).body.completion.attributes
  for (const [line, attributes] of [
    ['reg', ['region']],
    ['region:e', ['eu-west']],
    ['-none', []],
  ] as const)
    t.same(await typed(line), attributes, line)
  const fields = async (q: string) =>
    (await service.call(`GET /api/logs/fields?${new URLSearchParams({ q }).toString()}`)).body
  t.match(await fields('duration_ms>300'), { total: 1, capped: false, answered_from: 'events' })
  const { items, answered_from: from } = await fields('source:mail')
  t.equal(from, 'catalogue')
  t.match(
    items.find(({ field }: any) => field === 'duration_ms'),
    { kind: 'attribute', type: 'number', examples: [301.5] },
  )
  t.match(
    items.find(({ field }: any) => field === 'severity'),
    { kind: 'builtin', type: 'name', share: null },
  )
  t.match((await parse('a', { position: 99 })).body.completion, { position: 0, length: 1 })
  t.equal((await parse('a', { position: -1 })).status, 422)
})

t.test('list-events: q is a line of the query language, beside the other parameters', async (t) => {
  const finds = async (q: string, wanted: string, more = {}) =>
    t.same(names(await ask({ q, ...more })), wanted.split('+').filter(Boolean).toSorted(), q)
  await finds('', 'five+nine+wide+sent+not sent+late')
  await finds('refused', 'five+nine')
  await finds('severity>=warning', 'nine+wide+not sent')
  await finds('severity>=warning -source:mail', 'nine')
  await finds('(host:web-1 OR wide OR count>2) -giving*', 'sent')
  await finds('user.id:42..43', 'nine+wide')
  await finds('user.id:42,43 duration_ms>300', 'wide')
  await finds('has:user -user.name:bob', 'wide')
  await finds('http.status>=500 region:eu-*', 'nine')
  await finds('拒否', 'wide')
  await finds('application:"web shop" -has:trace', 'five')
  await finds('trace:4BF92F35AA', 'nine')
  await finds('message:/10\\.0\\.0\\.\\d$/ source:cart', 'five')
  await finds('new:1h', 'five+nine+wide+sent+not sent+late')
  await finds('-new:1h', '')
  await finds('relay-7', 'not sent')
  await finds('RELAY-8 timeout', 'late')
  await finds('Relay.send', 'not sent')
  await finds('Relay.sen', '')
  await finds('10.0.0.*', 'five+nine', { search: 'refused' })
  await finds('refused', 'nine', { severity: 'ERROR', source: 'cart' })
  await finds('severity:error', '', { severity: 'WARNING' })
  await finds('source:nobody', '')
})

t.test('a search finds what is written without blanks as one word', async (t) => {
  const finds = async (search: string, wanted: string) =>
    t.same(names(await ask({ search })), wanted.split('+').filter(Boolean).toSorted(), search)
  await finds('10.0.0.9', 'nine')
  await finds('10.0.0.5', 'five')
  await finds('10.0.0', '')
  await finds('10.0.0.*', 'five+nine')
  await finds('web-9', 'five')
  await finds('refused-web', '')
  await finds('refused web', 'five+nine')
  await finds('拒否 relay', '')
  await finds('拒否', 'wide')
  await finds('refused -10.0.0.9', 'five')
  await finds('-web-9 refused', 'nine')
  await finds('refused -"0.0.5"', 'nine')
  await finds('refused web-9 -nothing', 'five')
  await finds('-web-9', 'five')
})

t.test('a field that is no parameter is asked for in q', async (t) => {
  const { status, body } = await service.call('GET /api/logs?trace_id=4bf9')
  t.equal(status, 422)
  t.match(JSON.stringify(body), 'q=trace:4bf92f35')
})

t.test('a percent sign that encodes nothing stands for itself', async (t) => {
  const { body } = await service.call('GET /api/logs?q=severity:%zz')
  t.match(body.detail.details.errors, [{ path: 'q', position: 9, length: 3 }])
  t.equal((await service.call('GET /api/logs?q=100%')).status, 200)
})

t.test('a page of q is continued by its cursor, and by no other query', async (t) => {
  const first = await ask({ q: 'source:mail', limit: '2' })
  t.equal(first.body.items.length, 2)
  const cursor = first.body.next_cursor
  const second = await ask({ q: 'source:mail', limit: '2', cursor })
  t.equal(second.body.items.length, 2)
  t.equal(second.body.has_more, false)
  t.match(await ask({ q: 'source:cart', limit: '2', cursor }), {
    status: 422,
    body: { detail: { code: 'invalid_cursor' } },
  })
})

t.test('a fault of q is told with its place', async (t) => {
  const fault = async (q: string, more = {}) => {
    const { status, body } = await ask({ q, ...more })
    t.equal(status, 422, q)
    t.equal(body.detail.code, 'validation_error', q)
    return body.detail.details.errors
  }
  t.same(await fault('severity:eror2'), [
    {
      in: 'query',
      path: 'q',
      position: 9,
      length: 5,
      message: 'severity is one of debug, info, warning, error, critical',
      suggestion: 'error',
    },
  ])
  t.match(await fault('/refu.ed/'), [{ path: 'q', position: 0, message: /another clause/ }])
  const start = { start_time: new Date(Date.now() - 3_000_000).toISOString() }
  t.same(names(await ask({ q: '/refu.ed/', ...start })), ['five', 'nine'])
  t.match(await fault('source:cart /[[:nothing:]]/'), [{ path: 'q', message: /RE2/ }])
  t.match(await fault('a* b* c*'), [{ path: 'q', message: /2 prefixes/ }])
  t.match(await fault('word '.repeat(17)), [{ path: 'q', message: /16 texts/ }])
  t.match(await fault('x'.repeat(2001)), [{ path: 'q', message: /2000 characters/ }])
  t.match(await fault(`${'('.repeat(30)}a`), [{ path: 'q', message: /nested/ }])
})

t.test(
  'a name with a blank may have quotes, and a stray percent sign stands for itself',
  async (t) => {
    const get = async (path: string) => (await service.call(`GET /api/logs/${path}`)).body
    const name = encodeURIComponent('"user name"')
    t.match((await get(`histogram?by=${name}`)).values, [{ value: 'bob', count: 1 }])
    t.match((await get(`facets?fields=${name}`)).facets, [{ values: [{ value: 'bob', count: 1 }] }])
    const two = encodeURIComponent('"user, name",source')
    t.match((await get(`facets?fields=${two}`)).facets, [
      { field: 'user, name' },
      { field: 'source' },
    ])
    const metric = encodeURIComponent('sum("took ms")')
    const { groups } = await get(`stats?by=user%20name&metrics=${metric}&q=has:${name}`)
    t.same(groups, [{ by: { 'user name': 'bob' }, values: { 'sum("took ms")': 7 } }])
    const csv = await service.call(`GET /api/logs/export?format=csv&q=has:${name}&fields=${name}`)
    t.equal(csv.text.split(/\r?\n/, 2).join(), 'user name,"bob"')
    t.equal((await service.call('GET /api/logs?q=%zz')).status, 200, 'a stray % stands for itself')
  },
)

/** Each event is named by the attribute `guide`. */
const GUIDE: readonly object[] = [
  {
    source: 'checkout',
    host: 'web-1',
    severity: 'ERROR',
    trace_id: '4BF92F3577B34DA6',
    message: 'Connection refused by 10.0.0.9: timeout after 12 ms',
    tags: {
      guide: 'refused',
      user: { id: 42 },
      http: { status: 500 },
      region: 'eu-west',
      labels: ['a', 'b'],
      items: [{ id: 7 }],
    },
  },
  {
    source: 'cart',
    host: 'web-2',
    severity: 'WARNING',
    environment: 'production',
    message: 'connection refused by 10.0.0.95',
    tags: {
      guide: 'other address',
      'user.id': '42',
      'user.name': 'bob',
      'http.status': '5e2',
      region: 'eu-north',
      duration_ms: 301,
    },
  },
  {
    source: 'mail',
    host: 'db-1',
    severity: 'INFO',
    environment: 'prod',
    span_id: '0A0B',
    message: 'paying 10.0.0.9.1, user=bob (日本語のテスト)',
    tags: { guide: 'longer', region: 'us', path: '/api/x', 'http.status': 600, host: 'x' },
  },
  {
    source: 'mail',
    host: 'x',
    severity: 'DEBUG',
    type: 'event',
    environment: 'qa',
    message: 'do or die, and timeouts: C:\\new "said" http://a.b/c\nlast line',
    tags: {
      guide: 'quotes',
      at: '12:30',
      v: '1..2',
      star: 'eu-*',
      big: '9007199254740993',
      'user name': 'bob',
      none: null,
      path: '/var',
      region: 'EU-west',
    },
  },
]

/** Lines of the guide, or made from its sentences, with what they find. */
const EXAMPLES: readonly (readonly [line: string, found: string])[] = [
  ['severity:error source:checkout -host:web-1 "connection refused"', ''],
  ['severity:error source:checkout -host:web-2 "connection refused"', 'refused'],
  ['severity>=warning (source:checkout OR source:cart) region:eu-* count>1', 'other address'],
  ['user.id:42 http.status:500..599 -has:user.name message:/timeout after \\d+ ms/', 'refused'],
  ['severity>=warning source:checkout -"card declined"', 'refused'],
  ['refused severity:warning', 'other address'],
  ['refused AND severity:warning', 'other address'],
  ['refused severity:warning OR die', 'other address+quotes'],
  ['(refused OR die) severity:debug', 'quotes'],
  ['-refused', 'longer+quotes'],
  ['NOT refused', 'longer+quotes'],
  ['or and', 'quotes'],
  ['*', 'refused+other address+longer+quotes'],
  ['timeout', 'refused'],
  ['TimeOut', 'refused'],
  ['time*', 'refused+quotes'],
  ['10.0.0.9', 'refused'],
  ['10.0.0.9.', 'refused'],
  ['web-1', 'refused'],
  ['user=bob', 'longer'],
  ['pay*', 'longer'],
  ['"nection ref"', 'refused+other address'],
  ['/timeout after \\d+ ms/ has:guide', 'refused'],
  ['/connection/ has:guide', 'other address'],
  ['/(?i)CONNECTION/ has:guide', 'refused+other address'],
  ['/c.last/ has:guide', 'quotes'],
  ['本語', 'longer'],
  ['severity:err', 'refused'],
  ['severity:warning..error', 'refused+other address'],
  ['severity:info..debug', ''],
  ['severity<=info', 'longer+quotes'],
  ['type:event', 'quotes'],
  ['source:mail,cart', 'other address+longer+quotes'],
  ['host:web-*', 'refused+other address'],
  ['host:/web-\\d/', 'refused+other address'],
  ['host:web', ''],
  ['host:*', 'refused+other address+longer+quotes'],
  ['host:X', ''],
  ['tag.host:x', 'longer'],
  ['environment:prod -source:checkout', 'other address+longer'],
  ['environment:production -source:checkout', 'other address'],
  ['message:web-1', ''],
  ['message:"ED BY"', 'refused+other address'],
  ['trace:4bf92f3577b34da6', 'refused'],
  ['trace:4bf92*', 'refused'],
  ['has:trace', 'refused'],
  ['span:0a0B', 'longer'],
  ['count:2..5', 'other address'],
  ['count>2', ''],
  ['new:1h', 'refused+other address+longer+quotes'],
  ['user.id:42', 'refused+other address'],
  ['region:eu-west', 'refused'],
  ['region:eu-*', 'refused+other address'],
  ['region:eu,us', 'longer'],
  ['http.status:500', 'refused+other address'],
  ['http.status:500.0', 'refused+other address'],
  ['duration_ms>300', 'other address'],
  ['http.status:500..600', 'refused+other address+longer'],
  ['http.status>500', 'longer'],
  ['has:user', 'refused+other address'],
  ['has:none', ''],
  ['path:/^\\/api\\//', 'longer'],
  ['labels:b', 'refused'],
  ['items.id:7', 'refused'],
  ['big:9007199254740993', 'quotes'],
  ['big:9007199254740992', ''],
  ['star:"eu-*"', 'quotes'],
  ['v:"1..2"', 'quotes'],
  ['v:1\\..2', 'quotes'],
  ['at:12\\:30', 'quotes'],
  ['"\\"said\\""', 'quotes'],
  ['"c:\\\\NEW"', 'quotes'],
  ['"user name":bob', 'quotes'],
  ['"http://a.b/c"', 'quotes'],
  ['severity=error', ''],
  ['level:error', ''],
]

t.test('what the guide says of the language holds', async (t) => {
  const now = new Date(Date.now() - 30_000).toISOString()
  const [refused, other, ...others] = GUIDE.map((event) => ({ ...event, timestamp: now }))
  for (const event of [refused, other, other, ...others]) await service.ingest([event ?? {}])
  await settled(service)
  for (const [line, found] of EXAMPLES) {
    const { body } = await ask({ q: `has:guide (${line})` })
    t.same(
      body.items?.map(({ tags }: any) => tags.guide).toSorted() ?? body,
      found.split('+').filter(Boolean).toSorted(),
      line,
    )
  }
  const guides = [...(await ask({ q: 'has:guide' })).body.items]
  for (const { id, tags, priority, template_id: template } of guides) {
    const found = async (q: string): Promise<string[]> =>
      (await ask({ q: `has:guide ${q}` })).body.items.map((item: any) => item.tags.guide)
    t.same(await found(`id:${id}`), [tags.guide])
    t.ok((await found(`template:${template}`)).includes(tags.guide))
    t.ok((await found(`priority:${priority}`)).includes(tags.guide))
    t.notOk((await found(`id>${id}`)).includes(tags.guide))
  }
})

/** The forms in which loggers keep an exception beside a message; its texts are `text` and, where there are two, `other`. */
const THROWN: readonly ((text: string, other: string) => object)[] = [
  (text, other) => ({ source: 'e', tags: { error: { message: other, stack: text } } }),
  (text, other) => ({
    source: 'e',
    tags: { 'exception.type': 'E', 'exception.message': other, 'exception.stacktrace': text },
  }),
  (text) => ({ source: 'e', tags: { stack: text } }),
  (text, other) => ({ service: 'e', error: { type: 'E', message: other, stack_trace: text } }),
  (text, other) => ({ service: 'e', 'error.message': other, 'error.stack_trace': text }),
  (text, other) => ({
    service: 'e',
    thrown: { name: 'E', message: other, extendedStackTrace: [{ class: 'C', file: text }] },
  }),
  (text) => ({ service: 'e', stack_trace: text }),
  (text) => ({ service: 'e', exc_info: text }),
  (text) => ({ service: 'e', exc: { info: text } }),
  (text) => ({ service: 'e', stack: [text, 'frame'] }),
  (text) => ({ service: 'e', attributes: { 'exception.stacktrace': text } }),
  (text, other) => ({ service: 'e', fields: { err: { cause: { message: other }, stack: text } } }),
  (text) => ({ service: 'e', full_message: text, short_message: 'away' }),
  // ClickHouse's functions for JSON know no integer of more than 64 bits.
  (text) => ({ source: 'e', tags: { size: 26e19, err: { count: 26e19, stack: text } } }),
  (text) => ({ source: 'e', tags: { err: text.padEnd(5000, '\n\tat a.b') } }),
]

t.test('an exception is searched in the attributes that hold it, text by text', async (t) => {
  const timestamp = new Date(Date.now() - 20_000).toISOString()
  const names = THROWN.map((_, i) => `n${i}n`)
  const events = THROWN.map((form, i) => {
    const name = names[i] ?? ''
    const made = form(`Err: boom-${name} "at" the gate\n\tat x.y.${name}`, `what ${name} was other`)
    const { tags, ...others } = made as { readonly tags?: object }
    const own = { message: 'away', timestamp, ...others }
    const note = `calm-${name} at the lake`
    return tags === undefined ? { ...own, note } : { ...own, tags: { ...tags, note } }
  })
  for (const event of events) await service.ingest([event])
  await settled(service)
  const found = async (q: string): Promise<readonly string[]> => {
    const { items } = (await ask({ q: `source:e ${q}`, start_time: 'now-30m' })).body
    return items.map(({ tags }: any) => /calm-(\w+)/.exec(JSON.stringify(tags))?.[1]).toSorted()
  }
  t.same(await found('*'), names.toSorted())
  for (const [i, name] of names.entries()) {
    const phrase = `"OOM-${name} \\"at\\" THE"`
    const others = names.filter((one) => one !== name).toSorted()
    t.same(await found(`-${phrase}`), others, `all but ${name}`)
    const isOfTwo = (THROWN[i]?.length ?? 0) > 1
    for (const q of [
      phrase,
      `boom-${name}`,
      `"gate\n\tat x.Y.${name}"`,
      `x.y.${name}*`,
      `/^Err: boom-${name} .*\\sat/`,
      ...(isOfTwo ? [`/^what ${name} was other$/`] : []),
    ])
      t.same(await found(q), [name], q)
    for (const q of [`calm-${name}`, `"calm-${name} at"`, `/calm-${name}/`])
      t.same(await found(q), [], q)
  }
  for (const q of ['"the lake"', '/lake/', '"stack"', '"ntat"', '/Err.*what/', '/other.*Err/'])
    t.same(await found(q), [], q)
})
